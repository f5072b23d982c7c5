// The note on a study: text of its users, below its heading.

import { askIn } from "../lib/dialog.js";
import { el, setChildren, setText } from "../lib/dom.js";
import { dateTime } from "../lib/format.js";

const MAX_LENGTH = 10000;

/** `read()` fetches the note, `write(text, version)` replaces it; `write` is null for readers. */
export const noteOf = (element, { read, write }) => {
  let note = { text: "", version: 0, written_s: null };
  const text = el("p", { class: "note-text", id: "note" }), when = el("span", { class: "quiet" }), edit = el("button", { type: "button", class: "small", id: "edit-note" });
  setChildren(element, text, el("p", { class: "note-foot" }, when, write ? edit : null));
  const show = () => {
    setText(text, note.text);
    text.hidden = !note.text;
    setText(when, note.text ? "Note of " + dateTime(note.written_s) : "");
    setText(edit, note.text ? "Edit the note" : "Add a note");
    element.classList.toggle("written", Boolean(note.text));
    element.hidden = !note.text && !write;
  };
  edit.addEventListener("click", () => {
    const area = el("textarea", { id: "note-text", rows: 8, maxlength: MAX_LENGTH }, note.text), { version } = note;
    askIn({ title: "Note on this study", confirm: "Save", fields: el("label", { for: "note-text" }, el("span", {}, "Everybody who can read the study sees it."), area), act: async () => { note = await write(area.value, version); show(); } });
    area.focus();
  });
  const update = async () => { note = await read(); show(); };
  show();
  return update;
};
