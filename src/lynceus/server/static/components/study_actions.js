// What users with write access can do with a study: stop, resume, rename, delete.

import { path, post } from "../lib/api.js";
import { askIn } from "../lib/dialog.js";
import { el } from "../lib/dom.js";
import { counted } from "../lib/format.js";

let left = null;

/** Whether this page is about to leave a study that it has renamed or deleted itself. */
export const leaving = (name) => left === name;

const leave = (name, address) => { left = name; location.assign(address); };

const rename = (session, { name }) => {
  const input = el("input", { id: "new-name", type: "text", value: name, maxlength: 200, spellcheck: "false", autocomplete: "off" });
  askIn({
    title: "Rename this study", confirm: "Rename", fields: el("label", { for: "new-name" }, el("span", {}, "new name"), input),
    ready: () => input.value.trim() !== "" && input.value !== name,
    act: async () => { const renamed = await post(path("studies", name, "rename"), session, { name: input.value }); leave(name, "/studies/" + encodeURIComponent(renamed.name)); },
  });
  input.select();
};

const remove = (session, data) => {
  const { name } = data, input = el("input", { id: "confirm-name", type: "text", spellcheck: "false", autocomplete: "off" });
  const force = el("input", { id: "force", type: "checkbox" }), open = data.open.length;
  const kept = open ? el("label", { for: "force", class: "check" }, force, el("span", {}, `End its ${counted(open, "open trial")} first.`)) : null;
  askIn({
    title: `Delete ${name}?`, confirm: "Delete for good", danger: true, ready: () => input.value === name && (!open || force.checked),
    fields: [el("p", {}, `${counted(data.store.size, "trial")} with their results, outputs and files will be gone. This cannot be undone.`), kept, el("label", { for: "confirm-name" }, el("span", {}, "To confirm, type the name of the study: ", el("b", {}, name)), input)],
    act: async () => {
      const deleted = await post(path("studies", name) + (force.checked ? "?force=true" : ""), session, {}, "DELETE");
      if (deleted.left) alert(deleted.left);
      leave(name, "/");
    },
  });
  input.focus();
};

/** Buttons for what the role allows; none for viewers. data: {name, head, open, store} */
export const studyActions = (session, data) => {
  if (!session.can_write) return [];
  const act = (text, className, question, address, body) => {
    const button = el("button", { type: "button", class: className }, text);
    button.addEventListener("click", async () => {
      if (question && !confirm(question)) return;
      button.disabled = true;
      try { await post(path("studies", data.name, address), session, body); } catch (error) { alert(error.message); }
      button.disabled = false;
    });
    return button;
  };
  const running = data.head.state === "RUNNING";
  return [
    running ? act("Stop the study", "small danger", "Start no more trials? Open trials will finish.", "stop", { kill: false }) : null,
    running || data.head.state === "FINISHED" ? null : act("Resume", "small", null, "resume", {}),
    el("button", { type: "button", class: "small", onclick: () => rename(session, data) }, "Rename"),
    session.role === "admin" ? el("button", { type: "button", class: "small danger", onclick: () => remove(session, data) }, "Delete") : null,
  ];
};
