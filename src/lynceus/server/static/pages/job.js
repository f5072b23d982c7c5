// One recurring job: what is in production, its runs, what to do next and why, what changes brought.

import { get, path, segment } from "../lib/api.js";
import { card, el, emptyNote, setChildren } from "../lib/dom.js";
import { bytes, count, counted, dateTime, duration, formatValue, money, paramsText, percent } from "../lib/format.js";
import { shell, showError } from "../lib/shell.js";
import { auditList, broughtText } from "../components/job_audit.js";
import { jobCharts } from "../components/job_charts.js";

const main = document.getElementById("main");
const name = segment(2);
const POLL_MS = 10000;

const facts = (pairs) => el("dl", { class: "lines" }, pairs.filter(([, text]) => text !== null && text !== "").flatMap(([term, text, id]) => [el("dt", {}, term), el("dd", { id }, text)]));

const tile = (term, text, id, note = null) => el("div", {}, el("dt", {}, term), el("dd", { id }, text), note && el("dd", { class: "note" }, note));

const tiles = (job) => {
  const { totals, watch } = job;
  return el("dl", { class: "facts" },
    tile("runs", count(totals.runs), "runs", `${counted(totals.canaries, "canary", "canaries")}, ${totals.failed} failed`),
    tile("late", count(totals.late), "late", watch.late_chance === null ? (job.deadline_s === null ? "no deadline is set" : "too few runs to predict the next one") : `the next one with a chance of ${percent(watch.late_chance)}`),
    tile("cost so far", money(totals.cost_usd), "cost", `searches ${money(totals.search_usd)}`),
    tile("saved against version 1", totals.saved_usd === null ? "—" : money(totals.saved_usd), "saved", "by its cost per unit of input"),
    tile("next run", watch.expected_s === null ? "—" : duration(watch.expected_s), "expected", [watch.expected_usd === null ? null : money(watch.expected_usd), watch.size === null ? null : "input " + bytes(watch.size)].filter(Boolean).join(", ") || null));
};

const productionOf = (job) => {
  const one = job.version, { settings } = job;
  return [
    el("dl", { class: "chosen", id: "params" }, Object.entries(one.params).map(([key, value]) => el("div", {}, el("dt", {}, key), el("dd", {}, formatValue(value))))),
    facts([["version", `${one.number}, since ${dateTime(one.adopted_s)}`, "version"], ["by", one.by], ["why", one.reason], ["brought", broughtText(one.brought)],
      ["mode", settings.mode + (settings.held ? ", held: nothing is tried or changed" : ""), "mode"], ["deadline", job.deadline_s === null ? null : duration(job.deadline_s)],
      ["allowance", `${money(job.allowance_left_usd)} of ${money(settings.allowance_usd)} left this month`], ["excluded times", settings.exclude.length ? `${settings.exclude.join(", ")} (${settings.timezone})` : null],
      ["canary", job.open_canary === null ? null : `version ${job.open_canary.version} is tried by run ${job.open_canary.run_id}`]]),
  ];
};

const KINDS = { keep: "Keep it", canary: "Try another configuration on the next run", adopt: "Adopt the canary", return: "Return to the last good version", reprice: "Adopt what is cheaper at today's prices", suggest: "Something to change", retune: "Search again" };

const nextOf = (job) => {
  const { next, watch } = job, effect = next.effect;
  return [
    el("p", { id: "next" }, el("strong", {}, KINDS[next.kind] ?? next.kind), ": ", next.reason, "."),
    next.params === null ? null : facts([["configuration", paramsText(next.params), "suggestion"], ["would save", effect.saving_usd === null ? null : `${money(effect.saving_usd)} a run`], ["would take", effect.runtime_s === null ? null : duration(effect.runtime_s)],
      ["chance to be late", effect.late_chance === null ? null : percent(effect.late_chance)], ["trying costs", effect.trial_usd ? `${money(effect.trial_usd)} more than a usual run` : "no more than a usual run"]]),
    watch.findings.length ? el("ul", { class: "findings" }, watch.findings.map((one) => el("li", { "data-finding": one.kind, class: "warn" }, one.text))) : el("p", { class: "quiet" }, "Its runs take what their input lets expect."),
  ];
};

const COLUMNS = ["version", "from", "by", "why", "brought"];

const versionLine = (job, one) => el("tr", { "data-version": one.number },
  el("th", { scope: "row" }, String(one.number) + (one.number === job.version.number ? ", in production" : ""), el("p", { class: "quiet" }, paramsText(one.params))),
  [one.adopted_s === null ? `only tried, ${dateTime(one.at_s)}` : dateTime(one.adopted_s), one.by || "—", one.reason, broughtText(one.brought) || "—"].map((text, rank) => el("td", { "data-label": COLUMNS[rank + 1] }, text)));

const versionsOf = (job) => el("table", { class: "studies" }, el("caption", { class: "hidden" }, "Versions"), el("thead", {}, el("tr", {}, COLUMNS.map((one) => el("th", { scope: "col" }, one)))), el("tbody", {}, [...job.versions].reverse().map((one) => versionLine(job, one))));

const start = async () => {
  document.title = name + " · Lynceus";
  const address = path("jobs", name);
  const [page, first] = await Promise.all([shell("Jobs"), get(address)]);
  const head = el("div", { id: "head", class: "job-head" });
  const cards = { production: card("production", "In production", null, "w6"), next: card("next-card", "Next step", null, "w6"), time: card("time", "Time", null, "w6"), cost: card("cost-card", "Cost of a run", null, "w6"), unit: card("unit", "Cost per unit of input", null, "w6"), version: card("over-time", "Configuration over time", null, "w6"), versions: card("versions", "Versions", null, "w12"), audit: card("audit", "Changes", "newest first", "w12") };
  setChildren(main, el("nav", { class: "crumbs", "aria-label": "Breadcrumbs" }, el("a", { href: "/jobs" }, "Jobs"), " / ", name), el("div", { class: "title" }, el("h1", {}, name)), head, el("div", { class: "grid" }, Object.values(cards).map((one) => one.node)));
  const sized = first.runs.some((run) => run.size !== null);
  if (!sized) setChildren(cards.unit.body, emptyNote("No run told the size of its input. Give it with --input."));
  const draw = (job) => {
    setChildren(head, tiles(job));
    setChildren(cards.production.body, productionOf(job));
    setChildren(cards.next.body, nextOf(job));
    setChildren(cards.versions.body, versionsOf(job));
    setChildren(cards.audit.body, auditList(job));
  };
  draw(first);
  const redraw = jobCharts({ time: cards.time.body, cost: cards.cost.body, ...(sized ? { unit: cards.unit.body } : {}), version: cards.version.body }, first);
  performance.mark("useful");
  let known = JSON.stringify({ ...first, now_s: 0 });
  setInterval(async () => {
    if (document.hidden) return;
    try {
      const job = await get(address), text = JSON.stringify({ ...job, now_s: 0 });
      page.live(true);
      if (text === known) return;
      known = text;
      draw(job);
      redraw(job);
    } catch (error) { page.live(false, error.message); }
  }, POLL_MS);
};

start().catch((error) => showError(main, error));
