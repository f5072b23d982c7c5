// All recurring jobs.

import { get, path } from "../lib/api.js";
import { card, el, emptyNote, setChildren } from "../lib/dom.js";
import { count, dateTime, duration, money, paramsText } from "../lib/format.js";
import { shell, showError } from "../lib/shell.js";
import { badge } from "../components/badge.js";

const main = document.getElementById("main");

const line = (one) => el("tr", { "data-job": one.name },
  el("th", { scope: "row" }, el("a", { href: "/jobs/" + encodeURIComponent(one.name) }, one.name), el("p", { class: "quiet" }, paramsText(one.params))),
  el("td", { "data-label": "mode" }, one.mode, one.held ? el("p", { class: "warn" }, "held") : null),
  el("td", { "data-label": "version", class: "number" }, count(one.version), one.open_canary ? el("p", { class: "quiet" }, "a canary runs") : null),
  el("td", { "data-label": "last run" }, one.last_run === null ? "—" : [badge(one.last_run.state, one.last_run.reason), " ", duration(one.last_run.runtime_s), el("p", { class: "quiet" }, dateTime(one.last_run.ended_s))]),
  el("td", { "data-label": "runs", class: "number" }, count(one.totals.runs), one.totals.late ? el("p", { class: "warn" }, `${count(one.totals.late)} late`) : null),
  el("td", { "data-label": "saved", class: "number saving" + (one.totals.saved_usd > 0 ? " good" : "") }, one.totals.saved_usd === null ? "—" : money(one.totals.saved_usd)));

const start = async () => {
  const [, { jobs, storage }] = await Promise.all([shell("Jobs"), get(path("jobs"))]);
  const list = card("jobs", "Recurring jobs in production", storage);
  const grid = el("table", { class: "studies" }, el("caption", { class: "hidden" }, "Recurring jobs"), el("thead", {}, el("tr", {}, ["job", "mode", "version", "last run", "runs", "saved"].map((name) => el("th", { scope: "col", class: ["version", "runs", "saved"].includes(name) ? "number" : null }, name)))), el("tbody", {}, jobs.map(line)));
  setChildren(list.body, jobs.length ? grid : emptyNote("No recurring job is in this storage yet. Make one with: lynceus adopt NAME --from STUDY"));
  setChildren(main, el("div", { class: "title" }, el("h1", {}, "Jobs")), list.node);
  performance.mark("useful");
};

start().catch((error) => showError(main, error));
