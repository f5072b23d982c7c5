// The cards of a study, the same on its live page and in the report that is one file.

import { answer } from "../components/answer.js";
import { bestChart } from "../components/best.js";
import { calibration } from "../components/calibration.js";
import { gauge } from "../components/gauge.js";
import { importance } from "../components/importance.js";
import { opens } from "../components/opens.js";
import { parallel } from "../components/parallel.js";
import { scatter } from "../components/scatter.js";
import { trialsTable } from "../components/trials.js";
import { why } from "../components/why.js";
import { card, el, say, show } from "./dom.js";
import { duration, goalOf, moment } from "./format.js";
import { badge } from "../components/badge.js";
import { append, course, newTrials } from "./trials.js";

const QUIET_S = 30;

const CARDS = [
  ["answer", "Recommendation", null, "w7", answer],
  ["money", "Money", null, "w5", gauge],
  ["open", "Open trials", null, "w12", opens],
  ["best", "Best so far against money spent", null, "w6", bestChart],
  ["scatter", "Time and cost", null, "w6", scatter],
  ["why", "Why this next?", null, "w12", why],
  ["importance", "Which parameters matter", "Share of the believed variation that each explains by itself. Choose one to see what its values do.", "w6", importance],
  ["calibration", "Predicted against seen", null, "w6", calibration],
  ["parallel", "Parameters of all runs", "Each line is a run, from its parameters to its goal.", "w12", parallel],
  ["trials-card", "Trials", null, "w12", trialsTable],
];

/** A study's data from its first document. */
export const dataOf = (view, more) => {
  const store = newTrials(view.space);
  append(store, view.trials);
  return { name: view.name, identity: view.identity, head: view.head, open: view.open, store, course: course(store, goalOf(view.head.objective)), insight: null, ...more };
};

/** Take in what is new; false when the document does not follow on what is there. */
export const merge = (data, view) => {
  if (view.identity !== data.identity || !append(data.store, view.trials)) return false;
  Object.assign(data, { head: view.head, open: view.open });
  if (view.trials.number.length) data.course = course(data.store, goalOf(data.head.objective));
  return true;
};

/** The head line of a study. */
const title = (data) => {
  const state = el("span", { id: "state" }), reason = el("p", { id: "reason" }), about = el("p", { class: "quiet" });
  const actions = el("div", { class: "actions" });
  const node = el("div", { class: "title" }, el("div", {}, el("h1", {}, data.name, " ", state), about, reason), actions);
  const update = (now) => {
    if (state.firstChild?.dataset?.state !== now.head.state) show(state, badge(now.head.state));
    const head = now.head, silent = head.state === "RUNNING" && head.seen_s !== null && now.clock() - head.seen_s > QUIET_S;
    say(reason, head.reason ?? (silent ? `No worker has given a sign of life for ${duration(Math.round(now.clock() - head.seen_s))}.` : ""));
    reason.hidden = !reason.textContent;
    say(about, [head.objective, ...head.limits, `${head.configurations.toLocaleString("en-US")} configurations`, `policy ${head.policy}`, head.created_s && "since " + moment(head.created_s)].filter(Boolean).join(" · "));
  };
  update(data);
  return { node, update, actions };
};

/** Draws everything; gives a function that draws again after `data` has changed. */
export const board = (main, data) => {
  const head = title(data), grid = el("div", { class: "grid" });
  const parts = CARDS.filter(([id]) => !(id === "open" && data.frozen)).map(([id, name, note, width, component]) => {
    const made = card(id, name, note, width);
    grid.append(made.node);
    return [id, component, made.body];
  });
  show(main, head.node, grid);
  const updates = parts.map(([, component, body]) => component(body, data));
  return { actions: head.actions, update: () => { head.update(data); for (const update of updates) update(data); } };
};
