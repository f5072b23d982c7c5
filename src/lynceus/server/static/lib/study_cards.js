// The cards of a study, the same on the live page and in a report.

import { recommendation } from "../components/recommendation.js";
import { bestChart } from "../components/best_so_far.js";
import { calibration } from "../components/calibration.js";
import { gauge } from "../components/gauge.js";
import { importance } from "../components/importance.js";
import { openTrials } from "../components/open_trials.js";
import { parallel } from "../components/parallel.js";
import { scatter } from "../components/scatter.js";
import { trialsTable } from "../components/trials.js";
import { nextTrial } from "../components/next_trial.js";
import { card, el, setText, setChildren } from "./dom.js";
import { dateTime, duration } from "./format.js";
import { badge } from "../components/badge.js";
import { append, newTrials } from "./trials.js";

const SILENT_S = 30; // workers send a heartbeat every few seconds

const CARDS = [
  ["answer", "Recommendation", null, "w7", recommendation],
  ["money", "Money", null, "w5", gauge],
  ["open", "Open trials", null, "w12", openTrials],
  ["best", "Best so far against money spent", null, "w6", bestChart],
  ["scatter", "Time and cost", null, "w6", scatter],
  ["why", "Next trial", null, "w12", nextTrial],
  ["importance", "Parameter importance", "The share of the predicted variation that each parameter explains by itself. Select one to see the effect of its values.", "w6", importance],
  ["calibration", "Predicted and measured time", null, "w6", calibration],
  ["parallel", "Parameters of all runs", "Each line is a run, from its parameters to its objective.", "w12", parallel],
  ["trials-card", "Trials", null, "w12", trialsTable],
];

/** The data of the cards from the first document of a study. */
export const dataOf = (view, more) => {
  const store = newTrials(view.space);
  append(store, view.trials);
  return { name: view.name, identity: view.identity, head: view.head, open: view.open, store, insight: null, ...more };
};

/** Add a newer document; false when it does not continue the data. */
export const merge = (data, view) => {
  if (view.identity !== data.identity || !append(data.store, view.trials)) return false;
  Object.assign(data, { head: view.head, open: view.open });
  return true;
};

/** The heading of a study. */
const title = (data) => {
  const state = el("span", { id: "state" }), reason = el("p", { id: "reason" }), about = el("p", { class: "quiet" });
  const actions = el("div", { class: "actions" });
  const node = el("div", { class: "title" }, el("div", {}, el("h1", {}, data.name, " ", state), about, reason), actions);
  const update = (now) => {
    if (state.firstChild?.dataset?.state !== now.head.state) setChildren(state, badge(now.head.state));
    const head = now.head, silent = head.state === "RUNNING" && head.worker_seen_s !== null && now.clock() - head.worker_seen_s > SILENT_S;
    setText(reason, head.reason ?? (silent ? `No worker has sent a heartbeat for ${duration(Math.round(now.clock() - head.worker_seen_s))}.` : ""));
    reason.hidden = !reason.textContent;
    setText(about, [head.objective, ...head.constraints, `${head.configurations.toLocaleString("en-US")} configurations`, `policy ${head.policy}`, head.created_s && "since " + dateTime(head.created_s)].filter(Boolean).join(" · "));
  };
  update(data);
  return { node, update, actions };
};

/** Draw all cards; `update` draws them again after `data` has changed. */
export const studyCards = (main, data) => {
  const head = title(data), grid = el("div", { class: "grid" });
  const parts = CARDS.filter(([id]) => !(id === "open" && data.frozen)).map(([id, name, note, width, component]) => {
    const made = card(id, name, note, width);
    grid.append(made.node);
    return [id, component, made.body];
  });
  setChildren(main, head.node, grid);
  const updates = parts.map(([, component, body]) => component(body, data));
  return { actions: head.actions, update: () => { head.update(data); for (const update of updates) update(data); } };
};
