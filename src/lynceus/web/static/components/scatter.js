// Time and cost of every run, the deadline as a line that can be moved, and the runs that no other beats in both.

import { el, say, shape, show } from "../lib/dom.js";
import { chart, legend } from "../lib/chart.js";
import { duration, goalOf, many, money, percent, plain, words } from "../lib/format.js";
import { extent, scale, wide } from "../lib/scale.js";
import { COMPLETE, front, goalValue, paramsOf, STATE_WORDS, TIMEOUT, typicalPlaces, underDeadline } from "../lib/trials.js";
import { about, hrefOf } from "./describe.js";

const STEPS = 1000;

/** Where the slider may go: from the fastest to the slowest run, the deadline included. */
const rangeOf = (data) => {
  const times = data.store.runtime_s.filter((_, place) => data.store.state[place] <= TIMEOUT);
  if (data.head.deadline_s !== null) times.push(data.head.deadline_s);
  const [low, high] = extent(times) ?? [1, 2];
  return [Math.max(low, high / 1e6) / 1.1, high * 1.1];
};

const draw = (data, deadline, box) => {
  const { store } = data;
  const shown = [];
  for (let place = 0; place < store.size; place++) if (store.state[place] <= TIMEOUT) shown.push(place);
  const costs = extent(store.cost_usd);
  if (costs === null) return { nothing: shown.length ? "No run has come to its end yet: all were stopped or failed." : "No run has finished yet." };
  const times = extent([...shown.map((place) => store.runtime_s[place]), data.head.deadline_s]);
  const x = scale(...times, box.left, box.right, wide(times)), y = scale(...costs, box.bottom - 14, box.top, wide(costs));
  const places = typicalPlaces(store), edge = front(store, places);
  const best = underDeadline(store, places, goalOf(data.head.objective), deadline);
  const marks = shown.map((place) => {
    const done = store.state[place] === COMPLETE;
    const kind = !done ? "stopped" : store.other[place] && store.runtime_s[place] <= deadline ? "kept" : "late";
    return { x: x(store.runtime_s[place]), y: done ? y(store.cost_usd[place]) : box.bottom - 5, kind, strong: place === best, r: place === best ? 6.5 : 4.2, label: () => about(store, place), href: () => hrefOf(data, store.number[place]) };
  });
  const at = Math.max(box.left, Math.min(box.right, x(deadline)));
  const near = at > (box.left + box.right) / 2;
  return {
    x: { at: x, label: "time of a run", text: duration, clock: true }, y: { at: y, label: "cost of a run", text: money }, marks,
    lines: [
      { d: edge.map((place, rank) => `${rank ? "H" : "M"}${x(store.runtime_s[place]).toFixed(1)}${rank ? "V" : " "}${y(store.cost_usd[place]).toFixed(1)}`).join(""), className: "line front" },
      { d: `M${at} ${box.top}V${box.bottom}`, className: "line deadline" },
    ],
    extra: [shape("text", { class: "label deadline-label", x: at + (near ? -6 : 6), y: box.top + 10, "text-anchor": near ? "end" : "start" }, "deadline " + duration(deadline))],
    below: legend(["kept", "late", "stopped"], [["line deadline", "deadline"], ["line front", "Pareto front"]]),
    title: "Cost of a run against its time",
    description: `${many(places.length, "configuration")} finished; ${edge.length} of them beaten by no other in both time and cost. ${answer(data, best)}`,
    table: () => ({ columns: ["trial", "configuration", "time", "cost of a run", "how it ended"], rows: shown.map((place) => [store.number[place], words(paramsOf(store, place)), duration(store.runtime_s[place]), money(store.cost_usd[place]), STATE_WORDS[store.state[place]]]) }),
  };
};

const answer = (data, best) => {
  if (best === null) return "No finished run would be in time.";
  const { store } = data, goal = goalOf(data.head.objective);
  const own = ["cost", "time"].includes(goal.metric) ? "" : `${goal.metric} ${plain(goalValue(store, best, goal))}, `;
  return `Best measured: ${words(paramsOf(store, best))}, ${own}${money(store.cost_usd[best])} a run in ${duration(store.runtime_s[best])}.`;
};

