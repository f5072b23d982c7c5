// The frame of every chart: axes, marks, a tooltip for pointer and keyboard, and a text and a table for screen readers.
// Up to 2,000 marks are SVG; more are drawn on a canvas below it.

import { el, svgEl, setChildren } from "./dom.js";
import { tickTexts, ticks } from "./scale.js";
import { color, onThemeChange } from "./theme.js";
import { onVisibilityChange } from "./visibility.js";

const MAX_SVG_MARKS = 2000;
const MAX_ROWS = 500;
const PAD = { left: 72, right: 16, top: 12, bottom: 42 };

// Each kind of run has its own shape as well as its own color.
const OUTLINES = {
  feasible: (r) => `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`,
  infeasible: (r) => `M0 ${-1.25 * r}L${1.25 * r} 0L0 ${1.25 * r}L${-1.25 * r} 0Z`,
  stopped: (r) => `M${-1.15 * r} ${0.9 * r}L${1.15 * r} ${0.9 * r}L0 ${-1.2 * r}Z`,
  failed: (r) => `M${-r} ${-r}L${r} ${r}M${r} ${-r}L${-r} ${r}`,
  late: (r) => `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`,
};
const KINDS = {
  feasible: { color: "feasible", name: "met every constraint" },
  infeasible: { color: "infeasible", name: "violated a constraint", hollow: true },
  stopped: { color: "stopped", name: "stopped early" },
  failed: { color: "failed", name: "failed", hollow: true },
  late: { color: "late", name: "missed the deadline or violated another constraint", hollow: true },
};

const outline = (kind, r) => OUTLINES[kind](r);

/** A legend of marks and lines; a kind may come with a name of its own. */
export const legend = (kinds, lines = []) =>
  el("ul", { class: "legend", "aria-label": "Legend" },
    lines.map(([className, name]) => el("li", {}, svgEl("svg", { viewBox: "0 0 22 12", width: 22, height: 12, "aria-hidden": "true" }, svgEl("path", { d: "M1 6H21", class: className })), name)),
    kinds.map((one) => (Array.isArray(one) ? one : [one, KINDS[one].name])).map(([kind, name]) => el("li", {}, svgEl("svg", { viewBox: "-7 -7 14 14", width: 14, height: 14, "aria-hidden": "true" }, svgEl("path", { d: outline(kind, 4.2), class: "mark " + kind })), name)));

/** The tooltip that all charts of a page share. */
const tooltip = () => {
  let node = document.getElementById("tip");
  if (node === null) {
    node = el("div", { id: "tip", role: "status", hidden: true });
    document.body.append(node);
  }
  return node;
};

const placeTooltip = (node, text, x, y) => {
  node.textContent = text;
  node.hidden = false;
  node.style.left = Math.max(8, Math.min(x + 14, innerWidth - node.offsetWidth - 8)) + "px";
  node.style.top = Math.max(8, y + node.offsetHeight + 26 > innerHeight ? y - node.offsetHeight - 12 : y + 14) + "px";
};

