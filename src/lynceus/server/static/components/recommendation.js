// The recommendation: the configuration, its command line, its cost, what it saves, and how certain that is.

import { copyButton, el, emptyNote, setChildren } from "../lib/dom.js";
import { count, duration, parseObjective, counted, money, percent, formatNumber } from "../lib/format.js";

const certainty = (answer, constraints) => {
  if (!constraints.length) return `${counted(answer.runs, "finished run")}; there are no constraints`;
  const seen = answer.runs ? `${answer.feasible_runs} of ${counted(answer.runs, "run")} met every constraint` : "not run yet";
  return answer.probability === null ? seen : `${seen}; the model predicts a ${percent(answer.probability)} chance that a run meets every constraint`;
};

const saving = (answer) => {
  if (answer.baseline === null) return null;
  if (answer.baseline_usd === null) return ["—", "the cost of the baseline is not known yet"];
  const against = `${money(answer.baseline_usd)} for the baseline (${answer.baseline_measured ? "measured" : "predicted"})`;
  if (answer.saving <= 0) return ["none", "compared to " + against];
  const back = answer.pays_back_after_runs === null ? "" : `; the search pays for itself after ${counted(Math.ceil(answer.pays_back_after_runs), "run")}`;
  return [percent(answer.saving), `${money(answer.baseline_usd - answer.cost_usd)} per run compared to ${against}${back}`];
};

const tile = (name, value, note, id) => el("div", {}, el("dt", {}, name), el("dd", { id }, value), el("dd", { class: "note" }, note));

/** data: {head, insight} */
export const recommendation = (element, data) => {
  let drawn = "";
  const update = ({ head, insight }) => {
    const key = JSON.stringify([head.constraints, head.state, head.trials > 0, Boolean(insight), insight?.answer]);
    if (key === drawn) return;
    drawn = key;
    if (!insight) { setChildren(element, emptyNote("Computing …")); return; }
    const { answer } = insight, objective = parseObjective(head.objective);
    if (answer === null) {
      const constraints = head.constraints.join(", ") || "the constraints";
      setChildren(element, emptyNote(head.trials ? `None of the ${count(head.trials)} trials so far is known to meet ${constraints}. ${head.state === "RUNNING" ? "The search continues." : "Relax a constraint, or add to the budget and resume."}` : "No trial has finished yet."));
      return;
    }
    const seen = answer.measured ? "measured" : "predicted";
    const saved = saving(answer), how = answer.noise === null || answer.noise === undefined ? seen : `expected; runs differ by about ${percent(answer.noise)}`;
    const code = el("code", { id: "command" }, answer.command);
    setChildren(element,
      el("dl", { class: "chosen" }, Object.entries(answer.params).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, String(value))))),
      el("dl", { class: "facts" },
        tile("cost of a run", money(answer.cost_usd), answer.cost_basis, "best-cost"), tile("time of a run", duration(answer.runtime_s), how, "best-time"),
        ["cost", "time"].includes(objective.metric) ? null : tile(objective.metric, formatNumber(answer.value), how, "best-metric"),
        saved && tile("saving", saved[0], saved[1], "saving")),
      el("p", { class: "quiet", id: "certainty" }, certainty(answer, head.constraints) + "."),
      answer.command && el("div", { class: "command" }, el("pre", { tabindex: "0", "aria-label": "Command line" }, code), copyButton(() => answer.command, "Copy the command line")));
  };
  update(data);
  return update;
};
