"use strict";
(async () => {
  const root = document.documentElement;
  const $ = (id) => document.getElementById(id);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  for (const node of all(".js-only")) node.hidden = false;

  /* Theme: that of the system until the reader chooses; light in print. */
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const showTheme = () => {
    $("theme").textContent = isDark() ? "Light" : "Dark";
    $("theme").setAttribute("aria-label", isDark() ? "Use the light theme" : "Use the dark theme");
  };
  $("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    showTheme();
  });
  system.addEventListener("change", showTheme);
  showTheme();
  let themeBefore;
  addEventListener("beforeprint", () => {
    themeBefore = root.dataset.theme;
    root.dataset.theme = "light";
  });
  addEventListener("afterprint", () => {
    if (themeBefore) root.dataset.theme = themeBefore;
    else delete root.dataset.theme;
  });

  /* A link to something within a closed part opens it. */
  const reveal = () => {
    const target = $(decodeURIComponent(location.hash.slice(1)));
    for (let node = target; node; node = node.parentElement) {
      if (node.tagName === "DETAILS") node.open = true;
    }
    target?.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  reveal();

  if (!$("data")) return;
  const unpack = (id) => {
    const text = atob($(id).textContent);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
  };
  const data = await unpack("data");
  let tasks = null; // unpacked when first asked for

  const NOTHING = "\u2013", THIN = "\u2009";
  const table = $("lb");
  const headings = [...table.tHead.rows[0].cells];
  const state = {
    protocol: 0, entry: 0, task: -1, measure: "regret", trial: 0, sort: table.dataset.sorted, descending: false, chosen: new Set(), hovered: null,
  };
  const protocol = () => data.protocols[state.protocol];
  const entry = () => protocol().entries[state.entry];
  const source = () => (state.task < 0 ? entry().measures : tasks[state.protocol][state.entry][state.task]);
  const number = (value, decimals) => (value ?? null) === null
    ? NOTHING
    : (decimals === null ? String(Number(value.toPrecision(4))) : value.toFixed(decimals)).replace("-", "\u2212");
  const measureOf = (key) => data.measures.find((measure) => measure.key === key);
  /* Mean and the ends of its interval; null where there is none. */
  const at = (key, method, trial = state.trial) =>
    (source()[key] ?? []).map((rows) => rows[method]?.[trial - 1] ?? null);
  const sign = (key) => (key === "value" && entry().maximised ? -1 : 1);

  const make = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  };

  /* Table. */
  const cellOf = (key, m) => {
    const { wins, others } = entry();
    if (measureOf(key)) {
      const { decimals } = measureOf(key);
      const [mean, low, high] = at(key, m);
      const small = (low ?? null) === null ? "" : `${number(low, decimals)} to ${number(high, decimals)}`;
      return { order: (mean ?? null) === null ? null : sign(key) * mean, text: number(mean, decimals), small };
    }
    if (key === "wins") {
      const counts = state.task < 0 ? wins[m]?.[state.trial - 1] : null;
      return counts ? { order: counts[2] - counts[0], text: counts.join(`${THIN}/${THIN}`) } : { order: null, text: NOTHING };
    }
    if (key === "method") return { order: protocol().methods[m].toLowerCase(), text: protocol().methods[m] };
    return others[key][m];
  };
  const shownMethods = () => {
    const words = $("filter").value.trim().toLowerCase();
    return protocol().methods.map((_, m) => m).filter((m) =>
      (!words || protocol().methods[m].toLowerCase().includes(words))
      && (!$("only").checked || state.chosen.has(protocol().methods[m])));
  };
  const sorted = (methods) => {
    const direction = state.descending ? -1 : 1;
    const rows = methods.map((m) => [m, cellOf(state.sort, m).order]);
    rows.sort(([, a], [, b]) => {
      if (a === null || b === null) return (a === null) - (b === null); // without a number: last
      return direction * (a < b ? -1 : a > b ? 1 : 0);
    });
    return rows.map(([m]) => m);
  };
  const swatch = (m) => {
    const space = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(space, "svg");
    const line = document.createElementNS(space, "line");
    for (const [name, value] of Object.entries({ class: "swatch", width: 26, height: 10, "aria-hidden": "true" })) svg.setAttribute(name, value);
    for (const [name, value] of Object.entries({ x1: 1, x2: 25, y1: 5, y2: 5, "stroke-dasharray": protocol().looks[m].dash.join(" ") })) line.setAttribute(name, value);
    line.style.stroke = protocol().looks[m].colour;
    svg.append(line);
    return svg;
  };
  const choose = (method) => {
    if (!state.chosen.delete(method)) state.chosen.add(method);
    render();
  };
  const rowOf = (m) => {
    const method = protocol().methods[m];
    const chosen = state.chosen.has(method);
    const row = make("tr", chosen ? { class: "chosen" } : {});
    for (const { dataset: { key }, hidden } of headings) {
      if (hidden) continue;
      const { text, small } = cellOf(key, m);
      const cell = key === "method" ? make("th", { scope: "row" }) : make("td", { class: "n" }, text);
      if (key === "method") {
        const button = make("button", { type: "button", "aria-pressed": chosen, "data-method": method }, swatch(m), text);
        button.addEventListener("click", () => {
          choose(method);
          all("button", table).find((other) => other.dataset.method === method)?.focus();
        });
        cell.append(button);
      }
      if (small) cell.append(make("small", {}, small));
      row.append(cell);
    }
    row.addEventListener("pointerenter", () => hover(method));
    row.addEventListener("pointerleave", () => hover(null));
    return row;
  };
  const about = () => [
    entry().label, entry().tasks[state.task], protocol().label,
    `after trial ${state.trial} of ${entry().trials}`,
  ].filter(Boolean).join("; ");
  const renderTable = () => {
    for (const cell of headings) {
      cell.hidden = Boolean(measureOf(cell.dataset.key)) && !source()[cell.dataset.key];
      if (cell.dataset.key === state.sort) cell.setAttribute("aria-sort", state.descending ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    }
    table.tBodies[0].replaceChildren(...sorted(shownMethods()).map(rowOf));
    $("lb-about").textContent = about();
    $("trial-shown").textContent = `${state.trial} of ${entry().trials}`;
    $("lb-notes").replaceChildren(...entry().notes.map((text) => make("p", { class: "note" }, text)));
  };

  /* Chart. */
  let view = null;
  let points = [];
  let drawnLog = null;
  const isLog = () => $("log").checked && state.measure === "regret";
  const rowsOfChart = () => shownMethods().flatMap((m) => {
    const method = protocol().methods[m];
    const { colour, dash } = protocol().looks[m];
    const chosen = state.chosen.has(method);
    return Array.from({ length: entry().trials }, (_, t) => {
      const [mean = null, low = null, high = null] = at(state.measure, m, t + 1);
      return { method, colour, dash, chosen, trial: t + 1, mean, low, high };
    }).filter((row) => row.mean !== null && (!isLog() || row.mean > 0))
      .map((row) => (isLog() && !(row.low > 0) ? { ...row, low: null, high: null } : row));
  });
  const renderChart = async () => {
    if (!view) return;
    if (drawnLog !== isLog()) { await embed(); return; }
    points = rowsOfChart();
    const { title, most } = measureOf(state.measure);
    view.signal("title", title);
    view.signal("most", most !== null && points.some(({ mean, high }) => Math.max(mean, high) > most) ? most : null);
    view.signal("hovered", state.hovered);
    view.data("curves", points).data("at", [{ trial: state.trial }]);
    await view.resize().runAsync();
    const label = `${title} by trial of ${new Set(points.map((row) => row.method)).size} methods; ${about()}. The table below has the numbers.`;
    $("chart").querySelector("svg").setAttribute("aria-label", label);
    $("chart").querySelector("svg").setAttribute("role", "img");
  };
  const hover = (method) => {
    if (state.hovered === method) return;
    state.hovered = method;
    view?.signal("hovered", method).runAsync();
  };
  const fit = () => {
    const width = $("chart").clientWidth;
    if (view && width) view.width(Math.max(160, width - 70)).height(width < 600 ? 260 : 360);
  };
  const embed = async () => {
    const spec = structuredClone(data.spec);
    drawnLog = isLog();
    $("log").disabled = state.measure !== "regret";
    if (drawnLog) Object.assign(spec.scales.find((scale) => scale.name === "y"), { type: "log", zero: false });
    const given = (name, values) => { spec.data.find((one) => one.name === name).values = values; };
    points = rowsOfChart();
    given("curves", points);
    given("at", [{ trial: state.trial }]);
    if (document.readyState === "loading") await new Promise((done) => { addEventListener("DOMContentLoaded", done); });
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
    let best = null;
    for (const row of points) {
      if (row.trial !== trial) continue;
      const gap = Math.abs(view.scale("y")(row.mean) - y) + (row.chosen ? 0 : 3);
      if (!best || gap < best.gap) best = { gap, row };
    }
    return best && { ...best, x: event.clientX - box.left, y: event.clientY - box.top, width: box.width };
  };
  const tip = $("tip");
  $("chart").addEventListener("pointermove", (event) => {
    const found = nearest(event);
    hover(found?.row.method ?? null);
    tip.hidden = !found;
    if (!found) return;
    const { method, trial, mean, low, high } = found.row;
    const { decimals } = measureOf(state.measure);
    const interval = low === null ? "" : ` (${number(low, decimals)} to ${number(high, decimals)})`;
    tip.replaceChildren(make("strong", {}, method), make("span", {}, `trial ${trial}: ${number(mean, decimals)}${interval}`));
    tip.style.left = `${Math.min(found.x + 14, found.width - tip.offsetWidth)}px`;
    tip.style.top = `${found.y + 14}px`;
  });
  $("chart").addEventListener("pointerleave", () => { hover(null); tip.hidden = true; });
  $("chart").addEventListener("click", (event) => {
    const found = nearest(event);
    if (found && found.gap < 16) choose(found.row.method);
  });

  /* Controls. */
  const render = () => { renderTable(); return renderChart(); };
  const option = (text, value) => make("option", { value }, text);
  const cellOrder = (m, trial) => {
    const mean = at(state.measure, m, trial)[0] ?? null;
    return mean === null ? Infinity : sign(state.measure) * mean;
  };
  const chooseBest = () => {
    const last = entry().trials;
    const ranked = protocol().methods.map((name, m) => [name, cellOrder(m, last)]);
    ranked.sort(([, a], [, b]) => a - b);
    const few = ranked.length <= data.few;
    state.chosen = new Set((few ? ranked : ranked.slice(0, data.best)).map(([name]) => name));
    if (protocol().methods.includes(data.reference)) state.chosen.add(data.reference);
  };
  const fillMeasures = () => {
    const measures = data.measures.filter(({ key }) => source()[key]);
    if (!measures.some(({ key }) => key === state.measure)) state.measure = state.sort = measures[0].key;
    $("measure").replaceChildren(...measures.map(({ key, title }) => option(title, key)));
    $("measure").value = state.measure;
  };
  const fillTasks = () => {
    state.task = -1;
    $("task").replaceChildren(option("mean over tasks", -1), ...entry().tasks.map((name, t) => option(name, t)));
    $("task").disabled = !entry().tasks.length;
    fillMeasures();
    const stood = state.trial === Number($("trial").max) ? Infinity : state.trial || Infinity;
    $("trial").max = entry().trials;
    $("trial").value = state.trial = Math.min(stood, entry().trials);
  };
  const fillEntries = () => {
    state.entry = 0;
    const groups = new Map();
    protocol().entries.forEach(({ group, label }, e) => groups.set(group, [...(groups.get(group) ?? []), option(label, e)]));
    $("benchmark").replaceChildren(...[...groups].map(([label, options]) => make("optgroup", { label }, ...options)));
    fillTasks();
    chooseBest();
  };
  const on = (id, kind, action) => $(id).addEventListener(kind, async () => { await action($(id).value); render(); });
  $("protocol").replaceChildren(...data.protocols.map(({ label }, p) => option(label, p)));
  $("protocol").closest("label").hidden = data.protocols.length < 2;
  on("protocol", "change", (value) => { state.protocol = Number(value); fillEntries(); });
  on("benchmark", "change", (value) => { state.entry = Number(value); fillTasks(); });
  on("task", "change", async (value) => {
    tasks ??= await unpack("tasks");
    state.task = Number(value);
    fillMeasures();
  });
  on("measure", "change", (value) => { state.measure = state.sort = value; state.descending = false; });
  on("trial", "input", (value) => { state.trial = Number(value); });
  on("filter", "input", () => {});
  on("only", "change", () => {});
  on("choose-best", "click", chooseBest);
  on("choose-all", "click", () => { state.chosen = new Set(protocol().methods); });
  on("choose-none", "click", () => { state.chosen = new Set(); });
  $("log").addEventListener("change", embed);
  document.querySelector("form.controls").addEventListener("submit", (event) => event.preventDefault());
  for (const cell of headings) {
    const button = make("button", { type: "button" }, cell.textContent);
    cell.replaceChildren(button);
    button.addEventListener("click", () => {
      state.descending = state.sort === cell.dataset.key && !state.descending;
      state.sort = cell.dataset.key;
      renderTable();
    });
  }
  fillEntries();
  renderTable();
  await embed();
  new ResizeObserver(() => { fit(); view?.runAsync(); }).observe($("chart"));
})();
