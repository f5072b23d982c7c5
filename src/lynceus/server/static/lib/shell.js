// What all pages share: the header with navigation, theme, session and connection status.

import { session as askSession, path } from "./api.js";
import { el, setText, svgEl, setChildren } from "./dom.js";
import { themeSwitch } from "./theme.js";

const logo = () => svgEl("svg", { viewBox: "0 0 32 32", width: 24, height: 24, "aria-hidden": "true", class: "logo" }, svgEl("path", { d: "M3 16C7 9.200 11.500 6.500 16 6.500S25 9.200 29 16C25 22.800 20.500 25.500 16 25.500S7 22.800 3 16Z" }), svgEl("circle", { cx: 16, cy: 16, r: 4.6 }));

const signOut = async (session) => {
  await fetch(path("session"), { method: "DELETE", headers: { "X-CSRF-Token": session.csrf ?? "" }, credentials: "same-origin" });
  location.reload();
};

const accountOf = (session) => {
  if (session.signed_in) return [el("span", { class: "quiet" }, session.token ? `${session.token} · ${session.role}` : session.can_write ? "signed in" : "read only"), el("button", { type: "button", class: "small", onclick: () => signOut(session) }, "Sign out")];
  if (!session.writes && !session.needs_token) return [el("span", { class: "quiet" }, "read only")];
  return [el("a", { href: "/login?next=" + encodeURIComponent(location.pathname + location.search) }, "Sign in")];
};

/** Draw the header of a page; returns the session, and `live(up)` to show whether events arrive. */
export const shell = async (current) => {
  const live = el("span", { class: "live", role: "status", hidden: true });
  const account = el("span", { class: "account" });
  const link = (href, name) => el("a", { href, "aria-current": name === current ? "page" : null }, name);
  setChildren(document.getElementById("top"), el("a", { class: "brand", href: "/" }, logo(), "Lynceus"), el("nav", { "aria-label": "Pages" }, link("/", "Studies"), link("/jobs", "Jobs"), link("/compare", "Compare")), live, el("label", { class: "theme", for: "theme" }, el("span", { class: "hidden" }, "Theme"), themeSwitch()), account);
  const session = await askSession();
  setChildren(account, accountOf(session));
  return {
    session,
    live: (up, why = "") => {
      live.hidden = false;
      live.classList.toggle("down", !up);
      setText(live, up ? "live" : why ? "error: " + why : "reconnecting …");
    },
  };
};

/** A sentence instead of a page that could not be shown. */
export const showError = (main, error) => setChildren(main, el("div", { class: "card error" }, el("h1", {}, "This page cannot be shown"), el("p", {}, error.message), el("p", {}, el("a", { href: "/" }, "All studies"))));
