// The table of trials: filters by state, by value of each parameter and by text; sorted by any column; in pages.

import { el, nothing, say, show } from "../lib/dom.js";
import { count, duration, money, plain, shown } from "../lib/format.js";
import { COMPLETE, STATE_NAMES, value } from "../lib/trials.js";
import { badge } from "./badge.js";

const SIZES = [25, 50, 100];

const columnsOf = (store) => [
  { name: "#", get: (place) => store.number[place], text: String, number: true },
  ...store.parameters.map((parameter) => ({ name: parameter.name, get: (place) => store.params[parameter.name][place], text: (code) => (code < 0 ? "" : shown(parameter.values[code])), number: parameter.values.every((one) => typeof one === "number") })),
  { name: "state", get: (place) => store.state[place], cell: (place) => badge(STATE_NAMES[store.state[place]], store.reasons.get(place)) },
  { name: "time", get: (place) => store.runtime_s[place], text: duration, number: true },
  { name: "charged", get: (place) => store.charged_usd[place], text: money, number: true },
  { name: "cost of a run", get: (place) => store.cost_usd[place], text: money, number: true },
  { name: "limits", get: (place) => store.keeps[place], text: (kept) => (kept === null ? "" : kept ? "kept" : "broken") },
  ...Object.keys(store.metrics).map((name) => ({ name, get: (place) => store.metrics[name][place], text: (one) => (one === null ? "" : plain(one)), number: true })),
  { name: "why", get: (place) => store.details.get(place) ?? store.why[place], text: String, wide: true },
];

const compare = (a, b) => (a === b ? 0 : a === null ? 1 : b === null ? -1 : a < b ? -1 : 1);

/** Everything that a text filter reads of a trial. */
const textOf = (store, place) => {
  const values = store.parameters.map((parameter) => `${parameter.name}=${shown(value(store, place, parameter))}`);
  return ["#" + store.number[place], ...values, STATE_NAMES[store.state[place]], store.reasons.get(place) ?? "", store.details.get(place) ?? "", store.why[place]].join(" ").toLowerCase();
};

const wanted = (store, filters) => {
  const found = [], words = filters.text.toLowerCase().split(/\s+/).filter(Boolean), chosen = Object.entries(filters.params);
  for (let place = 0; place < store.size; place++) {
    if (filters.state === "feasible" ? !store.keeps[place] : filters.state !== "" && store.state[place] !== Number(filters.state)) continue;
    if (!chosen.every(([name, code]) => store.params[name][place] === code)) continue;
    if (words.length && !(filters.texts[place] ??= textOf(store, place), words.every((word) => filters.texts[place].includes(word)))) continue;
    found.push(place);
  }
  return found;
};

