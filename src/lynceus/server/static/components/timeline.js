// When each trial ran. Trials that ran at the same time are in rows below each other.

import { chart, legend } from "../lib/chart.js";
import { counted, dateTime, duration, paramsText } from "../lib/format.js";
import { scale } from "../lib/scale.js";
import { STATE_WORDS } from "../lib/trials.js";
import { about, kindOf, trialCell } from "./describe.js";

const ROW = 15, MAX_ROWS = 16, FRAME = 60;

/** Whether a trial ran here: a measurement that was added has no times, or began and ended at the same moment. */
const ran = (store, index) => store.started_s[index] !== null && store.ended_s[index] > store.started_s[index];

/** Trials with a start, in the order of their starts; open ones end now. */
const spans = (data) => {
  const { store } = data, found = [];
  for (let index = 0; index < store.size; index++)
    if (ran(store, index)) found.push({ index, number: store.number[index], from: store.started_s[index], to: store.ended_s[index], kind: kindOf(store, index) });
  for (const run of data.open) found.push({ run, number: run.number, from: run.launched_s ?? run.ordered_s, to: data.clock(), kind: "open" });
  return found.filter((one) => one.from !== null).sort((a, b) => a.from - b.from || a.number - b.number);
};

/** The row of each trial: the first one that is free when it starts. */
const inRows = (found) => {
  const ends = [];
  for (const one of found) {
    const free = ends.findIndex((end) => end <= one.from + 1e-3);
    one.row = free < 0 ? ends.length : free;
    ends[one.row] = one.to;
  }
  return ends.length;
};

const sentence = (found, rows) => {
  const first = found[0].from, last = Math.max(...found.slice(-1000).map((one) => one.to)), busy = found.reduce((sum, one) => sum + one.to - one.from, 0);
  const most = rows > 1 ? `, at most ${rows} at the same time` : "";
  return `${counted(found.length, "trial")} in ${duration(Math.max(last - first, 0))}${most}; ${duration(busy)} of running in all.`;
};

const draw = (data, found, rows, box) => {
  const low = found[0].from, high = Math.max(found.reduce((most, one) => Math.max(most, one.to), low), low + 1e-3);
  const x = scale(0, high - low, box.left, box.right, false, 0.01), shown = Math.min(rows, MAX_ROWS), step = (box.bottom - box.top) / shown;
  const y = (row) => box.top + (Math.min(row, MAX_ROWS - 1) + 0.5) * step;
  const paths = new Map();
  const marks = found.map((one) => {
    const from = x(one.from - low), to = Math.max(x(one.to - low), from + 1);
    paths.set(one.kind, (paths.get(one.kind) ?? "") + `M${from.toFixed(1)} ${y(one.row).toFixed(1)}H${to.toFixed(1)}`);
    return { x: to, from, y: y(one.row), kind: one.kind === "open" ? "feasible" : one.kind, r: 2.6, span: one };
  });
  return {
    x: { at: x, label: "since " + dateTime(low), text: duration, clock: true }, y: { at: y, ticks: [...Array(shown).keys()].filter((row) => shown <= 6 || row % 4 === 0), label: rows > 1 ? "in parallel" : "", text: (row) => String(row + 1) + (rows > MAX_ROWS && row === MAX_ROWS - 1 ? "+" : "") }, marks,
    label: ({ span }) => (span.run ? `Trial ${span.number} · open\n${paramsText(span.run.params)}` : about(data.store, span.index)) + `\nstarted ${dateTime(span.from)}`,
    href: data.link ? ({ span }) => data.link(span.number) : undefined,
    lines: [...paths].map(([kind, d]) => ({ d, className: "line span " + kind })),
    below: legend(["feasible", "infeasible", "stopped", "failed"], data.open.length ? [["line span open", "open"]] : []),
    title: "Timeline of trials", description: sentence(found, rows),
    table: () => ({ columns: ["trial", "state", "started", "ended", "running"], rows: found.map((one) => [trialCell(data, one.number), one.run ? "open" : STATE_WORDS[data.store.state[one.index]], dateTime(one.from), one.run ? "—" : dateTime(one.to), duration(one.to - one.from)]) }),
  };
};

/** Whether there is a trial to show. */
export const hasTimes = (data) => {
  const { store } = data;
  for (let index = store.timed ?? 0; index < store.size; index++) {
    if (ran(store, index)) return true;
    store.timed = index + 1;
  }
  return data.open.length > 0;
};

/** data: {store, open, clock, link} */
export const timeline = (element, data) => {
  let now = data, found = [], rows = 1, computed = null;
  const prepare = () => {
    const key = keyOf();
    if (key === computed) return;
    computed = key;
    found = spans(now);
    rows = inRows(found);
  };
  const keyOf = () => `${now.store.size} ${now.open.map((run) => `${run.number}:${run.launched_s}`).join(" ")}`;
  const redraw = chart(element, (box) => { prepare(); return found.length ? draw(now, found, rows, box) : { empty: "No trial has run here yet." }; }, { height: () => { prepare(); return FRAME + Math.max(2, Math.min(rows, MAX_ROWS)) * ROW; } });
  redraw(keyOf());
  return (next) => { now = next; redraw(keyOf()); };
};
