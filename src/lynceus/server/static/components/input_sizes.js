// The predicted answer over the size of the input.

import { setChildren, table } from "../lib/dom.js";
import { duration, money, paramsText, percent } from "../lib/format.js";

const HEADINGS = ["input", "best predicted", "time of a run", "80 % interval", "cost of a run", "feasible", "runs of it there"];

export const hasInputSizes = ({ insight }) => Boolean(insight?.over_input_size?.length);

/** Draws the field `over_input_size` of the insight document. */
export const inputSizes = (element, data) => {
  const update = ({ insight }) => {
    const rows = (insight?.over_input_size ?? []).map((one) => [one.input_text, paramsText(one.params), duration(one.runtime_s), one.runtime_interval_s.map(duration).join(" to "), money(one.cost_usd), percent(one.probability), String(one.runs)]);
    setChildren(element, ...(rows.length ? [table("Over the size of the input", HEADINGS, rows, [2, 3, 4, 5, 6])] : []));
  };
  update(data);
  return update;
};
