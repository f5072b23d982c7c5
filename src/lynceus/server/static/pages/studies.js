// All studies, live.

import { follow, get, path } from "../lib/api.js";
import { card, el, setChildren } from "../lib/dom.js";
import { shell, showError } from "../lib/shell.js";
import { budgetsCard } from "../components/budgets.js";
import { studiesList } from "../components/studies.js";

const main = document.getElementById("main");

const start = async () => {
  const read = () => Promise.all([get(path("studies")), get(path("budgets"))]);
  const [page, [first, shared]] = await Promise.all([shell("Studies"), read()]);
  const list = card("studies", "All studies", first.storage, "w12"), budgets = card("budgets", "Budgets of this month", null, "w12");
  setChildren(main, el("div", { class: "title" }, el("h1", {}, "Studies")), el("div", { class: "grid" }, budgets.node, list.node));
  const update = studiesList(list.body, first), updateBudgets = budgetsCard(budgets, shared);
  performance.mark("useful");
  follow(path("events"), async () => { const [studies, spent] = await read(); update(studies); updateBudgets(spent); page.live(true); }, page.live);
};

start().catch((error) => showError(main, error));
