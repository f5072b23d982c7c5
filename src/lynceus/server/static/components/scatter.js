// Time and cost of every run, with a deadline that can be moved, and the Pareto front.

import { el, setText, svgEl, setChildren } from "../lib/dom.js";
import { chart, legend } from "../lib/chart.js";
import { duration, parseObjective, counted, money, percent, formatNumber, paramsText } from "../lib/format.js";
import { extent, scale, wide } from "../lib/scale.js";
import { COMPLETE, paretoFront, objectiveValue, paramsOf, STATE_WORDS, TIMEOUT, medianRuns, underDeadline } from "../lib/trials.js";
import { pileUp } from "../lib/spread.js";
import { markTexts, trialCell } from "./describe.js";

const STEPS = 1000;

/** The range of the slider: from the fastest to the slowest run, including the deadline. */
const rangeOf = (data) => {
  const { store } = data;
  if (store.times?.size !== store.size) {
    const range = extent(store.runtime_s.filter((_, index) => store.state[index] <= TIMEOUT)) ?? [data.head.deadline_s ?? 1, data.head.deadline_s ?? 2];
    store.times = { size: store.size, range };
  }
  const [first, last] = store.times.range, deadline = data.head.deadline_s;
  const low = deadline === null ? first : Math.min(first, deadline), high = deadline === null ? last : Math.max(last, deadline);
  return [Math.max(low, high / 1e6) / 1.1, high * 1.1];
};

const draw = (data, deadline, box) => {
  const { store } = data;
  const shown = [];
  for (let index = 0; index < store.size; index++) if (store.state[index] <= TIMEOUT) shown.push(index);
  if (!shown.length) return { empty: "No run has finished or was stopped yet." };
  const costOf = (index) => store.cost_usd[index] ?? store.bound_usd[index];
  const times = extent([...shown.map((index) => store.runtime_s[index]), data.head.deadline_s]), costs = extent(shown.map(costOf));
  const x = scale(...times, box.left, box.right, wide(times)), y = scale(...costs, box.bottom, box.top, wide(costs));
  const indices = medianRuns(store), edge = paretoFront(store, indices);
  const best = underDeadline(store, indices, parseObjective(data.head.objective), deadline);
  const stopped = [], finished = [];
  for (const index of shown) {
    const done = store.state[index] === COMPLETE;
    const kind = !done ? "stopped" : store.other[index] && store.runtime_s[index] <= deadline ? "feasible" : "late";
    (done ? finished : stopped).push({ x: x(store.runtime_s[index]), y: y(costOf(index)), kind, strong: index === best, r: index === best ? 6.5 : done ? 4.2 : 3.2, index });
  }
  const marks = [...pileUp(stopped, box.top), ...finished];
  const at = Math.max(box.left, Math.min(box.right, x(deadline)));
  const near = at > (box.left + box.right) / 2;
  return {
    x: { at: x, label: "time of a run", text: duration, clock: true }, y: { at: y, label: "cost of a run", text: money }, marks, ...markTexts(data),
    lines: [
      { d: edge.map((index, rank) => `${rank ? "H" : "M"}${x(store.runtime_s[index]).toFixed(1)}${rank ? "V" : " "}${y(store.cost_usd[index]).toFixed(1)}`).join(""), className: "line front" },
      { d: `M${at} ${box.top}V${box.bottom}`, className: "line deadline" },
    ],
    extra: [svgEl("text", { class: "label deadline-label", x: at + (near ? -6 : 6), y: box.top + 10, "text-anchor": near ? "end" : "start" }, "deadline " + duration(deadline))],
    below: legend(["feasible", "late", ["stopped", "stopped early: takes longer, costs more"]], [["line deadline", "deadline"], ["line front", "Pareto front"]]),
    title: "Cost of a run against its time",
    description: `${counted(indices.length, "configuration")} finished, ${edge.length} of them on the Pareto front. ${answer(data, best)}`,
    table: () => ({ columns: ["trial", "configuration", "time", "cost of a run", "state"], rows: shown.map((index) => [trialCell(data, store.number[index]), paramsText(paramsOf(store, index)), (store.state[index] === TIMEOUT ? "> " : "") + duration(store.runtime_s[index]), store.state[index] === TIMEOUT ? "> " + money(store.bound_usd[index]) : money(store.cost_usd[index]), STATE_WORDS[store.state[index]]]) }),
  };
};

const answer = (data, best) => {
  if (best === null) return "No finished run meets this deadline.";
  const { store } = data, objective = parseObjective(data.head.objective);
  const own = ["cost", "time"].includes(objective.metric) ? "" : `${objective.metric} ${formatNumber(objectiveValue(store, best, objective))}, `;
  return `Best measured: ${paramsText(paramsOf(store, best))}, ${own}${money(store.cost_usd[best])} per run in ${duration(store.runtime_s[best])}.`;
};

