// A token becomes a session: the server keeps the session, this page keeps nothing.

import { path } from "../lib/api.js";
import { el, say, show } from "../lib/dom.js";
import { shell } from "../lib/shell.js";

const main = document.getElementById("main");

/** Only a place on this server: an address given from outside must not lead elsewhere. */
const target = () => {
  const wanted = new URLSearchParams(location.search).get("next") ?? "/";
  const there = new URL(wanted, location.origin);
  return there.origin === location.origin && wanted.startsWith("/") ? there.pathname + there.search : "/";
};

const start = async () => {
  await shell("Sign in");
  const token = el("input", { id: "token", type: "password", autocomplete: "current-password", required: true, spellcheck: "false" });
  const told = el("p", { class: "warn", role: "alert" }), button = el("button", { type: "submit" }, "Sign in");
  const form = el("form", { class: "card login" }, el("h1", {}, "Sign in"), el("p", { class: "quiet" }, "Give the read token to look, or the write token to stop and resume, too. Whoever started the server has them."), el("label", { for: "token" }, el("span", {}, "token"), token), button, told);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    const answer = await fetch(path("session"), { method: "POST", headers: { "Content-Type": "application/json", Accept: "application/json" }, body: JSON.stringify({ token: token.value }), credentials: "same-origin" });
    token.value = "";
    button.disabled = false;
    if (answer.ok) { location.assign(target()); return; }
    const wait = answer.headers.get("Retry-After");
    say(told, answer.status === 429 ? `Too many failed attempts; try again in ${wait ?? "some"} seconds.` : answer.status === 401 ? "This token is not known here." : `The server answered ${answer.status}.`);
    token.focus();
  });
  show(main, form);
  performance.mark("useful");
  token.focus();
};

start();
