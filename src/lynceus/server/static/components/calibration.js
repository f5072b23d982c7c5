// Predicted and measured times: how well the model is calibrated.

import { el, setText, setChildren } from "../lib/dom.js";
import { chart, legend } from "../lib/chart.js";
import { count, duration, percent } from "../lib/format.js";
import { extent, scale, wide } from "../lib/scale.js";
import { FAIL, TIMEOUT } from "../lib/trials.js";
import { hrefOf } from "./describe.js";

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
  const covered = judgements.length ? `${count(hits)} of ${count(judgements.length)} runs were within their 80 % interval (${percent(hits / judgements.length)}).` : "No interval can be checked yet.";
  return covered + (factors.length ? ` Finished runs were off by a factor of ${middle.toPrecision(3)} (median).` : "");
};

const describe = (store, index) => `Trial ${store.number[index]}\npredicted ${duration(store.middle_s[index])} (80 %: ${duration(store.low_s[index])} to ${duration(store.high_s[index])})\n${store.state[index] === TIMEOUT ? "stopped after" : "took"} ${duration(store.runtime_s[index])}`;

const draw = (data, box) => {
  const { store } = data, indices = judged(store);
  if (!indices.length) return { empty: "The model has not predicted a run yet." };
  const range = extent(indices.flatMap((index) => [store.middle_s[index], store.runtime_s[index]])), log = wide(range);
  const x = scale(...range, box.left, box.right, log), y = scale(...range, box.bottom, box.top, log);
  const few = indices.slice(-400);
  const bars = few.map((index) => {
    const low = Math.max(store.low_s[index], x.low), high = Math.min(store.high_s[index], x.high);
    return high > low ? `M${x(low).toFixed(1)} ${y(store.runtime_s[index]).toFixed(1)}H${x(high).toFixed(1)}` : "";
  });
  return {
    x: { at: x, label: "predicted time", text: duration, clock: true }, y: { at: y, label: "measured time", text: duration, clock: true },
    marks: indices.map((index) => ({ x: x(store.middle_s[index]), y: y(store.runtime_s[index]), kind: store.state[index] === TIMEOUT ? "stopped" : "feasible", r: 3.8, label: () => describe(store, index), href: () => hrefOf(data, store.number[index]) })),
    lines: [{ d: `M${x(x.low)} ${y(x.low)}L${x(x.high)} ${y(x.high)}`, className: "line equal" }, { d: bars.join(""), className: "line interval" }],
    below: el("div", {}, legend([], [["line equal", "as predicted"], ["line interval", indices.length > few.length ? "80 % interval (last 400 runs)" : "80 % interval"]]), labels()),
    title: "Predicted and measured time", description: summary(store, indices),
    table: () => ({ columns: ["trial", "predicted", "80 % interval", "measured", "within"], rows: indices.map((index) => [store.number[index], duration(store.middle_s[index]), `${duration(store.low_s[index])} to ${duration(store.high_s[index])}`, (store.state[index] === TIMEOUT ? "≥ " : "") + duration(store.runtime_s[index]), { true: "yes", false: "no", null: "unknown" }[inside(store, index)]]) }),
  };
};

const labels = () => {
  const list = legend(["feasible", "stopped"]);
  list.children[0].lastChild.textContent = "finished";
  list.children[1].lastChild.textContent = "stopped early: a lower bound";
  return list;
};

/** data: {store, link} */
export const calibration = (element, data) => {
  let now = data, drawn = -1;
  const text = el("p", { class: "quiet", id: "calibration-text" }), host = el("div");
  setChildren(element, text, host);
  const redraw = chart(host, (box) => draw(now, box));
  const update = (next) => {
    now = next;
    if (now.store.size === drawn) return;
    drawn = now.store.size;
    const indices = judged(now.store);
    setText(text, indices.length ? summary(now.store, indices) : "");
    redraw();
  };
  update(data);
  return update;
};
