// One trial: the plan, the outcome, the output, and what the model learned.

import { follow, get, path, post, segment } from "../lib/api.js";
import { card, copyButton, el, emptyNote, setText, setChildren, table } from "../lib/dom.js";
import { bytes, countdown, duration, parseObjective, dateTime, money, percent, formatNumber, formatValue, paramsText } from "../lib/format.js";
import { shell, showError } from "../lib/shell.js";
import { badge } from "../components/badge.js";
import { progress } from "../components/progress.js";

const main = document.getElementById("main");
const name = segment(2), number = Number(segment(4));
const here = (which) => `/studies/${encodeURIComponent(name)}/trials/${which}`;
const POLL_MS = 2000;

const facts = (pairs) => el("dl", { class: "lines" }, pairs.filter(([, text]) => text !== null && text !== undefined && text !== "").flatMap(([term, text, id]) => [el("dt", {}, term), el("dd", { id }, text)]));

const usageOf = (usage) => usage.peak_memory_bytes === null ? [] : [["memory at its peak", bytes(usage.peak_memory_bytes), "memory"], ["processors kept busy", formatNumber(Number(usage.cpus_used.toPrecision(2)))], ["read from disks", bytes(usage.read_bytes)], ["written to disks", bytes(usage.written_bytes)]];

const outcomeOf = (trial) => {
  const { outcome } = trial;
  if (outcome === null) return facts([["ordered", dateTime(trial.ordered_s)], ["launched", trial.launched_s === null ? "not yet" : dateTime(trial.launched_s)], ["timeout", trial.timeout_s === null ? "none" : duration(trial.timeout_s)], ["costs at most", trial.reserved_usd === null ? "the rest of the budget" : money(trial.reserved_usd), "reserved"], ["price", money(trial.price_usd_per_hour) + " per hour"], ["worker", trial.worker]]);
  return facts([
    ["running time", duration(outcome.runtime_s) + (trial.state === "TIMEOUT" ? ", then it was stopped" : ""), "runtime"], ["charged", money(outcome.charged_usd), "charged"], ["cost of a run", trial.cost_usd === null ? null : money(trial.cost_usd), "cost"],
    ["constraints", trial.keeps_constraints === null ? null : trial.keeps_constraints ? "met" : "violated", "constraints"], ["failure", outcome.reason], ["detail", outcome.detail, "detail"], ...usageOf(outcome.usage), ["price", money(trial.price_usd_per_hour) + " per hour"],
    ["timeout", trial.timeout_s === null ? "none" : duration(trial.timeout_s)], ["ordered", dateTime(trial.ordered_s)], ["launched", trial.launched_s === null ? null : dateTime(trial.launched_s)], ["settled", dateTime(trial.settled_s)], ["worker", trial.worker]]);
};

const planOf = (trial) => {
  const plan = trial.plan, objective = parseObjective(trial.objective);
  return [el("p", { id: "why" }, plan.why), facts([
    ["expected improvement", plan.gain === null ? null : objective.text(plan.gain)], ["expected charge", plan.charge_usd === null ? null : money(plan.charge_usd)], ["probability of being feasible", plan.probability === null ? null : percent(plan.probability)],
    ["expected time", plan.middle_s === null ? null : `${duration(plan.middle_s)} (80 %: ${duration(plan.low_s)} to ${duration(plan.high_s)})`], ["lookahead", plan.path.length ? plan.path.map(paramsText).join(" → ") : null]])];
};

const targetOf = (trial) => {
  if (trial.outcome === null) return emptyNote("The model learns from it when it has ended.");
  if (trial.training_target === null) return emptyNote("The model learned nothing from this run.");
  const { seconds, censored, bound_s, metrics } = trial.training_target;
  return facts([["time", censored ? `longer than ${duration(bound_s)}` : duration(seconds), "target"], ["estimate for models without censoring", censored ? duration(seconds) : null], ...Object.entries(metrics ?? {}).map(([key, one]) => [key, formatNumber(one)])]);
};

const output = (trial) => {
  if (trial.output === null) return emptyNote("The output is not on the machine that runs this server.");
  return ["stdout", "stderr"].map((stream) => {
    const { text, left_out } = trial.output[stream];
    return el("div", { class: "stream" }, el("h3", {}, stream), left_out ? el("p", { class: "quiet" }, `${left_out.toLocaleString("en-US")} earlier characters are not shown.`) : null, text ? el("pre", { id: stream, tabindex: "0", "aria-label": stream, class: "output" }, text) : emptyNote("No output."));
  });
};

