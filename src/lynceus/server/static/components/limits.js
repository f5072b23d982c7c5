// Each constraint: the metric of every run against its limit.

import { el, setChildren, svgEl } from "../lib/dom.js";
import { chart, legend } from "../lib/chart.js";
import { counted, count, duration, formatNumber, money } from "../lib/format.js";
import { extent, scale, wide } from "../lib/scale.js";
import { COMPLETE, TIMEOUT } from "../lib/trials.js";
import { markTexts, trialCell } from "./describe.js";

const textOf = (limit) => (limit.metric === "time" ? duration : limit.metric === "cost" ? money : formatNumber);
const nameOf = (limit) => ({ time: "time of a run", cost: "cost of a run" })[limit.metric] ?? limit.metric;

/** What a trial tells of a metric: a value, or a lower bound where a run was stopped; null for nothing. */
const seenOf = (store, index, limit) => {
  const stopped = store.state[index] === TIMEOUT;
  if (limit.metric === "time") return stopped || store.state[index] === COMPLETE ? store.runtime_s[index] : null;
  if (limit.metric === "cost") return stopped ? store.bound_usd[index] : store.cost_usd[index];
  return stopped || store.state[index] !== COMPLETE ? null : store.metrics[limit.metric]?.[index] ?? null;
};

/** Whether a value meets a limit; a run that was stopped at an upper limit takes (costs) more than that. */
const holds = (limit, value, stopped = false) => (limit.at_least ? value >= limit.bound : stopped ? value < limit.bound * (1 - 1e-9) : value <= limit.bound);

/** How many runs meet a limit, and how near the nearest other one is. */
const judge = (store, limit) => {
  let met = 0, missed = 0, open = 0, nearest = null;
  for (let index = 0; index < store.size; index++) {
    const value = seenOf(store, index, limit);
    if (value === null) continue;
    const good = holds(limit, value, store.state[index] === TIMEOUT);
    if (store.state[index] === TIMEOUT) { if (good) open++; else missed++; continue; }
    if (good) met++;
    else missed++;
    if (nearest === null || (limit.at_least ? value > nearest.value : value < nearest.value)) nearest = { value, index };
  }
  return { met, missed, open, nearest };
};

const sentence = (store, limit) => {
  const { met, missed, open, nearest } = judge(store, limit), text = textOf(limit);
  if (met + missed + open === 0) return `No run has reported ${limit.metric} yet.`;
  const parts = [`${count(met)} of ${counted(met + missed, "run")} met ${limit.text}`];
  if (met === 0 && nearest !== null) parts.push(`the nearest was trial ${store.number[nearest.index]} with ${text(nearest.value)}`);
  if (open) parts.push(`${counted(open, "run")} ${open === 1 ? "was" : "were"} stopped before it was known`);
  return parts.join("; ") + ".";
};

/** The index of the limit that binds: the one that the largest share of runs violated; null before any run. */
const binding = ({ store, limits }) => {
  let most = -1, found = null;
  for (const [index, limit] of limits.entries()) {
    const { met, missed } = judge(store, limit);
    if (met + missed > 0 && missed / (met + missed) > most) [most, found] = [missed / (met + missed), index];
  }
  return found;
};

const draw = (data, limit, box) => {
  const { store } = data, text = textOf(limit), seen = [];
  for (let index = 0; index < store.size; index++) { const value = seenOf(store, index, limit); if (value !== null) seen.push({ index, value }); }
  if (!seen.length) return { empty: sentence(store, limit) };
  const range = extent([...seen.map((one) => one.value), limit.bound]);
  const y = scale(...range, box.bottom, box.top, wide(range)), x = scale(0, Math.max(store.size - 1, 1), box.left, box.right, false, 0.03);
  const line = Math.max(box.top, Math.min(box.bottom, y(limit.bound)));
  const marks = seen.map(({ index, value }) => ({ x: x(index), y: y(value), kind: store.state[index] === TIMEOUT ? "stopped" : holds(limit, value) ? "feasible" : "infeasible", r: store.state[index] === TIMEOUT ? 3.2 : 4, index }));
  const beyond = limit.at_least ? { y: line, height: box.bottom - line } : { y: box.top, height: line - box.top };
  return {
    x: { at: x, label: "trials in the order in which they ended", text: (tick) => (Number.isInteger(tick) && tick < store.size ? count(store.number[tick]) : "") }, y: { at: y, label: nameOf(limit), text, clock: limit.metric === "time" }, marks, ...markTexts(data),
    lines: [{ d: `M${box.left} ${line}H${box.right}`, className: "line deadline" }],
    extra: [svgEl("rect", { class: "violated-area", x: box.left, width: box.right - box.left, ...beyond })],
    below: [el("p", { class: "quiet" }, sentence(store, limit)), legend([["feasible", "met it"], ["infeasible", "violated it"], ...(["time", "cost"].includes(limit.metric) ? [["stopped", "stopped early: more than this"]] : [])], [["line deadline", limit.text]])],
    title: `${nameOf(limit)} against its limit`, description: sentence(store, limit),
    table: () => ({ columns: ["trial", nameOf(limit), limit.text], rows: seen.map(({ index, value }) => [trialCell(data, store.number[index]), (store.state[index] === TIMEOUT ? "> " : "") + text(value), holds(limit, value, store.state[index] === TIMEOUT) ? (store.state[index] === TIMEOUT ? "unknown" : "met") : "violated"]) }),
  };
};

/** data: {limits, store, link} */
export const limitsChart = (element, data) => {
  let now = data, chosen = null;
  const select = el("select", { id: "limit", "aria-label": "Constraint" }), host = el("div");
  const picker = el("div", { class: "filters" }, el("label", { for: "limit" }, el("span", {}, "constraint"), select));
  setChildren(element, picker, host);
  const redraw = chart(host, (box) => draw(now, now.limits[chosen ?? 0], box));
  let names = null;
  const update = (next) => {
    now = next;
    const key = JSON.stringify(now.limits), before = chosen;
    chosen = chosen === null ? binding(now) : Math.min(chosen, Math.max(0, now.limits.length - 1));
    if (key !== names || chosen !== before) {
      names = key;
      setChildren(select, now.limits.map((limit, index) => el("option", { value: index, selected: index === (chosen ?? 0) }, limit.text)));
      picker.hidden = now.limits.length < 2;
    }
    if (now.limits.length) redraw(`${now.store.size} ${chosen} ${key}`);
  };
  select.addEventListener("change", () => { chosen = Number(select.value); update(now); });
  update(data);
  return update;
};
