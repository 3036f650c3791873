"use strict";
(() => {
  const root = document.documentElement;
  const element = (id) => document.getElementById(id);
  root.classList.add("js");
  for (const node of document.querySelectorAll(".js-only")) node.hidden = false;

  /* Theme: as the system has it until the reader chooses. */
  const theme = element("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const label = () => {
    theme.textContent = isDark() ? "Light" : "Dark";
    theme.setAttribute("aria-label", isDark() ? "Use the light theme" : "Use the dark theme");
  };
  const kept = (action) => {
    try { return action(localStorage); } catch { return null; } // not allowed for files everywhere
  };
  const before = kept((storage) => storage.getItem("hpobench-ordered-theme"));
  if (before === "dark" || before === "light") root.dataset.theme = before;
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    kept((storage) => storage.setItem("hpobench-ordered-theme", root.dataset.theme));
    label();
  });
  system.addEventListener("change", label);
  label();

  /* A link to something within a closed part opens it; so does printing. */
  const reveal = () => {
    const target = location.hash.includes("=") ? null : element(decodeURIComponent(location.hash.slice(1)));
    for (let node = target; node; node = node.parentElement) {
      if (node.tagName === "DETAILS") node.open = true;
    }
    if (target) target.scrollIntoView();
  };
  let opened = [];
  let shown = root.dataset.theme;
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details.benchmark:not([open])")];
    for (const node of opened) node.open = true;
    shown = root.dataset.theme;
    root.dataset.theme = "light";
  });
  addEventListener("afterprint", () => {
    for (const node of opened) node.open = false;
    if (shown) root.dataset.theme = shown; else delete root.dataset.theme;
  });

  /* Leaderboard. */
  const data = JSON.parse(element("data").textContent);
  const table = element("lb");
  if (!table || !data.boards.length) { addEventListener("hashchange", reveal); reveal(); return; }
  const CUSTOM = "";
  const EN_RULE = "\u2013", MINUS = "\u2212", THIN = "\u2009";
  const controls = {
    protocol: element("lb-protocol"), group: element("lb-group"), trial: element("lb-trial"),
    interval: element("lb-interval"), benchmarks: element("lb-benchmarks"),
  };
  const keys = data.columns.map((column) => column.key);
  const noteColumns = keys.indexOf("failures") - 1;
  const start = () => ({
    protocol: data.boards[0].name, benchmarks: null, trial: null, interval: "seeds",
    sort: data.boards[0].sorted_by, order: "ascending",
  });
  let state = start();

  const board = () => data.boards.find((b) => b.name === state.protocol);
  const places = () => {
    const names = board().benchmarks.map((b) => b.name);
    const found = (state.benchmarks ?? names).map((name) => names.indexOf(name));
    const known = found.filter((place) => place >= 0).sort((a, b) => a - b);
    return known.length ? known : names.map((_, place) => place);
  };
  const trial = () => Math.min(Math.max(state.trial ?? board().trials, 1), board().trials);
  const same = (a, b) => a.length === b.length && a.every((x, i) => x === b[i]);
  const mean = (numbers) => numbers.reduce((sum, x) => sum + x, 0) / numbers.length;
  const sum = (numbers) => numbers.reduce((total, x) => total + x, 0);

  const groupOf = (chosen) => board().groups.find((g) => same(g.benchmarks, chosen));
  /* Statistics that were worked out with intervals: of one benchmark, or of a group. */
  const precomputed = (chosen) =>
    chosen.length === 1 ? board().benchmarks[chosen[0]] : groupOf(chosen);

  const measured = (key, method, chosen) => {
    const m = trial() - 1;
    const source = precomputed(chosen);
    if (source) {
      const row = source.methods.indexOf(method);
      const found = source.measures[key];
      if (row < 0 || !found) return { value: null };
      const ends = state.interval === "none" ? null : found[state.interval].map((end) => end[row][m]);
      return { value: found.mean[row][m], ends };
    }
    const entries = chosen.map((place) => board().benchmarks[place]);
    const values = entries.map((b) => b.measures[key].mean[b.methods.indexOf(method)][m]);
    const defined = values.filter((x) => x !== null);
    return { value: defined.length ? mean(defined) : null, ends: null };
  };

  const fixed = (x, decimals) => x.toFixed(decimals).replace(/^-0(\.0+)?$/, "0$1").replace("-", MINUS);
  const duration = (s) => {
    const three = (x) => String(Number(x.toPrecision(3)));
    if (s < 1e-3) return `${three(s * 1e6)} µs`;
    if (s < 1) return `${three(s * 1e3)} ms`;
    if (s < 100) return `${three(s)} s`;
    return s < 6000 ? `${three(s / 60)} min` : `${three(s / 3600)} h`;
  };

  const rowOf = (method, chosen) => {
    const entries = chosen.map((place) => board().benchmarks[place]);
    const planned = entries.filter((b) => method in b.runs);
    const compared = entries.filter((b) => b.methods.includes(method));
    const ranked = compared.length === entries.length;
    const cells = {};
    for (const { key, decimals } of data.columns) {
      if (decimals === null) continue;
      const found = ranked ? measured(key, method, chosen) : { value: null };
      const ends = found.ends && found.ends[0] !== null ? found.ends : null;
      cells[key] = {
        order: found.value,
        text: found.value === null ? EN_RULE : fixed(found.value, decimals),
        small: ends ? `${fixed(ends[0], decimals)} to ${fixed(ends[1], decimals)}` : "",
      };
    }
    const m = trial() - 1;
    const contests = ["wins", "ties", "losses"].map((name) =>
      sum(compared.map((b) => b[name][b.methods.indexOf(method)][m])));
    const all = sum(contests);
    cells.wins = ranked && all
      ? { order: -(contests[0] + contests[1] / 2) / all, text: contests.join(THIN + "/" + THIN), small: "" }
      : { order: null, text: EN_RULE, small: "" };
    const states = data.states.map((_, i) => sum(planned.map((b) => b.runs[method][i])));
    const runs = sum(states);
    const others = data.states.slice(2).map((name, i) => [states[i + 2], name]).filter(([n]) => n);
    cells.failures = {
      order: states[1], text: `${states[1]} of ${runs}`,
      small: others.map(([n, name]) => `${n} ${name}`).join(", "),
    };
    const times = planned.map((b) => b.seconds[method]).filter((t) => t && t[1]);
    const suggestions = sum(times.map((t) => t[1]));
    const time = suggestions ? sum(times.map((t) => t[0])) / suggestions : null;
    cells.seconds = { order: time, text: time === null ? EN_RULE : duration(time), small: "" };
    cells.method = { order: 0, text: method, small: "" };
    return { cells, note: ranked ? "" : unrankedNote(method, entries, compared) };
  };

  const unrankedNote = (method, entries, compared) => {
    const finished = entries.filter((b) => method in b.excluded).map((b) =>
      entries.length === 1 ? b.excluded[method] : `${b.name}: ${b.excluded[method]}`);
    const where = entries.length === 1 ? "" : `on ${compared.length} of ${entries.length} benchmarks; `;
    const why = finished.length ? `finished ${finished.slice(0, 3).join(", ")}` : "not run on the others";
    return `unranked: ${where}${why}${finished.length > 3 ? ", …" : ""}`;
  };

  const sorted = (rows) => {
    const sign = state.order === "descending" ? -1 : 1;
    const last = (row) => row.cells[state.sort].order === null;
    const byText = state.sort === "method";
    return [...rows].sort((a, b) => {
      if (!byText && last(a) !== last(b)) return last(a) ? 1 : -1; // what has no number is last
      if (!byText && last(a)) return 0;
      const x = a.cells[state.sort], y = b.cells[state.sort];
      return sign * (byText ? x.text.localeCompare(y.text) : x.order - y.order);
    });
  };

  const make = (tag, text, attributes = {}) => {
    const node = document.createElement(tag);
    node.textContent = text;
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    return node;
  };

  const notes = (chosen) => {
    const texts = [];
    const source = precomputed(chosen);
    if (!source) texts.push(data.texts.custom);
    for (const { key, title, decimals } of data.columns) {
      if (decimals === null) continue;
      const m = trial() - 1;
      const entries = chosen.map((place) => board().benchmarks[place]);
      const defined = entries.filter((b) => b.measures[key].mean[0][m] !== null).length;
      if (defined < entries.length) {
        const why = [...new Set(entries.map((b) => b.unavailable[key]).filter(Boolean))];
        const where = entries.length === 1 ? "not available" : `on ${defined} of ${entries.length} benchmarks`;
        texts.push(`${title}: ${where}${why.length ? ` (${why.join("; ")})` : ""}.`);
      }
    }
    return texts;
  };

  const render = () => {
    const chosen = places();
    const count = board().benchmarks.length;
    const name = chosen.length === 1
      ? board().benchmarks[chosen[0]].name
      : (groupOf(chosen)?.name ?? `${chosen.length} chosen benchmarks`);
    table.caption.firstElementChild.textContent = data.texts.caption
      .replace("{benchmarks}", name === "all" ? `all ${count} benchmarks` : name)
      .replace("{protocol}", board().label)
      .replace("{trial}", trial()).replace("{trials}", board().trials);
    for (const cell of table.tHead.rows[0].cells) {
      if (cell.dataset.key === state.sort) cell.setAttribute("aria-sort", state.order);
      else cell.removeAttribute("aria-sort");
    }
    const run = board().methods.filter((m) => chosen.some((p) => m in board().benchmarks[p].runs));
    const rows = sorted(run.map((method) => rowOf(method, chosen))).map((row) => {
      const line = make("tr", "", row.note ? { class: "unranked" } : {});
      for (const key of keys) {
        if (row.note && key === keys[1]) line.append(make("td", row.note, { colspan: noteColumns }));
        if (row.note && keys.indexOf(key) > 0 && keys.indexOf(key) <= noteColumns) continue;
        const { text, small } = row.cells[key];
        const cell = key === "method" ? make("th", text, { scope: "row" }) : make("td", text, { class: "n" });
        if (small) cell.append(make("small", small));
        line.append(cell);
      }
      return line;
    });
    table.tBodies[0].replaceChildren(...rows);
    element("lb-notes").replaceChildren(...notes(chosen).map((text) => make("p", text, { class: "note" })));
    showControls(chosen);
  };

  const showControls = (chosen) => {
    controls.protocol.value = state.protocol;
    controls.interval.value = state.interval;
    controls.trial.max = board().trials;
    controls.trial.value = trial();
    element("lb-trial-shown").textContent = `${trial()} of ${board().trials}`;
    const names = chosen.map((place) => board().benchmarks[place].name);
    const group = groupOf(chosen);
    controls.group.value = group ? `g ${group.name}` : names.length === 1 ? `b ${names[0]}` : CUSTOM;
    for (const box of controls.benchmarks.querySelectorAll("input")) box.checked = names.includes(box.value);
  };

  const fillProtocol = () => {
    const options = board().groups.map((g) =>
      make("option", `${g.name === "all" ? "all" : `suite ${g.name}`} (${g.benchmarks.length})`, { value: `g ${g.name}` }));
    const single = board().benchmarks.map((b) => make("option", b.name, { value: `b ${b.name}` }));
    const custom = board().benchmarks.length > 2 ? [make("option", "as chosen below", { value: CUSTOM })] : [];
    controls.group.replaceChildren(...options, ...single, ...custom);
    const boxes = board().benchmarks.map((b) => {
      const box = make("label", ` ${b.name}`);
      const input = make("input", "", { type: "checkbox", value: b.name });
      box.prepend(input);
      return box;
    });
    controls.benchmarks.replaceChildren(controls.benchmarks.querySelector("legend"), ...boxes);
  };

  /* The state is in the address, so that a view can be linked to and kept. */
  const write = () => {
    const words = new URLSearchParams({ protocol: state.protocol, trial: trial(), interval: state.interval, sort: state.sort, order: state.order });
    for (const name of state.benchmarks ?? []) words.append("benchmark", name);
    history.replaceState(null, "", `#${words}`);
  };
  const read = () => {
    if (!location.hash.includes("=")) { reveal(); return; }
    const words = new URLSearchParams(location.hash.slice(1));
    const next = start();
    const protocol = words.get("protocol");
    if (data.boards.some((b) => b.name === protocol)) next.protocol = protocol;
    const number = Number.parseInt(words.get("trial"), 10);
    if (number >= 1) next.trial = number;
    if (["seeds", "tasks", "none"].includes(words.get("interval"))) next.interval = words.get("interval");
    if (keys.includes(words.get("sort"))) next.sort = words.get("sort");
    if (words.get("order") === "descending") next.order = "descending";
    const benchmarks = words.getAll("benchmark");
    if (benchmarks.length) next.benchmarks = benchmarks;
    state = next;
    fillProtocol();
    render();
  };
  const unlessAll = (names) => (names.length % board().benchmarks.length ? names : null);
  const change = (changes) => { state = { ...state, ...changes }; render(); write(); };

  for (const cell of table.tHead.rows[0].cells) {
    const button = make("button", cell.textContent, { type: "button" });
    cell.replaceChildren(button);
    button.addEventListener("click", () => {
      const again = state.sort === cell.dataset.key && state.order === "ascending";
      change({ sort: cell.dataset.key, order: again ? "descending" : "ascending" });
    });
  }
  controls.protocol.replaceChildren(...data.boards.map((b) => make("option", b.label, { value: b.name })));
  controls.protocol.closest("label").hidden = data.boards.length < 2;
  controls.protocol.addEventListener("change", () => {
    state = { ...state, protocol: controls.protocol.value, benchmarks: null, trial: null };
    fillProtocol();
    change({});
  });
  controls.group.addEventListener("change", () => {
    const [kind, name] = [controls.group.value.slice(0, 1), controls.group.value.slice(2)];
    if (!kind) { controls.benchmarks.closest("details").open = true; return; }
    const group = board().groups.find((g) => g.name === name);
    const chosen = kind === "g" ? group.benchmarks.map((place) => board().benchmarks[place].name) : [name];
    change({ benchmarks: unlessAll(chosen) });
  });
  controls.benchmarks.addEventListener("change", () => {
    const boxes = [...controls.benchmarks.querySelectorAll("input:checked")];
    change({ benchmarks: unlessAll(boxes.map((box) => box.value)) });
  });
  controls.trial.addEventListener("input", () => change({ trial: Number(controls.trial.value) }));
  controls.interval.addEventListener("change", () => change({ interval: controls.interval.value }));
  document.querySelector("form.controls").addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", read);
  fillProtocol();
  render();
  read();
})();