/** data: {store, link} */
export const trialsTable = (element, data) => {
  let now = data, sorted = 0, upwards = false, page = 0, size = SIZES[0];
  const filters = { text: "", state: "", params: {}, texts: [] };
  const find = el("input", { type: "search", id: "find", placeholder: "text, name=value, #12" });
  const state = el("select", { id: "state-filter" }, [["", "all"], [COMPLETE, "finished"], ["feasible", "kept every limit"], [1, "stopped early"], [2, "failed"]].map(([key, name]) => el("option", { value: key }, name)));
  const selects = now.store.parameters.map((parameter) => {
    const select = el("select", { "data-parameter": parameter.name }, el("option", { value: "" }, "any"), parameter.values.map((one, code) => el("option", { value: code }, shown(one))));
    select.addEventListener("change", () => { if (select.value === "") delete filters.params[parameter.name]; else filters.params[parameter.name] = Number(select.value); page = 0; body(); });
    return el("label", {}, el("span", {}, parameter.name), select);
  });
  const clear = el("button", { type: "button", class: "small" }, "Clear filters");
  const found = el("p", { class: "quiet", id: "found", role: "status" });
  const head = el("thead"), rows = el("tbody"), grid = el("table", { id: "trials" }, el("caption", { class: "hidden" }, "Trials"), head, rows);
  const previous = el("button", { type: "button", class: "small" }, "Previous"), next = el("button", { type: "button", class: "small" }, "Next"), where = el("span", { id: "page" });
  const sizes = el("select", { id: "page-size" }, SIZES.map((one) => el("option", { value: one }, one)));
  show(element,
    el("div", { class: "filters" }, el("label", { for: "find" }, el("span", {}, "find"), find), el("label", { for: "state-filter" }, el("span", {}, "state"), state), clear),
    el("details", { class: "by-parameter" }, el("summary", {}, "Filter by parameter"), el("div", { class: "filters" }, selects)),
    found, el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of trials" }, grid),
    el("div", { class: "pager" }, previous, where, next, el("label", { for: "page-size" }, el("span", {}, "rows"), sizes)));
  let columns = columnsOf(now.store);
  const heading = () => show(head, el("tr", {}, columns.map((column, place) => {
    const direction = place !== sorted ? "none" : upwards ? "ascending" : "descending";
    const button = el("button", { type: "button", class: "sort", "data-column": column.name }, column.name, el("span", { class: "arrow", "aria-hidden": "true" }, place !== sorted ? "" : upwards ? " ↑" : " ↓"));
    button.addEventListener("click", () => { upwards = sorted === place ? !upwards : true; sorted = place; page = 0; heading(); body(); head.querySelectorAll("button")[place].focus(); });
    return el("th", { scope: "col", "aria-sort": direction, class: column.number ? "number" : null }, button);
  })));
  const cell = (column, place) => {
    if (column.cell) return el("td", {}, column.cell(place));
    const text = column.text(column.get(place));
    if (column.name === "#" && now.link) return el("td", { class: "number" }, el("a", { href: now.link(store().number[place]) }, text));
    return el("td", { class: column.number ? "number" : column.wide ? "wide-cell" : null, title: text.length > 40 ? text : null }, text);
  };
  const store = () => now.store;
  const body = () => {
    const places = wanted(store(), filters), get = columns[sorted].get;
    places.sort((a, b) => { const [left, right] = [get(a), get(b)]; return left === null || right === null ? compare(left, right) : (upwards ? 1 : -1) * compare(left, right); });
    const pages = Math.max(1, Math.ceil(places.length / size));
    page = Math.min(page, pages - 1);
    show(rows, places.slice(page * size, (page + 1) * size).map((place) => el("tr", { "data-trial": store().number[place] }, columns.map((column) => cell(column, place)))));
    if (!places.length) rows.append(el("tr", {}, el("td", { colspan: columns.length }, nothing(store().size ? "No trial fits these filters." : "No trial has settled yet."))));
    say(found, places.length === store().size ? `${count(places.length)} settled trials` : `${count(places.length)} of ${count(store().size)} settled trials`);
    say(where, `page ${page + 1} of ${count(pages)}`);
    previous.disabled = page === 0;
    next.disabled = page >= pages - 1;
  };
  find.addEventListener("input", () => { filters.text = find.value; page = 0; body(); });
  state.addEventListener("change", () => { filters.state = state.value; page = 0; body(); });
  sizes.addEventListener("change", () => { size = Number(sizes.value); page = 0; body(); });
  clear.addEventListener("click", () => { Object.assign(filters, { text: "", state: "", params: {} }); find.value = ""; for (const select of element.querySelectorAll(".filters select")) select.value = ""; page = 0; body(); });
  previous.addEventListener("click", () => { page--; body(); });
  next.addEventListener("click", () => { page++; body(); });
  // Far below the first screen: filled when somebody scrolls there, and then with every change.
  let visible = false, drawn = -1;
  const renew = () => {
    if (!visible || drawn === store().size || rows.contains(document.activeElement)) return;
    drawn = store().size;
    if (columnsOf(now.store).length !== columns.length) { columns = columnsOf(now.store); heading(); }
    body();
  };
  heading();
  say(found, `${count(store().size)} settled trials`);
  new IntersectionObserver(([entry]) => { visible = entry.isIntersecting; renew(); }, { rootMargin: "400px" }).observe(element);
  return (newer) => { now = newer; renew(); };
};
