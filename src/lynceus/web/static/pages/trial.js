// One trial: what was planned, what happened, what it wrote, what the model was told.

import { follow, get, path, post } from "../lib/api.js";
import { card, copyButton, el, nothing, say, show, table } from "../lib/dom.js";
import { countdown, duration, goalOf, moment, money, percent, plain, shown, words } from "../lib/format.js";
import { shell, trouble } from "../lib/shell.js";
import { badge } from "../components/badge.js";
import { progress } from "../components/progress.js";

const main = document.getElementById("main");
const [, , studyPart, , numberPart] = location.pathname.split("/");
const name = decodeURIComponent(studyPart ?? ""), number = Number(numberPart);
const here = (which) => `/studies/${encodeURIComponent(name)}/trials/${which}`;
const LOOK_MS = 2000;

const facts = (pairs) => el("dl", { class: "lines" }, pairs.filter(([, text]) => text !== null && text !== undefined && text !== "").flatMap(([term, text, id]) => [el("dt", {}, term), el("dd", { id }, text)]));

const happened = (trial) => {
  const { outcome } = trial;
  if (outcome === null) return facts([["ordered", moment(trial.ordered_s)], ["launched", trial.launched_s === null ? "not yet" : moment(trial.launched_s)], ["stopped at the latest after", trial.cap_s === null ? "never: it runs to its end" : duration(trial.cap_s)], ["charged at most", trial.reserved_usd === null ? "all that is left" : money(trial.reserved_usd), "reserved"], ["price", money(trial.price_usd_per_hour) + " per hour"], ["worker", trial.worker]]);
  return facts([
    ["running time", duration(outcome.runtime_s) + (outcome.end === "capped" ? ", then it was stopped" : ""), "runtime"], ["charged", money(outcome.charged_usd), "charged"], ["cost of a run", trial.cost_usd === null ? null : money(trial.cost_usd), "cost"],
    ["limits", trial.keeps_limits === null ? null : trial.keeps_limits ? "kept" : "broken", "limits"], ["failed because of", outcome.reason], ["detail", outcome.detail, "detail"], ["price", money(trial.price_usd_per_hour) + " per hour"],
    ["cap", trial.cap_s === null ? "none" : duration(trial.cap_s)], ["ordered", moment(trial.ordered_s)], ["launched", trial.launched_s === null ? null : moment(trial.launched_s)], ["settled", moment(trial.settled_s)], ["worker", trial.worker]]);
};

const planned = (trial) => {
  const plan = trial.plan, goal = goalOf(trial.objective);
  return [el("p", { id: "why" }, plan.why), facts([
    ["expected gain", plan.gain === null ? null : goal.text(plan.gain)], ["expected charge", plan.usd === null ? null : money(plan.usd)], ["chance to be feasible", plan.probability === null ? null : percent(plan.probability)],
    ["expected time", plan.middle_s === null ? null : `${duration(plan.middle_s)} (80 %: ${duration(plan.low_s)} to ${duration(plan.high_s)})`], ["look-ahead", plan.path.length ? plan.path.map(words).join(" → ") : null]])];
};

const told = (trial) => {
  if (trial.outcome === null) return nothing("The model hears of it when it ends.");
  if (trial.told === null) return nothing("Nothing: this run teaches nothing about its configuration.");
  const { seconds, censored, bound_s, metrics } = trial.told;
  return facts([["time", censored ? `longer than ${duration(bound_s)}` : duration(seconds), "told"], ["estimate for models that need one", censored ? duration(seconds) : null], ...Object.entries(metrics ?? {}).map(([key, one]) => [key, plain(one)])]);
};

const output = (trial) => {
  if (trial.output === null) return nothing("The output is not on the machine of this server.");
  return ["stdout", "stderr"].map((stream) => {
    const { text, left_out } = trial.output[stream];
    return el("div", { class: "stream" }, el("h3", {}, stream), left_out ? el("p", { class: "quiet" }, `${left_out.toLocaleString("en-US")} characters before this are left out.`) : null, text ? el("pre", { id: stream, tabindex: "0", "aria-label": stream, class: "output" }, text) : nothing("Nothing was written."));
  });
};

