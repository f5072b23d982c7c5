// The table of trials: filters by state, parameter values and text; sortable by any column; in pages.

import { el, emptyNote, setText, setChildren } from "../lib/dom.js";
import { count, counted, duration, money, formatNumber, formatValue } from "../lib/format.js";
import { byName, COMPLETE, STATE_NAMES, value } from "../lib/trials.js";
import { onVisibilityChange } from "../lib/visibility.js";
import { badge } from "./badge.js";

const SIZES = [25, 50, 100];

const columnsOf = (store) => [
  { name: "#", get: (index) => store.number[index], text: String, number: true, page: true },
  { name: "state", get: (index) => store.state[index], cell: (index) => badge(STATE_NAMES[store.state[index]], store.reasons.get(index)) },
  { name: "time", get: (index) => store.runtime_s[index], text: duration, number: true },
  { name: "cost of a run", get: (index) => store.cost_usd[index], text: money, number: true },
  { name: "charged", get: (index) => store.charged_usd[index], text: money, number: true },
  { name: "constraints", get: (index) => store.keeps[index], text: (feasible) => (feasible === null ? "" : feasible ? "met" : "violated") },
  ...store.parameters.map((parameter) => ({ name: parameter.name, get: (index) => store.params[parameter.name][index], text: (code) => (code < 0 ? "" : formatValue(parameter.values[code])), number: parameter.values.every((one) => typeof one === "number") })),
  ...Object.keys(store.metrics).map((name) => ({ name, get: (index) => store.metrics[name][index], text: (one) => (one === null ? "" : formatNumber(one)), number: true })),
  { name: "why", get: (index) => store.details.get(index) ?? store.why[index], text: String, wide: true },
];

const compare = (a, b) => (a === b ? 0 : a === null ? 1 : b === null ? -1 : a < b ? -1 : 1);

/** The text of a trial that the text filter searches. */
const textOf = (store, index) => {
  const values = store.parameters.map((parameter) => `${parameter.name}=${formatValue(value(store, index, parameter))}`);
  return ["#" + store.number[index], ...values, STATE_NAMES[store.state[index]], store.reasons.get(index) ?? "", store.details.get(index) ?? "", store.why[index]].join(" ").toLowerCase();
};

const matching = (store, filters) => {
  const found = [], words = filters.text.toLowerCase().split(/\s+/).filter(Boolean), chosen = Object.entries(filters.params);
  for (let index = 0; index < store.size; index++) {
    if (filters.state === "feasible" ? !store.keeps[index] : filters.state !== "" && store.state[index] !== Number(filters.state)) continue;
    if (!chosen.every(([name, code]) => store.params[name][index] === code)) continue;
    if (words.length && !(filters.texts[index] ??= textOf(store, index), words.every((word) => filters.texts[index].includes(word)))) continue;
    found.push(index);
  }
  return found;
};

