"use strict";
(async () => {
  const root = document.documentElement;
  const $ = (id) => document.getElementById(id);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  for (const node of all(".js-only")) node.hidden = false;

  /* Theme: that of the system until the reader chooses. */
  const system = matchMedia("(prefers-color-scheme: dark)");
  const other = () => ((root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark" ? "light" : "dark");
  const label = () => { $("theme").textContent = other() === "dark" ? "Dark theme" : "Light theme"; };
  $("theme").addEventListener("click", () => { root.dataset.theme = other(); label(); });
  system.addEventListener("change", label);
  label();

  /* What is wider than its box says so. */
  const boxes = new ResizeObserver((seen) => {
    for (const { target } of seen) target.classList.toggle("wide", target.scrollWidth > target.clientWidth);
  });
  for (const box of all(".scroll")) boxes.observe(box);

  if (!$("data")) return;
  const unpack = (id) => {
    const bytes = Uint8Array.from(atob($(id).textContent), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
  };
  const data = await unpack("data");
  let tasks = null; // unpacked when first asked for

  const NOTHING = "\u2013";
  const table = $("lb");
  const state = { protocol: 0, entry: 0, task: -1, measure: "regret", trial: 0, sort: "rank", descending: false, chosen: new Set(), own: false, hovered: null };
  const protocol = () => data.protocols[state.protocol];
  const entry = () => protocol().entries[state.entry];
  const source = () => (state.task < 0 ? entry().measures : tasks[state.protocol][state.entry][state.task]);
  const column = (key) => data.columns.find((one) => one.key === key);
  const isMeasure = (key) => data.measures.includes(key);
  /* Decimals of a column; where they depend on the unit, as many as give the largest four digits. */
  const decimalsOf = (key) => {
    const { decimals } = column(key);
    if (decimals !== null) return decimals;
    const largest = Math.max(...source()[key][0].flat().map(Math.abs), 1e-9);
    return Math.max(0, Math.min(9, 3 - Math.floor(Math.log10(largest))));
  };
  const number = (value, key) => value.toFixed(decimalsOf(key)).replace("-", "\u2212");
  const interval = (key, low, high) => (low === null ? "" : `${number(low, key)} to ${number(high, key)}`);
  /* Mean and the ends of its interval; null where there is none. */
  const at = (key, m, trial = state.trial) => [0, 1, 2].map((end) => source()[key]?.[end]?.[m]?.[trial - 1] ?? null);
  const order = (key, m) => {
    const [mean] = at(key, m);
    return mean !== null && key === "value" && entry().maximised ? -mean : mean;
  };
  const make = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  };

  /* Table. */
  const cellOf = (key, m) => { // what it is sorted by, its text, and small print
    if (key === "method") return [protocol().methods[m].toLowerCase(), protocol().methods[m]];
    if (isMeasure(key)) {
      const [mean, low, high] = at(key, m);
      if (mean === null) return [null, NOTHING];
      return [order(key, m), number(mean, key), interval(key, low, high)];
    }
    if (key !== "wins") return entry()[key][m] ?? [null, NOTHING];
    const counts = state.task < 0 && entry().wins[m]?.[state.trial - 1];
    return counts ? [counts[2] - counts[0], counts.join("\u2009/\u2009")] : [null, NOTHING];
  };
  const shownMethods = () => {
    const words = $("filter").value.trim().toLowerCase();
    const isShown = (name) => name.toLowerCase().includes(words) && (!$("only").checked || state.chosen.has(name));
    return [...protocol().methods.keys()].filter((m) => isShown(protocol().methods[m]));
  };
  const sorted = (methods, keyOf, descending = false) => {
    const rows = methods.map((m) => [m, keyOf(m)]);
    rows.sort(([, a], [, b]) => {
      if (a === null || b === null) return (a === null) - (b === null); // without a number: last
      return (descending ? -1 : 1) * (a < b ? -1 : a > b ? 1 : 0);
    });
    return rows.map(([m]) => m);
  };
  const choose = (method) => { state.own = true; if (!state.chosen.delete(method)) state.chosen.add(method); render(); };
  const rowOf = (columns) => (m) => {
    const method = protocol().methods[m];
    const chosen = state.chosen.has(method);
    const { colour, dash } = protocol().looks[m];
    const button = make("button", { type: "button", "aria-pressed": chosen, "data-method": method });
    button.innerHTML = `<svg class="swatch" width="26" height="10" aria-hidden="true"><line x1="1" x2="25" y1="5" y2="5" stroke="${colour}" stroke-dasharray="${dash.join(" ")}"/></svg>`;
    button.append(method);
    const cells = columns.slice(1).map(({ key }) => {
      const [, text, small] = cellOf(key, m);
      return make("td", { class: "n" }, text, ...(small ? [make("small", {}, small)] : []));
    });
    const kinds = [chosen && "chosen", method === data.reference && "reference"].filter(Boolean);
    return make("tr", { class: kinds.join(" "), "data-method": method }, make("th", { scope: "row" }, button), ...cells);
  };
  const headingOf = ({ key, title, meaning }) => {
    const sort = key === state.sort ? { "aria-sort": state.descending ? "descending" : "ascending" } : {};
    const button = make("button", { type: "button", "data-key": key }, title);
    return make("th", { scope: "col", title: meaning, class: key === "method" ? "" : "n", ...sort }, button);
  };
  const about = () => [entry().label, entry().tasks[state.task], protocol().label, `after trial ${state.trial} of ${entry().trials}`]
    .filter(Boolean).join("; ");
  const renderTable = () => {
    const columns = data.columns.filter(({ key }) => !isMeasure(key) || source()[key]);
    const { method, key } = table.contains(document.activeElement) ? document.activeElement.dataset : {};
    table.tHead.rows[0].replaceChildren(...columns.map(headingOf));
    const methods = sorted(shownMethods(), (m) => cellOf(state.sort, m)[0], state.descending);
    table.tBodies[0].replaceChildren(...methods.map(rowOf(columns)));
    if (method || key) all("button", table).find(({ dataset }) => dataset.method === method && dataset.key === key)?.focus();
    $("lb-about").textContent = about();
    $("trial-shown").textContent = `${state.trial} of ${entry().trials}`;
    $("lb-notes").replaceChildren(...entry().notes.map((text) => make("p", { class: "note" }, text)));
  };
  table.addEventListener("click", ({ target }) => {
    const { method, key } = target.closest("button")?.dataset ?? {};
    if (method) choose(method);
    if (!key) return;
    Object.assign(state, { sort: key, descending: state.sort === key && !state.descending });
    render();
  });
  table.addEventListener("pointerover", ({ target }) => hover(target.closest("tr").dataset.method ?? null));
  table.addEventListener("pointerleave", () => hover(null));

  /* Chart. */
  let view = null, points = [], drawnLog = null;
  const isLog = () => $("log").checked && state.measure === "regret";
  const rowsOfChart = () => shownMethods().flatMap((m) => {
    const method = protocol().methods[m];
    const common = { method, ...protocol().looks[m], chosen: state.chosen.has(method) };
    return Array.from({ length: entry().trials }, (_, t) => {
      const [mean, low, high] = at(state.measure, m, t + 1);
      return { ...common, trial: t + 1, mean: isLog() && mean <= 0 ? null : mean, low, high };
    }).filter(({ mean }) => mean !== null);
  });
  /* The lower end of a band stays on a logarithmic axis. */
  const bounded = (rows) => {
    if (!isLog()) return rows;
    const least = Math.min(...rows.map(({ mean }) => mean)) / 1.5;
    return rows.map((row) => ({ ...row, low: row.low === null ? null : Math.max(row.low, least) }));
  };
  /* Names at the ends of the curves in colour, moved apart where they would overlap. */
  const names = () => {
    const scale = view.scale("y"), gap = 13, bottom = view.height();
    const last = points.filter(({ chosen, trial }) => chosen && trial === entry().trials);
    const placed = last.map((row) => ({ ...row, y: scale(row.mean) })).sort((a, b) => a.y - b.y);
    placed.forEach((row, n) => { if (n) row.y = Math.max(row.y, placed[n - 1].y + gap); });
    let limit = bottom;
    for (const row of placed.toReversed()) { row.y = Math.min(row.y, limit); limit = row.y - gap; }
    const most = isNarrow() ? 14 : 26;
    return placed.map(({ method, trial, colour, y }) => ({
      trial, colour, mean: scale.invert(y), name: method.length > most ? `${method.slice(0, most - 1)}\u2026` : method,
    }));
  };
  const isNarrow = () => $("chart").clientWidth < 600;
  const renderChart = async () => {
    if (!view) return;
    if (drawnLog !== isLog()) { await embed(); return; }
    points = bounded(rowsOfChart());
    const { title } = column(state.measure);
    view.signal("title", title).signal("hovered", state.hovered);
    view.data("curves", points).data("at", [{ trial: state.trial }]).data("names", []);
    await view.resize().runAsync();
    await view.data("names", names()).resize().runAsync();
    const said = `${title} by trial of ${new Set(points.map(({ method }) => method)).size} methods; ${about()}. The table below has the numbers.`;
    for (const [name, value] of [["role", "img"], ["aria-label", said]]) $("chart").querySelector("svg").setAttribute(name, value);
  };
  const hover = (method) => { if (state.hovered !== method) view?.signal("hovered", state.hovered = method).runAsync(); };
  const fit = () => {
    const width = $("chart").clientWidth;
    if (view && width) view.width(Math.max(160, width - (isNarrow() ? 150 : 230))).height(isNarrow() ? 260 : 360);
  };
  const embed = async () => {
    if (document.readyState === "loading") await new Promise((done) => { addEventListener("DOMContentLoaded", done); });
    const spec = structuredClone(data.spec);
    drawnLog = isLog();
    $("log").disabled = state.measure !== "regret";
    if (drawnLog) Object.assign(spec.scales.find(({ name }) => name === "y"), { type: "log", zero: false, nice: false });
    spec.data.find(({ name }) => name === "curves").values = bounded(rowsOfChart());
    view?.finalize();
    view = null;
    const options = { mode: "vega", ast: true, renderer: "svg", actions: false, tooltip: false, hover: false, logLevel: 1, config: {} };
    view = (await window.vegaEmbed($("chart"), spec, options)).view;
    fit();
    await renderChart();
    root.dataset.ready = "true";
    performance.mark("ready");
  };

  /* The curve and the trial nearest to the pointer. */
  const nearest = (event) => {
    const svg = $("chart").querySelector("svg");
    if (!view || !svg || !points.length) return null;
    const box = svg.getBoundingClientRect();
    const [left, top] = view.origin();
    const x = event.clientX - box.left - left, y = event.clientY - box.top - top;
    if (x < -10 || x > view.width() + 10 || y < -10 || y > view.height() + 10) return null;
    const trial = Math.min(Math.max(Math.round(view.scale("x").invert(x)), 1), entry().trials);
    const gap = (row) => Math.abs(view.scale("y")(row.mean) - y) + (row.chosen ? 0 : 3);
    const [row] = points.filter((one) => one.trial === trial).sort((a, b) => gap(a) - gap(b));
    return row ? { row, gap: gap(row), x: x + left, y: y + top, width: box.width } : null;
  };
  const tip = $("tip");
  $("chart").addEventListener("pointermove", (event) => {
    const near = nearest(event);
    hover(near?.row.method ?? null);
    tip.hidden = !near;
    if (!near) return;
    const { method, trial, mean, low, high } = near.row;
    const ends = interval(state.measure, low, high);
    const text = `trial ${trial}: ${number(mean, state.measure)}${ends && ` (${ends})`}`;
    tip.replaceChildren(make("strong", {}, method), make("span", {}, text));
    tip.style.left = `${Math.max(0, Math.min(near.x + 14, near.width - tip.offsetWidth))}px`;
    tip.style.top = `${near.y + 14}px`;
  });
  $("chart").addEventListener("pointerleave", () => { hover(null); tip.hidden = true; });
  $("chart").addEventListener("click", (event) => {
    const near = nearest(event);
    if (near && near.gap < 16) choose(near.row.method);
  });

  /* Controls. */
  const render = () => { if (!state.own) chooseBest(); renderTable(); return renderChart(); };
  const fill = (id, texts, values = texts.keys()) => {
    const options = [...values].map((value, n) => new Option(texts[n], value));
    $(id).replaceChildren(...options);
  };
  const chooseBest = () => { // the first of the table, or by rank
    const { methods } = protocol();
    const ranked = sorted([...methods.keys()], (m) => order(isMeasure(state.sort) ? state.sort : "rank", m)).map((m) => methods[m]);
    state.chosen = new Set(ranked.filter((method, place) => ranked.length <= data.few || place < data.best || method === data.reference));
  };
  const fillMeasures = () => {
    const measures = data.measures.filter((key) => source()[key]);
    if (!measures.includes(state.measure)) [state.measure] = measures;
    if (isMeasure(state.sort) && !measures.includes(state.sort)) state.sort = state.measure;
    fill("measure", measures.map((key) => column(key).title), measures);
    $("measure").value = state.measure;
  };
  const fillTasks = () => {
    state.task = -1;
    fill("task", ["mean over tasks", ...entry().tasks], [-1, ...entry().tasks.keys()]);
    $("task").disabled = !entry().tasks.length;
    fillMeasures();
    const stood = state.trial === Number($("trial").max) ? Infinity : state.trial || Infinity;
    $("trial").max = entry().trials;
    $("trial").value = state.trial = Math.min(stood, entry().trials);
  };
  const fillEntries = () => {
    state.entry = 0;
    fill("benchmark", protocol().entries.map(({ label }) => label));
    fillTasks();
    state.own = false;
  };
  const on = (id, kind, action) => $(id).addEventListener(kind, async () => { await action($(id).value); render(); });
  fill("protocol", data.protocols.map(({ label }) => label));
  $("protocol").closest("label").hidden = data.protocols.length < 2;
  on("protocol", "change", (value) => { state.protocol = Number(value); fillEntries(); });
  on("benchmark", "change", (value) => { state.entry = Number(value); fillTasks(); });
  on("task", "change", async (value) => { tasks ??= await unpack("tasks"); state.task = Number(value); fillMeasures(); });
  on("measure", "change", (value) => { state.measure = state.sort = value; state.descending = false; });
  on("trial", "input", (value) => { state.trial = Number(value); });
  for (const id of ["filter", "only", "log"]) on(id, "input", () => {});
  on("choose-best", "click", () => { state.own = false; });
  on("choose-all", "click", () => { Object.assign(state, { own: true, chosen: new Set(protocol().methods) }); });
  on("choose-none", "click", () => { Object.assign(state, { own: true, chosen: new Set() }); });
  document.querySelector("form.controls").addEventListener("submit", (event) => event.preventDefault());
  fillEntries();
  await render();
  await embed();
  new ResizeObserver(() => { fit(); renderChart(); }).observe($("chart"));
})();
