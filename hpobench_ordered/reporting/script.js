"use strict";
(async () => {
  const root = document.documentElement;
  const $ = (id) => document.getElementById(id);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  for (const node of all(".js-only")) node.hidden = false;
  const wholePage = new Promise((done) => { addEventListener("DOMContentLoaded", done); });

  /* Theme: that of the system until the reader chooses. */
  const system = matchMedia("(prefers-color-scheme: dark)");
  const otherTheme = () => ((root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark" ? "light" : "dark");
  const labelTheme = () => { $("theme").textContent = otherTheme() === "dark" ? "Dark theme" : "Light theme"; };
  $("theme").addEventListener("click", () => { root.dataset.theme = otherTheme(); labelTheme(); });
  system.addEventListener("change", labelTheme);
  labelTheme();

  /* What is wider than its box says so. */
  const boxes = new ResizeObserver((seen) => {
    for (const { target } of seen) target.classList.toggle("wide", target.scrollWidth > target.clientWidth);
  });
  wholePage.then(() => { for (const box of all(".scroll")) boxes.observe(box); });

  if (!$("data")) return;


  /* Data: those in the page, and parts in files beside it. Files are scripts that call receivePart,
     since a page opened from a file may fetch nothing. */
  const unpack = (packed) => {
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
  };
  const data = await unpack($("data").textContent);
  const parts = data.parts; // by name
  const received = {}; // packed, by name
  window.receivePart = (name, packed) => { received[name] = packed; };

  const requestPart = (name) => new Promise((resolve, reject) => {
    const path = `${data.folder}/${name}.js`;
    const script = document.createElement("script");
    script.onload = () => resolve(unpack(received[name]));
    const message = `These numbers are in the file ${path} beside this page, which cannot be read.`;
    script.onerror = () => reject(new Error(message));
    script.src = `${path}?${data.edition}`;
    document.head.append(script);
  });
  const loadPart = async (name) => { parts[name] ??= await requestPart(name); };


  /* The view: what the reader has selected. The address has what differs from the usual view. */
  const USUAL = {
    protocol: "", benchmark: "", task: "", // by name; "": the first, or all tasks
    measure: "regret",
    trial: "", // "": the last
    scale: "logarithmic",
    sort: "rank", order: "ascending",
    filter: "",
    only: "", // "coloured": hide methods that are not in colour
    methods: null, // those in colour; null: the best
  };
  const named = (things, label) => things.find((thing) => thing.label === label) ?? things[0];
  const protocolOf = ({ protocol }) => named(data.protocols, protocol);
  const entryOf = (some) => named(protocolOf(some).entries, some.benchmark);

  /* Replaces names that are unknown here. */
  const completed = (some) => {
    const { label: protocol } = protocolOf(some);
    const { label: benchmark, tasks, trials } = entryOf(some);
    const task = tasks.includes(some.task) ? some.task : "";
    const number = Math.round(Number(some.trial));
    const trial = number >= 1 && number < trials ? String(number) : "";
    const order = some.order === "descending" ? "descending" : "ascending";
    return { ...some, protocol, benchmark, task, trial, order };
  };
  let view = completed(USUAL);
  const protocol = () => protocolOf(view);
  const entry = () => entryOf(view);
  const trialShown = () => Number(view.trial) || entry().trials;

  const hasView = () => location.hash.includes("="); // otherwise it is the name of a section
  const readAddress = () => {
    const words = new URLSearchParams(location.hash.slice(1));
    const asked = { ...USUAL };
    for (const name of Object.keys(USUAL)) if (words.has(name)) asked[name] = words.get(name);
    if (words.has("methods")) asked.methods = words.getAll("methods").filter(Boolean);
    return asked;
  };
  const writeAddress = () => {
    const usual = completed(USUAL);
    const words = new URLSearchParams();
    for (const [name, value] of Object.entries(view)) {
      if (name !== "methods" && value !== usual[name]) words.set(name, value);
    }
    for (const method of view.methods ?? []) words.append("methods", method);
    if (view.methods?.length === 0) words.set("methods", "");
    const hash = String(words);
    if (hash || hasView()) history.replaceState(null, "", `#${hash || "leaderboard"}`);
  };


  /* Numbers of the view. */
  const NOTHING = "\u2013";
  const partOf = (some) => {
    const place = protocolOf(some).entries.indexOf(entryOf(some));
    return `${data.protocols.indexOf(protocolOf(some))}-${place}`;
  };
  const numbers = () => parts[partOf(view)];
  const measures = () => {
    if (!view.task) return numbers().measures;
    return parts[`${partOf(view)}-tasks`][entry().tasks.indexOf(view.task)];
  };
  const column = (key) => data.columns.find((some) => some.key === key);
  const isMeasure = (key) => data.measures.includes(key);
  /* Decimals of a column; where they depend on the unit, as many as give the largest four digits. */
  const decimalsOf = (key) => {
    const { decimals } = column(key);
    if (decimals !== null) return decimals;
    const largest = Math.max(...measures()[key][0].flat().map(Math.abs), 1e-9);
    return Math.max(0, Math.min(9, 3 - Math.floor(Math.log10(largest))));
  };
  const format = (value, key) => value.toFixed(decimalsOf(key)).replace("-", "\u2212");
  const formatInterval = (key, low, high) => (low === null ? "" : `${format(low, key)} to ${format(high, key)}`);
  /* Mean and the ends of its interval; null where there is none. */
  const at = (key, m, trial = trialShown()) => {
    const curves = measures()[key] ?? [];
    return [0, 1, 2].map((end) => curves[end]?.[m]?.[trial - 1] ?? null);
  };
  const sortKey = (key, m) => {
    const [mean] = at(key, m);
    return mean !== null && key === "value" && entry().maximised ? -mean : mean;
  };
  const sorted = (methods, keyOf, order = "ascending") => {
    const rows = methods.map((m) => [m, keyOf(m)]);
    rows.sort(([, a], [, b]) => {
      if (a === null || b === null) return (a === null) - (b === null); // without a number: last
      return (order === "descending" ? -1 : 1) * (a < b ? -1 : a > b ? 1 : 0);
    });
    return rows.map(([m]) => m);
  };

  /* Methods in colour: those chosen, or the best by the measure that sorts the table, or by rank. */
  let coloured = new Set();
  const chooseColoured = () => {
    const { methods } = protocol();
    if (view.methods) return new Set(view.methods.filter((method) => methods.includes(method)));
    const key = isMeasure(view.sort) ? view.sort : "rank";
    const ranked = sorted([...methods.keys()], (m) => sortKey(key, m)).map((m) => methods[m]);
    const isAmongBest = (method, place) => ranked.length <= data.few || place < data.best || method === data.reference;
    return new Set(ranked.filter(isAmongBest));
  };
  const isShown = (m) => {
    const method = protocol().methods[m];
    return method.toLowerCase().includes(view.filter.trim().toLowerCase()) && (!view.only || coloured.has(method));
  };
  const shownMethods = () => [...protocol().methods.keys()].filter(isShown);


  /* Table. */
  const table = $("lb");
  const make = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  };
  const cellOf = (key, m) => { // what it is sorted by, its text, and small print
    if (key === "method") return [protocol().methods[m].toLowerCase(), protocol().methods[m]];
    if (isMeasure(key)) {
      const [mean, low, high] = at(key, m);
      if (mean === null) return [null, NOTHING];
      return [sortKey(key, m), format(mean, key), formatInterval(key, low, high)];
    }
    if (key !== "wins") return numbers()[key][m] ?? [null, NOTHING];
    const counts = !view.task && numbers().wins[m]?.[trialShown() - 1];
    if (!counts) return [null, NOTHING];
    const [won, tied, lost] = counts; // of fewer runs where a method has fewer seeds: shares are compared
    return [(lost - won) / Math.max(won + tied + lost, 1), counts.join("\u2009/\u2009")];
  };
  const makeRow = (columns, m, place) => {
    const method = protocol().methods[m];
    const { colour, dash } = protocol().looks[m];
    const button = make("button", { type: "button", "aria-pressed": coloured.has(method), "data-method": method });
    const line = `<line x1="1" x2="25" y1="5" y2="5" stroke="${colour}" stroke-dasharray="${dash.join(" ")}"/>`;
    button.innerHTML = `<svg class="swatch" width="26" height="10" aria-hidden="true">${line}</svg>`;
    button.append(method);
    const cells = columns.slice(1).map(({ key }) => {
      const [, text, small] = cellOf(key, m);
      return make("td", { class: "n" }, text, ...(small ? [make("small", {}, small)] : []));
    });
    const kinds = [coloured.has(method) && "chosen", method === data.reference && "reference"].filter(Boolean);
    return make(
      "tr", { class: kinds.join(" "), "data-method": method },
      make("td", { class: "n place" }, String(place)), make("th", { scope: "row" }, button), ...cells,
    );
  };
  const makeHeading = ({ key, title, meaning }) => {
    const sort = key === view.sort ? { "aria-sort": view.order } : {};
    const button = make("button", { type: "button", "data-key": key }, title);
    return make("th", { scope: "col", title: meaning, class: key === "method" ? "" : "n", ...sort }, button);
  };
  const describeView = () => {
    const trial = `after trial ${trialShown()} of ${entry().trials}`;
    return [entry().label, view.task, protocol().label, trial].filter(Boolean).join("; ");
  };
  const renderTable = () => {
    const columns = data.columns.filter(({ key }) => !isMeasure(key) || measures()[key]);
    const focused = table.contains(document.activeElement) ? document.activeElement.dataset : null;
    const place = make("th", { scope: "col", class: "n place" }, "No.");
    table.tHead.rows[0].replaceChildren(place, ...columns.map(makeHeading));

    const inOrder = sorted([...protocol().methods.keys()], (m) => cellOf(view.sort, m)[0], view.order);
    const rows = inOrder.flatMap((m, n) => (isShown(m) ? [makeRow(columns, m, n + 1)] : []));
    table.tBodies[0].replaceChildren(...rows);
    if (focused) {
      const isSame = ({ dataset }) => dataset.method === focused.method && dataset.key === focused.key;
      all("button", table).find(isSame)?.focus();
    }

    const count = rows.length === inOrder.length ? `${rows.length}` : `${rows.length} of ${inOrder.length}`;
    $("lb-about").textContent = `${describeView()}; ${count} ${inOrder.length === 1 ? "method" : "methods"}`;
    $("lb-notes").replaceChildren(...entry().notes.map((text) => make("p", { class: "note" }, text)));
  };
  table.addEventListener("click", ({ target }) => {
    const { method, key } = target.closest("button")?.dataset ?? {};
    if (method) toggleColour(method);
    if (key) show({ sort: key, order: view.sort === key && view.order === "ascending" ? "descending" : "ascending" });
  });
  table.addEventListener("pointerover", ({ target }) => hover(target.closest("tr").dataset.method ?? null));
  table.addEventListener("pointerleave", () => hover(null));


  /* Chart. */
  let picture = null; // Vega's
  let points = [];
  let drawnLog = null;
  let hovered = null;
  const isLog = () => view.scale === "logarithmic" && view.measure === "regret";
  const isNarrow = () => $("chart").clientWidth < 600;
  const pointsOf = (m) => {
    const method = protocol().methods[m];
    const common = { method, ...protocol().looks[m], chosen: coloured.has(method) };
    return Array.from({ length: entry().trials }, (_, t) => {
      const [mean, low, high] = at(view.measure, m, t + 1);
      return { ...common, trial: t + 1, mean: isLog() && mean <= 0 ? null : mean, low, high };
    }).filter(({ mean }) => mean !== null);
  };
  const makePoints = () => {
    const made = shownMethods().flatMap(pointsOf);
    if (!isLog()) return made;
    // The lower end of a band stays on a logarithmic axis.
    const least = Math.min(...made.map(({ mean }) => mean)) / 1.5;
    return made.map((point) => ({ ...point, low: point.low === null ? null : Math.max(point.low, least) }));
  };
  /* Names at the ends of the curves in colour, moved apart where they would overlap. */
  const makeNames = () => {
    const scale = picture.scale("y"), gap = 13;
    const last = points.filter(({ chosen, trial }) => chosen && trial === entry().trials);
    const placed = last.map((row) => ({ ...row, y: scale(row.mean) })).sort((a, b) => a.y - b.y);
    placed.forEach((row, n) => { if (n) row.y = Math.max(row.y, placed[n - 1].y + gap); });
    let limit = picture.height();
    for (const row of placed.toReversed()) { row.y = Math.min(row.y, limit); limit = row.y - gap; }
    const most = isNarrow() ? 14 : 26;
    return placed.map(({ method, trial, colour, y }) => ({
      trial, colour, mean: scale.invert(y), name: method.length > most ? `${method.slice(0, most - 1)}\u2026` : method,
    }));
  };
  const renderChart = async () => {
    if (!picture) return;
    if (drawnLog !== isLog()) { await embed(); return; }
    points = makePoints();
    picture.signal("title", column(view.measure).title).signal("hovered", hovered);
    picture.data("curves", points).data("at", [{ trial: trialShown() }]).data("names", []);
    await picture.resize().runAsync();
    await finishChart();
  };
  /* What needs the axes of the curves that are drawn: their names. */
  const finishChart = async () => {
    await picture.data("names", makeNames()).resize().runAsync();
    const { title } = column(view.measure);
    const count = new Set(points.map(({ method }) => method)).size;
    const svg = $("chart").querySelector("svg");
    svg.setAttribute("role", "img");
    const said = `${title} by trial of ${count} methods; ${describeView()}.`;
    svg.setAttribute("aria-label", `${said} The table below has the numbers.`);
  };
  const hover = (method) => { if (hovered !== method) picture?.signal("hovered", hovered = method).runAsync(); };
  const sizeOfChart = () => { // without the names at the right
    const width = Math.max(160, $("chart").clientWidth - (isNarrow() ? 150 : 230));
    return { width, height: isNarrow() ? 260 : 360 };
  };
  const fitChart = () => {
    const { width, height } = sizeOfChart();
    if (!picture || !$("chart").clientWidth || picture.width() === width) return;
    picture.width(width).height(height);
    renderChart();
  };
  /* The library stands packed at the end of the page, so that the table need not wait for it. */
  const loadLibrary = async () => {
    await wholePage;
    document.head.append(make("script", {}, await unpack($("library").textContent)));
  };
  const embed = async () => {
    if (!window.vegaEmbed) await loadLibrary();
    const spec = structuredClone(data.spec);
    drawnLog = isLog();
    const y = spec.scales.find(({ name }) => name === "y");
    if (drawnLog) Object.assign(y, { type: "log", zero: false, nice: false });
    points = makePoints();
    const setOf = (name) => spec.data.find((some) => some.name === name);
    setOf("curves").values = points;
    setOf("at").values = [{ trial: trialShown() }];
    spec.signals.find(({ name }) => name === "title").value = column(view.measure).title;
    Object.assign(spec, sizeOfChart());
    picture?.finalize();
    picture = null;
    const plain = { actions: false, tooltip: false, hover: false, logLevel: 1, config: {} };
    const options = { mode: "vega", ast: true, renderer: "svg", ...plain };
    picture = (await window.vegaEmbed($("chart"), spec, options)).view;
    await finishChart();
  };

  /* The curve and the trial nearest to the pointer. */
  const nearest = (event) => {
    const svg = $("chart").querySelector("svg");
    if (!picture || !svg || !points.length) return null;
    const box = svg.getBoundingClientRect();
    const [left, top] = picture.origin();
    const x = event.clientX - box.left - left, y = event.clientY - box.top - top;
    if (x < -10 || x > picture.width() + 10 || y < -10 || y > picture.height() + 10) return null;
    const trial = Math.min(Math.max(Math.round(picture.scale("x").invert(x)), 1), entry().trials);
    const gap = (row) => Math.abs(picture.scale("y")(row.mean) - y) + (row.chosen ? 0 : 3);
    const [row] = points.filter((some) => some.trial === trial).sort((a, b) => gap(a) - gap(b));
    return row ? { row, gap: gap(row), x: x + left, y: y + top, width: box.width } : null;
  };
  const tip = $("tip");
  $("chart").addEventListener("pointermove", (event) => {
    const near = nearest(event);
    hover(near?.row.method ?? null);
    tip.hidden = !near;
    if (!near) return;
    const { method, trial, mean, low, high } = near.row;
    const ends = formatInterval(view.measure, low, high);
    const text = `trial ${trial}: ${format(mean, view.measure)}${ends && ` (${ends})`}`;
    tip.replaceChildren(make("strong", {}, method), make("span", {}, text));
    tip.style.left = `${Math.max(0, Math.min(near.x + 14, near.width - tip.offsetWidth))}px`;
    tip.style.top = `${near.y + 14}px`;
  });
  $("chart").addEventListener("pointerleave", () => { hover(null); tip.hidden = true; });
  $("chart").addEventListener("click", (event) => {
    const near = nearest(event);
    if (near && near.gap < 16) toggleColour(near.row.method);
  });


  /* Controls. */
  const fill = (id, texts, values, selected) => {
    $(id).replaceChildren(...values.map((value, n) => new Option(texts[n], value)));
    $(id).value = selected;
  };
  const renderControls = () => {
    const labels = (things) => things.map(({ label }) => label);
    const available = data.measures.filter((key) => measures()[key]);
    fill("protocol", labels(data.protocols), labels(data.protocols), view.protocol);
    fill("benchmark", labels(protocol().entries), labels(protocol().entries), view.benchmark);
    fill("task", ["mean over tasks", ...entry().tasks], ["", ...entry().tasks], view.task);
    fill("measure", available.map((key) => column(key).title), available, view.measure);
    $("protocol").closest("label").hidden = data.protocols.length < 2;
    $("task").disabled = !entry().tasks.length;
    $("trial").max = entry().trials;
    $("trial").value = trialShown();
    $("trial-shown").textContent = `${trialShown()} of ${entry().trials}`;
    $("log").checked = view.scale === "logarithmic";
    $("log").disabled = view.measure !== "regret";
    if ($("filter").value !== view.filter) $("filter").value = view.filter; // otherwise the cursor would move
    $("only").checked = Boolean(view.only);
  };

  /* Shows a changed view as soon as its numbers are there. Of several changes the last one counts. */
  let wanted = view;
  let waiting = 0;
  const show = async (changes) => {
    const asked = completed({ ...wanted, ...changes });
    wanted = asked;
    $("missing").textContent = "";
    try {
      const name = partOf(asked);
      await Promise.all([loadPart(name), ...(asked.task ? [loadPart(`${name}-tasks`)] : [])]);
    } catch (error) {
      if (wanted !== asked) return;
      wanted = view;
      $("missing").textContent = error.message;
      renderControls(); // what they said before
      return;
    }
    if (wanted !== asked) return;

    view = asked;
    const available = data.measures.filter((key) => measures()[key]);
    if (!available.includes(view.measure)) [view.measure] = available;
    if (!column(view.sort) || (isMeasure(view.sort) && !available.includes(view.sort))) view.sort = view.measure;
    coloured = chooseColoured();
    renderControls();
    renderTable();
    clearTimeout(waiting);
    waiting = setTimeout(writeAddress, 100); // browsers refuse to change it too often
    await renderChart();
  };
  const toggleColour = (method) => {
    const others = [...coloured].filter((some) => some !== method);
    show({ methods: coloured.has(method) ? others : [...others, method] });
  };
  const on = (id, kind, changesOf) => $(id).addEventListener(kind, () => show(changesOf($(id))));
  on("protocol", "change", ({ value }) => ({ protocol: value, benchmark: "", task: "", methods: null }));
  on("benchmark", "change", ({ value }) => ({ benchmark: value, task: "" }));
  on("task", "change", ({ value }) => ({ task: value }));
  on("measure", "change", ({ value }) => ({ measure: value, sort: value, order: "ascending" }));
  on("trial", "input", ({ value }) => ({ trial: value }));
  on("log", "input", ({ checked }) => ({ scale: checked ? "logarithmic" : "linear" }));
  on("filter", "input", ({ value }) => ({ filter: value }));
  on("only", "input", ({ checked }) => ({ only: checked ? "coloured" : "" }));
  on("choose-best", "click", () => ({ methods: null }));
  on("choose-all", "click", () => ({ methods: protocol().methods }));
  on("choose-none", "click", () => ({ methods: [] }));
  document.querySelector("form.controls").addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", () => { if (hasView()) show(readAddress()); });

  await show({});
  if (hasView()) {
    $("leaderboard").scrollIntoView();
    await show(readAddress());
  }
  performance.mark("table");
  await embed();
  new ResizeObserver(fitChart).observe($("chart"));
  root.dataset.ready = "true";
  performance.mark("ready");
})();
