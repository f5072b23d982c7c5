// Which parameters matter, and what their values do on average.

import { el, nothing, shape, show } from "../lib/dom.js";
import { chart } from "../lib/chart.js";
import { goalOf, percent, shown } from "../lib/format.js";
import { scale } from "../lib/scale.js";

const short = (text) => (text.length > 12 ? text.slice(0, 11) + "…" : text);

const drawEffect = (one, goal, box) => {
  const means = one.effect.map(([, mean]) => mean);
  const low = Math.min(0, ...means), high = Math.max(0, ...means) || 1;
  const y = scale(low, high, box.bottom, box.top, false, 0.02), step = (box.right - box.left) / means.length;
  const middle = (place) => box.left + step * (place + 0.5);
  const most = Math.max(2, Math.floor((box.right - box.left) / 74)), every = Math.ceil(means.length / most);
  const bars = means.map((mean, place) => shape("rect", { class: "bar-mark", x: box.left + step * (place + 0.18), width: Math.max(1, step * 0.64), y: Math.min(y(mean), y(0)), height: Math.max(1, Math.abs(y(0) - y(mean))), rx: 2 }));
  const at = (place) => middle(place);
  return {
    x: { at, ticks: means.map((_, place) => place).filter((place) => place % every === 0), text: (place) => short(shown(one.effect[place][0])), label: one.parameter.slice(0, 40) },
    y: { at: y, text: goal.text, label: "mean " + goal.metric, clock: goal.metric === "time" },
    marks: [], extra: bars, title: `What the values of ${one.parameter} do`,
    description: one.effect.map(([name, mean]) => `${shown(name)}: ${goal.text(mean)}`).join(", ") + ".",
    table: () => ({ columns: [one.parameter, "mean believed " + goal.metric], rows: one.effect.map(([name, mean]) => [shown(name), goal.text(mean)]) }),
  };
};

/** data: {head, insight} */
export const importance = (element, data) => {
  let now = data, chosen = null;
  const bars = el("div", { class: "bars", role: "group", "aria-label": "Parameters, most important first" }), effect = el("div", { class: "effect" });
  const empty = nothing("Too few runs to tell. After a few finished runs a model says which parameters matter.");
  show(element, empty, bars, effect);
  const list = () => now.insight?.importance ?? [];
  const current = () => list().find((one) => one.parameter === chosen) ?? list()[0];
  const again = chart(effect, (box) => (current() ? drawEffect(current(), goalOf(now.head.objective), box) : { nothing: "" }), { height: 190 });
  let told = null;
  const update = (next) => {
    now = next;
    const key = [now.insight, chosen];
    if (told !== null && told.every((one, place) => one === key[place])) return;
    told = key;
    const held = bars.contains(document.activeElement) ? document.activeElement.dataset.parameter : null;
    empty.hidden = list().length > 0;
    effect.hidden = bars.hidden = !list().length;
    show(bars, list().map((one) => {
      const bar = el("i");
      bar.style.width = Math.max(one.share * 100, 0.5) + "%";
      return el("button", { type: "button", class: "bar", "data-parameter": one.parameter, "aria-pressed": String(one === current()), onclick: () => { chosen = one.parameter; update(now); again(); } }, el("span", { class: "name" }, one.parameter), el("span", { class: "track" }, bar), el("em", {}, percent(one.share)));
    }));
    if (held !== null) [...bars.children].find((one) => one.dataset.parameter === held)?.focus();
    again();
  };
  update(data);
  return update;
};
