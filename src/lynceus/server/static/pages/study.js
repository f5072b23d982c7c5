// One study, live: the facts are fetched with every change, the predictions of models a little later.

import { follow, get, path, post, segment } from "../lib/api.js";
import { noteOf } from "../components/note.js";
import { leaving, studyActions } from "../components/study_actions.js";
import { dataOf, merge, studyCards } from "../lib/study_cards.js";
import { setChildren } from "../lib/dom.js";
import { shell, showError } from "../lib/shell.js";

const main = document.getElementById("main");
const name = segment(2);
const MIN_PAUSE_MS = 1500;

const start = async () => {
  document.title = name + " · Lynceus";
  const address = path("studies", name, "view");
  const [page, first] = await Promise.all([shell("Study"), get(address)]);
  let offset = first.now_s - Date.now() / 1000;
  const data = dataOf(first, {
    clock: () => Date.now() / 1000 + offset,
    link: (number) => `/studies/${encodeURIComponent(name)}/trials/${number}`,
    ask: async (deadline) => (await get(path("studies", name, "what-if"), { deadline })).answers[1],
    contour: (x, y) => get(path("studies", name, "contour"), { x, y }),
    csv: path("studies", name, "export") + "?format=csv",
    stop: page.session.can_write ? (number) => post(path("studies", name, "trials", String(number), "stop"), page.session) : null,
  });
  const cards = studyCards(main, data);
  const drawActions = () => setChildren(cards.actions, studyActions(page.session, data));
  drawActions();
  const updateNote = noteOf(cards.note, {
    read: () => get(path("studies", name, "note")),
    write: page.session.can_write ? (text, version) => post(path("studies", name, "note"), page.session, { text, replaces: version }) : null,
  });
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
    if (state !== data.head.state) drawActions();
    requestAnimationFrame(() => setTimeout(() => { performance.mark("update-end"); performance.measure("update", "update-start", "update-end"); }));
    page.live(true);
    if (settled !== data.store.size || open !== JSON.stringify(data.open)) schedule();
  };
  // An event without another trial may be a new note.
  let known = null;
  const changed = async (event) => {
    const trials = data.store.size + data.open.length;
    await refresh();
    if (known === null || trials === data.store.size + data.open.length) await updateNote();
    known = event;
  };
  follow(path("studies", name, "events"), changed, page.live, () => { if (!leaving(name)) showError(main, new Error(`Study ${name} was deleted or renamed.`)); });
};

start().catch((error) => showError(main, error));
