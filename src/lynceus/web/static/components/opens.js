// Trials under way, each with the time left until it is stopped.

import { el, nothing, say, show } from "../lib/dom.js";
import { countdown, duration, money, words } from "../lib/format.js";

const phase = (run, now) => {
  if (run.unwanted) return ["stopping …", "—"];
  if (run.launched_s === null) return ["starting", run.cap_s === null ? "runs to its end" : "in " + countdown(run.cap_s)];
  const passed = Math.max(0, now - run.launched_s);
  return [countdown(passed), run.cap_s === null ? "runs to its end" : passed >= run.cap_s ? "being stopped" : "in " + countdown(run.cap_s - passed)];
};

/** data: {open, head, clock, link, stop}; `clock()` is the server's time, `stop(number)` may be missing. */
export const opens = (element, data) => {
  let now = data, lines = [];
  const tick = () => {
    for (const { run, passed, left, bar } of lines) {
      const [first, second] = phase(run, now.clock());
      say(passed, first);
      say(left, second);
      const share = run.launched_s === null || run.cap_s === null ? 0 : Math.min(1, (now.clock() - run.launched_s) / run.cap_s);
      bar.style.width = share * 100 + "%";
    }
  };
  const line = (run) => {
    const passed = el("span", { class: "passed" }), left = el("b", { class: "left" }), bar = el("i");
    lines.push({ run, passed, left, bar });
    const stop = now.stop && !run.unwanted ? el("button", { type: "button", class: "small danger", "data-stop": run.number, "aria-label": `Stop trial ${run.number}` }, "Stop") : null;
    stop?.addEventListener("click", async () => {
      if (!confirm(`Stop trial ${run.number} now? What it has cost so far stays charged; nothing is learnt from it.`)) return;
      stop.disabled = true;
      stop.textContent = "Stopping …";
      try { await now.stop(run.number); } catch (error) { stop.textContent = "Stop"; stop.disabled = false; alert(error.message); }
    });
    const number = now.link ? el("a", { href: now.link(run.number) }, "#" + run.number) : "#" + run.number;
    return el("li", { "data-trial": run.number },
      el("div", { class: "open-head" }, el("strong", {}, number), el("span", { class: "config" }, words(run.params)), stop),
      el("div", { class: "countbar", "aria-hidden": "true" }, bar),
      el("div", { class: "open-facts" }, el("span", {}, "runs for ", passed), el("span", {}, "stopped ", left), el("span", {}, "at most ", run.reserved_usd === null ? "all that is left" : money(run.reserved_usd)), el("span", {}, run.plan.middle_s === null ? null : "expected " + duration(run.plan.middle_s)), el("span", { class: "quiet why" }, run.plan.why)));
  };
  let shown = "";
  const update = (next) => {
    now = next;
    const key = JSON.stringify([now.open, Boolean(now.stop)]);
    if (key !== shown) {
      shown = key;
      lines = [];
      show(element, now.open.length ? el("ul", { class: "opens" }, now.open.map(line)) : nothing(now.head.state === "RUNNING" ? "No trial is under way at the moment." : "No trial is under way."));
    }
    tick();
  };
  update(data);
  setInterval(tick, 500);
  return update;
};