/** A chart that is redrawn when its size, its data or the theme changes.

`draw(box)` is called with the size and the edges of the plot in pixels and returns `{empty}`, a sentence, or `{x, y, marks, label, href, lines, extra, title, description, table}`:
x and y are `{at, label, text, clock}`, marks `{x, y, kind, index, r, from}` (`from`: where a bar that ends at x begins), lines `{d, className}` below the marks.
`label(mark)`, `href(mark)` and `table()` are called on demand. */
export const chart = (host, draw, { height: wanted = 300, left = PAD.left, bottom = PAD.bottom } = {}) => {
  const canvas = el("canvas", { "aria-hidden": "true" });
  const holder = el("div", { class: "plot" });
  const below = el("div", { class: "below" });
  const table = el("details", { class: "data", hidden: true }, el("summary", {}, "Show as a table"));
  host.classList.add("chart");
  setChildren(host, holder, below, table);
  let current = null, frame = 0, seenWidth = 0, visible = false, dirty = true, drawn = null, margin = left;
  const heightNow = () => (typeof wanted === "function" ? wanted() : wanted);
  // Its place is kept until it is drawn: what a reader scrolls to does not move away.
  holder.style.minHeight = heightNow() + "px";

  const fillTable = () => {
    if (!table.open || current === null) return;
    const { columns, rows } = current.table();
    const shownRows = rows.slice(-MAX_ROWS);
    setChildren(table, table.firstChild,
      rows.length > MAX_ROWS ? el("p", { class: "quiet" }, `The last ${MAX_ROWS} of ${rows.length} rows.`) : null,
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Data: " + current.title },
        el("table", {}, el("thead", {}, el("tr", {}, columns.map((name) => el("th", { scope: "col" }, name)))), el("tbody", {}, shownRows.map((row) => el("tr", {}, row.map((cell) => el("td", {}, cell))))))));
  };
  table.addEventListener("toggle", fillTable);

  const render = () => {
    const width = Math.max(260, Math.floor(holder.clientWidth));
    seenWidth = holder.clientWidth;
    dirty = false;
    holder.style.minHeight = "";
    const height = heightNow();
    const within = () => draw({ width, height, left: margin, right: width - PAD.right, top: PAD.top, bottom: height - bottom });
    let content = within();
    if (content.empty === undefined && marginFor(content.y) !== margin) {
      margin = marginFor(content.y);
      content = within();
    }
    if (content.empty !== undefined) {
      current = null;
      table.hidden = true;
      setChildren(holder, el("p", { class: "empty" }, content.empty));
      setChildren(below);
      return;
    }
    current = content;
    table.hidden = false;
    const many = content.marks.length > MAX_SVG_MARKS;
    const svg = frameOf(content, width, height, margin, bottom);
    if (!many) for (const mark of content.marks) svg.append(markOf(mark));
    const chosen = svgEl("svg", { class: "chosen-mark", width, height, "aria-hidden": "true" });
    const keys = content.marks.length ? `. Use the arrow keys to move from run to run${content.href ? ", and Enter to open one" : ""}.` : "";
    const layer = el("div", { class: "layers", tabindex: content.marks.length ? "0" : null, role: "group", "aria-label": content.title + keys }, many ? canvas : null, svg, chosen);
    const focused = holder.contains(document.activeElement);
    listen(layer, chosen, content);
    setChildren(holder, layer);
    if (focused) layer.focus({ preventScroll: true });
    if (many) paint(canvas, content.marks, width, height);
    setChildren(below, content.below ?? []);
    fillTable();
  };

  /** Redraw, unless `key` says that nothing has changed since the last time. */
  const schedule = (key = null) => {
    if (key !== null && key === drawn) return;
    drawn = key;
    dirty = true;
    if (frame || !visible) return;
    frame = requestAnimationFrame(() => { frame = 0; if (dirty) render(); });
  };
  onVisibilityChange(host, (seen) => { visible = seen; if (visible && dirty) schedule(); });
  new ResizeObserver(() => { if (Math.abs(holder.clientWidth - seenWidth) > 1) schedule(); }).observe(holder);
  onThemeChange(() => schedule());
  return schedule;
};

const ruler = document.createElement("canvas").getContext("2d");

const widthOf = (text) => {
  ruler.font = "11.5px " + getComputedStyle(document.body).fontFamily;
  return ruler.measureText(text).width;
};

/** The ticks of an axis with their texts: those that it gives itself, or round ones, of which no two read the same. */
const labelled = (axis, most) => {
  if (axis.ticks) return axis.ticks.map((tick) => [tick, axis.text(tick)]);
  const found = ticks(axis.at, most, axis.clock), texts = tickTexts(found, axis.text);
  return found.map((tick, index) => [tick, texts[index]]);
};

/** The left margin: room for the widest tick label beside the name of the axis. */
const marginFor = (y) => {
  const widest = Math.max(0, ...labelled(y, 5).map(([, text]) => widthOf(text)));
  return Math.max(PAD.left, 12 * Math.ceil((widest + 30) / 12));
};

