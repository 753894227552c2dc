// The list of cases that did not agree, and the detail beside it.

const SORTS = {
  "": ["by severity", null],
  op: ["by op", (a, b) => a.key.localeCompare(b.key) || a.n - b.n],
  factor: ["by distance from the bound", (a, b) => factorOf(b) - factorOf(a)],
  cluster: ["by cluster", (a, b) => (a.cluster_index ?? 1e9) - (b.cluster_index ?? 1e9)],
};
const factorOf = (c) => {
  if (!c.diff || c.diff.factor === undefined || c.diff.factor === null) return -1;
  const f = numberOf(c.diff.factor);
  return Number.isNaN(f) ? Infinity : f;
};

function cases() {
  const list = new VirtualList(58, row, { role: "listbox", "aria-label": "Cases", id: "case-list" });
  const detail = h("div", { class: "detail", id: "detail" });
  const caption = h("span", { class: "dim", id: "case-count" });
  const sort = h(
    "select",
    { id: "case-sort", "aria-label": "Sort cases", onchange: () => go({ sort: sort.value }, true) },
    Object.entries(SORTS).map(([v, [label]]) => h("option", { value: v }, label)),
  );
  const el = h(
    "section",
    { class: "page fill" },
    h("div", { class: "bar" }, caption, h("span", { class: "grow" }), sort),
    h("div", { class: "split cases" }, h("div", { class: "card listbox" }, list.el), detail),
  );
  let shown = [];
  let look = "";
  let drawn = null;

  function update() {
    const now = JSON.stringify([...FILTERS, "sort"].map((f) => state[f] || ""));
    if (now !== look) {
      look = now;
      shown = casesFor(state);
      const by = SORTS[state.sort || ""] || SORTS[""];
      if (by[1]) shown = [...shown].sort(by[1]);
      sort.value = SORTS[state.sort || ""] ? state.sort || "" : "";
      list.el.scrollTop = 0;
      list.set(shown);
      const left = D.omitted.reduce((s, [, , , n]) => s + n, 0);
      caption.textContent = `${plural(shown.length, "case")}${shown.length < D.cases.length ? ` of ${whole(D.cases.length)}` : ""}${left ? ` · ${whole(left)} more only counted` : ""}`;
      say(caption.textContent);
      if (!shown.length)
        fill(list.space, empty(D.cases.length ? "No case passes these filters." : "Nothing deviated."));
    } else {
      list.redraw();
    }
    const at = position();
    const c = shown[at];
    if (c && state.case) list.show(at);
    if (c) list.el.setAttribute("aria-activedescendant", `case-${c.n}`);
    else list.el.removeAttribute("aria-activedescendant");
    if (drawn !== (c || null) || !detail.firstChild) {
      drawn = c || null;
      fill(detail, c ? caseDetail(c) : empty(shown.length ? "Choose a case." : ""));
      detail.scrollTop = 0;
    }
  }

  function position() {
    if (!state.case) return shown.length ? 0 : -1;
    return shown.findIndex((c) => c.at === state.case || c.id === state.case);
  }

  function row(c) {
    const on = shown[position()] === c;
    return h(
      "div",
      {
        class: `case${on ? " sel" : ""}`,
        role: "option",
        id: `case-${c.n}`,
        "aria-selected": String(on),
        onclick: () => go({ case: c.at }, true),
      },
      h(
        "span",
        { class: `glyphbox v-${c.verdict}`, title: VERDICTS[c.verdict] ? VERDICTS[c.verdict].label : c.verdict },
        VERDICTS[c.verdict] ? VERDICTS[c.verdict].sign : "·",
      ),
      h(
        "span",
        { class: "case-main" },
        h(
          "span",
          { class: "case-top" },
          h("b", {}, c.op),
          h("span", { class: "ver" }, c.version),
          h("span", { class: "dim" }, `${c.dialect} · opset ${c.opset} · ${c.dtype}`),
        ),
        h("span", { class: "case-sub" }, c.backend, " — ", oneLine(c)),
      ),
      c.baseline === "new" ? h("span", { class: "newtag" }, "new") : null,
      h(
        "span",
        { class: "case-num" },
        c.diff && c.diff.factor !== undefined && c.diff.factor !== null ? `${figure(c.diff.factor)}×` : "",
      ),
    );
  }

  function step(by) {
    if (!shown.length) return;
    const at = Math.max(0, Math.min(shown.length - 1, position() + by));
    go({ case: shown[at].at }, true);
    list.show(at);
  }

  list.el.addEventListener("keydown", (e) => {
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -1e9, End: 1e9 };
    if (!(e.key in moves)) return;
    e.preventDefault();
    step(moves[e.key]);
  });
  return { el, update, step, list, focus: () => detail.focus() };
}

function oneLine(c) {
  if (c.known) return `known: ${c.known}`;
  if (c.ambiguity) return `ambiguous: ${c.ambiguity}`;
  const d = c.diff;
  if (d?.got_shape && String(d.got_shape) !== String(d.shape)) return `shape [${d.got_shape}], expected [${d.shape}]`;
  if (c.verdict === "wrongly_accepted") return `accepts what breaks ${c.rule}`;
  if (d?.count)
    return `${whole(d.count)} of ${whole(d.size)} wrong${d.pattern ? `, ${d.pattern}` : ""}${Number.isFinite(numberOf(d.max_ulp ?? NaN)) ? `, up to ${figure(d.max_ulp)} ulp` : ""}`;
  const wrong = {
    nan: "NaN where there should be none, or the reverse",
    inf: "an infinity is wrong",
    zero_sign: "the sign of a zero is wrong",
  };
  return (c.message || "").split("\n")[0] || wrong[c.kind] || VERDICTS[c.verdict]?.sentence || c.verdict;
}
