// The runs of a recurring job, one chart per question: time beside what was expected, cost, cost per unit of input, version.

import { chart, legend } from "../lib/chart.js";
import { bytes, counted, dateTime, duration, money, paramsText } from "../lib/format.js";
import { extent, scale, wide } from "../lib/scale.js";

const kindOf = (run) => (run.state === "FAIL" ? "failed" : run.state === "TIMEOUT" ? "stopped" : run.late ? "late" : run.canary ? "infeasible" : "feasible");
const NAMES = [["feasible", "on time"], ["infeasible", "canary"], ["late", "late"], ["stopped", "stopped"], ["failed", "failed"]];

const legendOf = (runs, lines) => {
  const found = new Set(runs.map(kindOf));
  return legend(NAMES.filter(([kind]) => found.has(kind)), lines);
};

/** A line through the points that are known. */
const path = (points) => points.map(([x, y], index) => (index ? "L" : "M") + x.toFixed(1) + " " + y.toFixed(1)).join("");

const step = (points, end) => points.map(([x, y], index) => (index ? "H" : "M") + x.toFixed(1) + (index ? "V" : " ") + y.toFixed(1)).join("") + (points.length ? "H" + end.toFixed(1) : "");

const about = (job, run) => [`run ${run.run_id}${run.canary ? ", a canary" : ""}`, `version ${run.version}: ${paramsText(job.versions[run.version - 1]?.params)}`, `${dateTime(run.ended_s)}`,
  `${duration(run.runtime_s)}${run.expected_s === null ? "" : `, expected ${duration(run.expected_s)}`}`, [run.size === null ? null : bytes(run.size), money(run.cost_usd)].filter(Boolean).join(" · "), run.state === "COMPLETE" ? (run.late ? "late" : null) : (run.reason ?? "stopped at its timeout") + (run.detail ? ": " + run.detail : "")].filter(Boolean).join("\n");

const tableOf = (runs) => () => ({
  columns: ["run", "ended", "version", "time", "expected", "input", "cost", "state"],
  rows: runs.map((run) => [run.run_id, dateTime(run.ended_s), String(run.version) + (run.canary ? " (canary)" : ""), duration(run.runtime_s), duration(run.expected_s), run.size === null ? "—" : bytes(run.size), money(run.cost_usd), run.late ? "late" : run.reason ?? run.state.toLowerCase()]),
});

/** What is drawn of `valueOf(run)`; `lines(x, y)` adds lines. */
const drawn = (job, box, { valueOf, label, text, clock = false, more = [], lines = () => [], names = [], title, description }) => {
  const runs = job.runs;
  const range = extent([...runs.map(valueOf), ...more]);
  if (range === null) return { empty: "No run is recorded yet." };
  const x = scale(1, Math.max(runs.length, 2), box.left, box.right, false, 0.03), y = scale(...range, box.bottom, box.top, wide(range));
  const marks = runs.flatMap((run, index) => (valueOf(run) === null ? [] : [{ x: x(index + 1), y: y(valueOf(run)), kind: kindOf(run), index }]));
  return {
    x: { at: x, label: "run", text: (value) => (Number.isInteger(value) && value > 0 ? String(value) : "") }, y: { at: y, label, text, clock }, marks,
    lines: lines(x, y), label: (mark) => about(job, runs[mark.index]), below: legendOf(runs, names), title, description, table: tableOf(runs),
  };
};

const timeContent = (job, box) => {
  const last = job.runs.filter((run) => run.expected_s !== null);
  const deadline = job.deadline_s === null ? [] : [job.deadline_s];
  return drawn(job, box, {
    valueOf: (run) => run.runtime_s, label: "time of a run", text: duration, clock: true, more: deadline,
    names: [...(last.length ? [["line best", "expected of its input"]] : []), ...(deadline.length ? [["line deadline", "deadline " + duration(job.deadline_s)]] : [])],
    lines: (x, y) => [
      { d: path(job.runs.flatMap((run, index) => (run.low_s === null ? [] : [[x(index + 1), y(run.low_s)]]))), className: "line equal" },
      { d: path(job.runs.flatMap((run, index) => (run.high_s === null ? [] : [[x(index + 1), y(run.high_s)]]))), className: "line equal" },
      { d: path(job.runs.flatMap((run, index) => (run.expected_s === null ? [] : [[x(index + 1), y(run.expected_s)]]))), className: "line best" },
      ...deadline.map((value) => ({ d: `M${box.left} ${y(value).toFixed(1)}H${box.right}`, className: "line deadline" })),
    ].filter((one) => one.d),
    title: "Time of runs beside what was expected of their input", description: `${counted(job.totals.runs, "run")}, ${job.totals.late} late, ${job.totals.failed} failed.`,
  });
};

const costContent = (job, box) => drawn(job, box, { valueOf: (run) => run.cost_usd, label: "cost of a run", text: money, title: "Cost of runs", description: `All runs together cost ${money(job.totals.cost_usd)}.` });

const GB = 1e9;

const unitContent = (job, box) => drawn(job, box, {
  valueOf: (run) => (run.usd_per_unit === null ? null : run.usd_per_unit * GB), label: "cost per GB of input", text: money, title: "Cost per unit of input",
  description: "What a gigabyte of input cost, run by run.",
});

const versionContent = (job, box) => {
  const runs = job.runs;
  if (!runs.length) return { empty: "No run is recorded yet." };
  const x = scale(1, Math.max(runs.length, 2), box.left, box.right, false, 0.03), y = scale(0.5, job.versions.length + 0.5, box.bottom, box.top, false, 0);
  const adopted = runs.flatMap((run, index) => (run.canary ? [] : [[x(index + 1), y(run.version)]]));
  const numbers = job.versions.map((one) => one.number);
  return {
    x: { at: x, label: "run", text: (value) => (Number.isInteger(value) && value > 0 ? String(value) : "") }, y: { at: y, label: "version", text: String, ticks: numbers.length > 8 ? undefined : numbers },
    marks: runs.map((run, index) => ({ x: x(index + 1), y: y(run.version), kind: kindOf(run), index, r: 3 })), lines: [{ d: step(adopted, x(runs.length)), className: "line best" }],
    label: (mark) => about(job, runs[mark.index]), below: legendOf(runs, [["line best", "in production"]]), title: "Version of every run", description: `${counted(numbers.length, "version")}; version ${job.version?.number} is in production.`, table: tableOf(runs),
  };
};

/** element by name → a function that draws a job again. */
export const jobCharts = (elements, job) => {
  let now = job;
  const contents = { time: timeContent, cost: costContent, unit: unitContent, version: versionContent };
  const redraws = Object.entries(elements).map(([name, element]) => chart(element, (box) => contents[name](now, box), { height: name === "version" ? 220 : 280 }));
  const all = () => redraws.forEach((redraw) => redraw());
  all();
  return (next) => { now = next; all(); };
};
