// Building and measuring elements.  Text only ever enters the page as text nodes, never as markup.

const $ = (selector, root = document) => root.querySelector(selector);

function build(el, props, kids) {
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) el.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [p, v] of Object.entries(value)) el.style.setProperty(p, v);
    else if (name === "data") Object.assign(el.dataset, value);
    else
      el.setAttribute(
        name,
        value === true ? "" : name === "title" || name === "aria-label" ? visible(String(value)) : value,
      );
  }
  for (const kid of kids.flat(3))
    if (kid !== null && kid !== undefined && kid !== false) el.append(typeof kid === "string" ? visible(kid) : kid);
  return el;
}

// What has no glyph (controls, bidi overrides, lone surrogates) as its escape: it could hide or reorder its neighbours.
function visible(text) {
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, (c) =>
    c === "\n" || c === "\t" ? c : `\\u${c.codePointAt(0).toString(16).padStart(4, "0")}`,
  );
}

// Like replaceChildren, but lists are opened and what is null or false is left out.
const fill = (el, ...kids) => {
  el.replaceChildren();
  return build(el, null, kids);
};

const h = (tag, props, ...kids) => build(document.createElement(tag), props, kids);
const svg = (tag, props, ...kids) => build(document.createElementNS("http://www.w3.org/2000/svg", tag), props, kids);

const whole = (n) => Math.round(n).toLocaleString("en-US");
const compact = (n) =>
  n < 10000 ? whole(n) : n < 1e6 ? `${(n / 1e3).toFixed(n < 1e5 ? 1 : 0)}k` : `${(n / 1e6).toFixed(n < 1e7 ? 2 : 1)}M`;
const plural = (n, word, many = `${word}s`) => `${whole(n)} ${n === 1 ? word : many}`;

// Records spell NaN and the infinities as words, in JSON's, Python's or NumPy's way.
function numberOf(x) {
  if (typeof x !== "string") return Number(x);
  const word = /^([+-]?)(inf(inity)?|nan)$/i.exec(x.trim());
  if (!word) return Number(x);
  return word[2].toLowerCase() === "nan" ? NaN : word[1] === "-" ? -Infinity : Infinity;
}

// Three to five significant digits; an integer beyond 2^53 comes as a word and stays whole.
function figure(x) {
  if (x === null || x === undefined) return "–";
  if (typeof x === "string" && /^-?\d{16,}$/.test(x)) return x;
  const n = numberOf(x);
  if (typeof x === "string" && Number.isNaN(n) && !/nan/i.test(x)) return x;
  if (Number.isNaN(n)) return "NaN";
  if (!Number.isFinite(n)) return n > 0 ? "∞" : "−∞";
  if (Object.is(n, -0)) return "−0";
  if (Number.isInteger(n) && Math.abs(n) < 1e7) return whole(n);
  const a = Math.abs(n);
  return a >= 1e5 || a < 1e-3 ? n.toExponential(3) : String(Number(n.toPrecision(5)));
}

function percent(part, all) {
  if (!all) return "–";
  const p = (100 * part) / all;
  if (part && part < all) return p < 0.1 ? "<0.1 %" : p > 99.9 ? ">99.9 %" : `${p.toFixed(1)} %`;
  return `${p.toFixed(0)} %`;
}

function duration(seconds) {
  if (!seconds) return "–";
  if (seconds < 90) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const m = Math.round(seconds / 60);
  return m < 90 ? `${m} min` : `${Math.floor(m / 60)} h ${m % 60} min`;
}

function say(text) {
  $("#live").textContent = text;
}

// A line of code with a button that copies it.
function codeLine(text, label) {
  const button = h("button", { class: "copy", type: "button", "aria-label": `Copy ${label}` }, "Copy");
  button.addEventListener("click", async () => {
    let done = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = h("textarea", { class: "sr" });
      area.value = text;
      document.body.append(area);
      area.select();
      done = document.execCommand("copy");
      area.remove();
    }
    button.textContent = done ? "Copied" : "Select it";
    say(done ? `${label} copied` : `${label}: copying is not allowed here`);
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  return h("div", { class: "codeline" }, h("code", { tabindex: "0" }, text), button);
}

// A list of any length of which only the visible rows exist.  ``row(item, index)`` builds one; all have one height.
class VirtualList {
  constructor(height, row, props) {
    this.height = height;
    this.row = row;
    this.items = [];
    this.rows = new Map();
    this.onscroll = null; // called with the index of the first visible row
    this.space = h("div", { class: "vspace" });
    this.el = h("div", { class: "vlist", tabindex: "0", ...props }, this.space);
    this.el.addEventListener("scroll", () => this.draw(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(this.el);
  }

  set(items) {
    this.items = items;
    this.space.style.height = `${items.length * this.height}px`;
    this.redraw();
  }

  redraw() {
    for (const el of this.rows.values()) el.remove();
    this.rows.clear();
    this.draw();
  }

  draw() {
    const top = this.el.scrollTop;
    if (this.onscroll) this.onscroll(Math.min(Math.floor(top / this.height), this.items.length - 1));
    const first = Math.max(0, Math.floor(top / this.height) - 6);
    const last = Math.min(this.items.length, Math.ceil((top + (this.el.clientHeight || 600)) / this.height) + 6);
    for (const [i, el] of this.rows) {
      if (i < first || i >= last) {
        el.remove();
        this.rows.delete(i);
      }
    }
    for (let i = first; i < last; i++) {
      if (this.rows.has(i)) continue;
      const el = this.row(this.items[i], i);
      el.classList.add("vrow");
      el.style.top = `${i * this.height}px`;
      el.style.height = `${this.height}px`;
      this.rows.set(i, el);
      this.space.append(el);
    }
  }

  show(i) {
    const top = i * this.height;
    const view = this.el.clientHeight;
    if (top < this.el.scrollTop) this.el.scrollTop = top;
    else if (top + this.height > this.el.scrollTop + view) this.el.scrollTop = top + this.height - view;
    this.draw();
  }
}

/** A cell with a class: ``cell("num", "3")``. */
const cell = (kind, ...kids) => h("td", { class: kind }, kids);

/**
 * A table, in a box that scrolls sideways.  The first cell of each row is its head, and every other is text, an element
 * or a finished ``td``.  Without heads there is no head row.
 */
const dataTable = (heads, rows, kind = "data") => {
  const made = (c, i) => (c instanceof HTMLTableCellElement ? c : i ? h("td", {}, c) : h("th", { scope: "row" }, c));
  return h(
    "div",
    { class: "scroll" },
    h(
      "table",
      { class: kind },
      heads
        ? h(
            "thead",
            {},
            h(
              "tr",
              {},
              heads.map((t) => h("th", { scope: "col" }, t)),
            ),
          )
        : null,
      h(
        "tbody",
        {},
        rows.map((cells) => h("tr", {}, cells.map(made))),
      ),
    ),
  );
};

/** What a list that was cut leaves out. */
const andMore = (n) => (n > 0 ? h("p", { class: "dim" }, `and ${whole(n)} more, in report.json`) : null);
