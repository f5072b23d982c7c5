// Parallel coordinates: one axis per parameter and one for the goal; each finished run is a line, good ones stand out.

import { el, nothing, shape, show } from "../lib/dom.js";
import { count, goalOf, many, shown } from "../lib/format.js";
import { extent, scale, ticks, wide } from "../lib/scale.js";
import { colour, onColours } from "../lib/theme.js";
import { goalValue, TIMEOUT } from "../lib/trials.js";

const HEIGHT = 300, TOP = 46, BOTTOM = 16, SIDE = 86, MOST_LINES = 2000, LEAST_AXIS = 88, MOST_STRONG = 25;
const short = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);

/** Finished runs, those that kept every limit first, the best of them first; then stopped ones, which have no goal. */
const ranked = (store, goal) => {
  const places = [], stopped = [], values = new Array(store.size);
  for (let place = 0; place < store.size; place++) {
    values[place] = goalValue(store, place, goal);
    if (values[place] !== null) places.push(place);
    else if (store.state[place] === TIMEOUT) stopped.push(place);
  }
  const sign = goal.maximise ? -1 : 1;
  places.sort((a, b) => (store.keeps[b] - store.keeps[a]) || sign * (values[a] - values[b]));
  return { finished: places.slice(0, MOST_LINES), stopped: stopped.slice(-MOST_LINES), all: places.length + stopped.length };
};

const axesOf = (store, places, goal, width) => {
  const names = [...store.parameters, null], gap = (width - 2 * SIDE) / (names.length - 1);
  return names.map((parameter, rank) => {
    const x = SIDE + rank * gap;
    if (parameter === null) {
      const range = extent(places.map((place) => goalValue(store, place, goal)));
      const at = scale(...range, HEIGHT - BOTTOM, TOP, wide(range), 0);
      return { x, name: goal.label, y: (place) => { const own = goalValue(store, place, goal); return own === null ? null : at(own); }, marks: ticks(at, 5, goal.metric === "time").map((tick) => [at(tick), goal.text(tick)]) };
    }
    const last = parameter.values.length - 1 || 1, codes = store.params[parameter.name];
    const y = (code) => HEIGHT - BOTTOM - (parameter.values.length === 1 ? 0.5 : code / last) * (HEIGHT - BOTTOM - TOP);
    const every = Math.ceil(parameter.values.length / 9);
    return { x, name: parameter.name, y: (place) => (codes[place] < 0 ? null : y(codes[place])), marks: parameter.values.map((value, code) => [y(code), shown(value), code]).filter(([, , code]) => code % every === 0) };
  });
};

const trace = (path, axes, place) => {
  let pen = false;
  for (const axis of axes) {
    const y = axis.y(place);
    if (y === null) { pen = false; continue; }
    if (pen) path.lineTo(axis.x, y);
    else path.moveTo(axis.x, y);
    pen = true;
  }
};

const paint = (canvas, axes, { finished: places, stopped }, store, width) => {
  const ratio = devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = HEIGHT * ratio;
  canvas.style.width = width + "px";
  canvas.style.height = HEIGHT + "px";
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  const good = places.filter((place) => store.keeps[place]), best = good.slice(0, Math.min(MOST_STRONG, Math.ceil(good.length / 10)));
  const parts = [[stopped, "stopped", [1.5, 3]], [places.filter((place) => !store.keeps[place]), "late", [4, 3]], [good.slice(best.length), "kept", []], [best, "accent", []]];
  const crowd = Math.min(1, 60 / (places.length + stopped.length));
  for (const [which, name, dash] of parts) {
    const path = new Path2D(), strong = name === "accent";
    for (const place of which) trace(path, axes, place);
    context.setLineDash(dash);
    context.strokeStyle = colour(name);
    context.globalAlpha = strong ? 0.95 : Math.max(0.08, 0.5 * crowd);
    context.lineWidth = strong ? 1.8 : 1;
    context.stroke(path);
  }
};