/** The best configuration under a deadline as models know it: what its runs are expected to take and to cost. With a shortfall none is known yet. */
const choiceText = (choice, shortfall, data) => {
  const objective = parseObjective(data.head.objective);
  const own = ["cost", "time"].includes(objective.metric) ? "" : `${objective.metric} ${formatNumber(choice.value)}, `;
  if (shortfall) return `No configuration is known yet that meets every constraint with this deadline: ${shortfall}, ${own}${money(choice.cost_usd)} per run in ${duration(choice.runtime_s)}.`;
  return `Best known: ${paramsText(choice.params)}, ${own}${money(choice.cost_usd)} per run in ${duration(choice.runtime_s)}.`;
};

/** Stopped runs that were still within the deadline, and still cheaper (faster) than the best, when they were stopped. */
const undecided = (data, best, deadline) => {
  const { store } = data, objective = parseObjective(data.head.objective);
  const most = best === null ? Infinity : objectiveValue(store, best, objective);
  const soFar = (index) => (objective.metric === "cost" ? store.charged_usd[index] : objective.metric === "time" ? store.runtime_s[index] : -Infinity);
  let found = 0;
  for (let index = 0; index < store.size; index++)
    if (store.state[index] === TIMEOUT && store.runtime_s[index] < deadline * (1 - 1e-9) && soFar(index) < most * (1 - 1e-9)) found++;
  return found;
};

/** data: {head, store, link, ask}; `ask(deadline)` fetches the answer for a deadline; it is null in a report. */
export const scatter = (element, data) => {
  let now = data, requests = 0, timer = null;
  const slider = el("input", { id: "deadline", type: "range", min: 0, max: STEPS, step: 1 });
  const output = el("output", { for: "deadline", id: "deadline-text" });
  const reset = el("button", { type: "button", class: "small" }, "Reset");
  const result = el("p", { class: "answer", id: "what-if", "aria-live": "polite" }), more = el("p", { class: "quiet", id: "what-if-model" });
  const host = el("div");
  const controls = el("div", { class: "slider" }, el("label", { for: "deadline" }, "What if the deadline were"), output, slider, reset);
  setChildren(element, controls, result, more, host);
  let chosen = null;
  const deadlineOf = () => chosen ?? now.head.deadline_s ?? rangeOf(now)[1];
  const toStep = (seconds) => { const [low, high] = rangeOf(now).map(Math.log); return Math.round(((Math.log(seconds) - low) / (high - low)) * STEPS); };
  const toSeconds = (step) => { const [low, high] = rangeOf(now).map(Math.log); return Math.exp(low + (step / STEPS) * (high - low)); };
  const redraw = chart(host, (box) => draw(now, deadlineOf(), box));
  const fromModel = async (deadline) => {
    const request = ++requests;
    try {
      const found = await now.ask(deadline);
      if (request !== requests) return;
      const hint = found.predicted === null ? "" : `An untried configuration may be better: ${paramsText(found.predicted.params)}, predicted ${parseObjective(now.head.objective).text(found.predicted.value)}, feasible with probability ${percent(found.predicted.probability)}.`;
      const open = found.undecided ? `${counted(found.undecided, "stopped run")} may also meet it. ` : "";
      if (found.measured !== null) setText(result, choiceText(found.measured, found.shortfall, now));
      setText(more, open + hint);
    } catch (error) { if (request === requests) setText(more, error.message); }
  };
  const updateText = () => {
    const deadline = deadlineOf();
    const ready = now.store.state.includes(COMPLETE);
    slider.disabled = reset.disabled = !ready;
    if (document.activeElement !== slider) slider.value = toStep(deadline);
    slider.setAttribute("aria-valuetext", duration(deadline));
    setText(output, duration(deadline));
    if (!ready) { setText(result, ""); setText(more, ""); return; }
    const best = underDeadline(now.store, medianRuns(now.store), parseObjective(now.head.objective), deadline);
    const known = chosen === null ? now.insight?.answer : null; // the recommendation is for the study's own deadline
    setText(result, known ? choiceText(known, known.shortfall, now) : answer(now, best));
    if (now.ask) { clearTimeout(timer); timer = setTimeout(() => fromModel(deadline), 250); }
    else { const open = undecided(now, best, deadline); setText(more, open ? counted(open, "stopped run") + " may also meet it." : ""); }
  };
  slider.addEventListener("input", () => { chosen = toSeconds(Number(slider.value)); updateText(); redraw(); });
  reset.addEventListener("click", () => { chosen = null; updateText(); redraw(); slider.value = toStep(deadlineOf()); });
  let drawn = null;
  const update = (next) => {
    now = next;
    const key = `${now.store.size} ${deadlineOf()} ${now.insight?.answer?.runtime_s}`;
    if (key !== drawn) updateText();
    drawn = key;
    redraw(key);
  };
  update(data);
  return update;
};
