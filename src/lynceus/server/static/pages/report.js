// A report: the cards of the live page, with the documents embedded in the file.

import { dataOf, studyCards } from "../lib/study_cards.js";
import { el } from "../lib/dom.js";
import { themeSwitch } from "../lib/theme.js";

const documents = JSON.parse(document.getElementById("data").textContent);
const { study, insight } = documents;
document.getElementById("top").append(el("span", { class: "brand" }, "Lynceus"), el("span", { class: "quiet report-note" }, "report"), el("label", { class: "theme", for: "theme" }, el("span", { class: "hidden" }, "Theme"), themeSwitch()));
const data = dataOf(study, { insight, clock: () => study.now_s, link: null, ask: null, stop: null, contour: null, csv: null, frozen: true });
const main = document.getElementById("main");
studyCards(main, data);
main.append(el("p", { class: "quiet foot" }, `Written by Lynceus ${documents.version} on ${documents.written}. Money is in US dollars. 'Cost of a run' is what a production run costs, 'charged' is what the search paid.`));
