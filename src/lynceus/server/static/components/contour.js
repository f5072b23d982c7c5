// The predicted objective over two parameters, with the runs. The server computes it; other parameters have their best values.

import { el, emptyNote, setChildren, svgEl } from "../lib/dom.js";
import { chart } from "../lib/chart.js";
import { formatValue, parseObjective, percent } from "../lib/format.js";
import { extent, wide } from "../lib/scale.js";
import { onVisibilityChange } from "../lib/visibility.js";
import { about, kindOf, hrefsOf } from "./describe.js";

const LEVELS = 7;

/** Diagonal lines, also where colors cannot be told apart. Each picture needs its own. */
const hatch = (id) => svgEl("defs", {}, svgEl("pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, svgEl("line", { class: "hatch", x1: 0, x2: 0, y1: 0, y2: 6 })));
const short = (text) => (text.length > 9 ? text.slice(0, 8) + "…" : text);
const stepText = (step) => (step.length === 1 ? formatValue(step[0]) : `${formatValue(step[0])} … ${formatValue(step[step.length - 1])}`);

/** The step of a value's position on an axis. */
const stepOf = (axis) => {
  const found = [];
  for (const [rank, step] of axis.steps.entries()) for (let one = 0; one < step.length; one++) found.push(rank);
  return (code) => (code < 0 ? null : found[code]);
};

/** Levels of equal ratio (or distance), level 0 is the best. */
const levelsOf = (values, maximise) => {
  const range = extent(values.flat()), log = wide(range) || range[0] > 0;
  const f = log ? Math.log : (x) => x, g = log ? Math.exp : (x) => x, [low, high] = range.map(f), size = (high - low) / LEVELS || 1;
  const level = (value) => { const at = Math.min(LEVELS - 1, Math.floor((f(value) - low) / size)); return maximise ? LEVELS - 1 - at : at; };
  const edge = (rank) => g(low + size * rank);
  return { level, edges: [...Array(LEVELS).keys()].map((rank) => { const at = maximise ? LEVELS - 1 - rank : rank; return [edge(at), edge(at + 1)]; }) };
};

const best = (found, maximise) => {
  let where = null;
  for (const [row, line] of found.value.entries())
    for (const [column, value] of line.entries())
      if (value !== null && (found.probability[row][column] ?? 1) >= 0.5 && (where === null || (maximise ? value > where.value : value < where.value))) where = { row, column, value };
  return where;
};

const runsOf = (data, found, across, up) => {
  const { store } = data, columns = store.params[found.x.parameter], rows = store.params[found.y.parameter];
  const [toColumn, toRow] = [stepOf(found.x), stepOf(found.y)], counts = new Map(), marks = [];
  for (let index = 0; index < store.size; index++) {
    const column = toColumn(columns[index]), row = toRow(rows[index]);
    if (column === null || row === null) continue;
    const key = column + " " + row, rank = counts.get(key) ?? 0;
    counts.set(key, rank + 1);
    marks.push({ column, row, rank, index });
  }
  // Runs of one cell are spread over it, in a spiral from its middle.
  const wide = Math.max(2, across / 2 - 5), high = Math.max(2, up / 2 - 5);
  return { counts, marks, offset: ({ rank, column, row }) => { const many = counts.get(column + " " + row), far = many < 2 ? 0 : Math.sqrt((rank + 0.3) / many), angle = rank * 2.4; return [wide * far * Math.cos(angle), high * far * Math.sin(angle)]; } };
};

const draw = (data, found, box) => {
  const objective = parseObjective(data.head.objective), { store } = data;
  const across = (box.right - box.left) / found.x.steps.length, up = (box.bottom - box.top) / found.y.steps.length;
  const x = (column) => box.left + (column + 0.5) * across, y = (row) => box.bottom - (row + 0.5) * up;
  const { level, edges } = levelsOf(found.value, objective.maximise);
  const cells = [];
  for (const [row, line] of found.value.entries())
    for (const [column, value] of line.entries()) {
      if (value === null) continue;
      const place = { x: x(column) - across / 2, y: y(row) - up / 2, width: across + 0.5, height: up + 0.5 };
      cells.push(svgEl("rect", { class: "cell level-" + level(value), ...place }));
      if ((found.probability[row][column] ?? 1) < 0.5) cells.push(svgEl("rect", { class: "unlikely", fill: "url(#contour-hatch)", ...place }));
    }
  const runs = runsOf(data, found, across, up), strong = data.head.best_trial;
  const marks = runs.marks.map((mark) => { const [dx, dy] = runs.offset(mark); return { x: x(mark.column) + dx, y: y(mark.row) + dy, kind: kindOf(store, mark.index), r: store.size > 150 ? 2.2 : 3.2, strong: store.number[mark.index] === strong, index: mark.index }; });
  const every = (count, room, least) => Math.ceil(count / Math.max(1, Math.floor(room / least)));
  const [skipX, skipY] = [every(found.x.steps.length, box.right - box.left, 62), every(found.y.steps.length, box.bottom - box.top, 22)];
  const top = best(found, objective.maximise);
  const text = (row, column) => `${found.x.parameter} ${stepText(found.x.steps[column])}, ${found.y.parameter} ${stepText(found.y.steps[row])}`;
  return {
    x: { at: x, ticks: found.x.steps.map((_, rank) => rank).filter((rank) => rank % skipX === 0), text: (rank) => short(stepText(found.x.steps[rank])), label: found.x.parameter.slice(0, 40) },
    y: { at: y, ticks: found.y.steps.map((_, rank) => rank).filter((rank) => rank % skipY === 0), text: (rank) => short(stepText(found.y.steps[rank])), label: found.y.parameter.slice(0, 30) },
    marks, label: (mark) => about(store, mark.index), href: hrefsOf(data), extra: [hatch("contour-hatch"), ...cells],
    below: el("ul", { class: "legend", "aria-label": "Legend" },
      el("li", {}, objective.text(edges[0][objective.maximise ? 1 : 0]), svgEl("svg", { viewBox: `0 0 ${14 * LEVELS} 14`, width: 14 * LEVELS, height: 14, "aria-hidden": "true" }, edges.map((_, rank) => svgEl("rect", { class: "cell level-" + rank, x: 14 * rank, width: 14, height: 14 }))), objective.text(edges[LEVELS - 1][objective.maximise ? 0 : 1]), " predicted"),
      el("li", {}, svgEl("svg", { viewBox: "0 0 22 14", width: 22, height: 14, "aria-hidden": "true" }, svgEl("path", { class: "hatch", d: "M2 14L9 0M9 14L16 0M16 14L22 2" })), "probably violates a constraint")),
    title: `Predicted ${objective.label} over ${found.x.parameter} and ${found.y.parameter}`,
    description: top === null ? "The model expects no pair of values to meet every constraint." : `The best pair is predicted to be ${text(top.row, top.column)}: ${objective.label} ${objective.text(top.value)}.`,
    table: () => ({ columns: [found.x.parameter, found.y.parameter, "predicted " + objective.label, "feasible", "runs"], rows: found.value.flatMap((line, row) => line.map((value, column) => [stepText(found.x.steps[column]), stepText(found.y.steps[row]), objective.text(value), percent(found.probability[row][column]), runs.counts.get(column + " " + row) ?? 0])) }),
  };
};

/** data: {head, store, insight, contour, link}; `contour(x, y)` fetches the document. */
export const contour = (element, data) => {
  let now = data, found = null, asked = null, chosen = { x: null, y: null }, visible = false, request = 0;
  const note = emptyNote("Computing …"), host = el("div"), selects = ["x", "y"].map((axis) => el("select", { id: "contour-" + axis }));
  const picker = el("div", { class: "filters" }, ["across", "up"].map((name, rank) => el("label", { for: selects[rank].id }, el("span", {}, name), selects[rank])));
  setChildren(element, picker, note, host);
  const redraw = chart(host, (box) => (found?.x ? draw(now, found, box) : { empty: "" }), { height: 320 });
  const show = () => {
    note.hidden = Boolean(found?.x);
    picker.hidden = host.hidden = !note.hidden;
    if (!found?.x) { if (found) note.textContent = "Too few finished runs for a prediction."; return; }
    for (const [rank, axis] of ["x", "y"].entries())
      setChildren(selects[rank], found.parameters.map((name) => el("option", { value: name, selected: name === found[axis].parameter }, name)));
    redraw();
  };
  const fetchIt = async () => {
    const key = `${now.insight?.settled} ${chosen.x} ${chosen.y}`;
    if (!visible || !now.insight || key === asked) return;
    asked = key;
    const mine = ++request;
    try { const got = await now.contour(chosen.x, chosen.y); if (mine === request) { found = got; show(); } } catch (error) { if (mine === request) { note.hidden = false; note.textContent = error.message; } }
  };
  for (const [rank, axis] of ["x", "y"].entries())
    selects[rank].addEventListener("change", () => {
      const other = rank ? "x" : "y", before = found[axis].parameter;
      chosen = { x: found.x.parameter, y: found.y.parameter, [axis]: selects[rank].value };
      if (chosen.x === chosen.y) chosen[other] = before; // the axes change places
      fetchIt();
    });
  onVisibilityChange(element, (seen) => { visible = seen; fetchIt(); });
  return (next) => { now = next; fetchIt(); };
};
