// How far a run came over time.

import { chart } from "../lib/chart.js";
import { duration, plain } from "../lib/format.js";
import { extent, scale } from "../lib/scale.js";

const draw = ({ trace, cap_s }, box) => {
  if (!trace.length) return { nothing: "The job reported no progress." };
  const x = scale(0, trace[trace.length - 1][0] || 1, box.left, box.right, false, 0.02), range = extent(trace.map((one) => one[1]));
  const y = scale(Math.min(0, range[0]), range[1], box.bottom, box.top, false, 0.04), last = trace[trace.length - 1];
  return {
    x: { at: x, label: "running time", text: duration, clock: true }, y: { at: y, label: "progress", text: plain }, marks: [],
    lines: [{ d: trace.map(([seconds, value], rank) => `${rank ? "L" : "M"}${x(seconds).toFixed(1)} ${y(value).toFixed(1)}`).join(""), className: "line best" }, ...(cap_s !== null && cap_s <= x.high ? [{ d: `M${x(cap_s)} ${box.top}V${box.bottom}`, className: "line deadline" }] : [])],
    title: "Progress over time", description: `${trace.length} reports; the last one ${plain(last[1])} after ${duration(last[0])}.`,
    table: () => ({ columns: ["time", "progress"], rows: trace.map(([seconds, value]) => [duration(seconds), plain(value)]) }),
  };
};

/** data: {trace, cap_s} */
export const progress = (element, data) => {
  let now = data;
  const again = chart(element, (box) => draw(now, box), { height: 220 });
  again();
  return (next) => { now = next; again(); };
};
