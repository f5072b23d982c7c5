// The next trial: its configuration, what the model predicts for it, and the runners-up.

import { el, emptyNote, setChildren, table } from "../lib/dom.js";
import { duration, parseObjective, money, percent, paramsText } from "../lib/format.js";

const fact = (name, value, note = null) => el("div", {}, el("dt", {}, name), el("dd", {}, value), note && el("dd", { class: "note" }, note));

const probabilityBar = (probability) => {
  if (probability === null) return "unknown";
  const bar = el("i");
  bar.style.width = probability * 100 + "%";
  return el("span", { class: "probability" }, el("span", { class: "track", "aria-hidden": "true" }, bar), percent(probability));
};

const suggestion = (next, objective) => {
  const plan = next.plan;
  const interval = plan.low_s === null ? null : `80 %: ${duration(plan.low_s)} to ${duration(plan.high_s)}`;
  return [
    el("p", { class: "config big", id: "next-config" }, paramsText(next.params)),
    el("p", { class: "quiet" }, plan.why),
    el("dl", { class: "facts" },
      fact("expected improvement", plan.gain === null ? "—" : objective.text(plan.gain), plan.gain === null ? "no model was used" : "over the best so far"),
      fact("expected charge", money(plan.charge_usd), next.reserved_usd === null ? null : "at most " + money(next.reserved_usd)),
      fact("probability of being feasible", probabilityBar(plan.probability)),
      fact("expected time", duration(plan.middle_s), interval ?? (next.timeout_s === null ? null : "stopped after " + duration(next.timeout_s)))),
    plan.path.length ? el("div", { class: "path" }, el("h3", {}, "Lookahead"), el("ol", {}, el("li", {}, paramsText(next.params)), plan.path.map((params) => el("li", {}, paramsText(params))))) : null,
  ];
};

/** data: {head, insight} */
export const nextTrial = (element, data) => {
  let drawn;
  const update = ({ head, insight }) => {
    if (insight === drawn) return;
    drawn = insight;
    if (!insight) { setChildren(element, emptyNote("Computing …")); return; }
    const objective = parseObjective(head.objective);
    const rivals = insight.candidates.map((one) => [paramsText(one.params), objective.text(one.gain), money(one.charge_usd), percent(one.probability), duration(one.runtime_s)]);
    const left = insight.next.trial === null ? [el("p", { class: "config big", id: "next-config" }, "None"), el("p", {}, insight.next.reason)] : suggestion(insight.next.trial, objective);
    setChildren(element,
      el("div", { class: "split" }, el("div", {}, left),
        el("div", {}, el("h3", {}, "Best candidates of the model"),
          rivals.length ? el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Best candidates" }, table("Best candidates", ["configuration", "improvement", "charge", "feasible", "time"], rivals, [1, 2, 3, 4])) : emptyNote("Too few runs for a prediction."))),
      insight.approximate ? el("p", { class: "quiet" }, insight.approximate) : null);
  };
  update(data);
  return update;
};
