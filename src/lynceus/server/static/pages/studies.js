// All studies, live.

import { follow, get, path } from "../lib/api.js";
import { card, el, setChildren } from "../lib/dom.js";
import { shell, showError } from "../lib/shell.js";
import { studiesList } from "../components/studies.js";

const main = document.getElementById("main");

const start = async () => {
  const [page, first] = await Promise.all([shell("Studies"), get(path("studies"))]);
  const list = card("studies", "All studies", first.storage);
  setChildren(main, el("div", { class: "title" }, el("h1", {}, "Studies")), list.node);
  const update = studiesList(list.body, first);
  performance.mark("useful");
  follow(path("events"), async () => { update(await get(path("studies"))); page.live(true); }, page.live);
};

start().catch((error) => showError(main, error));
