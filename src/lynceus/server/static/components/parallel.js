// Parallel coordinates: one axis per parameter and one for the objective; each finished run is a line, the best ones are highlighted.

import { el, emptyNote, svgEl, setChildren } from "../lib/dom.js";
import { listen } from "../lib/chart.js";
import { count, parseObjective, counted, formatValue } from "../lib/format.js";
import { extent, scale, tickTexts, ticks, wide } from "../lib/scale.js";
import { color, onThemeChange } from "../lib/theme.js";
import { objectiveValue, TIMEOUT } from "../lib/trials.js";
import { onVisibilityChange } from "../lib/visibility.js";
import { markTexts } from "./describe.js";

const HEIGHT = 300, TOP = 46, BOTTOM = 16, SIDE = 86, MAX_LINES = 2000, MIN_AXIS_WIDTH = 88, MAX_BEST = 25;
const short = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);

/** Finished runs, feasible ones first and the best of them first; and stopped runs, which have no objective. */
const ranked = (store, objective) => {
  const indices = [], stopped = [], values = new Array(store.size);
  for (let index = 0; index < store.size; index++) {
    values[index] = objectiveValue(store, index, objective);
    if (values[index] !== null) indices.push(index);
    else if (store.state[index] === TIMEOUT) stopped.push(index);
  }
  const sign = objective.maximise ? -1 : 1;
  indices.sort((a, b) => (store.keeps[b] - store.keeps[a]) || sign * (values[a] - values[b]));
  return { finished: indices.slice(0, MAX_LINES), stopped: stopped.slice(-MAX_LINES), all: indices.length + stopped.length };
};

const axesOf = (store, indices, objective, width) => {
  const names = [...store.parameters, null], gap = (width - 2 * SIDE) / (names.length - 1);
  return names.map((parameter, rank) => {
    const x = SIDE + rank * gap;
    if (parameter === null) {
      const range = extent(indices.map((index) => objectiveValue(store, index, objective)));
      const at = scale(...range, HEIGHT - BOTTOM, TOP, wide(range), 0);
      const found = ticks(at, 5, objective.metric === "time"), texts = tickTexts(found, objective.text);
      return { x, name: objective.label, y: (index) => { const own = objectiveValue(store, index, objective); return own === null ? null : at(own); }, marks: found.map((tick, rank) => [at(tick), texts[rank]]) };
    }
    const last = parameter.values.length - 1 || 1, codes = store.params[parameter.name];
    const y = (code) => HEIGHT - BOTTOM - (parameter.values.length === 1 ? 0.5 : code / last) * (HEIGHT - BOTTOM - TOP);
    const every = Math.ceil(parameter.values.length / 9);
    return { x, name: parameter.name, y: (index) => (codes[index] < 0 ? null : y(codes[index])), marks: parameter.values.map((value, code) => [y(code), formatValue(value), code]).filter(([, , code]) => code % every === 0) };
  });
};

const trace = (path, axes, index) => {
  let pen = false;
  for (const axis of axes) {
    const y = axis.y(index);
    if (y === null) { pen = false; continue; }
    if (pen) path.lineTo(axis.x, y);
    else path.moveTo(axis.x, y);
    pen = true;
  }
};

const paint = (canvas, axes, { finished: indices, stopped }, store, width) => {
  const ratio = devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = HEIGHT * ratio;
  canvas.style.width = width + "px";
  canvas.style.height = HEIGHT + "px";
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  const good = indices.filter((index) => store.keeps[index]), best = good.slice(0, Math.min(MAX_BEST, Math.ceil(good.length / 10)));
  const parts = [[stopped, "stopped", [1.5, 3]], [indices.filter((index) => !store.keeps[index]), "late", [4, 3]], [good.slice(best.length), "feasible", []], [best, "accent", []]];
  const crowd = Math.min(1, 60 / (indices.length + stopped.length));
  for (const [which, name, dash] of parts) {
    const path = new Path2D(), strong = name === "accent";
    for (const index of which) trace(path, axes, index);
    context.setLineDash(dash);
    context.strokeStyle = color(name);
    context.globalAlpha = strong ? 0.95 : Math.max(0.08, 0.5 * crowd);
    context.lineWidth = strong ? 1.8 : 1;
    context.stroke(path);
  }
};

