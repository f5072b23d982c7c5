// The next trial: its configuration, what the model predicts for it, and the runners-up.

import { el, emptyNote, setChildren, table } from "../lib/dom.js";
import { pastJobs } from "./past_jobs.js";
import { duration, gainText, parseObjective, money, percent, paramsText } from "../lib/format.js";

const fact = (name, value, note = null) => el("div", {}, el("dt", {}, name), el("dd", {}, value), note && el("dd", { class: "note" }, note));

const probabilityBar = (probability) => {
  const bar = el("i");
  bar.style.width = probability * 100 + "%";
  return el("span", { class: "probability" }, el("span", { class: "track", "aria-hidden": "true" }, bar), percent(probability));
};

const suggestion = (next, objective) => {
  const { plan } = next, most = next.reserved_usd === null ? null : money(next.reserved_usd), stop = next.timeout_s === null ? null : duration(next.timeout_s);
  const interval = plan.low_s === null ? null : `80 %: ${duration(plan.low_s)} to ${duration(plan.high_s)}`;
  return [
    el("p", { class: "config big", id: "next-config" }, paramsText(next.params)),
    el("p", { class: "quiet" }, plan.why),
    el("dl", { class: "facts" },
      plan.gain === null ? null : fact("expected improvement", gainText(plan.gain, objective.text), "over the best so far"),
      plan.charge_usd !== null ? fact("expected charge", money(plan.charge_usd), most && "at most " + most) : most && fact("costs at most", most),
      plan.probability === null ? null : fact("probability of being feasible", probabilityBar(plan.probability)),
      plan.middle_s !== null ? fact("expected time", duration(plan.middle_s), interval ?? (stop && "stopped after " + stop)) : stop && fact("stopped after", stop)),
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
    const rivals = insight.candidates.map((one) => [paramsText(one.params), gainText(one.gain, objective.text), money(one.charge_usd), percent(one.probability), duration(one.runtime_s)]);
    const left = insight.next.trial === null ? [el("p", { class: "config big", id: "next-config" }, "None"), el("p", {}, insight.next.reason)] : suggestion(insight.next.trial, objective);
    const right = rivals.length ? el("div", {}, el("h3", {}, "Best candidates of the model"), el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Best candidates" }, table("Best candidates", ["configuration", "improvement", "charge", "feasible", "time"], rivals, [1, 2, 3, 4]))) : null;
    setChildren(element, el("div", { class: right ? "split" : "whole" }, el("div", {}, left), right),
      pastJobs(insight.history),
      insight.approximate ? el("p", { class: "quiet" }, insight.approximate) : null);
  };
  update(data);
  return update;
};
