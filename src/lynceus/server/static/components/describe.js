// A trial in a few lines, the same in every tooltip.

import { duration, money, formatNumber, paramsText } from "../lib/format.js";
import { COMPLETE, FAIL, paramsOf, STATE_WORDS, TIMEOUT } from "../lib/trials.js";

/** The tooltip of a trial. */
export const about = (store, index) => {
  const lines = [`Trial ${store.number[index]} · ${STATE_WORDS[store.state[index]]}${store.reasons.has(index) ? ` (${store.reasons.get(index)})` : ""}`, paramsText(paramsOf(store, index))];
  lines.push(`ran ${duration(store.runtime_s[index])}, charged ${money(store.charged_usd[index])}`);
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

/** The page of a trial; null in a report. */
export const hrefOf = (data, number) => (data.link ? data.link(number) : null);
