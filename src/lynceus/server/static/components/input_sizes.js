// The predicted answer over the size of the input, as a curve with its 80 % interval.

import { chart, legend } from "../lib/chart.js";
import { bytes, duration, money, paramsText, percent } from "../lib/format.js";
import { extent, scale, wide } from "../lib/scale.js";

const path = (points) => points.map(([x, y], index) => (index ? "L" : "M") + x.toFixed(1) + " " + y.toFixed(1)).join("");

const interval = (one) => one.runtime_interval_s.map(duration).join(" to ");

/** The configuration, or the likeliest one where none is likely enough to meet every constraint. */
const choice = (one) => (one.likely ? "" : "none yet; likeliest: ") + paramsText(one.params);

const describe = (one) => `${one.input_text}: ${choice(one)}\n${duration(one.runtime_s)} (80 %: ${interval(one)}), ${money(one.cost_usd)}\n${percent(one.probability)} chance to meet every constraint`;

const draw = ({ insight }, box) => {
  const found = insight?.over_input_size ?? [];
  if (!found.length) return { empty: "No run says how much it read." };
  const sizes = extent(found.map((one) => one.input.size)), times = extent(found.flatMap((one) => [one.runtime_s, ...one.runtime_interval_s]));
  const x = scale(...sizes, box.left, box.right, true, 0.03), y = scale(...times, box.bottom, box.top, wide(times));
  const curve = (valueOf) => path(found.map((one) => [x(one.input.size), y(valueOf(one))]));
  const kinds = found.map((one) => (one.likely ? "feasible" : "infeasible"));
  const names = [["feasible", "likely to meet every constraint"], ["infeasible", "not likely to"]].filter(([kind]) => kinds.includes(kind));
  const [first, last] = [found[0], found.at(-1)];
  return {
    x: { at: x, label: "size of the input", text: bytes }, y: { at: y, label: "time of a run", text: duration, clock: true },
    marks: found.map((one, index) => ({ x: x(one.input.size), y: y(one.runtime_s), kind: kinds[index], index })), label: (mark) => describe(found[mark.index]),
    lines: [{ d: curve((one) => one.runtime_interval_s[0]), className: "line equal" }, { d: curve((one) => one.runtime_interval_s[1]), className: "line equal" }, { d: curve((one) => one.runtime_s), className: "line best" }],
    below: legend(names, [["line best", "predicted time of the best configuration"], ["line equal", "its 80 % interval"]]),
    title: "Over the size of the input", description: `From ${duration(first.runtime_s)} on ${first.input_text} to ${duration(last.runtime_s)} on ${last.input_text}.`,
    table: () => ({
      columns: ["input", "best predicted", "time of a run", "80 % interval", "cost of a run", "feasible", "runs of it there"],
      rows: found.map((one) => [one.input_text, choice(one), duration(one.runtime_s), interval(one), money(one.cost_usd), percent(one.probability), String(one.runs)]),
    }),
  };
};

export const hasInputSizes = ({ insight }) => Boolean(insight?.over_input_size?.length);

/** Draws the field `over_input_size` of the insight document. */
export const inputSizes = (element, data) => {
  let now = data;
  const redraw = chart(element, (box) => draw(now, box), { height: 300 });
  const update = (next) => { now = next; redraw(JSON.stringify(next.insight?.over_input_size ?? null)); };
  update(data);
  return update;
};
