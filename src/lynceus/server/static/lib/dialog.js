// Questions in a dialog of the page: the browser keeps the focus inside it, and Escape closes it.

import { el, setText } from "./dom.js";

/** Ask for a text and act on it. `fields` are nodes above the buttons; `ready()` says whether the answer is complete; `act()` may throw, and its sentence is shown. */
export const askIn = ({ title, fields, confirm, danger = false, ready = () => true, act }) => {
  const message = el("p", { class: "warn", role: "alert" });
  const go = el("button", { type: "submit", class: danger ? "danger" : null }, confirm), cancel = el("button", { type: "button" }, "Cancel");
  const form = el("form", { method: "dialog" }, el("h2", { id: "dialog-title" }, title), fields, message, el("div", { class: "actions" }, go, cancel));
  const dialog = el("dialog", { "aria-labelledby": "dialog-title" }, form);
  const check = () => { go.disabled = !ready(); };
  form.addEventListener("input", check);
  cancel.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (!ready()) return;
    go.disabled = true;
    setText(message, "");
    try { await act(); dialog.close(); } catch (error) { setText(message, error.message); check(); }
  });
  document.body.append(dialog);
  check();
  dialog.showModal();
};
