// Parameter importance, and the average effect of each value.

import { el, emptyNote, svgEl, setChildren } from "../lib/dom.js";
import { chart } from "../lib/chart.js";
import { parseObjective, percent, formatValue } from "../lib/format.js";
import { scale } from "../lib/scale.js";

const short = (text) => (text.length > 12 ? text.slice(0, 11) + "…" : text);

const drawEffect = (one, objective, box) => {
  const means = one.effect.map(([, mean]) => mean);
  const low = Math.min(0, ...means), high = Math.max(0, ...means) || 1;
  const y = scale(low, high, box.bottom, box.top, false, 0.02), step = (box.right - box.left) / means.length;
  const middle = (index) => box.left + step * (index + 0.5);
  const most = Math.max(2, Math.floor((box.right - box.left) / 74)), every = Math.ceil(means.length / most);
  const bars = means.map((mean, index) => svgEl("rect", { class: "bar-mark", x: box.left + step * (index + 0.18), width: Math.max(1, step * 0.64), y: Math.min(y(mean), y(0)), height: Math.max(1, Math.abs(y(0) - y(mean))), rx: 2 }));
  const at = (index) => middle(index);
  return {
    x: { at, ticks: means.map((_, index) => index).filter((index) => index % every === 0), text: (index) => short(formatValue(one.effect[index][0])), label: one.parameter.slice(0, 40) },
    y: { at: y, text: objective.text, label: "mean " + objective.metric, clock: objective.metric === "time" },
    marks: [], extra: bars, title: `Effect of the values of ${one.parameter}`,
    description: one.effect.map(([name, mean]) => `${formatValue(name)}: ${objective.text(mean)}`).join(", ") + ".",
    table: () => ({ columns: [one.parameter, "mean predicted " + objective.metric], rows: one.effect.map(([name, mean]) => [formatValue(name), objective.text(mean)]) }),
  };
};

/** data: {head, insight} */
export const importance = (element, data) => {
  let now = data, chosen = null;
  const bars = el("div", { class: "bars", role: "group", "aria-label": "Parameters, most important first" }), effect = el("div", { class: "effect" });
  const empty = emptyNote("Too few finished runs to estimate the importance of parameters.");
  setChildren(element, empty, bars, effect);
  const list = () => now.insight?.importance ?? [];
  const current = () => list().find((one) => one.parameter === chosen) ?? list()[0];
  const redraw = chart(effect, (box) => (current() ? drawEffect(current(), parseObjective(now.head.objective), box) : { empty: "" }), { height: 230 });
  let drawn = null;
  const update = (next) => {
    now = next;
    const key = [now.insight, chosen];
    if (drawn !== null && drawn.every((one, index) => one === key[index])) return;
    drawn = key;
    const focused = bars.contains(document.activeElement) ? document.activeElement.dataset.parameter : null;
    empty.hidden = list().length > 0;
    effect.hidden = bars.hidden = !list().length;
    setChildren(bars, list().map((one) => {
      const bar = el("i");
      bar.style.width = Math.max(one.share * 100, 0.5) + "%";
      return el("button", { type: "button", class: "bar", "data-parameter": one.parameter, "aria-pressed": String(one === current()), onclick: () => { chosen = one.parameter; update(now); redraw(); } }, el("span", { class: "name" }, one.parameter), el("span", { class: "track" }, bar), el("em", {}, percent(one.share)));
    }));
    if (focused !== null) [...bars.children].find((one) => one.dataset.parameter === focused)?.focus();
    redraw();
  };
  update(data);
  return update;
};
