"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const W = 560, H = 300, PAD = { left: 80, right: 14, top: 12, bottom: 40 };

  // Text only ever enters the page through textContent: names and outputs of jobs are not markup.
  const el = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children.map((child) => (child instanceof Node ? child : String(child))));
    return node;
  };
  const shape = (tag, attributes = {}, text = null) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== null) node.textContent = text;
    return node;
  };

  const money = (usd) => {
    if (usd === null || usd === undefined) return "—";
    if (usd === 0) return "$0";
    if (Math.abs(usd) >= 1) return "$" + usd.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
    return "$" + Number(usd.toPrecision(2)).toLocaleString("en", { maximumFractionDigits: 12 });
  };
  const duration = (s) => {
    if (s === null || s === undefined) return "—";
    if (s < 1) return Math.round(s * 1000) + "ms";
    if (s < 60) return Number(s.toPrecision(3)) + "s";
    if (s < 3600) return Math.floor(s / 60) + "m" + (Math.round(s % 60) ? Math.round(s % 60) + "s" : "");
    return Math.floor(s / 3600) + "h" + (Math.round((s % 3600) / 60) ? Math.round((s % 3600) / 60) + "m" : "");
  };
  const goalMetric = data.objective.split(" ").pop();
  const maximise = data.objective.startsWith("maximize");
  const goal = (value) => (value === null || value === undefined ? "—" : goalMetric === "cost" ? money(value) : goalMetric === "time" ? duration(value) : Number(value.toPrecision(5)).toString());
  const words = (params) => Object.entries(params).map(([name, value]) => name + "=" + value).join(" ");
  const colour = { COMPLETE: "var(--good)", TIMEOUT: "var(--stopped)", FAIL: "var(--bad)", RUNNING: "var(--accent)" };

  const tip = byId("tip");
  const hover = (node, text) => {
    const show = (x, y) => {
      tip.textContent = text; tip.hidden = false;
      tip.style.left = Math.min(x + 14, innerWidth - tip.offsetWidth - 8) + "px";
      tip.style.top = Math.min(y + 14, innerHeight - tip.offsetHeight - 8) + "px";
    };
    node.addEventListener("pointermove", (event) => show(event.clientX, event.clientY));
    node.addEventListener("focus", () => { const box = node.getBoundingClientRect(); show(box.right, box.bottom); });
    for (const kind of ["pointerleave", "blur"]) node.addEventListener(kind, () => { tip.hidden = true; });
    node.setAttribute("tabindex", "0");
    node.append(shape("title", {}, text));
  };

  // Scales ------------------------------------------------------------------------------------------------------------
  const scale = (low, high, from, to, log) => {
    if (high === low) { high = low === 0 ? 1 : low * 1.1; low = low * 0.9; }
    const f = log ? Math.log : (x) => x;
    const at = (x) => from + ((f(x) - f(low)) / (f(high) - f(low))) * (to - from);
    at.low = low; at.high = high; at.log = log;
    return at;
  };
  const CLOCK = [0.001, 0.01, 0.1, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400];
  const thin = (found, most) => found.filter((_, place) => place % Math.ceil(found.length / most) === 0);
  const ticks = (at, most, clock = false) => {
    if (clock) {
      const found = at.log ? CLOCK.filter((tick) => tick >= at.low && tick <= at.high) : [];
      if (found.length >= 2) return thin(found, most);
      const step = CLOCK.find((one) => one >= (at.high - at.low) / most) ?? 86400;
      const even = [];
      for (let tick = Math.ceil(at.low / step) * step; tick <= at.high; tick += step) even.push(Number(tick.toPrecision(12)));
      if (even.length >= 2) return even;
    }
    if (at.log) {
      const found = [];
      for (let power = Math.floor(Math.log10(at.low)); power <= Math.ceil(Math.log10(at.high)); power++)
        for (const lead of [1, 2, 5]) { const tick = lead * 10 ** power; if (tick >= at.low && tick <= at.high) found.push(tick); }
      if (found.length >= 2) return thin(found, most);
    }
    const raw = (at.high - at.low) / most, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((lead) => lead * power).find((one) => one >= raw);
    const found = [];
    for (let tick = Math.ceil(at.low / step) * step; tick <= at.high + step / 1e6; tick += step) found.push(Number(tick.toPrecision(12)));
    return found;
  };
  const plot = (x, y, xText, yText, xName, yName, height = H) => {
    const svg = shape("svg", { viewBox: `0 0 ${W} ${height}`, role: "img", "aria-label": yName + " against " + xName });
    for (const tick of ticks(x, 6, xText === duration)) {
      svg.append(shape("line", { class: "axis", x1: x(tick), x2: x(tick), y1: PAD.top, y2: height - PAD.bottom }));
      svg.append(shape("text", { x: x(tick), y: height - PAD.bottom + 15, "text-anchor": "middle" }, xText(tick)));
    }
    for (const tick of ticks(y, 5, yText === duration)) {
      svg.append(shape("line", { class: "axis", x1: PAD.left, x2: W - PAD.right, y1: y(tick), y2: y(tick) }));
      svg.append(shape("text", { x: PAD.left - 6, y: y(tick) + 4, "text-anchor": "end" }, yText(tick)));
    }
    svg.append(shape("text", { x: (PAD.left + W - PAD.right) / 2, y: height - 6, "text-anchor": "middle" }, xName));
    svg.append(shape("text", { x: 10, y: height / 2, "text-anchor": "middle", transform: `rotate(-90 10 ${height / 2})` }, yName));
    return svg;
  };
  const spread = (values, log) => {
    const low = Math.min(...values), high = Math.max(...values);
    return log ? [low / 1.15, high * 1.15] : [low - (high - low) * 0.06, high + (high - low) * 0.06];
  };
  const across = (values, log) => scale(...spread(values, log), PAD.left, W - PAD.right, log);
  const up = (values, log, height = H) => scale(...spread(values, log), height - PAD.bottom, PAD.top, log);
  const legend = (host, entries) => host.append(el("div", { class: "legend" }, ...entries.map(([name, fill]) => el("span", {}, el("i", { style: "background:" + fill }), name))));
  const nothing = (host, text) => host.replaceChildren(el("p", { class: "quiet" }, text));
  const about = (trial) => [
    "trial " + trial.number + " · " + trial.state + (trial.reason ? " (" + trial.reason + ")" : ""), words(trial.params),
    trial.runtime_s === null ? "" : "ran " + duration(trial.runtime_s) + ", charged " + money(trial.charged_usd),
    trial.cost_usd === null ? "" : "a run costs " + money(trial.cost_usd) + (trial.keeps_limits ? "" : " but breaks a limit"),
    ...Object.entries(trial.metrics).map(([name, value]) => name + " " + Number(value.toPrecision(5))), trial.why,
  ].filter(Boolean).join("\n");

  // Head --------------------------------------------------------------------------------------------------------------
  byId("name").textContent = data.name;
  byId("summary").textContent = [data.objective, ...data.limits].join(" · ") + " · " + data.state + (data.reason ? ": " + data.reason : "");
  byId("footer").textContent = "Written by Lynceus " + data.version + " on " + data.written + ". Money is US dollars; 'cost of a run' is what a production run costs, 'charged' what the search paid.";
  const facts = byId("verdict");
  if (data.verdict === null) nothing(facts, "No configuration is known to keep the limits yet.");
  else {
    const list = el("dl");
    const row = (name, ...content) => list.append(el("dt", {}, name), el("dd", {}, ...content));
    row("configuration", words(data.verdict.params)); list.lastChild.className = "winner";
    row("command", el("code", {}, data.verdict.command));
    row("cost of a run", data.verdict.cost_basis);
    for (const [name, text] of data.verdict.lines) row(name, text);
    facts.append(list);
  }
  const left = data.budget_usd === null ? null : data.budget_usd - data.spent_usd;
  for (const [name, value] of [
    ["spent of " + (data.budget_usd === null ? "no limit" : money(data.budget_usd)), money(data.spent_usd)],
    ["left", left === null ? "—" : money(Math.max(left, 0))], ["trials", data.trials.length],
    ["stopped early", data.trials.filter((one) => one.state === "TIMEOUT").length],
    ["failed", data.trials.filter((one) => one.state === "FAIL").length], ["configurations", data.configurations.toLocaleString("en")],
  ]) byId("tiles").append(el("div", { class: "tile" }, el("b", {}, value), el("span", {}, name)));

  // Best so far -------------------------------------------------------------------------------------------------------
  const byNumber = new Map(data.trials.map((one) => [one.number, one]));
  const known = data.steps.filter((step) => step.best !== null);
  if (!known.length) nothing(byId("progress"), "No trial has kept every limit yet.");
  else {
    const value = (trial) => (goalMetric === "cost" ? trial.cost_usd : goalMetric === "time" ? trial.runtime_s : trial.metrics[goalMetric] ?? null);
    const dots = data.steps.map((step) => [step, byNumber.get(step.number)]).filter(([, trial]) => trial.state === "COMPLETE" && value(trial) !== null);
    const values = [...known.map((step) => step.best), ...dots.map(([, trial]) => value(trial))];
    const log = Math.min(...values) > 0 && Math.max(...values) / Math.min(...values) > 8;
    const x = across([0, ...data.steps.map((step) => step.spent_usd)], false), y = up(values, log);
    const svg = plot(x, y, money, goal, "dollars spent", goalMetric + (goalMetric === "cost" ? " of a run" : ""));
    let path = "";
    known.forEach((step, place) => { path += (place ? `H${x(step.spent_usd)}` : `M${x(step.spent_usd)} ${y(step.best)}`) + `V${y(step.best)}`; });
    path += `H${x(x.high)}`;
    svg.append(shape("path", { d: path, fill: "none", stroke: "var(--accent)", "stroke-width": 2.5 }));
    for (const [step, trial] of dots) {
      const dot = shape("circle", { class: "point", cx: x(step.spent_usd), cy: y(value(trial)), r: 4.5, fill: trial.keeps_limits ? "var(--good)" : "var(--bad)", "fill-opacity": 0.85 });
      hover(dot, about(trial)); svg.append(dot);
    }
    byId("progress").append(svg);
    legend(byId("progress"), [["best so far", "var(--accent)"], ["kept every limit", "var(--good)"], ["broke a limit", "var(--bad)"]]);
  }

  // Cost against time, with the deadline as a question ----------------------------------------------------------------
  const finished = data.trials.filter((one) => one.state === "COMPLETE");
  const slider = byId("deadline");
  if (!finished.length) { nothing(byId("front"), "No run has finished yet."); slider.disabled = true; }
  else {
    const stopped = data.trials.filter((one) => one.state === "TIMEOUT");
    const times = [...finished, ...stopped].map((one) => one.runtime_s), costs = finished.map((one) => one.cost_usd);
    if (data.deadline_s !== null) times.push(data.deadline_s);
    const logX = Math.max(...times) / Math.min(...times) > 8, logY = Math.max(...costs) / Math.min(...costs) > 8;
    const x = across(times, logX), y = up(costs, logY);
    const span = [x.low, x.high].map((one) => (logX ? Math.log(one) : one));
    const toSeconds = (place) => { const at = span[0] + (place / 1000) * (span[1] - span[0]); return logX ? Math.exp(at) : at; };
    const start = data.deadline_s === null ? 1000 : ((logX ? Math.log(data.deadline_s) : data.deadline_s) - span[0]) / (span[1] - span[0]) * 1000;
    slider.value = Math.round(Math.max(0, Math.min(1000, start)));
    const draw = () => {
      const exact = Number(slider.value) === Math.round(start) && data.deadline_s !== null;
      const deadline = exact ? data.deadline_s : toSeconds(Number(slider.value));
      byId("deadline-text").textContent = duration(deadline);
      const svg = plot(x, y, duration, money, "time of a run", "cost of a run");
      svg.append(shape("line", { x1: x(deadline), x2: x(deadline), y1: PAD.top, y2: H - PAD.bottom, stroke: "var(--bad)", "stroke-width": 2, "stroke-dasharray": "5 4" }));
      const front = data.front.map((point) => `${x(point.seconds)},${y(point.cost_usd)}`).join(" ");
      svg.append(shape("polyline", { points: front, fill: "none", stroke: "var(--accent)", "stroke-width": 1.5, "stroke-dasharray": "2 3" }));
      const inTime = finished.filter((one) => one.keeps_other_limits && one.runtime_s <= deadline);
      const score = (one) => (goalMetric === "cost" ? one.cost_usd : goalMetric === "time" ? one.runtime_s : (maximise ? -1 : 1) * one.metrics[goalMetric]);
      const best = inTime.reduce((one, other) => (one === null || score(other) < score(one) ? other : one), null);
      for (const one of stopped) {
        const mark = shape("path", { class: "point", d: `M${x(one.runtime_s) - 4} ${H - PAD.bottom - 5}l8 0l-4 -7z`, fill: "var(--stopped)", "fill-opacity": 0.7 });
        hover(mark, about(one)); svg.append(mark);
      }
      for (const one of finished) {
        const ok = one.keeps_other_limits && one.runtime_s <= deadline;
        const dot = shape("circle", { class: "point", cx: x(one.runtime_s), cy: y(one.cost_usd), r: one === best ? 8 : 4.5, fill: ok ? "var(--good)" : "var(--quiet)", "fill-opacity": ok ? 0.9 : 0.35, stroke: one === best ? "var(--ink)" : "none", "stroke-width": 2 });
        hover(dot, about(one)); svg.append(dot);
      }
      byId("front").replaceChildren(svg);
      legend(byId("front"), [["in time", "var(--good)"], ["late, or breaks another limit", "var(--quiet)"], ["stopped early (its true time is longer)", "var(--stopped)"]]);
      // A stopped run can only be the answer if it was still in time, and still cheaper (faster) than the best, when it was stopped.
      const soFar = (one) => (goalMetric === "cost" ? (one.price_usd_per_hour * one.runtime_s) / 3600 : goalMetric === "time" ? one.runtime_s : -Infinity);
      const open = stopped.filter((one) => one.runtime_s < deadline * (1 - 1e-9) && (best === null || soFar(one) < score(best) * (1 - 1e-9))).length;
      byId("front-answer").textContent = (best === null ? "No finished run would be in time." : `Best measured: ${words(best.params)}, ${money(best.cost_usd)} a run in ${duration(best.runtime_s)}.`)
        + (open ? ` ${open} stopped run${open > 1 ? "s" : ""} cannot tell.` : "");
    };
    slider.addEventListener("input", draw);
    draw();
  }

  // Importance --------------------------------------------------------------------------------------------------------
  if (!data.importance.length) nothing(byId("importance"), "Too few runs to tell.");
  else {
    const effect = (one, button) => {
      for (const other of byId("importance").children) other.setAttribute("aria-pressed", other === button);
      const values = one.effect.map(([, mean]) => mean), height = 190;
      const y = scale(Math.min(0, ...values), Math.max(0, ...values) * 1.08, height - PAD.bottom, PAD.top, false);
      const svg = plot(scale(0, 1, PAD.left, W - PAD.right, false), y, () => "", goal, one.parameter, "mean " + goalMetric, height);
      const step = (W - PAD.left - PAD.right) / values.length;
      one.effect.forEach(([name, mean], place) => {
        const bar = shape("rect", { class: "point", x: PAD.left + step * (place + 0.15), width: step * 0.7, y: Math.min(y(mean), y(0)), height: Math.max(1, Math.abs(y(0) - y(mean))), fill: "var(--accent)", rx: 3 });
        hover(bar, one.parameter + "=" + name + "\nmean believed " + goalMetric + ": " + goal(mean)); svg.append(bar);
        if (values.length <= 14) svg.append(shape("text", { x: PAD.left + step * (place + 0.5), y: height - PAD.bottom + 15, "text-anchor": "middle" }, name));
      });
      byId("effect").replaceChildren(svg);
    };
    for (const one of data.importance) {
      const share = Math.round(one.share * 100);
      const button = el("button", { class: "bar", type: "button" }, el("b", {}, one.parameter), el("i", { style: `width:${Math.max(share, 1)}%` }), el("em", {}, share + " %"));
      button.addEventListener("click", () => effect(one, button));
      byId("importance").append(button);
    }
    effect(data.importance[0], byId("importance").firstChild);
  }

  // Calibration -------------------------------------------------------------------------------------------------------
  const seen = data.calibration.predictions.filter((one) => one.middle_s > 0 && one.seen_s > 0);
  if (!seen.length) nothing(byId("calibration"), "No run was predicted by a model yet.");
  else {
    const covered = data.calibration.coverage, factor = data.calibration.typical_factor;
    byId("calibration-text").textContent = (covered === null ? "" : Math.round(covered * 100) + " % of runs lay in their 80 % interval. ") + (factor === null ? "" : "Finished runs were off by a factor of " + factor.toPrecision(2) + " (median).");
    const all = seen.flatMap((one) => [one.middle_s, one.seen_s]);
    const log = Math.max(...all) / Math.min(...all) > 8, x = across(all, log), y = up(all, log);
    const svg = plot(x, y, duration, duration, "predicted time", "seen time");
    svg.append(shape("line", { x1: x(x.low), y1: y(x.low), x2: x(x.high), y2: y(x.high), stroke: "var(--quiet)", "stroke-dasharray": "4 4" }));
    for (const one of seen) {
      const bar = [Math.max(one.low_s, x.low), Math.min(one.high_s, x.high)];
      if (bar[1] > bar[0]) svg.append(shape("line", { x1: x(bar[0]), x2: x(bar[1]), y1: y(one.seen_s), y2: y(one.seen_s), stroke: "var(--accent)", "stroke-opacity": 0.45 }));
      const dot = shape("circle", { class: "point", cx: x(one.middle_s), cy: y(one.seen_s), r: 4, fill: one.censored ? "var(--stopped)" : "var(--accent)" });
      hover(dot, `trial ${one.number}\npredicted ${duration(one.middle_s)} (80 %: ${duration(one.low_s)} to ${duration(one.high_s)})\n${one.censored ? "stopped after" : "took"} ${duration(one.seen_s)}`);
      svg.append(dot);
    }
    byId("calibration").append(svg);
    legend(byId("calibration"), [["finished", "var(--accent)"], ["stopped: a lower bound", "var(--stopped)"]]);
  }

  // Trials ------------------------------------------------------------------------------------------------------------
  const names = data.parameters, metrics = [...new Set(data.trials.flatMap((one) => Object.keys(one.metrics)))];
  const columns = [
    ["#", (one) => one.number, String], ...names.map((name) => [name, (one) => one.params[name] ?? null, (value) => (value === null ? "" : String(value))]),
    ["state", (one) => one.state, String], ["time", (one) => one.runtime_s, duration], ["charged", (one) => one.charged_usd, money],
    ["cost of a run", (one) => one.cost_usd, money], ["limits", (one) => one.keeps_limits, (value) => (value === null ? "" : value ? "kept" : "broken")],
    ...metrics.map((name) => [name, (one) => one.metrics[name] ?? null, (value) => (value === null ? "" : String(Number(value.toPrecision(5))))]),
    ["why", (one) => one.detail || one.why, String],
  ];
  let sorted = 0, upwards = true;
  const table = byId("trials"), filter = byId("filter");
  const body = () => {
    const value = columns[sorted][1];
    const compare = (a, b) => (a === b ? 0 : a === null ? 1 : b === null ? -1 : a < b ? -1 : 1);
    const wanted = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = data.trials.filter((one) => { const text = (about(one) + " " + one.detail).toLowerCase(); return wanted.every((word) => text.includes(word)); });
    rows.sort((a, b) => (upwards ? 1 : -1) * compare(value(a), value(b)));
    table.tBodies[0].replaceChildren(...rows.map((one) => el("tr", {}, ...columns.map(([name, get, text]) => {
      const kind = name === "state" ? one.state : typeof get(one) === "number" ? "number" : "";
      return el("td", kind ? { class: kind } : {}, text(get(one)));
    }))));
  };
  table.tHead.append(el("tr", {}, ...columns.map(([name], place) => {
    const head = el("th", { scope: "col", tabindex: "0" }, name);
    const choose = () => { upwards = sorted === place ? !upwards : true; sorted = place; body(); };
    head.addEventListener("click", choose);
    head.addEventListener("keydown", (event) => { if (event.key === "Enter") choose(); });
    return head;
  })));
  filter.addEventListener("input", body);
  body();
})();
