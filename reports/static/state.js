// What is shown lives in the URL's hash alone: a link to a filtered page, or one case, can be sent to somebody.

const FILTERS = ["q", "dialect", "backend", "opset", "dtype", "verdict", "key", "cluster", "listed", "new"];
const VIEWS = [
  ["overview", "Overview"],
  ["matrix", "Matrix"],
  ["cases", "Deviations"],
  ["clusters", "Clusters"],
  ["coverage", "Coverage"],
  ["sensitivity", "Sensitivity"],
  ["listed", "Known & ambiguous"],
  ["changes", "Changes"],
];

let state = {};
const listeners = [];

function readHash() {
  const out = {};
  for (const [k, v] of new URLSearchParams(location.hash.slice(1))) out[k] = v;
  if (!VIEWS.some(([id]) => id === out.view)) out.view = "overview";
  return out;
}

const hashOf = (s) =>
  `#${new URLSearchParams(Object.entries(s).filter(([, v]) => v !== "" && v !== null && v !== undefined))}`;

// changes: fields to set ("" or null removes one).  Steps a reader would want to undo become history entries.
function go(changes, replace = false) {
  const next = { ...state, ...changes };
  for (const k of Object.keys(next)) if (next[k] === "" || next[k] === null || next[k] === undefined) delete next[k];
  const hash = hashOf(next);
  if (hash === location.hash) return;
  if (replace) history.replaceState(null, "", hash);
  else history.pushState(null, "", hash);
  changed();
}

const linkTo = (changes) => hashOf({ view: state.view, ...changes });

function changed() {
  const before = state;
  state = readHash();
  for (const f of listeners) f(before);
}

addEventListener("popstate", changed);
addEventListener("hashchange", () => {
  if (hashOf(state) !== hashOf(readHash())) changed();
});

function filterBar() {
  const bar = h("div", { class: "filters", role: "search", "aria-label": "Filters" });
  let typing = 0;
  const q = h("input", {
    type: "search",
    id: "q",
    placeholder: "Search ops, ids, messages   /",
    "aria-label": "Search",
    spellcheck: "false",
    autocomplete: "off",
  });
  q.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => go({ q: q.value, case: null }, true), 80);
  });
  const selects = ["dialect", "backend", "opset", "dtype"].map((name) => {
    const el = h("select", {
      id: `f-${name}`,
      "aria-label": name,
      onchange: () => go({ [name]: el.value, case: null, ...(name === "dialect" ? { opset: null } : {}) }),
    });
    return [name, el];
  });
  const chips = h("div", { class: "chips", role: "group", "aria-label": "Verdicts" });
  const extra = h("div", { class: "chips" });
  const count = h("span", { class: "count", id: "count" });
  bar.append(q, ...selects.map(([, el]) => el), chips, extra, count);

  const uses = {
    coverage: ["dialect", "dtype"],
    sensitivity: ["dialect", "dtype"],
    listed: ["backend"],
    changes: ["dialect", "backend", "verdict"],
    clusters: ["dialect", "backend", "verdict"],
  };

  function update() {
    const used = uses[state.view] || ["dialect", "backend", "opset", "dtype", "verdict"];
    chips.hidden = !used.includes("verdict");
    for (const [name, el] of selects) el.hidden = !used.includes(name) && !state[name];
    if (document.activeElement !== q) q.value = state.q || "";
    for (const [name, el] of selects) {
      let names = [...new Set(cellsFor({ ...state, q: "", verdict: "", key: "" }, name).map((c) => c[name]))];
      if (name === "opset") names = D.cube.opsets.map(String).filter((o) => names.includes(o));
      else names.sort();
      if (state[name] && !names.includes(state[name])) names.push(state[name]);
      fill(
        el,
        h("option", { value: "" }, name === "dialect" ? "all dialects" : `all ${name}s`),
        ...names.map((n) => h("option", { value: n }, n)),
      );
      el.value = state[name] || "";
      el.classList.toggle("on", Boolean(state[name]));
    }
    const on = new Set((state.verdict || "").split(",").filter(Boolean));
    fill(
      chips,
      ...SEVERITY.filter(
        (v) =>
          D.totals[v] && (BAD.has(v) || state.view === "overview" || state.view === "matrix" || state.view === "cases"),
      ).map((v) =>
        h(
          "button",
          {
            type: "button",
            class: `chip v-${v}`,
            "aria-pressed": String(on.has(v)),
            title: VERDICTS[v].sentence,
            data: { verdict: v },
            onclick: () => {
              if (on.has(v)) on.delete(v);
              else on.add(v);
              go({ verdict: [...on].join(","), case: null });
            },
          },
          h("span", { class: "glyph", "aria-hidden": "true" }, VERDICTS[v].sign),
          VERDICTS[v].label,
          h("span", { class: "n" }, compact(D.totals[v])),
        ),
      ),
    );
    const removable = [
      ["key", state.key],
      ["listed", state.listed],
      ["cluster", state.cluster !== undefined && state.cluster !== "" ? clusterName(state.cluster) : ""],
      ["new", state.new ? "new only" : ""],
    ];
    fill(
      extra,
      ...removable
        .filter(([, text]) => text)
        .map(([name, text]) =>
          h(
            "button",
            {
              type: "button",
              class: "chip strong",
              "aria-label": `Remove filter ${text}`,
              onclick: () => go({ [name]: null, case: null }),
            },
            text,
            h("span", { class: "x", "aria-hidden": "true" }, "×"),
          ),
        ),
      D.diff && !state.new
        ? h(
            "button",
            {
              type: "button",
              class: "chip",
              "aria-pressed": "false",
              onclick: () => go({ new: "1", view: "cases", case: null }),
            },
            "new only",
          )
        : null,
      FILTERS.some((f) => state[f])
        ? h(
            "button",
            {
              type: "button",
              class: "link",
              id: "clear",
              onclick: () => go(Object.fromEntries([...FILTERS, "case"].map((f) => [f, null]))),
            },
            "Clear filters",
          )
        : null,
    );
  }
  return { el: bar, update, count };
}

function clusterName(text) {
  const c = D.clusters[Number(text.split(",")[0])];
  return c ? `when ${c.predicate}` : `cluster ${text}`;
}
