// Every study in a row: state, spend against budget, best cost, saving.

import { el, nothing, show } from "../lib/dom.js";
import { count, duration, goalOf, money, percent, words } from "../lib/format.js";
import { badge } from "./badge.js";

const QUIET_S = 30;

const spend = (one) => {
  const bar = el("i", { class: "spent" }), more = el("i", { class: "reserved" });
  bar.style.width = one.budget_usd ? Math.min(100, (one.spent_usd / one.budget_usd) * 100) + "%" : "0";
  more.style.width = one.budget_usd ? Math.min(100, ((one.reserved_usd ?? 0) / one.budget_usd) * 100) + "%" : "0";
  const text = one.budget_usd === null ? money(one.spent_usd) : `${money(one.spent_usd)} of ${money(one.budget_usd)}`;
  return el("div", { class: "spend" }, el("span", {}, text), one.budget_usd === null ? null : el("div", { class: "gauge thin", "aria-hidden": "true" }, bar, more));
};

const line = (one, now) => {
  const goal = goalOf(one.objective ?? "minimize cost"), quiet = one.state === "RUNNING" && now - one.worker_seen_s > QUIET_S;
  const best = one.best === null ? "—" : goal.metric === "cost" ? money(one.best_cost_usd) : `${money(one.best_cost_usd)} · ${goal.metric} ${goal.text(one.best)}`;
  const counts = count(one.trials) + (one.running ? ` + ${count(one.running)} open` : "");
  return el("tr", { "data-study": one.name },
    el("th", { scope: "row" }, el("a", { href: "/studies/" + encodeURIComponent(one.name) }, one.name), el("p", { class: "quiet" }, one.note ?? [one.objective, ...one.limits].filter(Boolean).join(" · "))),
    el("td", { "data-label": "state" }, badge(one.state), quiet ? el("p", { class: "warn" }, "no sign of life for " + duration(Math.round(now - one.worker_seen_s))) : one.reason && el("p", { class: "quiet clip", title: one.reason }, one.reason)),
    el("td", { "data-label": "spent" }, spend(one)),
    el("td", { "data-label": "trials", class: "number" }, counts, one.failed ? el("p", { class: "quiet" }, count(one.failed) + " failed") : null),
    el("td", { "data-label": "best cost of a run", class: "number" }, best, one.best_params ? el("p", { class: "quiet clip", title: words(one.best_params) }, words(one.best_params)) : null),
    el("td", { "data-label": "saving", class: "number saving" + (one.saving > 0 ? " good" : "") }, one.saving === null ? "—" : one.saving > 0 ? percent(one.saving) : "none", one.saving === null || one.saving_measured ? null : el("p", { class: "quiet" }, "predicted")));
};

/** data: {studies, now_s} */
export const studiesList = (element, data) => {
  const rows = el("tbody");
  const grid = el("table", { class: "studies" }, el("caption", { class: "hidden" }, "Studies"),
    el("thead", {}, el("tr", {}, ["study", "state", "spent", "trials", "best cost of a run", "saving"].map((name, place) => el("th", { scope: "col", class: place > 2 ? "number" : null }, name)))), rows);
  const empty = nothing("This storage holds no study yet. Start one with: lynceus run job.yaml");
  show(element, empty, grid);
  const update = ({ studies, now_s }) => {
    empty.hidden = studies.length > 0;
    grid.hidden = !studies.length;
    const held = rows.contains(document.activeElement) ? document.activeElement.textContent : null;
    show(rows, studies.map((one) => line(one, now_s)));
    if (held !== null) [...rows.querySelectorAll("a")].find((one) => one.textContent === held)?.focus();
  };
  update(data);
  return update;
};
