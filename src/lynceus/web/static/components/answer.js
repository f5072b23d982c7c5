// The recommendation: the configuration, its command line, its cost, what it saves, and how sure that is.

import { copyButton, el, nothing, show } from "../lib/dom.js";
import { count, duration, goalOf, many, money, percent, plain, words } from "../lib/format.js";

const sure = (verdict, limits) => {
  if (!limits.length) return `${many(verdict.runs, "finished run")}; there are no limits to keep`;
  const seen = verdict.runs ? `${verdict.kept} of ${many(verdict.runs, "run")} kept every limit` : "not run yet";
  return verdict.probability === null ? seen : `${seen}; the model gives it a chance of ${percent(verdict.probability)}`;
};

const saving = (verdict) => {
  if (!verdict.has_baseline) return null;
  if (verdict.baseline_usd === null) return ["—", "nothing is known of the baseline configuration yet"];
  const against = `${money(verdict.baseline_usd)} of the baseline (${verdict.baseline_measured ? "measured" : "predicted"})`;
  if (verdict.saving <= 0) return ["none", "against " + against];
  const back = verdict.pays_back_after === null ? "" : `; the search has paid for itself after ${many(Math.ceil(verdict.pays_back_after), "run")}`;
  return [percent(verdict.saving), `${money(verdict.baseline_usd - verdict.cost_usd)} a run against ${against}${back}`];
};

const tile = (name, value, note, id) => el("div", {}, el("dt", {}, name), el("dd", { id }, value), el("dd", { class: "note" }, note));

/** data: {head, insight} */
export const answer = (element, data) => {
  let shown = "";
  const update = ({ head, insight }) => {
    const key = JSON.stringify([head.limits, head.state, head.trials > 0, Boolean(insight), insight?.verdict]);
    if (key === shown) return;
    shown = key;
    if (!insight) { show(element, nothing("Looking at the runs …")); return; }
    const { verdict } = insight, goal = goalOf(head.objective);
    if (verdict === null) {
      const limits = head.limits.join(", ") || "the limits";
      show(element, nothing(head.trials ? `None of the ${count(head.trials)} trials so far is known to keep ${limits}. ${head.state === "RUNNING" ? "The search goes on." : "Relax a limit, or add to the budget and resume."}` : "Nothing has been tried yet."));
      return;
    }
    const saved = saving(verdict), how = verdict.measured ? "measured" : "predicted";
    const code = el("code", { id: "command" }, verdict.command);
    show(element,
      el("dl", { class: "chosen" }, Object.entries(verdict.params).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, String(value))))),
      el("dl", { class: "facts" },
        tile("cost of a run", money(verdict.cost_usd), verdict.cost_basis, "best-cost"), tile("time of a run", duration(verdict.runtime_s), how, "best-time"),
        ["cost", "time"].includes(goal.metric) ? null : tile(goal.metric, plain(verdict.value), how, "best-metric"),
        saved && tile("saving", saved[0], saved[1], "saving")),
      el("p", { class: "quiet", id: "sure" }, sure(verdict, head.limits) + "."),
      verdict.command && el("div", { class: "command" }, el("pre", { tabindex: "0", "aria-label": "Command line" }, code), copyButton(() => verdict.command, "Copy the command line")));
  };
  update(data);
  return update;
};
