// The recommendation: the configuration, its command line, its cost, what it saves, and how certain that is.

import { copyButton, el, emptyNote, setChildren } from "../lib/dom.js";
import { count, duration, parseObjective, counted, money, paramsText, percent, formatNumber } from "../lib/format.js";

const certainty = (answer, constraints) => {
  if (!constraints.length) return `${counted(answer.runs, "finished run")}; there are no constraints`;
  const seen = answer.runs ? `${answer.feasible_runs} of ${counted(answer.runs, "run")} met every constraint` : "not run yet";
  return answer.probability === null ? seen : `${seen}; the model predicts a ${percent(answer.probability)} chance that a run meets every constraint`;
};

/** Each limit with the chance that a run meets it, where there are several. */
const limitChances = (answer) => {
  const known = (answer.limits ?? []).filter((limit) => limit.chance !== null);
  if (known.length < 2) return null;
  return el("ul", { class: "plain", id: "limit-chances" }, known.map((limit) => el("li", {}, `${limit.constraint}: ${percent(limit.chance)}${limit.measured === null ? "" : `, measured ${limitText(limit)(limit.measured)}${limit.unit ? " " + limit.unit : ""}`}`)));
};

const range = ([low, high], text) => (text(low) === text(high) ? text(low) : `${text(low)} to ${text(high)}`);

const BASES = { measured: "measured", given: "given in the job file", predicted: "predicted" };

/** What a run saves against the baseline; a range while the baseline is only predicted. */
const saving = (answer) => {
  if (answer.baseline === null) return null;
  if (answer.baseline_usd === null) return ["—", "the cost of the baseline is not known yet"];
  const basis = BASES[answer.baseline_basis] ?? (answer.baseline_measured ? "measured" : "predicted");
  const usd = answer.baseline_interval_usd ? range(answer.baseline_interval_usd, money) + " (80 %)" : money(answer.baseline_usd);
  const against = `${usd} for the baseline (${basis})`;
  if (answer.saving <= 0) return ["none", "compared to " + against];
  const share = answer.saving_interval ? range(answer.saving_interval, percent) : percent(answer.saving);
  return [share, `${money(answer.saved_usd ?? answer.baseline_usd - answer.cost_usd)} per run compared to ${against}`];
};

const runsText = (runs) => counted(Math.ceil(runs), "run");

/** How often the result will be used, and when the search has paid for itself. */
const future = (answer) => {
  const { future: use } = answer;
  if (!use || !(answer.saving > 0)) return null;
  const often = use.per_month ? `${count(use.per_month)} per month for ${counted(use.months, "month")}` : `${count(use.count)} ${use.unit}`;
  const whole = answer.future_saving_interval_usd ? range(answer.future_saving_interval_usd, money) : money(answer.future_saving_usd);
  const [fewest, most] = answer.pays_back_interval_runs ?? [];
  const latest = most === null ? "perhaps never" : `at the latest after ${runsText(most)}`;
  const back = fewest !== undefined && fewest !== null && fewest !== most ? `the search pays for itself after ${runsText(fewest)}, ${latest}` : answer.pays_back_after_runs === null ? "the search does not pay for itself" : `the search pays for itself after ${runsText(answer.pays_back_after_runs)}`;
  return [whole, `saved in ${often}${use.assumed ? " (assumed; write `future:` into the job file)" : ""}; ${back}`];
};

/** The expected cost with the interval where it lies with a probability of 80 %. */
const costNote = (answer) => {
  const { cost_interval_usd: interval } = answer;
  if (!interval || money(interval[0]) === money(interval[1])) return answer.cost_basis;
  return [el("span", { id: "cost-interval" }, `80 %: ${range(interval, money)}`), el("br"), answer.cost_basis.replace(/; with a probability of 80 % from .* to [^)]*/, "")];
};

const tile = (name, value, note, id) => el("div", {}, el("dt", {}, name), el("dd", { id }, value), el("dd", { class: "note" }, note));

