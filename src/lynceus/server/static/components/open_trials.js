// Open trials, each with the time left until its timeout.

import { el, emptyNote, setText, setChildren } from "../lib/dom.js";
import { countdown, duration, money, paramsText } from "../lib/format.js";

const phase = (run, now) => {
  if (run.cancel_requested) return ["stopping …", "—"];
  if (run.launched_s === null) return ["starting", run.timeout_s === null ? "no timeout" : "in " + countdown(run.timeout_s)];
  const passed = Math.max(0, now - run.launched_s);
  return [countdown(passed), run.timeout_s === null ? "no timeout" : passed >= run.timeout_s ? "now" : "in " + countdown(run.timeout_s - passed)];
};

/** data: {open, head, clock, link, stop}; `clock()` is the server's time, `stop(number)` is null for readers. */
export const openTrials = (element, data) => {
  let now = data, lines = [];
  const tick = () => {
    for (const { run, passed, left, bar } of lines) {
      const [first, second] = phase(run, now.clock());
      setText(passed, first);
      setText(left, second);
      const share = run.launched_s === null || run.timeout_s === null ? 0 : Math.min(1, (now.clock() - run.launched_s) / run.timeout_s);
      bar.style.width = share * 100 + "%";
    }
  };
  const line = (run) => {
    const passed = el("span", { class: "passed" }), left = el("b", { class: "left" }), bar = el("i");
    lines.push({ run, passed, left, bar });
    const stop = now.stop && !run.cancel_requested ? el("button", { type: "button", class: "small danger", "data-stop": run.number, "aria-label": `Stop trial ${run.number}` }, "Stop") : null;
    stop?.addEventListener("click", async () => {
      if (!confirm(`Stop trial ${run.number} now? What it has cost so far stays charged, and the model learns nothing from it.`)) return;
      stop.disabled = true;
      stop.textContent = "Stopping …";
      try { await now.stop(run.number); } catch (error) { stop.textContent = "Stop"; stop.disabled = false; alert(error.message); }
    });
    const number = now.link ? el("a", { href: now.link(run.number) }, "#" + run.number) : "#" + run.number;
    return el("li", { "data-trial": run.number },
      el("div", { class: "open-head" }, el("strong", {}, number), el("span", { class: "config" }, paramsText(run.params)), stop),
      el("div", { class: "countbar", "aria-hidden": "true" }, bar),
      el("div", { class: "open-facts" }, el("span", {}, "running for ", passed), el("span", {}, "timeout ", left), el("span", {}, "costs at most ", run.reserved_usd === null ? "the rest of the budget" : money(run.reserved_usd)), el("span", {}, run.plan.middle_s === null ? null : "expected " + duration(run.plan.middle_s)), el("span", { class: "quiet why" }, run.plan.why)));
  };
  let drawn = "";
  const update = (next) => {
    now = next;
    const key = JSON.stringify([now.open, Boolean(now.stop)]);
    if (key !== drawn) {
      drawn = key;
      lines = [];
      setChildren(element, now.open.length ? el("ul", { class: "open-trials" }, now.open.map(line)) : emptyNote("No trial is open."));
    }
    tick();
  };
  update(data);
  setInterval(tick, 500);
  return update;
};
