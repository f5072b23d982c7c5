// The settled trials of a study as columns, and what is computed from them. New trials are appended; nothing is loaded twice.

export const COMPLETE = 0;
export const TIMEOUT = 1;
export const FAIL = 2;
export const STATE_NAMES = ["COMPLETE", "TIMEOUT", "FAIL"];
export const STATE_WORDS = ["finished", "stopped early", "failed"];

const LISTS = ["number", "row", "state", "runtime_s", "charged_usd", "cost_usd", "bound_usd", "keeps", "other", "best_value", "best_trial", "low_s", "middle_s", "high_s"];

/** An object without inherited properties, for keys that are data: a metric may be named `constructor` or `__proto__`. */
export const byName = () => Object.create(null);

/** An empty store of trials. */
export const newTrials = (space) => {
  const store = { parameters: space.parameters, size: 0, why: [], started_s: [], ended_s: [], details: new Map(), reasons: new Map(), params: byName(), metrics: byName(), indices: new Map() };
  for (const name of LISTS) store[name] = [];
  for (const { name } of space.parameters) store.params[name] = [];
  return store;
};

/** Append the trials of a document; false when they do not continue those in the store. */
export const append = (store, columns) => {
  if (columns.first !== store.size) return false;
  const added = columns.number.length;
  for (const name of LISTS) for (const value of columns[name]) store[name].push(value);
  for (const name of ["started_s", "ended_s"]) for (const value of columns[name]) store[name].push(value === null ? null : columns.epoch_s + value);
  for (const index of columns.why) store.why.push(columns.whys[index]);
  for (const name of Object.keys(store.params)) for (const code of columns.params[name]) store.params[name].push(code);
  for (const name of Object.keys(columns.metrics)) {
    store.metrics[name] ??= new Array(store.size).fill(null);
    for (const value of columns.metrics[name]) store.metrics[name].push(value);
  }
  for (const list of Object.values(store.metrics)) while (list.length < store.size + added) list.push(null);
  for (const [index, text] of Object.entries(columns.details)) store.details.set(store.size + Number(index), text);
  for (const [index, text] of Object.entries(columns.reasons)) store.reasons.set(store.size + Number(index), text);
  for (let index = store.size; index < store.size + added; index++) store.indices.set(store.number[index], index);
  store.size += added;
  return true;
};

/** The value of a parameter in a trial; null where the parameter is inactive. */
export const value = (store, index, parameter) => {
  const code = store.params[parameter.name][index];
  return code < 0 ? null : parameter.values[code];
};

/** The configuration of a trial. */
export const paramsOf = (store, index) => {
  const found = byName();
  for (const parameter of store.parameters) {
    const code = store.params[parameter.name][index];
    if (code >= 0) found[parameter.name] = parameter.values[code];
  }
  return found;
};

/** The objective of a finished trial in its own unit; null when it has none. */
export const objectiveValue = (store, index, objective) => {
  if (store.state[index] !== COMPLETE) return null;
  if (objective.metric === "cost") return store.cost_usd[index];
  return objective.metric === "time" ? store.runtime_s[index] : store.metrics[objective.metric]?.[index] ?? null;
};

/** For each settled trial the money spent by then. */
export const spentBy = (store) => {
  let sum = 0;
  return store.charged_usd.map((usd) => (sum += usd));
};

/** Finished runs; of a configuration that ran several times only the median run (of two the slower one). */
export const medianRuns = (store) => {
  if (store.median?.size === store.size) return store.median.indices;
  const byRow = new Map();
  for (let index = 0; index < store.size; index++) {
    if (store.state[index] === FAIL) continue;
    const same = byRow.get(store.row[index]);
    if (same === undefined) byRow.set(store.row[index], index);
    else if (typeof same === "number") byRow.set(store.row[index], [same, index]);
    else same.push(index);
  }
  const time = (index) => (store.state[index] === COMPLETE ? store.runtime_s[index] : Infinity);
  /** Without runs that were stopped before the fastest finished one ended: they prove nothing. */
  const telling = (same) => {
    const fastest = Math.min(...same.map(time));
    return fastest === Infinity ? same : same.filter((index) => store.runtime_s[index] >= fastest);
  };
  const found = [];
  for (const several of byRow.values()) {
    const same = typeof several === "number" ? several : telling(several);
    const middle = typeof same === "number" ? same : same.sort((a, b) => time(a) - time(b))[Math.floor(same.length / 2)];
    if (store.state[middle] === COMPLETE) found.push(middle);
  }
  store.median = { size: store.size, indices: found };
  return found;
};

/** The Pareto front of time and cost, fastest run first; among runs that meet every constraint except the deadline. */
export const paretoFront = (store, indices) => {
  const sorted = indices.filter((index) => store.other[index]).sort((a, b) => store.runtime_s[a] - store.runtime_s[b] || store.cost_usd[a] - store.cost_usd[b]);
  const found = [];
  for (const index of sorted) if (!found.length || store.cost_usd[index] < store.cost_usd[found[found.length - 1]]) found.push(index);
  return found;
};

/** The best measured run under a deadline; null when there is none. */
export const underDeadline = (store, indices, objective, deadline) => {
  let best = null;
  const better = (a, b) => (objective.maximise ? objectiveValue(store, a, objective) > objectiveValue(store, b, objective) : objectiveValue(store, a, objective) < objectiveValue(store, b, objective));
  for (const index of indices) {
    if (!store.other[index] || store.runtime_s[index] > deadline) continue;
    if (best === null || better(index, best)) best = index;
  }
  return best;
};
