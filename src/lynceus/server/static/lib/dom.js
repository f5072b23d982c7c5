// Building elements. Names, values and outputs of jobs are only ever inserted as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

const fill = (node, attributes, children) => {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : String(child));
  }
  return node;
};

/** An HTML element; functions under `onclick` and the like are listeners. */
export const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);

/** An SVG element. */
export const svgEl = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

/** Replace the children of an element. */
export const setChildren = (node, ...children) => node.replaceChildren(...children.flat().filter((one) => one !== null && one !== undefined && one !== false));

/** Set a text only when it differs, so that screen readers do not repeat it. */
export const setText = (node, text) => {
  if (node.textContent !== text) node.textContent = text;
};

/** A sentence where there is nothing to draw yet. */
export const emptyNote = (text) => el("p", { class: "empty" }, text);

/** A card with a heading; a component fills its `body`. */
export const card = (id, title, note = null, className = "") => {
  const body = el("div", { class: "body" });
  const head = el("div", { class: "card-head" }, el("h2", { id: id + "-title" }, title), note && el("p", { class: "quiet" }, note));
  const node = el("section", { id, class: ("card " + className).trim(), "aria-labelledby": id + "-title" }, head, body);
  return { node, body, head };
};

/** A table; cells are nodes or texts, and the columns `numbers` are aligned to the right. */
export const table = (caption, columns, rows, numbers = []) =>
  el(
    "table",
    {},
    el("caption", { class: "hidden" }, caption),
    el("thead", {}, el("tr", {}, columns.map((name, index) => el("th", { scope: "col", class: numbers.includes(index) ? "number" : null }, name)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell, index) => el("td", { class: numbers.includes(index) ? "number" : null }, cell))))),
  );

/** A button that copies a text. */
export const copyButton = (text, label) => {
  const button = el("button", { type: "button", class: "small", "aria-label": label }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select it, then Ctrl-C";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1600);
  });
  return button;
};
