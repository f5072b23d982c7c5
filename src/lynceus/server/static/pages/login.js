// Sign in: the server turns a token into a session cookie. The page stores nothing.

import { path, sentence } from "../lib/api.js";
import { el, setText, setChildren } from "../lib/dom.js";
import { shell } from "../lib/shell.js";

const main = document.getElementById("main");

/** Where to go next: only a path on this server, since the address may come from a foreign link. */
const target = () => {
  const next = new URLSearchParams(location.search).get("next") ?? "/";
  const url = URL.canParse(next, location.origin) ? new URL(next, location.origin) : null;
  return url?.origin === location.origin && next.startsWith("/") ? url.pathname + url.search : "/";
};

const start = async () => {
  await shell("Sign in");
  const token = el("input", { id: "token", type: "password", autocomplete: "current-password", required: true, spellcheck: "false" });
  const message = el("p", { class: "warn", role: "alert" }), button = el("button", { type: "submit" }, "Sign in");
  const form = el("form", { class: "card login" }, el("h1", {}, "Sign in"), el("p", { class: "quiet" }, "Enter your token, or the read or write token of the server. Its role says what you may do. The person who runs the server can make one with: lynceus token add NAME --role viewer"), el("label", { for: "token" }, el("span", {}, "token"), token), button, message);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    const response = await fetch(path("session"), { method: "POST", headers: { "Content-Type": "application/json", Accept: "application/json" }, body: JSON.stringify({ token: token.value }), credentials: "same-origin" });
    token.value = "";
    button.disabled = false;
    if (response.ok) { location.assign(target()); return; }
    setText(message, await sentence(response));
    token.focus();
  });
  setChildren(main, form);
  performance.mark("useful");
  token.focus();
};

start();