/** data: {store, link, csv}; `csv` is the address of all trials as a file, null in a report. */
export const trialsTable = (element, data) => {
  let now = data, sorted = 0, ascending = false, page = 0, size = SIZES[0];
  const filters = { text: "", state: "", params: byName(), texts: [] };
  const find = el("input", { type: "search", id: "find", placeholder: "text, name=value, #12" });
  const state = el("select", { id: "state-filter" }, [["", "all"], [COMPLETE, "finished"], ["feasible", "met every constraint"], [1, "stopped early"], [2, "failed"]].map(([key, name]) => el("option", { value: key }, name)));
  const selects = now.store.parameters.map((parameter) => {
    const select = el("select", { "data-parameter": parameter.name }, el("option", { value: "" }, "any"), parameter.values.map((one, code) => el("option", { value: code }, formatValue(one))));
    select.addEventListener("change", () => { if (select.value === "") delete filters.params[parameter.name]; else filters.params[parameter.name] = Number(select.value); page = 0; body(); });
    return el("label", {}, el("span", {}, parameter.name), select);
  });
  const clear = el("button", { type: "button", class: "small" }, "Clear filters");
  const found = el("p", { class: "quiet", id: "found", role: "status" });
  const head = el("thead"), rows = el("tbody"), grid = el("table", { id: "trials" }, el("caption", { class: "hidden" }, "Trials"), head, rows);
  const previous = el("button", { type: "button", class: "small" }, "Previous"), next = el("button", { type: "button", class: "small" }, "Next"), where = el("span", { id: "page" });
  const sizes = el("select", { id: "page-size" }, SIZES.map((one) => el("option", { value: one }, one)));
  setChildren(element,
    el("div", { class: "filters" }, el("label", { for: "find" }, el("span", {}, "find"), find), el("label", { for: "state-filter" }, el("span", {}, "state"), state), clear, now.csv ? el("a", { class: "button small download", href: now.csv, download: true }, "Download CSV") : null),
    el("details", { class: "by-parameter" }, el("summary", {}, "Filter by parameter"), el("div", { class: "filters" }, selects)),
    found, el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of trials" }, grid),
    el("div", { class: "pager" }, previous, where, next, el("label", { for: "page-size" }, el("span", {}, "rows"), sizes)));
  let columns = columnsOf(now.store);
  const heading = () => setChildren(head, el("tr", {}, columns.map((column, index) => {
    const direction = index !== sorted ? "none" : ascending ? "ascending" : "descending";
    const button = el("button", { type: "button", class: "sort", "data-column": column.name }, column.name, el("span", { class: "arrow", "aria-hidden": "true" }, index !== sorted ? "" : ascending ? " ↑" : " ↓"));
    button.addEventListener("click", () => { ascending = sorted === index ? !ascending : true; sorted = index; page = 0; heading(); body(); head.querySelectorAll("button")[index].focus(); });
    return el("th", { scope: "col", "aria-sort": direction, class: column.number ? "number" : null }, button);
  })));
  const cell = (column, index) => {
    if (column.cell) return el("td", {}, column.cell(index));
    const text = column.text(column.get(index));
    if (column.page && now.link) return el("td", { class: "number" }, el("a", { href: now.link(store().number[index]) }, text));
    return el("td", { class: column.number ? "number" : column.wide ? "wide-cell" : null, title: text.length > 40 ? text : null }, text);
  };
  const store = () => now.store;
  const body = () => {
    const indices = matching(store(), filters), get = columns[sorted].get;
    indices.sort((a, b) => { const [left, right] = [get(a), get(b)]; return left === null || right === null ? compare(left, right) : (ascending ? 1 : -1) * compare(left, right); });
    const pages = Math.max(1, Math.ceil(indices.length / size));
    page = Math.min(page, pages - 1);
    setChildren(rows, indices.slice(page * size, (page + 1) * size).map((index) => el("tr", { "data-trial": store().number[index] }, columns.map((column) => cell(column, index)))));
    if (!indices.length) rows.append(el("tr", {}, el("td", { colspan: columns.length }, emptyNote(store().size ? "No trial matches these filters." : "No trial has settled yet."))));
    setText(found, indices.length === store().size ? counted(indices.length, "settled trial") : `${count(indices.length)} of ${counted(store().size, "settled trial")}`);
    setText(where, `page ${page + 1} of ${count(pages)}`);
    previous.disabled = page === 0;
    next.disabled = page >= pages - 1;
  };
  find.addEventListener("input", () => { filters.text = find.value; page = 0; body(); });
  state.addEventListener("change", () => { filters.state = state.value; page = 0; body(); });
  sizes.addEventListener("change", () => { size = Number(sizes.value); page = 0; body(); });
  clear.addEventListener("click", () => { Object.assign(filters, { text: "", state: "", params: byName() }); find.value = ""; for (const select of element.querySelectorAll(".filters select")) select.value = ""; page = 0; body(); });
  previous.addEventListener("click", () => { page--; body(); });
  next.addEventListener("click", () => { page++; body(); });
  // Far below the first screen: filled when it becomes visible, and then with every change.
  let visible = false, drawn = -1;
  const redraw = () => {
    if (!visible || drawn === store().size || rows.contains(document.activeElement)) return;
    drawn = store().size;
    if (columnsOf(now.store).length !== columns.length) { columns = columnsOf(now.store); heading(); }
    body();
  };
  heading();
  setText(found, counted(store().size, "settled trial"));
  onVisibilityChange(element, (seen) => { visible = seen; redraw(); });
  return (newer) => { now = newer; redraw(); };
};
