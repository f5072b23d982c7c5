// What was changed of a recurring job, by whom, why, what was expected of it, and what it really brought.

import { el } from "../lib/dom.js";
import { counted, dateTime, duration, formatValue, money, paramsText, percent } from "../lib/format.js";

const WORDS = { adopt: "adopted", canary: "tried", return: "returned", reprice: "adopted at new prices", suggest: "suggested", retune: "searched again", rollback: "rolled back", settings: "settings", hold: "hold", lost: "lost" };

const expectedText = (facts) => {
  const parts = [];
  if (facts.cost_usd !== null && facts.cost_usd !== undefined) parts.push(`${money(facts.cost_usd)} a run`);
  if (facts.runtime_s !== null && facts.runtime_s !== undefined) parts.push(duration(facts.runtime_s));
  if (facts.saving_usd !== null && facts.saving_usd !== undefined) parts.push(`saves ${money(facts.saving_usd)} a run`);
  if (facts.late_chance !== null && facts.late_chance !== undefined) parts.push(`late with a chance of ${percent(facts.late_chance)}`);
  return parts.join(", ");
};

export const broughtText = (brought) => {
  if (brought === null || brought === undefined) return "";
  const saving = brought.saving === null ? "" : brought.saving >= 0 ? `, ${percent(brought.saving)} cheaper than the version before at the same input` : `, costs ${percent(-brought.saving)} more than the version before at the same input`;
  return `${counted(brought.runs, "run")}, ${money(brought.cost_usd)} and ${duration(brought.runtime_s)} each, ${brought.late} late${saving}`;
};

const settingText = (value) => (value === null || value === undefined ? "none" : Array.isArray(value) ? value.join(", ") || "none" : formatValue(value));

const evidenceText = (facts) => {
  const parts = [];
  for (const one of facts.triggers ?? []) parts.push(one.text);
  if (facts.study) parts.push(`study ${facts.study}`);
  if (facts.params) parts.push(paramsText(facts.params));
  for (const [name, [from, to]] of Object.entries(facts.changed ?? {})) parts.push(`${name}: ${settingText(from)} → ${settingText(to)}`);
  if (facts.spent_usd !== undefined) parts.push(`${money(facts.spent_usd)} spent`);
  return parts.join("; ");
};

const line = (label, text) => (text ? el("p", { class: "quiet" }, label + text) : null);

/** The changes of a job, newest first. */
export const auditList = (job) =>
  el("ol", { class: "audit", "aria-label": "Changes, newest first" }, [...job.changes].reverse().map((one) =>
    el("li", { "data-kind": one.kind },
      el("p", {}, el("strong", {}, (WORDS[one.kind] ?? one.kind) + (one.version === null ? "" : ` version ${one.version}`)), " ", one.reason),
      el("p", { class: "quiet" }, `${dateTime(one.at_s)}, by ${one.by || "an unknown user"}`),
      line("evidence: ", evidenceText(one.evidence)), line("expected: ", expectedText(one.expected)), line("brought: ", broughtText(one.brought)))));
