// The list of studies: state, money spent, best cost, saving.

import { el, emptyNote, setChildren } from "../lib/dom.js";
import { count, duration, parseObjective, money, percent, paramsText } from "../lib/format.js";
import { badge } from "./badge.js";
import { moneyBar } from "./money_bar.js";

const SILENT_S = 30; // workers send a heartbeat every few seconds

const spend = (one) => moneyBar(one.budget_usd === null ? money(one.spent_usd) : `${money(one.spent_usd)} of ${money(one.budget_usd)}`, one.spent_usd, one.reserved_usd ?? 0, one.budget_usd);

/** What a run saves; a range while the baseline is only predicted. */
const savingText = ({ saving, saving_interval: interval }) => {
  if (saving === null) return "—";
  if (saving <= 0) return "none";
  return interval ? `${percent(interval[0])} to ${percent(interval[1])}` : percent(saving);
};

const line = (one, now) => {
  const objective = parseObjective(one.objective ?? "minimize cost"), silent = one.state === "RUNNING" && now - one.worker_seen_s > SILENT_S;
  const best = one.best_value === null ? "—" : objective.metric === "cost" ? money(one.best_cost_usd) : `${money(one.best_cost_usd)} · ${objective.metric} ${objective.text(one.best_value)}`;
  const counts = count(one.trials) + (one.running ? ` + ${count(one.running)} open` : "");
  return el("tr", { "data-study": one.name },
    el("th", { scope: "row" }, el("a", { href: "/studies/" + encodeURIComponent(one.name) }, one.name), el("p", { class: "quiet" }, one.note ?? [one.objective, ...one.constraints].filter(Boolean).join(" · "))),
    el("td", { "data-label": "state" }, badge(one.state), silent ? el("p", { class: "warn" }, "no heartbeat for " + duration(Math.round(now - one.worker_seen_s))) : one.reason && el("p", { class: "quiet clip", title: one.reason }, one.reason)),
    el("td", { "data-label": "spent" }, spend(one)),
    el("td", { "data-label": "trials", class: "number" }, counts, one.failed ? el("p", { class: "quiet" }, count(one.failed) + " failed") : null),
    el("td", { "data-label": "best cost of a run", class: "number" }, best, one.best_params ? el("p", { class: "quiet clip", title: paramsText(one.best_params) }, paramsText(one.best_params)) : null),
    el("td", { "data-label": "saving", class: "number saving" + (one.saving > 0 ? " good" : "") }, savingText(one), one.saving === null || one.saving_measured ? null : el("p", { class: "quiet" }, "predicted")));
};

/** data: {studies, now_s} */
export const studiesList = (element, data) => {
  const rows = el("tbody");
  const grid = el("table", { class: "studies" }, el("caption", { class: "hidden" }, "Studies"),
    el("thead", {}, el("tr", {}, ["study", "state", "spent", "trials", "best cost of a run", "saving"].map((name, index) => el("th", { scope: "col", class: index > 2 ? "number" : null }, name)))), rows);
  const empty = emptyNote("There is no study in this storage yet. Start one with: lynceus run job.yaml");
  setChildren(element, empty, grid);
  const update = ({ studies, now_s }) => {
    empty.hidden = studies.length > 0;
    grid.hidden = !studies.length;
    const focused = rows.contains(document.activeElement) ? document.activeElement.textContent : null;
    setChildren(rows, studies.map((one) => line(one, now_s)));
    if (focused !== null) [...rows.querySelectorAll("a")].find((one) => one.textContent === focused)?.focus();
  };
  update(data);
  return update;
};
