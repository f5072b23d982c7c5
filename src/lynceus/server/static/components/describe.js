// A trial in a few lines, the same in every tooltip.

import { el } from "../lib/dom.js";
import { duration, money, formatNumber, paramsText } from "../lib/format.js";
import { COMPLETE, FAIL, paramsOf, STATE_WORDS, TIMEOUT } from "../lib/trials.js";

/** The tooltip of a trial. */
export const about = (store, index) => {
  const lines = [`Trial ${store.number[index]} · ${STATE_WORDS[store.state[index]]}${store.reasons.has(index) ? ` (${store.reasons.get(index)})` : ""}`, paramsText(paramsOf(store, index))];
  lines.push(`ran ${duration(store.runtime_s[index])}, charged ${money(store.charged_usd[index])}`);
  if (store.state[index] === TIMEOUT) lines.push(`a run takes longer and costs more than ${money(store.bound_usd[index])}`);
  if (store.state[index] === COMPLETE) lines.push(`a run costs ${money(store.cost_usd[index])}${store.keeps[index] ? "" : " but violates a constraint"}`);
  for (const [name, list] of Object.entries(store.metrics)) if (list[index] !== null) lines.push(`${name} ${formatNumber(list[index])}`);
  if (store.details.has(index)) lines.push(store.details.get(index));
  return lines.join("\n");
};

/** The mark of a trial. */
export const kindOf = (store, index) => {
  if (store.state[index] === TIMEOUT) return "stopped";
  if (store.state[index] === FAIL) return "failed";
  return store.keeps[index] ? "feasible" : "infeasible";
};

/** The labels and links of marks whose `index` is that of a trial. */
export const markTexts = (data) => ({ label: (mark) => about(data.store, mark.index), href: hrefsOf(data) });

/** The pages of marks; no function in a report, which has no such pages. */
export const hrefsOf = (data) => (data.link ? (mark) => data.link(data.store.number[mark.index]) : undefined);

/** The number of a trial in a table, with a link to its page. */
export const trialCell = (data, number) => (data.link ? el("a", { href: data.link(number) }, number) : number);
