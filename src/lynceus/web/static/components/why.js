// Why this next? What would run, what is expected of it, and what it was preferred to.

import { el, nothing, show, table } from "../lib/dom.js";
import { duration, goalOf, money, percent, words } from "../lib/format.js";

const fact = (name, value, note = null) => el("div", {}, el("dt", {}, name), el("dd", {}, value), note && el("dd", { class: "note" }, note));

const chanceBar = (probability) => {
  if (probability === null) return "unknown";
  const bar = el("i");
  bar.style.width = probability * 100 + "%";
  return el("span", { class: "chance" }, el("span", { class: "track", "aria-hidden": "true" }, bar), percent(probability));
};

const suggestion = (next, goal) => {
  const plan = next.plan;
  const interval = plan.low_s === null ? null : `80 %: ${duration(plan.low_s)} to ${duration(plan.high_s)}`;
  return [
    el("p", { class: "config big", id: "next-config" }, words(next.params)),
    el("p", { class: "quiet" }, plan.why),
    el("dl", { class: "facts" },
      fact("expected gain", plan.gain === null ? "—" : goal.text(plan.gain), plan.gain === null ? "no model was asked" : "better than the best so far"),
      fact("expected charge", money(plan.usd), next.reserved_usd === null ? null : "at most " + money(next.reserved_usd)),
      fact("chance to be feasible", chanceBar(plan.probability)),
      fact("expected time", duration(plan.middle_s), interval ?? (next.cap_s === null ? null : "stopped after " + duration(next.cap_s)))),
    plan.path.length ? el("div", { class: "path" }, el("h3", {}, "Look-ahead"), el("ol", {}, el("li", {}, words(next.params)), plan.path.map((params) => el("li", {}, words(params))))) : null,
  ];
};

/** data: {head, insight} */
export const why = (element, data) => {
  let told;
  const update = ({ head, insight }) => {
    if (insight === told) return;
    told = insight;
    if (!insight) { show(element, nothing("Asking the model …")); return; }
    const goal = goalOf(head.objective);
    const rivals = insight.candidates.map((one) => [words(one.params), goal.text(one.gain), money(one.charge_usd), percent(one.probability), duration(one.seconds)]);
    const left = insight.next.stop !== undefined ? [el("p", { class: "config big", id: "next-config" }, "Nothing"), el("p", {}, insight.next.stop)] : suggestion(insight.next, goal);
    show(element,
      el("div", { class: "split" }, el("div", {}, left),
        el("div", {}, el("h3", {}, "Best open configurations in the model's eyes"),
          rivals.length ? el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Best open configurations" }, table("Best open configurations", ["configuration", "gain", "charge", "feasible", "time"], rivals, [1, 2, 3, 4])) : nothing("Too few runs for an opinion."))),
      insight.approximate ? el("p", { class: "quiet" }, insight.approximate) : null);
  };
  update(data);
  return update;
};
