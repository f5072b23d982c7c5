// One study, live: the facts are fetched with every change, the predictions of models a little later.

import { follow, get, path, post, segment } from "../lib/api.js";
import { dataOf, merge, studyCards } from "../lib/study_cards.js";
import { el, setChildren } from "../lib/dom.js";
import { shell, showError } from "../lib/shell.js";

const main = document.getElementById("main");
const name = segment(2);
const MIN_PAUSE_MS = 1500;

const actionsOf = (page, data) => {
  const act = (text, className, question, address, body) => {
    const button = el("button", { type: "button", class: className }, text);
    button.addEventListener("click", async () => {
      if (question && !confirm(question)) return;
      button.disabled = true;
      try { await post(path("studies", name, address), page.session, body); } catch (error) { alert(error.message); }
      button.disabled = false;
    });
    return button;
  };
  if (!page.session.can_write) return [];
  if (data.head.state === "RUNNING") return [act("Stop the study", "small danger", "Start no more trials? Open trials will finish.", "stop", { kill: false })];
  return data.head.state === "FINISHED" ? [] : [act("Resume", "small", null, "resume", {})];
};

const start = async () => {
  document.title = name + " · Lynceus";
  const address = path("studies", name, "view");
  const [page, first] = await Promise.all([shell("Study"), get(address)]);
  let offset = first.now_s - Date.now() / 1000;
  const data = dataOf(first, {
    clock: () => Date.now() / 1000 + offset,
    link: (number) => `/studies/${encodeURIComponent(name)}/trials/${number}`,
    ask: async (deadline) => (await get(path("studies", name, "what-if"), { deadline })).answers[1],
    stop: page.session.can_write ? (number) => post(path("studies", name, "trials", String(number), "stop"), page.session) : null,
  });
  const cards = studyCards(main, data);
  setChildren(cards.actions, actionsOf(page, data));
  performance.mark("useful");

  // Models of large studies take seconds: they run at most a fifth of the time, so that the facts never wait for them.
  let settled = -1, timer = null, running = false, pause = 0;
  const fetchInsight = async () => {
    timer = null;
    running = true;
    const began = performance.now();
    try { data.insight = await get(path("studies", name, "insight")); settled = data.insight.settled; cards.update(); } catch (error) { page.live(false, error.message); }
    running = false;
    pause = Math.max(MIN_PAUSE_MS, 4 * (performance.now() - began));
    if (settled !== data.store.size) schedule();
  };
  const schedule = () => { if (timer === null && !running) timer = setTimeout(fetchInsight, document.hidden ? Math.max(10 * MIN_PAUSE_MS, pause) : pause); };
  schedule();

  const refresh = async () => {
    const view = await get(address, { since: data.store.size });
    performance.mark("update-start");
    offset = Math.max(offset, view.now_s - Date.now() / 1000); // the response with the least delay is the most accurate
    const state = data.head.state, open = JSON.stringify(data.open);
    if (!merge(data, view)) { location.reload(); return; }
    cards.update();
    if (state !== data.head.state) setChildren(cards.actions, actionsOf(page, data));
    requestAnimationFrame(() => setTimeout(() => { performance.mark("update-end"); performance.measure("update", "update-start", "update-end"); }));
    page.live(true);
    if (settled !== data.store.size || open !== JSON.stringify(data.open)) schedule();
  };
  follow(path("studies", name, "events"), refresh, page.live);
};

start().catch((error) => showError(main, error));