const frame = (axes, width) => {
  const svg = svgEl("svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, "aria-hidden": "true" });
  for (const [rank, axis] of axes.entries()) {
    svg.append(svgEl("line", { class: "axis", x1: axis.x, x2: axis.x, y1: TOP, y2: HEIGHT - BOTTOM }));
    svg.append(svgEl("text", { class: "label strong", x: axis.x, y: rank % 2 ? 28 : 14, "text-anchor": "middle" }, short(axis.name, 18)));
    const end = rank === axes.length - 1;
    for (const [y, text] of axis.marks) svg.append(svgEl("text", { class: "halo", x: axis.x + (end ? 7 : -7), y: y + 4, "text-anchor": end ? "start" : "end" }, short(text, 10)));
  }
  return svg;
};

/** Where runs cross the axes, for pointers; on the axis of the objective, for arrow keys. */
const marksOf = (axes, { finished, stopped }) => {
  const marks = [], stops = [];
  for (const index of [...finished, ...stopped])
    for (const [rank, axis] of axes.entries()) {
      const y = axis.y(index);
      if (y === null) continue;
      marks.push({ x: axis.x, y, index });
      if (rank === axes.length - 1) stops.push(marks[marks.length - 1]);
    }
  const highlight = ({ index }) => {
    const points = axes.map((axis) => [axis.x, axis.y(index)]).filter(([, y]) => y !== null);
    return svgEl("path", { class: "line picked", d: points.map(([x, y], rank) => `${rank ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("") });
  };
  return { marks, stops, highlight };
};

/** data: {head, store, link} */
export const parallel = (element, data) => {
  let now = data, pending = 0, visible = false, dirty = true, seenWidth = 0;
  const canvas = el("canvas", { "aria-hidden": "true" }), note = el("p", { class: "quiet" });
  const holder = el("div", { class: "plot scroll" });
  holder.style.minHeight = HEIGHT + "px"; // until it is drawn, as in every chart
  const keys = el("ul", { class: "legend", "aria-label": "Legend" }, [["best", "best runs"], ["feasible-line", "met every constraint"], ["late-line", "violated a constraint"], ["stopped-line", "stopped early: no objective"]].map(([name, text]) => el("li", {}, svgEl("svg", { viewBox: "0 0 22 12", width: 22, height: 12, "aria-hidden": "true" }, svgEl("path", { d: "M1 6H21", class: "line " + name })), text)));
  const table = el("details", { class: "data" }, el("summary", {}, "Show as a table"), el("p", { class: "quiet" }, "The table of trials below lists every run with its parameters. You can sort it by any column."));
  setChildren(element, holder, note, keys, table);
  const render = () => {
    dirty = false;
    holder.style.minHeight = "";
    seenWidth = element.clientWidth;
    const objective = parseObjective(now.head.objective), runs = ranked(now.store, objective), indices = runs.finished;
    keys.hidden = table.hidden = note.hidden = !indices.length;
    if (!indices.length) { setChildren(holder, emptyNote("No run has finished yet.")); return; }
    const width = Math.max(element.clientWidth, 2 * SIDE + MIN_AXIS_WIDTH * now.store.parameters.length);
    const axes = axesOf(now.store, indices, objective, width);
    const best = now.store.parameters.map((parameter) => { const code = now.store.params[parameter.name][indices[0]]; return `${parameter.name} ${code < 0 ? "—" : formatValue(parameter.values[code])}`; });
    const summary = `Parallel coordinates over ${counted(now.store.parameters.length, "parameter")}. The best run has ${best.join(", ")}: ${objective.label} ${objective.text(objectiveValue(now.store, indices[0], objective))}.`;
    const chosen = svgEl("svg", { class: "chosen-mark", width, height: HEIGHT, "aria-hidden": "true" });
    const layer = el("div", { class: "layers", tabindex: "0", role: "group", "aria-label": `${summary} Use the arrow keys to move from run to run${now.link ? ", and Enter to open one" : ""}.` }, canvas, frame(axes, width), chosen);
    const focused = holder.contains(document.activeElement);
    listen(layer, chosen, { ...marksOf(axes, runs), ...markTexts(now) });
    setChildren(holder, layer);
    layer.style.width = width + "px";
    if (focused) layer.focus({ preventScroll: true });
    paint(canvas, axes, runs, now.store, width);
    note.textContent = runs.all > indices.length + runs.stopped.length ? `The best ${count(indices.length)} finished and the last ${count(runs.stopped.length)} stopped runs are drawn, of ${count(runs.all)}.` : "";
  };
  const redraw = () => {
    dirty = true;
    if (!pending && visible) pending = requestAnimationFrame(() => { pending = 0; if (dirty) render(); });
  };
  onVisibilityChange(element, (seen) => { visible = seen; if (visible && dirty) redraw(); });
  new ResizeObserver(() => { if (Math.abs(element.clientWidth - seenWidth) > 1) redraw(); }).observe(element);
  onThemeChange(() => redraw());
  let drawn = -1;
  return (next) => { now = next; if (now.store.size !== drawn) redraw(); drawn = now.store.size; };
};