const frame = (axes, width) => {
  const svg = shape("svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, "aria-hidden": "true" });
  for (const [rank, axis] of axes.entries()) {
    svg.append(shape("line", { class: "axis", x1: axis.x, x2: axis.x, y1: TOP, y2: HEIGHT - BOTTOM }));
    svg.append(shape("text", { class: "label strong", x: axis.x, y: rank % 2 ? 28 : 14, "text-anchor": "middle" }, short(axis.name, 18)));
    const end = rank === axes.length - 1;
    for (const [y, text] of axis.marks) svg.append(shape("text", { class: "halo", x: axis.x + (end ? 7 : -7), y: y + 4, "text-anchor": end ? "start" : "end" }, short(text, 10)));
  }
  return svg;
};

/** data: {head, store} */
export const parallel = (element, data) => {
  let now = data, pending = 0, visible = false, dirty = true, seenWidth = 0;
  const canvas = el("canvas", { "aria-hidden": "true" }), note = el("p", { class: "quiet" });
  const holder = el("div", { class: "plot scroll", tabindex: "0", role: "img", "aria-label": "Parallel coordinates" });
  const keys = el("ul", { class: "legend", "aria-label": "Legend" }, [["best", "best runs"], ["kept-line", "kept every limit"], ["late-line", "broke a limit"], ["stopped-line", "stopped early: no goal"]].map(([name, text]) => el("li", {}, shape("svg", { viewBox: "0 0 22 12", width: 22, height: 12, "aria-hidden": "true" }, shape("path", { d: "M1 6H21", class: "line " + name })), text)));
  const table = el("details", { class: "data" }, el("summary", {}, "Show as a table"), el("p", { class: "quiet" }, "The table of trials below lists every run with its parameters; sort it by any column."));
  show(element, holder, note, keys, table);
  const render = () => {
    dirty = false;
    seenWidth = element.clientWidth;
    const goal = goalOf(now.head.objective), runs = ranked(now.store, goal), places = runs.finished;
    keys.hidden = table.hidden = note.hidden = !places.length;
    if (!places.length) { show(holder, nothing("No run has finished yet.")); holder.setAttribute("aria-label", "Parallel coordinates: no run has finished yet"); return; }
    const width = Math.max(element.clientWidth, 2 * SIDE + LEAST_AXIS * now.store.parameters.length);
    const axes = axesOf(now.store, places, goal, width);
    const best = now.store.parameters.map((parameter) => { const code = now.store.params[parameter.name][places[0]]; return `${parameter.name} ${code < 0 ? "—" : shown(parameter.values[code])}`; });
    holder.setAttribute("aria-label", `Parallel coordinates over ${many(now.store.parameters.length, "parameter")}. The best run has ${best.join(", ")}: ${goal.label} ${goal.text(goalValue(now.store, places[0], goal))}.`);
    show(holder, el("div", { class: "layers" }, canvas, frame(axes, width)));
    holder.firstChild.style.width = width + "px";
    paint(canvas, axes, runs, now.store, width);
    note.textContent = runs.all > places.length + runs.stopped.length ? `The best ${count(places.length)} finished and the last ${count(runs.stopped.length)} stopped runs are drawn, of ${count(runs.all)}.` : "";
  };
  const again = () => {
    dirty = true;
    if (!pending && visible) pending = requestAnimationFrame(() => { pending = 0; if (dirty) render(); });
  };
  new IntersectionObserver(([entry]) => { visible = entry.isIntersecting; if (visible && dirty) again(); }, { rootMargin: "300px" }).observe(element);
  new ResizeObserver(() => { if (Math.abs(element.clientWidth - seenWidth) > 1) again(); }).observe(element);
  onColours(() => again());
  let told = -1;
  return (next) => { now = next; if (now.store.size !== told) again(); told = now.store.size; };
};
