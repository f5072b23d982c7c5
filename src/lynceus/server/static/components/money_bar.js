// How much of a budget is spent and reserved, as a thin bar below its text.

import { el } from "../lib/dom.js";

/** `budget` may be null: then there is a text and no bar. */
export const moneyBar = (text, spent, reserved, budget) => {
  const share = (usd) => (budget ? Math.min(100, (usd / budget) * 100) : usd > 0 ? 100 : 0) + "%";
  const bar = el("i", { class: "spent" }), more = el("i", { class: "reserved" });
  bar.style.width = share(spent);
  more.style.width = share(reserved);
  return el("div", { class: "spend" }, el("span", {}, text), budget === null ? null : el("div", { class: "gauge thin", "aria-hidden": "true" }, bar, more));
};
