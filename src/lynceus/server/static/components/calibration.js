// Predicted and measured times: how well the model is calibrated.

import { el } from "../lib/dom.js";
import { chart, legend } from "../lib/chart.js";
import { count, counted, duration, percent } from "../lib/format.js";
import { extent, scale, wide } from "../lib/scale.js";
import { FAIL, TIMEOUT } from "../lib/trials.js";
import { pileUp } from "../lib/spread.js";
import { hrefsOf, trialCell } from "./describe.js";

const MAX_BARS = 400;

const judged = (store) => {
  const indices = [];
  for (let index = 0; index < store.size; index++) if (store.middle_s[index] > 0 && store.runtime_s[index] > 0 && store.state[index] !== FAIL) indices.push(index);
  return indices;
};

/** Whether the true time is in the interval; null when the run was stopped too early to tell. */
const inside = (store, index) => {
  const seen = store.runtime_s[index];
  if (store.state[index] === TIMEOUT) return seen > store.high_s[index] ? false : null;
  return seen >= store.low_s[index] && seen <= store.high_s[index];
};

const summary = (store, indices) => {
  const judgements = indices.map((index) => inside(store, index)).filter((one) => one !== null);
  const factors = indices.filter((index) => store.state[index] !== TIMEOUT).map((index) => Math.max(store.runtime_s[index] / store.middle_s[index], store.middle_s[index] / store.runtime_s[index])).sort((a, b) => a - b);
  const half = Math.floor(factors.length / 2);
  const middle = factors.length % 2 ? factors[half] : (factors[half - 1] + factors[half]) / 2;
  const hits = judgements.filter(Boolean).length;
  const covered = judgements.length ? `${count(hits)} of ${counted(judgements.length, "run")} lay within ${judgements.length === 1 ? "its" : "their"} 80 % interval (${percent(hits / judgements.length)}).` : "No interval can be checked yet.";
  return covered + (factors.length ? ` Finished runs were off by a factor of ${middle.toPrecision(3)} (median).` : "");
};

const describe = (store, index) => `Trial ${store.number[index]}\npredicted ${duration(store.middle_s[index])} (80 %: ${duration(store.low_s[index])} to ${duration(store.high_s[index])})\n${store.state[index] === TIMEOUT ? "stopped after" : "took"} ${duration(store.runtime_s[index])}`;

const draw = (data, box) => {
  const { store } = data, indices = judged(store);
  if (!indices.length) return { empty: "The model has not predicted a run yet." };
  const range = extent(indices.flatMap((index) => [store.middle_s[index], store.runtime_s[index]])), log = wide(range);
  const x = scale(...range, box.left, box.right, log), y = scale(...range, box.bottom, box.top, log);
  const stopped = [], finished = [];
  for (const index of indices) {
    const bound = store.state[index] === TIMEOUT;
    (bound ? stopped : finished).push({ x: x(store.middle_s[index]), y: y(store.runtime_s[index]), kind: bound ? "stopped" : "feasible", r: bound ? 3 : 3.8, index });
  }
  const few = finished.slice(-MAX_BARS);
  const bars = few.map(({ index }) => {
    const low = Math.max(store.low_s[index], x.low), high = Math.min(store.high_s[index], x.high);
    return high > low ? `M${x(low).toFixed(1)} ${y(store.runtime_s[index]).toFixed(1)}H${x(high).toFixed(1)}` : "";
  });
  const text = summary(store, indices);
  return {
    x: { at: x, label: "predicted time", text: duration, clock: true }, y: { at: y, label: "measured time", text: duration, clock: true },
    marks: [...pileUp(stopped, box.top), ...finished], label: (mark) => describe(store, mark.index), href: hrefsOf(data),
    lines: [{ d: `M${x(x.low)} ${y(x.low)}L${x(x.high)} ${y(x.high)}`, className: "line equal" }, { d: bars.join(""), className: "line interval" }],
    below: [el("p", { class: "quiet", id: "calibration-text" }, text), legend([["feasible", "finished"], ["stopped", "stopped early: takes longer"]], [["line equal", "as predicted"], ["line interval", finished.length > few.length ? `80 % interval (last ${MAX_BARS} finished runs)` : "80 % interval"]])],
    title: "Predicted and measured time", description: text,
    table: () => ({ columns: ["trial", "predicted", "80 % interval", "measured", "within"], rows: indices.map((index) => [trialCell(data, store.number[index]), duration(store.middle_s[index]), `${duration(store.low_s[index])} to ${duration(store.high_s[index])}`, (store.state[index] === TIMEOUT ? "> " : "") + duration(store.runtime_s[index]), { true: "yes", false: "no", null: "unknown" }[inside(store, index)]]) }),
  };
};

/** Whether there is a prediction to judge. */
export const hasPredictions = ({ store }) => {
  for (let index = store.judged ?? 0; index < store.size; index++) {
    if (store.middle_s[index] > 0 && store.runtime_s[index] > 0 && store.state[index] !== FAIL) return true;
    store.judged = index + 1;
  }
  return false;
};

/** data: {store, link} */
export const calibration = (element, data) => {
  let now = data;
  const redraw = chart(element, (box) => draw(now, box), { height: 360 });
  redraw(data.store.size);
  return (next) => { now = next; redraw(now.store.size); };
};
