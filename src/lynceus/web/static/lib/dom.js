// Elements. Text only ever enters a page as text: names, values and outputs of jobs are not markup.

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
export const shape = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

/** Replace what an element holds. */
export const show = (node, ...children) => node.replaceChildren(...children.flat().filter((one) => one !== null && one !== undefined && one !== false));

/** Write a text only when it differs, so that readers of the screen are not disturbed. */
export const say = (node, text) => {
  if (node.textContent !== text) node.textContent = text;
};

/** A sentence where there is nothing to draw yet. */
export const nothing = (text) => el("p", { class: "empty" }, text);

/** A card of a page with its heading; `body` is where a component lives. */
export const card = (id, title, note = null, className = "") => {
  const body = el("div", { class: "body" });
  const head = el("div", { class: "card-head" }, el("h2", { id: id + "-title" }, title), note && el("p", { class: "quiet" }, note));
  const node = el("section", { id, class: ("card " + className).trim(), "aria-labelledby": id + "-title" }, head, body);
  return { node, body, head };
};

/** A table; cells are nodes or texts, and those of `numbers` columns are aligned to the right. */
export const table = (caption, columns, rows, numbers = []) =>
  el(
    "table",
    {},
    el("caption", { class: "hidden" }, caption),
    el("thead", {}, el("tr", {}, columns.map((name, place) => el("th", { scope: "col", class: numbers.includes(place) ? "number" : null }, name)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell, place) => el("td", { class: numbers.includes(place) ? "number" : null }, cell))))),
  );

/** Copies a text; says so for a moment. */
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
