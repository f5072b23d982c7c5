// The progress that a job has reported over time.

import { chart, legend } from "../lib/chart.js";
import { duration, formatNumber } from "../lib/format.js";
import { extent, scale } from "../lib/scale.js";

const draw = ({ trace, timeout_s }, box) => {
  if (!trace.length) return { empty: "The job reported no progress." };
  const x = scale(0, trace[trace.length - 1][0] || 1, box.left, box.right, false, 0.02), range = extent(trace.map((one) => one[1]));
  const showsTimeout = timeout_s !== null && timeout_s <= x.high;
  const y = scale(Math.min(0, range[0]), range[1], box.bottom, box.top, false, 0.04), last = trace[trace.length - 1];
  return {
    x: { at: x, label: "running time", text: duration, clock: true }, y: { at: y, label: "progress", text: formatNumber }, marks: [],
    lines: [{ d: trace.map(([seconds, value], rank) => `${rank ? "L" : "M"}${x(seconds).toFixed(1)} ${y(value).toFixed(1)}`).join(""), className: "line best" }, ...(showsTimeout ? [{ d: `M${x(timeout_s)} ${box.top}V${box.bottom}`, className: "line deadline" }] : [])],
    below: showsTimeout ? legend([], [["line deadline", "timeout"]]) : [],
    title: "Progress over time", description: `${trace.length} reports; the last one ${formatNumber(last[1])} after ${duration(last[0])}.`,
    table: () => ({ columns: ["time", "progress"], rows: trace.map(([seconds, value]) => [duration(seconds), formatNumber(value)]) }),
  };
};

/** data: {trace, timeout_s} */
export const progress = (element, data) => {
  let now = data;
  const redraw = chart(element, (box) => draw(now, box), { height: 220 });
  redraw();
  return (next) => { now = next; redraw(); };
};