/** Stopped runs that were still in time, and still cheaper (faster) than the best, when they were stopped. */
const undecided = (data, best, deadline) => {
  const { store } = data, goal = goalOf(data.head.objective);
  const most = best === null ? Infinity : goalValue(store, best, goal);
  const soFar = (place) => (goal.metric === "cost" ? store.charged_usd[place] : goal.metric === "time" ? store.runtime_s[place] : -Infinity);
  let found = 0;
  for (let place = 0; place < store.size; place++)
    if (store.state[place] === TIMEOUT && store.runtime_s[place] < deadline * (1 - 1e-9) && soFar(place) < most * (1 - 1e-9)) found++;
  return found;
};

/** data: {head, store, link, ask}; `ask(deadline)` gives what a model would add, and may be missing. */
export const scatter = (element, data) => {
  let now = data, asked = 0, timer = null;
  const slider = el("input", { id: "deadline", type: "range", min: 0, max: STEPS, step: 1 });
  const output = el("output", { for: "deadline", id: "deadline-text" });
  const reset = el("button", { type: "button", class: "small" }, "As set");
  const result = el("p", { class: "answer", id: "what-if", "aria-live": "polite" }), more = el("p", { class: "quiet", id: "what-if-model" });
  const host = el("div");
  const controls = el("div", { class: "slider" }, el("label", { for: "deadline" }, "What if the deadline were"), output, slider, reset);
  show(element, controls, result, more, host);
  let chosen = null;
  const deadlineOf = () => chosen ?? now.head.deadline_s ?? rangeOf(now)[1];
  const toStep = (seconds) => { const [low, high] = rangeOf(now).map(Math.log); return Math.round(((Math.log(seconds) - low) / (high - low)) * STEPS); };
  const toSeconds = (step) => { const [low, high] = rangeOf(now).map(Math.log); return Math.exp(low + (step / STEPS) * (high - low)); };
  const again = chart(host, (box) => draw(now, deadlineOf(), box));
  const fromModel = async (deadline) => {
    const mine = ++asked;
    try {
      const told = await now.ask(deadline);
      if (mine !== asked) return;
      const hint = told.predicted === null ? "" : `Perhaps better, not tried: ${words(told.predicted.params)}, ${goalOf(now.head.objective).text(told.predicted.value)} predicted, ${percent(told.predicted.probability)} sure to keep every limit.`;
      const open = told.undecided ? `${many(told.undecided, "stopped run")} cannot tell. ` : "";
      say(more, open + hint);
    } catch (error) { if (mine === asked) say(more, error.message); }
  };
  const tell = () => {
    const deadline = deadlineOf();
    const ready = now.store.cost_usd.some((one) => one !== null);
    slider.disabled = reset.disabled = !ready;
    if (document.activeElement !== slider) slider.value = toStep(deadline);
    slider.setAttribute("aria-valuetext", duration(deadline));
    say(output, duration(deadline));
    if (!ready) { say(result, ""); say(more, ""); return; }
    const best = underDeadline(now.store, typicalPlaces(now.store), goalOf(now.head.objective), deadline);
    say(result, answer(now, best));
    if (now.ask) { clearTimeout(timer); timer = setTimeout(() => fromModel(deadline), 250); }
    else { const open = undecided(now, best, deadline); say(more, open ? many(open, "stopped run") + " cannot tell." : ""); }
  };
  slider.addEventListener("input", () => { chosen = toSeconds(Number(slider.value)); tell(); again(); });
  reset.addEventListener("click", () => { chosen = null; tell(); again(); slider.value = toStep(deadlineOf()); });
  let told = null;
  const update = (next) => {
    now = next;
    const key = `${now.store.size} ${deadlineOf()}`;
    if (key !== told) tell();
    told = key;
    again(key);
  };
  update(data);
  return update;
};
