// What every page shares: its head with navigation, colours and session, and the line that says whether it is live.

import { session as askSession, path } from "./api.js";
import { el, say, shape, show } from "./dom.js";
import { themeSwitch } from "./theme.js";

const logo = () => shape("svg", { viewBox: "0 0 32 32", width: 24, height: 24, "aria-hidden": "true", class: "logo" }, shape("path", { d: "M3 16C7 9.200 11.500 6.500 16 6.500S25 9.200 29 16C25 22.800 20.500 25.500 16 25.500S7 22.800 3 16Z" }), shape("circle", { cx: 16, cy: 16, r: 4.6 }));

const signOut = async (session) => {
  await fetch(path("session"), { method: "DELETE", headers: { "X-CSRF-Token": session.csrf ?? "" }, credentials: "same-origin" });
  location.reload();
};

const who = (session) => {
  if (session.signed_in) return [el("span", { class: "quiet" }, session.can_write ? "signed in" : "read only"), el("button", { type: "button", class: "small", onclick: () => signOut(session) }, "Sign out")];
  if (!session.writes && !session.needs_token) return [el("span", { class: "quiet" }, "read only")];
  return [el("a", { href: "/login?next=" + encodeURIComponent(location.pathname + location.search) }, "Sign in")];
};

/** Draws the head of a page; gives the session, and `live(up)` to say whether changes arrive. */
export const shell = async (current) => {
  const live = el("span", { class: "live", role: "status", hidden: true });
  const account = el("span", { class: "account" });
  const link = (href, name) => el("a", { href, "aria-current": name === current ? "page" : null }, name);
  show(document.getElementById("top"), el("a", { class: "brand", href: "/" }, logo(), "Lynceus"), el("nav", { "aria-label": "Pages" }, link("/", "Studies"), link("/compare", "Compare")), live, el("label", { class: "theme", for: "theme" }, el("span", { class: "hidden" }, "Colours"), themeSwitch()), account);
  const session = await askSession();
  show(account, who(session));
  return {
    session,
    live: (up, why = "") => {
      live.hidden = false;
      live.classList.toggle("down", !up);
      say(live, up ? "live" : why ? "trouble: " + why : "reconnecting …");
    },
  };
};

/** A sentence in place of a page that could not be shown. */
export const trouble = (main, error) => show(main, el("div", { class: "card trouble" }, el("h1", {}, "This cannot be shown"), el("p", {}, error.message), el("p", {}, el("a", { href: "/" }, "All studies"))));
