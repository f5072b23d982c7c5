// A trial in a few lines, the same wherever it is pointed at.

import { duration, money, plain, words } from "../lib/format.js";
import { COMPLETE, FAIL, paramsOf, STATE_WORDS, TIMEOUT } from "../lib/trials.js";

/** What a tip says of the trial at a position. */
export const about = (store, place) => {
  const lines = [`Trial ${store.number[place]} · ${STATE_WORDS[store.state[place]]}${store.reasons.has(place) ? ` (${store.reasons.get(place)})` : ""}`, words(paramsOf(store, place))];
  lines.push(`ran ${duration(store.runtime_s[place])}, charged ${money(store.charged_usd[place])}`);
  if (store.state[place] === COMPLETE) lines.push(`a run costs ${money(store.cost_usd[place])}${store.keeps[place] ? "" : " but breaks a limit"}`);
  for (const [name, list] of Object.entries(store.metrics)) if (list[place] !== null) lines.push(`${name} ${plain(list[place])}`);
  if (store.details.has(place)) lines.push(store.details.get(place));
  return lines.join("\n");
};

/** Which mark stands for it. */
export const kindOf = (store, place) => {
  if (store.state[place] === TIMEOUT) return "stopped";
  if (store.state[place] === FAIL) return "failed";
  return store.keeps[place] ? "kept" : "broken";
};

/** The page of a trial; nothing in a report, which is one file. */
export const hrefOf = (data, number) => (data.link ? data.link(number) : null);
