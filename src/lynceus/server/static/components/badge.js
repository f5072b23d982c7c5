// The state of a study or a trial: a symbol, a color and a word.

import { el, svgEl } from "../lib/dom.js";

const STYLES = {
  RUNNING: ["running", "M4 2.5L11.5 7L4 11.5Z", "running"],
  FINISHED: ["done", "M2.5 7.5L5.5 10.5L11.5 3.5", "finished"],
  COMPLETE: ["done", "M2.5 7.5L5.5 10.5L11.5 3.5", "finished"],
  STOPPED: ["paused", "M3 3H11V11H3Z", "stopped"],
  PAUSED: ["paused", "M3.5 2.5V11.5M10.5 2.5V11.5", "paused"],
  INTERRUPTED: ["paused", "M7 2V8M7 11.2V11.4", "interrupted"],
  TIMEOUT: ["stopped", "M1.8 11.5H12.2L7 2Z", "stopped early"],
  DAMAGED: ["failed", "M7 2V8M7 11.2V11.4", "damaged"],
  FAIL: ["failed", "M3 3L11 11M11 3L3 11", "failed"],
};

/** A badge; `more` is added in parentheses. */
export const badge = (state, more = null) => {
  const [className, d, word] = STYLES[state] ?? ["paused", "M3 7H11", state.toLowerCase()];
  return el("span", { class: "badge " + className, "data-state": state }, svgEl("svg", { viewBox: "0 0 14 14", width: 12, height: 12, "aria-hidden": "true" }, svgEl("path", { d })), word + (more ? ` (${more})` : ""));
};