const start = async () => {
  document.title = `Trial ${number} · ${name} · Lynceus`;
  const address = path("studies", name, "trials", String(number), "view");
  const [page, first] = await Promise.all([shell("Trial"), get(address)]);
  let trial = first, ahead = first.now_s - Date.now() / 1000;
  const state = el("span", { id: "state" }), left = el("p", { id: "left", class: "warn" }), actions = el("div", { class: "actions" });
  const back = (which, text, rel) => el("a", { class: "button small", rel, href: here(which) }, text);
  const nav = el("span", { class: "neighbours" });
  const cards = { config: card("config", "Configuration", null, "w6"), outcome: card("outcome", "What happened", null, "w6"), plan: card("plan", "Why it was chosen", null, "w6"), told: card("told-card", "What the model was told", null, "w6"), metrics: card("metrics", "Metrics", null, "w5"), progress: card("progress", "Progress", null, "w7"), output: card("output", "Output", null, "w12") };
  show(main, el("nav", { class: "crumbs", "aria-label": "Where you are" }, el("a", { href: "/studies/" + encodeURIComponent(name) }, name), " / ", `trial ${number}`, nav),
    el("div", { class: "title" }, el("div", {}, el("h1", {}, `Trial ${number} `, state), left), actions), el("div", { class: "grid" }, Object.values(cards).map((one) => one.node)));
  const drawProgress = progress(cards.progress.body, { trace: [], cap_s: null });
  const stop = el("button", { type: "button", class: "danger", "data-stop": number }, "Stop this trial");
  stop.addEventListener("click", async () => {
    if (!confirm(`Stop trial ${number} now? What it has cost so far stays charged; nothing is learnt from it.`)) return;
    stop.disabled = true;
    try { await post(path("studies", name, "trials", String(number), "stop"), page.session); } catch (error) { alert(error.message); stop.disabled = false; }
  });
  const tick = () => {
    const passed = trial.launched_s === null ? 0 : Date.now() / 1000 + ahead - trial.launched_s;
    say(left, trial.state !== "RUNNING" ? "" : trial.unwanted ? "It is being stopped." : trial.launched_s === null ? "It is starting." : `Runs for ${countdown(passed)}` + (trial.cap_s === null ? "." : `; it is stopped in ${countdown(trial.cap_s - passed)} at the latest.`));
    left.hidden = !left.textContent;
  };
  let drawn = "";
  const draw = () => {
    const { output: wrote, now_s, ...rest } = trial, key = JSON.stringify(rest);
    tick();
    const old = cards.output.body.querySelector("#stdout"), atEnd = old === null || old.scrollTop + old.clientHeight >= old.scrollHeight - 4;
    const same = old !== null && old.textContent === wrote?.stdout.text && (cards.output.body.querySelector("#stderr")?.textContent ?? "") === wrote?.stderr.text;
    if (!same) show(cards.output.body, output(trial));
    const fresh = cards.output.body.querySelector("#stdout");
    if (fresh !== null && trial.state === "RUNNING" && atEnd) fresh.scrollTop = fresh.scrollHeight;
    if (key === drawn) return;
    drawn = key;
    show(state, badge(trial.state, trial.outcome?.reason));
    show(nav, number > 0 ? back(number - 1, "← previous", "prev") : null, number < trial.trials - 1 ? back(number + 1, "next →", "next") : null);
    show(cards.config.body, el("dl", { class: "chosen" }, Object.entries(trial.params).map(([key_, one]) => el("div", {}, el("dt", {}, key_), el("dd", {}, shown(one))))), trial.command && el("div", { class: "command" }, el("pre", { tabindex: "0", "aria-label": "Command line" }, el("code", {}, trial.command)), copyButton(() => trial.command, "Copy the command line")));
    show(cards.outcome.body, happened(trial));
    show(cards.plan.body, planned(trial));
    show(cards.told.body, told(trial));
    const metrics = Object.entries(trial.outcome?.metrics ?? {});
    show(cards.metrics.body, metrics.length ? table("Metrics", ["metric", "last value"], metrics.map(([key_, one]) => [key_, plain(one)]), [1]) : nothing(trial.outcome === null ? "Metrics are shown when the run has ended." : "The job reported none."));
    drawProgress({ trace: trial.outcome?.trace ?? [], cap_s: trial.cap_s });
    show(actions, trial.state === "RUNNING" && page.session.can_write && !trial.unwanted ? stop : null);
  };
  const refresh = async () => { trial = await get(address); ahead = Math.max(ahead, trial.now_s - Date.now() / 1000); draw(); page.live(true); };
  draw();
  performance.mark("useful");
  setInterval(tick, 500);
  const again = follow(path("studies", name, "events"), refresh, page.live);
  setInterval(() => { if (trial.state === "RUNNING" && !document.hidden) again(); }, LOOK_MS);
};

start().catch((error) => trouble(main, error));
