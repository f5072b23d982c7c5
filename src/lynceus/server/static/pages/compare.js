// Two studies side by side.

import { follow, get, path } from "../lib/api.js";
import { card, el, emptyNote, setChildren, table } from "../lib/dom.js";
import { count, duration, parseObjective, money, percent, formatValue } from "../lib/format.js";
import { shell, showError } from "../lib/shell.js";
import { badge } from "../components/badge.js";
import { curvesChart } from "../components/best_so_far.js";

const main = document.getElementById("main");
const query = new URLSearchParams(location.search);

const chooser = (id, label, names, chosen, changed) => {
  const select = el("select", { id }, el("option", { value: "" }, "choose a study"), names.map((name) => el("option", { value: name, selected: name === chosen }, name)));
  select.addEventListener("change", () => changed(select.value));
  return el("label", { for: id }, el("span", {}, label), select);
};

const interval = (range, text) => (range ? ` (80 %: ${text(range[0])} to ${text(range[1])})` : "");

const overview = (sides) => {
  const row = (name, text) => [name, ...sides.map(text)];
  const objectiveText = (side) => (side.head.best_value === null ? "—" : parseObjective(side.head.objective).text(side.head.best_value));
  return table("Both studies", ["", ...sides.map((side) => side.name)], [
    row("state", (side) => badge(side.head.state)), row("objective", (side) => side.head.objective), row("constraints", (side) => side.head.constraints.join(", ") || "none"),
    row("best", objectiveText), row("cost of a run", (side) => (side.answer === null ? "—" : money(side.answer.cost_usd) + interval(side.answer.cost_interval_usd, money))), row("time of a run", (side) => (side.answer === null ? "—" : duration(side.answer.runtime_s))),
    row("saving", (side) => (side.answer === null || side.answer.saving === null ? "—" : percent(side.answer.saving) + interval(side.answer.saving_interval, percent))),
    row("spent", (side) => money(side.head.spent_usd)), row("budget", (side) => (side.head.budget_usd === null ? "none" : money(side.head.budget_usd))),
    row("trials", (side) => count(side.head.trials) + (side.head.running ? ` + ${side.head.running} open` : "")), row("stopped early", (side) => count(side.head.stopped_early)), row("failed", (side) => count(side.head.failed)),
    row("configurations", (side) => count(side.head.configurations)), row("policy", (side) => side.head.policy), row("seed", (side) => String(side.head.seed)),
  ]);
};

const parameters = (view) => {
  const share = (side, name) => side.importance.find((one) => one.parameter === name)?.share ?? null;
  const cell = (one, index) => {
    const weight = share(view.sides[index], one.name);
    return el("span", {}, one.present[index] ? formatValue(one.values[index]) : "no such parameter", weight === null ? null : el("span", { class: "quiet weight" }, "importance " + percent(weight)));
  };
  const body = table("Recommendations of both studies", ["parameter", ...view.sides.map((side) => side.name), "same"],
    view.parameters.map((one) => [one.name, cell(one, 0), cell(one, 1), view.sides.some((side) => side.answer === null) ? "—" : one.differs ? "differs" : "same"]));
  for (const [index, row] of [...body.tBodies[0].rows].entries()) if (view.parameters[index].differs) row.classList.add("differs");
  return body;
};

const sideBySide = (node) => { node.classList.add("side-by-side"); return node; };

const start = async () => {
  const [page, listed] = await Promise.all([shell("Compare"), get(path("studies"))]);
  const names = listed.studies.map((one) => one.name);
  const pair = { a: query.get("a") ?? "", b: query.get("b") ?? "" };
  const body = el("div");
  const go = () => location.assign("/compare?" + new URLSearchParams(pair));
  setChildren(main, el("div", { class: "title" }, el("h1", {}, "Compare two studies")),
    el("div", { class: "filters choose" }, chooser("first-study", "first", names, pair.a, (name) => { pair.a = name; if (pair.b) go(); }), chooser("second-study", "second", names, pair.b, (name) => { pair.b = name; if (pair.a) go(); })), body);
  if (!pair.a || !pair.b) {
    setChildren(body, el("div", { class: "card" }, emptyNote(names.length < 2 ? "There are fewer than two studies in this storage." : "Choose two studies to compare them.")));
    performance.mark("useful");
    return;
  }
  const fetchView = () => get(path("compare"), pair);
  const first = await fetchView();
  const cards = { overview: card("overview", "Overview", null, "w6"), curve: card("curve", "Best so far against money spent", first.same_objective ? null : "The studies have different objectives, so their values cannot be compared.", "w6"), params: card("params", "Recommendations", "The importance of a parameter is the share of the predicted variation that it explains by itself.", "w12") };
  setChildren(body, el("div", { class: "grid" }, Object.values(cards).map((one) => one.node)));
  const curves = curvesChart(cards.curve.body, first);
  let drawn = "";
  const draw = (view) => {
    const { now_s, ...rest } = view, key = JSON.stringify(rest);
    if (key === drawn) return;
    drawn = key;
    setChildren(cards.overview.body, sideBySide(overview(view.sides)));
    setChildren(cards.params.body, sideBySide(parameters(view)));
    curves(view);
  };
  draw(first);
  performance.mark("useful");
  follow(path("events"), async (event) => { if (event === null || Object.values(pair).includes(event.study)) draw(await fetchView()); page.live(true); }, page.live);
};

start().catch((error) => showError(main, error));
