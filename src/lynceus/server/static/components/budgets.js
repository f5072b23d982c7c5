// What projects and people may spend in this month over all studies, and have spent.

import { el, setChildren, setText } from "../lib/dom.js";
import { money } from "../lib/format.js";
import { moneyBar } from "./money_bar.js";

const COLUMNS = ["project or person", "limit", "spent", "reserved", "left"];

const day = (seconds) => new Date(seconds * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "long", timeZone: "UTC" });

const line = (one) => el("tr", { "data-account": one.account },
  el("th", { scope: "row" }, one.account),
  el("td", { "data-label": "limit", class: "number" }, money(one.usd)),
  el("td", { "data-label": "spent" }, moneyBar(money(one.charged_usd), one.charged_usd, one.reserved_usd, one.usd)),
  el("td", { "data-label": "reserved", class: "number" }, money(one.reserved_usd)),
  el("td", { "data-label": "left", class: "number" }, el("span", { class: one.left_usd > 0 ? null : "warn" }, money(Math.max(0, one.left_usd)))));

/** Fill a card with {budgets}; it is hidden while there are none. */
export const budgetsCard = ({ node, body, head }, data) => {
  const rows = el("tbody"), note = el("p", { class: "quiet" });
  head.append(note);
  setChildren(body, el("table", { class: "studies budgets" }, el("caption", { class: "hidden" }, "Budgets of this month"),
    el("thead", {}, el("tr", {}, COLUMNS.map((name) => el("th", { scope: "col", class: ["limit", "reserved", "left"].includes(name) ? "number" : null }, name)))), rows));
  const update = ({ budgets }) => {
    node.hidden = !budgets.length;
    if (budgets.length) setText(note, `All studies and jobs of a project or a person share it in ${budgets[0].month}; the next month begins on ${day(budgets[0].ends_s)} (UTC).`);
    setChildren(rows, budgets.map(line));
  };
  update(data);
  return update;
};
