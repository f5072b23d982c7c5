// All studies, live.

import { follow, get, path } from "../lib/api.js";
import { card, el, show } from "../lib/dom.js";
import { shell, trouble } from "../lib/shell.js";
import { studiesList } from "../components/studies.js";

const main = document.getElementById("main");

const start = async () => {
  const [page, first] = await Promise.all([shell("Studies"), get(path("view", "studies"))]);
  const made = card("studies", "All studies", first.storage);
  show(main, el("div", { class: "title" }, el("h1", {}, "Studies")), made.node);
  const update = studiesList(made.body, first);
  performance.mark("useful");
  follow(path("events"), async () => { update(await get(path("view", "studies"))); page.live(true); }, page.live);
};

start().catch((error) => trouble(main, error));
