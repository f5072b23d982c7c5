// The cards of a study, the same on the live page and in a report.

import { recommendation } from "../components/recommendation.js";
import { bestChart } from "../components/best_so_far.js";
import { calibration, hasPredictions } from "../components/calibration.js";
import { contour } from "../components/contour.js";
import { gauge } from "../components/gauge.js";
import { importance } from "../components/importance.js";
import { hasInputSizes, inputSizes } from "../components/input_sizes.js";
import { limitsChart } from "../components/limits.js";
import { openTrials } from "../components/open_trials.js";
import { parallel } from "../components/parallel.js";
import { scatter } from "../components/scatter.js";
import { hasTimes, timeline } from "../components/timeline.js";
import { trialsTable } from "../components/trials.js";
import { nextTrial } from "../components/next_trial.js";
import { card, el, setText, setChildren } from "./dom.js";
import { dateTime, duration } from "./format.js";
import { badge } from "../components/badge.js";
import { append, COMPLETE, newTrials, TIMEOUT } from "./trials.js";

const LIVE_ONLY = ["open", "contour"]; // a report is frozen, and has no server to ask
const SILENT_S = 30; // workers send a heartbeat every few seconds

const hasFinished = ({ store }) => store.state.includes(COMPLETE);
const hasRuns = ({ store }) => hasFinished({ store }) || store.state.includes(TIMEOUT);
const hasImportance = ({ insight }) => Boolean(insight?.importance.length);

/** Identity, title, note, width, component, and when the card has something to show. Halves of one kind are side by side; one that is left is as wide as the page. */
const CARDS = [
  ["answer", "Recommendation", null, "w12", recommendation],
  ["money", "Money", null, "half money", gauge],
  ["open", "Open trials", null, "half money", openTrials, (data) => data.open.length > 0],
  ["best", "Best so far against money spent", null, "half runs", bestChart, hasFinished],
  ["scatter", "Time and cost", null, "half runs", scatter, hasRuns],
  ["limits", "Metrics against their limits", null, "half runs", limitsChart, (data) => data.limits.length > 0 && hasRuns(data)],
  ["calibration", "Predicted and measured time", null, "half runs", calibration, hasPredictions],
  ["why", "Next trial", null, "w12", nextTrial],
  ["importance", "Parameter importance", "The share of the predicted variation that each parameter explains by itself. Select one to see the effect of its values.", "half model", importance, hasImportance],
  ["contour", "Two parameters", "The best prediction for each pair of values, whatever the other parameters are.", "half model", contour, (data) => data.store.parameters.filter((one) => one.values.length > 1).length > 1 && hasImportance(data)],
  ["input-sizes", "Over the size of the input", "What the runs on all inputs let expect of other sizes.", "w12", inputSizes, hasInputSizes],
  ["timeline", "Timeline", null, "w12", timeline, hasTimes],
  ["parallel", "Parameters of all runs", "Each line is a run, from its parameters to its objective.", "w12", parallel, hasFinished],
  ["trials-card", "Trials", null, "w12", trialsTable],
];

/** The data of the cards from the first document of a study. */
export const dataOf = (view, more) => {
  const store = newTrials(view.space);
  append(store, view.trials);
  return { name: view.name, identity: view.identity, head: view.head, limits: view.limits, open: view.open, store, insight: null, ...more };
};

/** Add a newer document; false when it does not continue the data: another study has the name now, or other limits judge its trials. */
export const merge = (data, view) => {
  if (view.identity !== data.identity || JSON.stringify(view.limits) !== JSON.stringify(data.limits) || !append(data.store, view.trials)) return false;
  Object.assign(data, { head: view.head, open: view.open });
  return true;
};

/** The heading of a study. */
const title = (data) => {
  const state = el("span", { id: "state" }), reason = el("p", { id: "reason" }), about = el("p", { class: "quiet" });
  const actions = el("div", { class: "actions" }), note = el("div", { class: "study-note", hidden: true });
  const changes = el("p", { class: "quiet", id: "limit-changes" });
  const node = el("div", { class: "title" }, el("div", {}, el("h1", {}, data.name, " ", state), about, changes, reason), actions, note);
  const update = (now) => {
    if (state.firstChild?.dataset?.state !== now.head.state) setChildren(state, badge(now.head.state));
    const head = now.head, silent = head.state === "RUNNING" && head.worker_seen_s !== null && now.clock() - head.worker_seen_s > SILENT_S;
    setText(reason, head.reason ? (head.state === "FINISHED" ? "The search is over: " : "") + head.reason : (silent ? `No worker has sent a heartbeat for ${duration(Math.round(now.clock() - head.worker_seen_s))}.` : ""));
    reason.hidden = !reason.textContent;
    setText(changes, head.limit_changes?.length ? "Changed limits: " + head.limit_changes.join("; ") : "");
    changes.hidden = !changes.textContent;
    setText(about, [head.objective, ...head.constraints, `${head.configurations.toLocaleString("en-US")} configurations`, `policy ${head.policy}`, head.created_s && "since " + dateTime(head.created_s)].filter(Boolean).join(" · "));
  };
  update(data);
  return { node, update, actions, note };
};

/** Show the cards that have something to show, halves side by side. */
const arrange = (parts, data) => {
  for (const { node, shown } of parts) node.hidden = !shown(data);
  const visible = parts.filter(({ node }) => !node.hidden);
  for (let rank = 0; rank < visible.length; rank++) {
    if (!visible[rank].half) continue;
    const next = visible[rank + 1], pair = next?.half === visible[rank].half;
    for (const one of visible.slice(rank, rank + (pair ? 2 : 1))) { one.node.classList.toggle("w6", pair); one.node.classList.toggle("w12", !pair); }
    if (pair) rank++;
  }
};

/** Draw all cards; `update` draws them again after `data` has changed. */
export const studyCards = (main, data) => {
  const head = title(data), grid = el("div", { class: "grid" });
  const parts = CARDS.filter(([id]) => !(data.frozen && LIVE_ONLY.includes(id))).map(([id, name, note, width, component, shown = () => true]) => {
    const half = width.startsWith("half") ? width : null, { node, body } = card(id, name, note, half ? "" : width);
    grid.append(node);
    return { node, body, component, shown, half };
  });
  arrange(parts, data);
  setChildren(main, head.node, grid);
  const updates = parts.map(({ component, body }) => component(body, data));
  return { actions: head.actions, note: head.note, update: () => { head.update(data); arrange(parts, data); for (const update of updates) update(data); } };
};
