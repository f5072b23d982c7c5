// The budget: money spent, reserved for open trials, and left.

import { el, setText, setChildren } from "../lib/dom.js";
import { count, money, percent } from "../lib/format.js";

/** data: {head, open} */
export const gauge = (element, data) => {
  const spent = el("i", { class: "spent" }), reserved = el("i", { class: "reserved" });
  const bar = el("div", { class: "gauge", role: "img" }, spent, reserved);
  const big = el("strong", { id: "spent" }), of = el("span", { class: "quiet", id: "budget" });
  const parts = el("dl", { class: "tiles" });
  setChildren(element, el("p", { class: "money" }, big, " ", of), bar, parts);
  const tile = (name, value, className = null, id = null) => el("div", {}, el("dt", {}, className && el("i", { class: "swatch " + className }), name), el("dd", { id }, value));
  const update = ({ head, open }) => {
    const budget = head.budget_usd, free = budget === null ? null : Math.max(0, budget - head.spent_usd - (head.reserved_usd ?? 0));
    const share = (usd) => (budget ? Math.min(100, (usd / budget) * 100) : 0);
    const first = share(head.spent_usd), second = Math.min(100 - first, share(head.reserved_usd ?? budget ?? 0));
    spent.style.width = first + "%";
    reserved.style.width = second + "%";
    bar.hidden = budget === null;
    bar.setAttribute("aria-label", budget === null ? "No budget in dollars" : `${percent(head.spent_usd / budget)} of the budget is spent, ${money(head.reserved_usd)} reserved for open trials, ${money(free)} left`);
    setText(big, money(head.spent_usd));
    setText(of, budget === null ? "spent (no budget in dollars)" : `of ${money(budget)} spent`);
    setChildren(parts,
      tile("reserved", head.reserved_usd === null ? "all" : money(head.reserved_usd), "reserved", "reserved"), tile("free", free === null ? "—" : money(free), "free", "free"),
      tile("trials", head.budget_trials ? `${count(head.counted_trials)} of ${count(head.budget_trials)}` : count(head.trials), null, "trials-count"), tile("open", count(open.length), null, "open-count"),
      tile("stopped early", count(head.stopped_early), null, "stopped-count"), tile("failed", count(head.failed), null, "failed-count"));
  };
  update(data);
  return update;
};