const frameOf = (content, width, height, left, bottom) => {
  const { x, y } = content, right = width - PAD.right, base = height - bottom;
  const id = "chart-" + content.title.replace(/\W+/g, "-").toLowerCase();
  const svg = svgEl("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-labelledby": `${id}-title ${id}-desc` },
    svgEl("title", { id: id + "-title" }, content.title), svgEl("desc", { id: id + "-desc" }, content.description));
  const most = Math.max(2, Math.min(7, Math.floor((right - left) / 84)));
  for (const [tick, text] of labelled(x, most)) {
    svg.append(svgEl("line", { class: "grid", x1: x.at(tick), x2: x.at(tick), y1: PAD.top, y2: base }));
    svg.append(svgEl("text", { x: x.at(tick), y: base + 16, "text-anchor": "middle" }, text));
  }
  for (const [tick, text] of labelled(y, 5)) {
    svg.append(svgEl("line", { class: "grid", x1: left, x2: right, y1: y.at(tick), y2: y.at(tick) }));
    svg.append(svgEl("text", { x: left - 8, y: y.at(tick) + 4, "text-anchor": "end" }, text));
  }
  svg.append(svgEl("text", { class: "label", x: right, y: height - 6, "text-anchor": "end" }, x.label));
  const middle = Math.max((PAD.top + base) / 2, widthOf(y.label) / 2 + 2); // in a low chart the name reaches below the axis, not out of the chart
  svg.append(svgEl("text", { class: "label", x: 12, y: middle, "text-anchor": "middle", transform: `rotate(-90 12 ${middle})` }, y.label));
  for (const line of content.lines ?? []) svg.append(svgEl("path", { d: line.d, class: line.className }));
  for (const extra of content.extra ?? []) svg.append(extra);
  return svg;
};

const markOf = (mark) => svgEl("path", { class: "mark " + mark.kind + (mark.strong ? " strong" : ""), d: outline(mark.kind, mark.r ?? 4.2), transform: `translate(${mark.x.toFixed(1)} ${mark.y.toFixed(1)})` });

/** The pixels of a small mark as offsets and opacities, with its color: drawn once, then copied thousands of times. */
const stamp = (kind, ratio) => {
  const size = Math.ceil(10 * ratio), small = el("canvas", { width: size, height: size });
  const context = small.getContext("2d", { willReadFrequently: true }), path = new Path2D(outline(kind, 2.3));
  context.setTransform(ratio, 0, 0, ratio, size / 2, size / 2);
  context.fillStyle = context.strokeStyle = color(KINDS[kind].color);
  if (KINDS[kind].hollow) context.stroke(path);
  else context.fill(path);
  const { data } = context.getImageData(0, 0, size, size);
  const pixels = [];
  let rgb = [0, 0, 0], most = 0;
  for (let at = 0; at < data.length; at += 4) {
    if (data[at + 3] === 0) continue;
    pixels.push([(at / 4) % size - size / 2, Math.floor(at / 4 / size) - size / 2, (data[at + 3] / 255) * 0.5]);
    if (data[at + 3] > most) [most, rgb] = [data[at + 3], [data[at], data[at + 1], data[at + 2]]];
  }
  return { pixels, rgb };
};

/** Copy a mark into an image at many positions. Drawing ten thousand shapes with canvas calls would take a tenth of a second. */
const stampAll = (image, marks, { pixels, rgb: [red, green, blue] }, ratio) => {
  const { data, width, height } = image;
  for (const mark of marks) {
    const x = Math.round(mark.x * ratio), y = Math.round(mark.y * ratio);
    for (const [dx, dy, alpha] of pixels) {
      const column = x + dx | 0, row = y + dy | 0;
      if (column < 0 || row < 0 || column >= width || row >= height) continue;
      const at = 4 * (row * width + column), below = (data[at + 3] / 255) * (1 - alpha), all = alpha + below;
      data[at] = (red * alpha + data[at] * below) / all;
      data[at + 1] = (green * alpha + data[at + 1] * below) / all;
      data[at + 2] = (blue * alpha + data[at + 2] * below) / all;
      data[at + 3] = all * 255;
    }
  }
};

