// Light, dark, or as the system wishes. The choice is this browser's and is kept there.

import { el } from "./dom.js";

const KEY = "lynceus-theme";
const NAMES = { system: "System", light: "Light", dark: "Dark" };
const listeners = new Set();

const stored = () => {
  try { return localStorage.getItem(KEY) ?? "system"; } catch { return "system"; }
};

const apply = (choice) => {
  if (choice === "system") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.setAttribute("data-theme", choice);
  for (const listener of listeners) listener();
};

/** Call a function whenever colours change: charts on a canvas must be drawn again. */
export const onColours = (listener) => listeners.add(listener);

/** A colour of the style sheet by its name, for canvases. */
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

/** The switch for the head of a page. */
export const themeSwitch = () => {
  const choice = stored();
  apply(choice);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => listeners.forEach((listener) => listener()));
  const select = el("select", { id: "theme", "aria-label": "Colours" }, Object.entries(NAMES).map(([key, name]) => el("option", { value: key, selected: key === choice }, name)));
  select.addEventListener("change", () => {
    try { localStorage.setItem(KEY, select.value); } catch { /* a private window: the choice lasts as long as the page */ }
    apply(select.value);
  });
  return select;
};
