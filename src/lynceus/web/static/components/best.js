// Best so far against money spent. Stopped and failed trials are marked where their money went.

import { chart, legend } from "../lib/chart.js";
import { count, goalOf, many, money } from "../lib/format.js";
import { extent, scale, wide } from "../lib/scale.js";
import { COMPLETE, goalValue, STATE_WORDS } from "../lib/trials.js";
import { about, hrefOf, kindOf } from "./describe.js";

/** The stair of the best so far; vertical only where it improves. */
const stair = (spent, best, x, y, end) => {
  let path = "", last = null;
  for (let place = 0; place < spent.length; place++) {
    if (best[place] === null || best[place] === last) continue;
    const across = x(spent[place]).toFixed(1), up = y(best[place]).toFixed(1);
    path += last === null ? `M${across} ${up}` : `H${across}V${up}`;
    last = best[place];
  }
  return last === null ? "" : path + `H${end.toFixed(1)}`;
};

const draw = (data, box) => {
  const { store, course } = data, goal = goalOf(data.head.objective);
  if (!store.size) return { nothing: "No trial has settled yet. The first one appears here as soon as it ends." };
  const values = [];
  for (let place = 0; place < store.size; place++) values.push(goalValue(store, place, goal));
  const range = extent(values);
  if (range === null) return { nothing: "No run has come to its end yet, so there is no cost to show." };
  const x = scale(0, course.spent[store.size - 1] || 1, box.left, box.right, false, 0.03);
  const y = scale(...range, box.bottom - 14, box.top, wide(range));
  const marks = [], last = store.size - 1;
  for (let place = 0; place < store.size; place++) {
    const own = values[place], kind = kindOf(store, place);
    if (own === null && store.state[place] === COMPLETE) continue;
    marks.push({ x: x(course.spent[place]), y: own === null ? box.bottom - 5 : y(own), kind, strong: place === course.incumbent[last], label: () => about(store, place), href: () => hrefOf(data, store.number[place]) });
  }
  const best = course.best[last];
  const tallies = [0, 1, 2].map((state) => store.state.filter((one) => one === state).length);
  return {
    x: { at: x, label: "dollars spent", text: money }, y: { at: y, label: goal.label, text: goal.text, clock: goal.metric === "time" }, marks,
    lines: [{ d: stair(course.spent, course.best, x, y, x(course.spent[last])), className: "line best" }],
    below: legend(["kept", "broken", "stopped", "failed"], [["line best", "best so far"]]),
    title: "Best so far against money spent",
    description: `After ${money(course.spent[last])}: ${best === null ? "no run has kept every limit yet" : "best " + goal.label + " " + goal.text(best)}. ${many(tallies[0], "run")} finished, ${count(tallies[1])} stopped early, ${count(tallies[2])} failed.`,
    table: () => ({ columns: ["trial", "spent by then", goal.label, "best so far", "how it ended"], rows: store.number.map((number, place) => [number, money(course.spent[place]), goal.text(values[place]), goal.text(course.best[place]), STATE_WORDS[store.state[place]]]) }),
  };
};

/** data: {head, store, course, link} */
export const bestChart = (element, data) => {
  let now = data;
  const again = chart(element, (box) => draw(now, box));
  again(data.store.size);
  return (next) => { now = next; again(now.store.size); };
};

/** Two studies in one chart. data: {sides: [{name, head, curve}]} */
export const curvesChart = (element, data) => {
  let now = data;
  const again = chart(element, (box) => drawCurves(now, box));
  again();
  return (next) => { now = next; again(); };
};

const drawCurves = (data, box) => {
  const goal = goalOf(data.sides[0].head.objective);
  const points = data.sides.flatMap((side) => side.curve);
  if (!points.length) return { nothing: "Neither study has a run that kept every limit yet." };
  const y = scale(...extent(points.map((one) => one[1])), box.bottom, box.top, wide(extent(points.map((one) => one[1]))));
  const x = scale(0, Math.max(...data.sides.map((side) => side.head.spent_usd)) || 1, box.left, box.right, false, 0.03);
  const names = ["first", "second"];
  const lines = data.sides.map((side, place) => ({ d: stair(side.curve.map((one) => one[0]), side.curve.map((one) => one[1]), x, y, x(side.head.spent_usd)), className: "line " + names[place] }));
  return {
    x: { at: x, label: "dollars spent", text: money }, y: { at: y, label: goal.label, text: goal.text, clock: goal.metric === "time" }, marks: [], lines,
    below: legend([], data.sides.map((side, place) => ["line " + names[place], side.name])),
    title: "Best so far of both studies against money spent",
    description: data.sides.map((side) => `${side.name}: ${side.head.best === null ? "nothing kept every limit" : goal.text(side.head.best)} after ${money(side.head.spent_usd)}`).join("; ") + ".",
    table: () => ({ columns: ["study", "dollars spent", goal.label], rows: data.sides.flatMap((side) => side.curve.map(([spent, value]) => [side.name, money(spent), goal.text(value)])) }),
  };
};
