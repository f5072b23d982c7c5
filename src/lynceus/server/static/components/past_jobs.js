// What earlier jobs count, which trials they suggested, and what that saved.

import { el, table } from "../lib/dom.js";
import { money, percent } from "../lib/format.js";

const effect = (saved) => saved === null ? "" : `; history ${saved >= 0 ? "saved" : "cost"} about ${money(Math.abs(saved))} of search`;

/** history: the field of the insight document; null without a history. */
export const pastJobs = (history) => {
  if (!history) return null;
  const rows = history.jobs.map((one) => [one.name, one.note === null ? percent(one.weight) : `none: ${one.note}`, percent(one.credibility), String(one.runs)]);
  const trials = `${history.suggested} ${history.suggested === 1 ? "trial" : "trials"}`;
  return el("div", { id: "past-jobs" }, el("h3", {}, "Earlier jobs"),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Earlier jobs" }, table("Earlier jobs", ["earlier job", "weight", "believed at first", "runs"], rows, [1, 2, 3])),
    history.suggested ? el("p", { class: "quiet", id: "history-saved" }, `They suggested ${trials} for ${money(history.suggested_usd)}${effect(history.saved_usd)}.`) : null);
};