const LONG = 140;

const limitText = (limit) => (limit.metric === "time" ? duration : limit.metric === "cost" ? money : formatNumber);

/** The best value of a metric, by how much it misses its limit, and which configuration has it. */
const nearest = (found, limit, link) => {
  if (!found) return null;
  const text = limitText(limit), misses = found.misses_by > 0 ? ` (misses by ${text(found.misses_by)})` : "";
  const trial = found.trial === null ? null : link ? el("a", { href: link(found.trial) }, `trial ${found.trial}`) : `trial ${found.trial}`;
  return el("span", {}, el("b", {}, text(found.value)), misses, el("span", { class: "quiet weight" }, trial, trial && " · ", paramsText(found.params)));
};

/** Why there is no recommendation: which limit fails, by how much, and what to do. */
const noAnswer = (infeasible, link) => {
  if (!infeasible) return emptyNote("No trial has finished yet.");
  const facts = (limit) => el("section", { class: limit.fails ? "limit fails" : "limit" }, el("h3", {}, limit.constraint, limit.fails ? " fails" : ""),
    el("dl", { class: "lines" }, [["met by", `${count(limit.kept)} of ${counted(limit.finished, "finished run")}`], ["nearest run", nearest(limit.measured, limit, link)], ["nearest predicted", nearest(limit.believed, limit, link)], ["chance elsewhere", limit.chance === null ? null : percent(limit.chance)]]
      .filter(([, value]) => value !== null).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])));
  const blamed = !["failed", "no trials"].includes(infeasible.cause) && infeasible.limits.length > 0;
  return [
    el("p", { class: infeasible.summary.length < LONG ? "big" : null, id: "infeasible" }, sentence(infeasible.summary)),
    infeasible.advice ? el("p", { id: "advice" }, sentence(infeasible.advice)) : null, blamed ? el("div", { class: "limit-facts" }, infeasible.limits.map(facts)) : null,
  ].filter(Boolean);
};

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");

/** data: {head, insight, link} */
export const recommendation = (element, data) => {
  let drawn = "";
  const update = ({ head, insight, link }) => {
    const key = JSON.stringify([head.constraints, head.state, head.trials > 0, Boolean(insight), insight?.answer, insight?.infeasible]);
    if (key === drawn) return;
    drawn = key;
    if (!insight) { setChildren(element, emptyNote("Computing …")); return; }
    const { answer } = insight, objective = parseObjective(head.objective);
    if (answer === null) { setChildren(element, noAnswer(insight.infeasible, link)); return; }
    const seen = answer.measured ? "measured" : "predicted";
    const saved = saving(answer), later = future(answer), how = answer.noise === null || answer.noise === undefined ? seen : `expected; runs differ by about ${percent(answer.noise)}`;
    const code = el("code", { id: "command" }, answer.command);
    setChildren(element,
      answer.shortfall && el("p", { class: "big", id: "shortfall" }, sentence(answer.shortfall)),
      el("dl", { class: "chosen" }, Object.entries(answer.params).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, String(value))))),
      el("dl", { class: "facts" },
        tile(answer.cost_interval_usd ? "expected cost of a run" : "cost of a run", money(answer.cost_usd), costNote(answer), "best-cost"), tile("time of a run", duration(answer.runtime_s), how, "best-time"),
        ["cost", "time"].includes(objective.metric) ? null : tile(objective.metric, formatNumber(answer.value), how, "best-metric"),
        saved && tile("saving", saved[0], saved[1], "saving"), later && tile("future use", later[0], later[1], "future-use")),
      el("p", { class: "quiet", id: "certainty" }, certainty(answer, head.constraints) + "."), limitChances(answer),
      answer.command && el("div", { class: "command" }, el("pre", { tabindex: "0", "aria-label": "Command line" }, code), copyButton(() => answer.command, "Copy the command line")));
  };
  update(data);
  return update;
};
