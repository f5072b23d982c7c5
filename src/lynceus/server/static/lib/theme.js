// Light, dark, or the system's theme. The browser remembers the choice.

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

/** Call a function whenever the theme changes: charts on a canvas have to be drawn again. */
export const onThemeChange = (listener) => listeners.add(listener);

/** A color of the style sheet by its name, for canvases. */
export const color = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

/** The theme switch in the header of a page. */
export const themeSwitch = () => {
  const choice = stored();
  apply(choice);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => listeners.forEach((listener) => listener()));
  const select = el("select", { id: "theme", "aria-label": "Theme" }, Object.entries(NAMES).map(([key, name]) => el("option", { value: key, selected: key === choice }, name)));
  select.addEventListener("change", () => {
    try { localStorage.setItem(KEY, select.value); } catch { /* private window: the choice lasts as long as the page */ }
    apply(select.value);
  });
  return select;
};
