// Two studies side by side.

import { follow, get, path } from "../lib/api.js";
import { card, el, nothing, show, table } from "../lib/dom.js";
import { count, duration, goalOf, money, percent, shown } from "../lib/format.js";
import { shell, trouble } from "../lib/shell.js";
import { badge } from "../components/badge.js";
import { curvesChart } from "../components/best.js";

const main = document.getElementById("main");
const query = new URLSearchParams(location.search);

const chooser = (id, label, names, chosen, changed) => {
  const select = el("select", { id }, el("option", { value: "" }, "choose a study"), names.map((name) => el("option", { value: name, selected: name === chosen }, name)));
  select.addEventListener("change", () => changed(select.value));
  return el("label", { for: id }, el("span", {}, label), select);
};

const against = (sides) => {
  const row = (name, text) => [name, ...sides.map(text)];
  const goalText = (side) => (side.head.best === null ? "—" : goalOf(side.head.objective).text(side.head.best));
  return table("How both studies stand", ["", ...sides.map((side) => side.name)], [
    row("state", (side) => badge(side.head.state)), row("goal", (side) => side.head.objective), row("limits", (side) => side.head.limits.join(", ") || "none"),
    row("best", goalText), row("cost of a run", (side) => (side.verdict === null ? "—" : money(side.verdict.cost_usd))), row("time of a run", (side) => (side.verdict === null ? "—" : duration(side.verdict.runtime_s))),
    row("saving", (side) => (side.verdict === null || side.verdict.saving === null ? "—" : percent(side.verdict.saving))),
    row("spent", (side) => money(side.head.spent_usd)), row("budget", (side) => (side.head.budget_usd === null ? "none" : money(side.head.budget_usd))),
    row("trials", (side) => count(side.head.trials) + (side.running ? ` + ${side.running} open` : "")), row("stopped early", (side) => count(side.head.stopped_early)), row("failed", (side) => count(side.head.failed)),
    row("configurations", (side) => count(side.head.configurations)), row("policy", (side) => side.head.policy), row("seed", (side) => String(side.head.seed)),
  ]);
};

const parameters = (view) => {
  const share = (side, name) => side.importance.find((one) => one.parameter === name)?.share ?? null;
  const cell = (one, place) => (one.in[place] ? shown(one.values[place]) : "no such parameter");
  const body = table("What each study recommends", ["parameter", ...view.sides.map((side) => side.name), "same", ...view.sides.map((side) => "weight in " + side.name)],
    view.parameters.map((one) => [one.name, cell(one, 0), cell(one, 1), view.sides.some((side) => side.verdict === null) ? "—" : one.differs ? "differs" : "same", ...view.sides.map((side) => { const found = share(side, one.name); return found === null ? "—" : percent(found); })]), [4, 5]);
  for (const [place, row] of [...body.tBodies[0].rows].entries()) if (view.parameters[place].differs) row.classList.add("differs");
  return body;
};

const scrolled = (name, node) => el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": name }, node);

const start = async () => {
  const [page, listed] = await Promise.all([shell("Compare"), get(path("view", "studies"))]);
  const names = listed.studies.map((one) => one.name);
  const pair = { a: query.get("a") ?? "", b: query.get("b") ?? "" };
  const body = el("div");
  const go = () => location.assign("/compare?" + new URLSearchParams(pair));
  show(main, el("div", { class: "title" }, el("h1", {}, "Compare two studies")),
    el("div", { class: "filters choose" }, chooser("first-study", "first", names, pair.a, (name) => { pair.a = name; if (pair.b) go(); }), chooser("second-study", "second", names, pair.b, (name) => { pair.b = name; if (pair.a) go(); })), body);
  if (!pair.a || !pair.b) {
    show(body, el("div", { class: "card" }, nothing(names.length < 2 ? "This storage holds fewer than two studies." : "Choose two studies to see them side by side.")));
    performance.mark("useful");
    return;
  }
  const ask = () => get(path("compare", "view"), pair);
  const first = await ask();
  const cards = { stand: card("stand", "How they stand", null, "w6"), curve: card("curve", "Best so far against money spent", first.same_goal ? null : "The studies have different goals: their values do not mean the same.", "w6"), params: card("params", "What each recommends", "The weight of a parameter is the share of the believed variation that it explains by itself.", "w12") };
  show(body, el("div", { class: "grid" }, Object.values(cards).map((one) => one.node)));
  const curves = curvesChart(cards.curve.body, first);
  let drawn = "";
  const draw = (view) => {
    const { now_s, ...rest } = view, key = JSON.stringify(rest);
    if (key === drawn) return;
    drawn = key;
    show(cards.stand.body, scrolled("How both studies stand", against(view.sides)));
    show(cards.params.body, scrolled("What each study recommends", parameters(view)));
    curves(view);
  };
  draw(first);
  performance.mark("useful");
  follow(path("events"), async (news) => { if (news === null || Object.values(pair).includes(news.study)) draw(await ask()); page.live(true); }, page.live);
};

start().catch((error) => trouble(main, error));
