// The best objective so far against money spent. Stopped and failed trials are marked at the bottom.

import { chart, legend } from "../lib/chart.js";
import { count, parseObjective, counted, money } from "../lib/format.js";
import { extent, scale, wide } from "../lib/scale.js";
import { COMPLETE, objectiveValue, spentBy, STATE_WORDS } from "../lib/trials.js";
import { kindOf, markTexts, trialCell } from "./describe.js";

/** A step line of the best so far. */
const stepLine = (spent, best, x, y, end) => {
  let path = "", last = null;
  for (let index = 0; index < spent.length; index++) {
    if (best[index] === null || best[index] === last) continue;
    const across = x(spent[index]).toFixed(1), up = y(best[index]).toFixed(1);
    path += last === null ? `M${across} ${up}` : `H${across}V${up}`;
    last = best[index];
  }
  return last === null ? "" : path + `H${end.toFixed(1)}`;
};

const draw = (data, box) => {
  const { store } = data, spent = spentBy(store), objective = parseObjective(data.head.objective);
  if (!store.size) return { empty: "No trial has settled yet." };
  const values = [];
  for (let index = 0; index < store.size; index++) values.push(objectiveValue(store, index, objective));
  const range = extent(values);
  if (range === null) return { empty: "No run has finished yet." };
  const x = scale(0, spent[store.size - 1] || 1, box.left, box.right, false, 0.03);
  const y = scale(...range, box.bottom - 14, box.top, wide(range));
  const marks = [], last = store.size - 1;
  for (let index = 0; index < store.size; index++) {
    const own = values[index], kind = kindOf(store, index);
    if (own === null && store.state[index] === COMPLETE) continue;
    marks.push({ x: x(spent[index]), y: own === null ? box.bottom - 5 : y(own), kind, strong: store.number[index] === data.head.best_trial, index });
  }
  const best = store.best_value[last];
  const tallies = [0, 0, 0];
  for (const state of store.state) tallies[state]++;
  return {
    x: { at: x, label: "dollars spent", text: money }, y: { at: y, label: objective.label, text: objective.text, clock: objective.metric === "time" }, marks, ...markTexts(data),
    lines: [{ d: stepLine(spent, store.best_value, x, y, x(spent[last])), className: "line best" }],
    below: legend(["feasible", "infeasible", "stopped", "failed"], [["line best", "best so far"]]),
    title: "Best so far against money spent",
    description: `After ${money(spent[last])}: ${best === null ? "no run meets every constraint yet" : "best " + objective.label + " " + objective.text(best)}. ${counted(tallies[0], "run")} finished, ${count(tallies[1])} stopped early, ${count(tallies[2])} failed.`,
    table: () => ({ columns: ["trial", "spent by then", objective.label, "best so far", "state"], rows: store.number.map((number, index) => [trialCell(data, number), money(spent[index]), objective.text(values[index]), objective.text(store.best_value[index]), STATE_WORDS[store.state[index]]]) }),
  };
};

/** data: {head, store, link} */
export const bestChart = (element, data) => {
  let now = data;
  const redraw = chart(element, (box) => draw(now, box), { height: 400 });
  redraw(data.store.size);
  return (next) => { now = next; redraw(now.store.size); };
};

/** Two studies in one chart. data: {sides: [{name, head, curve}]} */
export const curvesChart = (element, data) => {
  let now = data;
  const redraw = chart(element, (box) => drawCurves(now, box), { height: () => (innerWidth > 900 ? 560 : 300) });
  redraw();
  return (next) => { now = next; redraw(); };
};

const drawCurves = (data, box) => {
  const objective = parseObjective(data.sides[0].head.objective);
  const points = data.sides.flatMap((side) => side.curve);
  if (!points.length) return { empty: "Neither study has a run that meets every constraint yet." };
  const y = scale(...extent(points.map((one) => one[1])), box.bottom, box.top, wide(extent(points.map((one) => one[1]))));
  const x = scale(0, Math.max(...data.sides.map((side) => side.head.spent_usd)) || 1, box.left, box.right, false, 0.03);
  const names = ["first", "second"];
  const lines = data.sides.map((side, index) => ({ d: stepLine(side.curve.map((one) => one[0]), side.curve.map((one) => one[1]), x, y, x(side.head.spent_usd)), className: "line " + names[index] }));
  const marks = data.sides.flatMap((side, index) => side.curve.filter(([, , number], rank) => rank === 0 || number !== side.curve[rank - 1][2])
    .map(([spent, value, number]) => ({ x: x(spent), y: y(value), kind: index ? "infeasible" : "feasible", r: 3.6, side, number, spent, value })));
  return {
    x: { at: x, label: "dollars spent", text: money }, y: { at: y, label: objective.label, text: objective.text, clock: objective.metric === "time" }, marks, lines,
    label: (mark) => `${mark.side.name}: trial ${mark.number}\n${objective.label} ${objective.text(mark.value)} after ${money(mark.spent)}`,
    href: (mark) => `/studies/${encodeURIComponent(mark.side.name)}/trials/${mark.number}`,
    below: legend([], data.sides.map((side, index) => ["line " + names[index], side.name])),
    title: "Best so far of both studies against money spent",
    description: data.sides.map((side) => `${side.name}: ${side.head.best_value === null ? "no run meets every constraint" : objective.text(side.head.best_value)} after ${money(side.head.spent_usd)}`).join("; ") + ".",
    table: () => ({ columns: ["study", "trial", "dollars spent", objective.label], rows: data.sides.flatMap((side) => side.curve.map(([spent, value, number]) => [side.name, number, money(spent), objective.text(value)])) }),
  };
};
