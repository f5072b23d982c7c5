// One study, live: facts are fetched as they change, what models say a little later.

import { follow, get, path, post } from "../lib/api.js";
import { board, dataOf, merge } from "../lib/board.js";
import { el, show } from "../lib/dom.js";
import { shell, trouble } from "../lib/shell.js";

const main = document.getElementById("main");
const name = decodeURIComponent(location.pathname.split("/")[2] ?? "");
const LEAST_MS = 1500;

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
  if (data.head.state === "RUNNING") return [act("Stop the study", "small danger", "Start no more trials? Open ones come to their end.", "stop", { kill: false })];
  return data.head.state === "FINISHED" ? [] : [act("Resume", "small", null, "resume", {})];
};

const start = async () => {
  document.title = name + " · Lynceus";
  const address = path("studies", name, "view");
  const [page, first] = await Promise.all([shell("Study"), get(address)]);
  let ahead = first.now_s - Date.now() / 1000;
  const data = dataOf(first, {
    clock: () => Date.now() / 1000 + ahead,
    link: (number) => `/studies/${encodeURIComponent(name)}/trials/${number}`,
    ask: (deadline) => get(path("studies", name, "what-if", "view"), { deadline }),
    stop: page.session.can_write ? (number) => post(path("studies", name, "trials", String(number), "stop"), page.session) : null,
  });
  const made = board(main, data);
  show(made.actions, actionsOf(page, data));
  performance.mark("useful");

  // Models of large studies take seconds: they are asked at most a fifth of the time, so that facts never wait for them.
  let asked = -1, wait = null, running = false, pause = 0;
  const think = async () => {
    wait = null;
    running = true;
    const began = performance.now();
    try { data.insight = await get(path("studies", name, "insight")); asked = data.insight.settled; made.update(); } catch (error) { page.live(false, error.message); }
    running = false;
    pause = Math.max(LEAST_MS, 4 * (performance.now() - began));
    if (asked !== data.store.size) later();
  };
  const later = () => { if (wait === null && !running) wait = setTimeout(think, document.hidden ? Math.max(10 * LEAST_MS, pause) : pause); };
  later();

  const refresh = async () => {
    const view = await get(address, { since: data.store.size });
    performance.mark("update-start");
    ahead = Math.max(ahead, view.now_s - Date.now() / 1000); // the least delayed answer knows the time best
    const state = data.head.state, open = JSON.stringify(data.open);
    if (!merge(data, view)) { location.reload(); return; }
    made.update();
    if (state !== data.head.state) show(made.actions, actionsOf(page, data));
    requestAnimationFrame(() => setTimeout(() => { performance.mark("update-end"); performance.measure("update", "update-start", "update-end"); }));
    page.live(true);
    if (asked !== data.store.size || open !== JSON.stringify(data.open)) later();
  };
  follow(path("studies", name, "events"), refresh, page.live);
};

start().catch((error) => trouble(main, error));
