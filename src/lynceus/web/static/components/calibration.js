// Predicted against seen: whether the model deserves trust.

import { el, say, show } from "../lib/dom.js";
import { chart, legend } from "../lib/chart.js";
import { count, duration, percent } from "../lib/format.js";
import { extent, scale, wide } from "../lib/scale.js";
import { FAIL, TIMEOUT } from "../lib/trials.js";
import { hrefOf } from "./describe.js";

const judged = (store) => {
  const places = [];
  for (let place = 0; place < store.size; place++) if (store.middle_s[place] > 0 && store.runtime_s[place] > 0 && store.state[place] !== FAIL) places.push(place);
  return places;
};

/** Whether the truth lay in the interval; null when a stopped run cannot tell. */
const inside = (store, place) => {
  const seen = store.runtime_s[place];
  if (store.state[place] === TIMEOUT) return seen > store.high_s[place] ? false : null;
  return seen >= store.low_s[place] && seen <= store.high_s[place];
};

const summary = (store, places) => {
  const told = places.map((place) => inside(store, place)).filter((one) => one !== null);
  const factors = places.filter((place) => store.state[place] !== TIMEOUT).map((place) => Math.max(store.runtime_s[place] / store.middle_s[place], store.middle_s[place] / store.runtime_s[place])).sort((a, b) => a - b);
  const half = Math.floor(factors.length / 2);
  const middle = factors.length % 2 ? factors[half] : (factors[half - 1] + factors[half]) / 2;
  const covered = told.length ? `${count(told.filter(Boolean).length)} of ${count(told.length)} runs lay in their 80 % interval (${percent(told.filter(Boolean).length / told.length)}).` : "No interval could be judged yet.";
  return covered + (factors.length ? ` Finished runs were off by a factor of ${middle.toPrecision(3)} (median).` : "");
};

const tell = (store, place) => `Trial ${store.number[place]}\npredicted ${duration(store.middle_s[place])} (80 %: ${duration(store.low_s[place])} to ${duration(store.high_s[place])})\n${store.state[place] === TIMEOUT ? "stopped after" : "took"} ${duration(store.runtime_s[place])}`;

const draw = (data, box) => {
  const { store } = data, places = judged(store);
  if (!places.length) return { nothing: "No run was predicted by a model yet." };
  const range = extent(places.flatMap((place) => [store.middle_s[place], store.runtime_s[place]])), log = wide(range);
  const x = scale(...range, box.left, box.right, log), y = scale(...range, box.bottom, box.top, log);
  const few = places.slice(-400);
  const bars = few.map((place) => {
    const low = Math.max(store.low_s[place], x.low), high = Math.min(store.high_s[place], x.high);
    return high > low ? `M${x(low).toFixed(1)} ${y(store.runtime_s[place]).toFixed(1)}H${x(high).toFixed(1)}` : "";
  });
  return {
    x: { at: x, label: "predicted time", text: duration, clock: true }, y: { at: y, label: "seen time", text: duration, clock: true },
    marks: places.map((place) => ({ x: x(store.middle_s[place]), y: y(store.runtime_s[place]), kind: store.state[place] === TIMEOUT ? "stopped" : "kept", r: 3.8, label: () => tell(store, place), href: () => hrefOf(data, store.number[place]) })),
    lines: [{ d: `M${x(x.low)} ${y(x.low)}L${x(x.high)} ${y(x.high)}`, className: "line equal" }, { d: bars.join(""), className: "line interval" }],
    below: el("div", {}, legend([], [["line equal", "as predicted"], ["line interval", places.length > few.length ? "80 % interval (last 400 runs)" : "80 % interval"]]), named()),
    title: "Predicted against seen time", description: summary(store, places),
    table: () => ({ columns: ["trial", "predicted", "80 % interval", "seen", "inside"], rows: places.map((place) => [store.number[place], duration(store.middle_s[place]), `${duration(store.low_s[place])} to ${duration(store.high_s[place])}`, (store.state[place] === TIMEOUT ? "≥ " : "") + duration(store.runtime_s[place]), { true: "yes", false: "no", null: "cannot tell" }[inside(store, place)]]) }),
  };
};

const named = () => {
  const list = legend(["kept", "stopped"]);
  list.children[0].lastChild.textContent = "finished";
  list.children[1].lastChild.textContent = "stopped early: a lower bound";
  return list;
};

/** data: {store, link} */
export const calibration = (element, data) => {
  let now = data, told = -1;
  const text = el("p", { class: "quiet", id: "calibration-text" }), host = el("div");
  show(element, text, host);
  const again = chart(host, (box) => draw(now, box));
  const update = (next) => {
    now = next;
    if (now.store.size === told) return;
    told = now.store.size;
    const places = judged(now.store);
    say(text, places.length ? summary(now.store, places) : "");
    again();
  };
  update(data);
  return update;
};