/** Marks on a canvas, with the colors and shapes of the SVG marks. */
const paint = (canvas, marks, width, height) => {
  const ratio = devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.style.width = width + "px";
  canvas.style.height = height + "px";
  const context = canvas.getContext("2d"), image = context.createImageData(canvas.width, canvas.height);
  for (const kind of Object.keys(KINDS)) {
    const same = marks.filter((mark) => mark.kind === kind);
    if (same.length) stampAll(image, same, stamp(kind, ratio), ratio);
  }
  context.putImageData(image, 0, 0);
  for (const mark of marks.filter((one) => one.strong)) {
    context.globalAlpha = 1;
    context.fillStyle = color("feasible");
    context.strokeStyle = color("ink");
    context.lineWidth = 2;
    context.setTransform(ratio, 0, 0, ratio, mark.x * ratio, mark.y * ratio);
    const path = new Path2D(outline(mark.kind, 6));
    context.fill(path);
    context.stroke(path);
  }
};

/** The square of the distance from a pointer to a mark, or to the bar that ends in it. */
const distanceTo = (mark, x, y) => {
  const across = mark.from !== undefined && x < mark.x ? Math.max(0, mark.from - x) : mark.x - x;
  return across ** 2 + (mark.y - y) ** 2;
};

/** Show what is known of a run where the pointer or the arrow keys are, with a link to its page. A first tap shows it, a second one opens it.

The arrow keys visit `stops`, by default all marks; `highlight(mark)` is drawn below the ring around a mark. */
export const listen = (layer, ring, { marks, stops = marks, label, href = () => null, highlight = () => null }) => {
  if (!marks.length) return;
  let at = null, order = null, touched = null;
  const choose = (mark, announce) => {
    at = mark;
    const node = tooltip();
    if (mark === null) { ring.replaceChildren(); node.hidden = true; return; }
    const circle = svgEl("circle", { cx: mark.x, cy: mark.y, r: 9 }), address = href(mark);
    setChildren(ring, highlight(mark), address === null ? circle : svgEl("a", { href: address, tabindex: "-1" }, circle));
    node.setAttribute("aria-live", announce ? "polite" : "off");
    const box = layer.getBoundingClientRect();
    placeTooltip(node, label(mark), box.left + mark.x, box.top + mark.y);
  };
  const nearest = (event) => {
    const box = layer.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    let best = null, least = 24 * 24;
    for (const mark of marks) {
      const distance = distanceTo(mark, x, y);
      if (distance < least) [best, least] = [mark, distance];
    }
    return best;
  };
  const open = (mark) => { const address = mark && href(mark); if (address) location.assign(address); };
  layer.addEventListener("pointerdown", () => { touched = at; });
  layer.addEventListener("pointermove", (event) => { if (event.pointerType !== "touch") choose(nearest(event), false); });
  layer.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") choose(null, false); });
  layer.addEventListener("blur", () => choose(null, false));
  layer.addEventListener("click", (event) => {
    const mark = nearest(event);
    if (event.pointerType === "touch" && mark !== touched) { event.preventDefault(); choose(mark, false); return; }
    if (!event.target.closest("a")) open(mark);
  });
  layer.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (event.key === "Escape") choose(null, false);
    if (event.key === "Enter") open(at);
    if (step === undefined && event.key !== "Home" && event.key !== "End") return;
    event.preventDefault();
    order ??= [...stops].sort((a, b) => a.x - b.x || a.y - b.y);
    const known = order.indexOf(at), now = known < 0 ? (step === 1 ? -1 : order.length) : known;
    const next = event.key === "Home" ? 0 : event.key === "End" ? order.length - 1 : Math.max(0, Math.min(order.length - 1, now + step));
    choose(order[next], true);
  });
};
