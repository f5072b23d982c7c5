// A study as one file: the same cards as on its live page, with the documents that were embedded when it was written.

import { board, dataOf } from "../lib/board.js";
import { el } from "../lib/dom.js";
import { themeSwitch } from "../lib/theme.js";

const documents = JSON.parse(document.getElementById("data").textContent);
const { study, insight } = documents;
document.getElementById("top").append(el("span", { class: "brand" }, "Lynceus"), el("span", { class: "quiet report-note" }, "report"), el("label", { class: "theme", for: "theme" }, el("span", { class: "hidden" }, "Colours"), themeSwitch()));
const data = dataOf(study, { insight, clock: () => study.now_s, link: null, ask: null, stop: null, frozen: true });
const main = document.getElementById("main");
board(main, data);
main.append(el("p", { class: "quiet foot" }, `Written by Lynceus ${documents.version} on ${documents.written}. Money is US dollars; 'cost of a run' is what a production run costs, 'charged' what the search paid.`));
