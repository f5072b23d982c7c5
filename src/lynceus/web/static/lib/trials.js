// The settled trials of a study as columns, and what follows from them. New trials are appended; nothing is read twice.

export const COMPLETE = 0;
export const TIMEOUT = 1;
export const FAIL = 2;
export const STATE_NAMES = ["COMPLETE", "TIMEOUT", "FAIL"];
export const STATE_WORDS = ["finished", "stopped early", "failed"];

const LISTS = ["number", "row", "state", "runtime_s", "charged_usd", "cost_usd", "keeps", "answer", "other", "low_s", "middle_s", "high_s"];

/** An empty store for a space. */
export const newTrials = (space) => {
  const store = { parameters: space.parameters, size: 0, why: [], details: new Map(), reasons: new Map(), params: {}, metrics: {}, places: new Map() };
  for (const name of LISTS) store[name] = [];
  for (const { name } of space.parameters) store.params[name] = [];
  return store;
};

/** Append the trials of a document; true when they follow on those that are there. */
export const append = (store, columns) => {
  if (columns.first !== store.size) return false;
  const added = columns.number.length;
  for (const name of LISTS) for (const value of columns[name]) store[name].push(value);
  for (const place of columns.why) store.why.push(columns.whys[place]);
  for (const name of Object.keys(store.params)) for (const code of columns.params[name]) store.params[name].push(code);
  for (const name of Object.keys(columns.metrics)) {
    store.metrics[name] ??= new Array(store.size).fill(null);
    for (const value of columns.metrics[name]) store.metrics[name].push(value);
  }
  for (const list of Object.values(store.metrics)) while (list.length < store.size + added) list.push(null);
  for (const [place, text] of Object.entries(columns.details)) store.details.set(store.size + Number(place), text);
  for (const [place, text] of Object.entries(columns.reasons)) store.reasons.set(store.size + Number(place), text);
  for (let place = store.size; place < store.size + added; place++) store.places.set(store.number[place], place);
  store.size += added;
  return true;
};

/** The value of a parameter in the trial at a position; null where it does not apply. */
export const value = (store, place, parameter) => {
  const code = store.params[parameter.name][place];
  return code < 0 ? null : parameter.values[code];
};

/** The configuration of the trial at a position. */
export const paramsOf = (store, place) => {
  const found = {};
  for (const parameter of store.parameters) {
    const code = store.params[parameter.name][place];
    if (code >= 0) found[parameter.name] = parameter.values[code];
  }
  return found;
};

/** The goal of a finished trial in its own unit; null when it has none. */
export const goalValue = (store, place, goal) => {
  if (store.state[place] !== COMPLETE) return null;
  if (goal.metric === "cost") return store.cost_usd[place];
  return goal.metric === "time" ? store.runtime_s[place] : store.metrics[goal.metric]?.[place] ?? null;
};

/** For each settled trial what was spent by then and the best so far (null while nothing kept the limits). */
export const course = (store, goal) => {
  const spent = new Array(store.size), best = new Array(store.size), incumbent = new Array(store.size);
  let sum = 0, top = null, who = null;
  for (let place = 0; place < store.size; place++) {
    sum += store.charged_usd[place];
    if (store.answer[place]) {
      const own = goalValue(store, place, goal);
      if (own !== null && (top === null || (goal.maximise ? own > top : own < top))) [top, who] = [own, place];
    }
    spent[place] = sum;
    best[place] = top;
    incumbent[place] = who;
  }
  return { spent, best, incumbent };
};

/** Finished runs as conclusions see them: of a configuration that ran several times, the median run (of two the slower). */
export const typicalPlaces = (store) => {
  if (store.typical?.size === store.size) return store.typical.places;
  const byRow = new Map();
  for (let place = 0; place < store.size; place++) {
    if (store.state[place] === FAIL) continue;
    const same = byRow.get(store.row[place]);
    if (same === undefined) byRow.set(store.row[place], place);
    else if (typeof same === "number") byRow.set(store.row[place], [same, place]);
    else same.push(place);
  }
  const time = (place) => (store.state[place] === COMPLETE ? store.runtime_s[place] : Infinity);
  const found = [];
  for (const same of byRow.values()) {
    const middle = typeof same === "number" ? same : same.sort((a, b) => time(a) - time(b))[Math.floor(same.length / 2)];
    if (store.state[middle] === COMPLETE) found.push(middle);
  }
  store.typical = { size: store.size, places: found };
  return found;
};

/** Positions that no other beats in both time and cost, fastest first; among runs that keep every limit but the deadline. */
export const front = (store, places) => {
  const sorted = places.filter((place) => store.other[place]).sort((a, b) => store.runtime_s[a] - store.runtime_s[b] || store.cost_usd[a] - store.cost_usd[b]);
  const found = [];
  for (const place of sorted) if (!found.length || store.cost_usd[place] < store.cost_usd[found[found.length - 1]]) found.push(place);
  return found;
};

/** The best measured run under a deadline, and how many stopped runs might have been better. */
export const underDeadline = (store, places, goal, deadline) => {
  let best = null;
  const better = (a, b) => (goal.maximise ? goalValue(store, a, goal) > goalValue(store, b, goal) : goalValue(store, a, goal) < goalValue(store, b, goal));
  for (const place of places) {
    if (!store.other[place] || store.runtime_s[place] > deadline) continue;
    if (best === null || better(place, best)) best = place;
  }
  return best;
};