const start = async () => {
  document.title = `Trial ${number} · ${name} · Lynceus`;
  const address = path("studies", name, "trials", String(number));
  const [page, first] = await Promise.all([shell("Trial"), get(address)]);
  let trial = first, offset = first.now_s - Date.now() / 1000;
  const state = el("span", { id: "state" }), left = el("p", { id: "left", class: "warn" }), actions = el("div", { class: "actions" });
  const neighbour = (which, text, rel) => el("a", { class: "button small", rel, href: here(which) }, text);
  const nav = el("span", { class: "neighbours" });
  const cards = { config: card("config", "Configuration", null, "w6"), outcome: card("outcome", "Outcome", null, "w6"), plan: card("plan", "Why it was chosen", null, "w6"), target: card("target-card", "What the model learned", null, "w6"), metrics: card("metrics", "Metrics", null, "w5"), progress: card("progress", "Progress", null, "w7"), output: card("output", "Output", null, "w12") };
  setChildren(main, el("nav", { class: "crumbs", "aria-label": "Breadcrumbs" }, el("a", { href: "/studies/" + encodeURIComponent(name) }, name), " / ", `trial ${number}`, nav),
    el("div", { class: "title" }, el("div", {}, el("h1", {}, `Trial ${number} `, state), left), actions), el("div", { class: "grid" }, Object.values(cards).map((one) => one.node)));
  const drawProgress = progress(cards.progress.body, { trace: [], timeout_s: null });
  const stop = el("button", { type: "button", class: "danger", "data-stop": number }, "Stop this trial");
  stop.addEventListener("click", async () => {
    if (!confirm(`Stop trial ${number} now? What it has cost so far stays charged, and the model learns nothing from it.`)) return;
    stop.disabled = true;
    try { await post(path("studies", name, "trials", String(number), "stop"), page.session); } catch (error) { alert(error.message); stop.disabled = false; }
  });
  const tick = () => {
    const passed = trial.launched_s === null ? 0 : Date.now() / 1000 + offset - trial.launched_s;
    setText(left, trial.state !== "RUNNING" ? "" : trial.cancel_requested ? "Stopping." : trial.launched_s === null ? "Starting." : `Running for ${countdown(passed)}` + (trial.timeout_s === null ? "." : `; timeout in ${countdown(trial.timeout_s - passed)}.`));
    left.hidden = !left.textContent;
  };
  let drawn = "";
  const draw = () => {
    const { output: streams, now_s, ...rest } = trial, key = JSON.stringify(rest);
    tick();
    const old = cards.output.body.querySelector("#stdout"), atEnd = old === null || old.scrollTop + old.clientHeight >= old.scrollHeight - 4;
    const same = old !== null && old.textContent === streams?.stdout.text && (cards.output.body.querySelector("#stderr")?.textContent ?? "") === streams?.stderr.text;
    if (!same) setChildren(cards.output.body, output(trial));
    const fresh = cards.output.body.querySelector("#stdout");
    if (fresh !== null && trial.state === "RUNNING" && atEnd) fresh.scrollTop = fresh.scrollHeight;
    if (key === drawn) return;
    drawn = key;
    setChildren(state, badge(trial.state, trial.outcome?.reason));
    setChildren(nav, number > 0 ? neighbour(number - 1, "← previous", "prev") : null, number < trial.trials - 1 ? neighbour(number + 1, "next →", "next") : null);
    setChildren(cards.config.body, el("dl", { class: "chosen" }, Object.entries(trial.params).map(([key_, one]) => el("div", {}, el("dt", {}, key_), el("dd", {}, formatValue(one))))), trial.command && el("div", { class: "command" }, el("pre", { tabindex: "0", "aria-label": "Command line" }, el("code", {}, trial.command)), copyButton(() => trial.command, "Copy the command line")));
    setChildren(cards.outcome.body, outcomeOf(trial));
    setChildren(cards.plan.body, planOf(trial));
    setChildren(cards.target.body, targetOf(trial));
    const metrics = Object.entries(trial.outcome?.metrics ?? {});
    setChildren(cards.metrics.body, metrics.length ? table("Metrics", ["metric", "last value"], metrics.map(([key_, one]) => [key_, formatNumber(one)]), [1]) : emptyNote(trial.outcome === null ? "Metrics are shown when the run has ended." : "The job reported no metrics."));
    drawProgress({ trace: trial.outcome?.trace ?? [], timeout_s: trial.timeout_s });
    setChildren(actions, trial.state === "RUNNING" && page.session.can_write && !trial.cancel_requested ? stop : null);
  };
  const refresh = async () => { trial = await get(address); offset = Math.max(offset, trial.now_s - Date.now() / 1000); draw(); page.live(true); };
  draw();
  performance.mark("useful");
  setInterval(tick, 500);
  const refreshNow = follow(path("studies", name, "events"), refresh, page.live);
  setInterval(() => { if (trial.state === "RUNNING" && !document.hidden) refreshNow(); }, POLL_MS);
};

start().catch((error) => showError(main, error));
