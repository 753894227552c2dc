// What was tried at all: a clean page says little without this one.

function coverage() {
  const list = new VirtualList(38, row, { "aria-label": "Coverage by op version", role: "grid", id: "coverage-list" });
  const head = h(
    "div",
    { class: "crow chead" },
    [
      "op version",
      "instances",
      "dtypes",
      "pairs of choices",
      "invalid rules",
      "reach goals",
      "uninformative",
      "not judged",
    ].map((t) => h("span", {}, t)),
  );
  const summary = h("div", {});
  const unsupported = h("div", {});
  const paths = h("div", {});
  const side = h("div", { class: "side" });
  const el = h(
    "section",
    { class: "page fill" },
    summary,
    h(
      "div",
      { class: "split" },
      h("div", { class: "card coverage" }, h("div", { class: "headwrap" }, head), list.el),
      side,
    ),
    unsupported,
    paths,
  );

  function update() {
    const words = (state.q || "").toLowerCase();
    const ran = new Set(CUBE.map((c) => c.key));
    const rows = [...new Set([...ran, ...Object.keys(D.coverage)])]
      .map((key) => ({ ...(KEYS.get(key) || splitKey(key)), c: D.coverage[key] }))
      .filter(
        (r) =>
          (!state.dialect || r.dialect === state.dialect) &&
          r.key.toLowerCase().includes(words) &&
          (!state.dtype || r.c?.dtype[state.dtype]),
      );
    list.set(rows);
    fill(summary, dialectCards(rows));
    fill(unsupported, uninformativeTable(), unsupportedTable());
    const keys = rows.map((r) => r.key);
    fill(paths, unaskedTable(keys), pathTable(keys), labelTable(keys));
    fill(side, ...(state.key ? [opPanel(state.key)] : []));
    el.classList.toggle("open", Boolean(state.key));
    if (!rows.length) fill(list.space, empty("No op version passes these filters."));
  }

  function row(r) {
    const c = r.c;
    const name = h(
      "button",
      { type: "button", class: "mname", title: r.key, onclick: () => go({ key: state.key === r.key ? null : r.key }) },
      h("span", { class: `dialect d-${r.dialect}` }, r.dialect),
      h("span", { class: "op" }, r.op),
      h("span", { class: "ver" }, r.version),
    );
    if (!c) return h("div", { class: "crow", role: "row" }, name, h("span", { class: "dim" }, "nothing counted"));
    const dtypes = Object.entries(c.dtype).sort((a, b) => b[1] - a[1]);
    const rules = Object.entries(c.rules);
    return h(
      "div",
      { class: `crow${state.key === r.key ? " sel" : ""}`, role: "row" },
      name,
      h("span", { class: "num" }, whole(instances(c))),
      h(
        "span",
        { class: "dtypes", title: dtypes.map(([d, n]) => `${d} ${n}`).join(", ") },
        dtypes.map(([d]) => h("i", { class: "dt" }, d)),
      ),
      h(
        "span",
        { class: "pairs" },
        meter(c.pairs[0], c.pairs[1], `${c.pairs[0]} of ${c.pairs[1]} pairs`),
        h("span", { class: "dim num" }, c.pairs[1] ? `${whole(c.pairs[0])}/${whole(c.pairs[1])}` : "–"),
      ),
      h(
        "span",
        { title: rules.map(([x, n]) => `${x} ${n}`).join(", ") },
        rules.length ? `${rules.filter(([, n]) => n).length} of ${rules.length}` : "–",
      ),
      reached(c.reach),
      h("span", { class: "num dim" }, c.uninformative ? whole(c.uninformative) : ""),
      notJudged(r.key),
    );
  }

  return { el, update, list };
}

// Goals of the op version that the instances met, of all that no clause rules out.
function reached(r) {
  if (!r) return h("span", { class: "dim", title: "opconform run --reach counts them" }, "–");
  const goals = r.met + r.unmet.length;
  return h(
    "span",
    {
      class: "num",
      title: `${whole(r.met)} met, ${whole(r.ruled_out)} ruled out by a clause, ${whole(r.unmet.length)} unmet`,
    },
    `${whole(r.met)}/${whole(goals)}`,
  );
}

// Elements that passed only because their bound is infinite or useless, of all.
function notJudged(key) {
  const rows = Object.values(D.elements[key] || {});
  const [n, of] = [0, 1].map((i) => rows.reduce((s, r) => s + r[i], 0));
  return h(
    "span",
    { class: "num dim", title: `${whole(n)} of ${whole(of)} elements have an infinite or useless bound` },
    n ? percent(n, of) : "",
  );
}

function uninformativeTable() {
  const rows = D.uninformative.filter((e) => !state.dialect || e.key.startsWith(`${state.dialect}/`));
  if (!rows.length)
    return h("p", { class: "dim" }, "Of every op version most answers to valid instances could be judged.");
  return h(
    "details",
    { class: "card", open: true, id: "uninformative" },
    h(
      "summary",
      {},
      `Mostly uninformative: ${plural(rows.length, "op version")} of which more than half of the answers to valid instances say too little to count`,
    ),
    dataTable(
      ["op version", "backend", "uninformative", "of"],
      rows.flatMap((e) => Object.entries(e.backends).map(([b, [n, of]]) => [e.key, b, whole(n), whole(of)])),
      "cross wide",
    ),
  );
}

// What computed the instances, as the backends report it; a path that none of them took was never tested.
function pathTable(keys) {
  const untested = groupBy(D.untested_paths, ([key]) => key);
  const rows = keys.flatMap((key) => {
    const told = D.paths[key] || {};
    const missed = untested.get(key) || [];
    return [...new Set([...Object.keys(told), ...missed.map(([, b]) => b)])]
      .sort()
      .map((b) => ({ key, b, taken: Object.entries(told[b] || {}), never: missed.filter((m) => m[1] === b) }));
  });
  if (!rows.length) return h("p", { class: "dim" }, "No backend reported what computed the instances.");
  const shown = rows.slice(0, 2000);
  return h(
    "details",
    { class: "card", open: true, id: "paths" },
    h("summary", {}, "Paths that computed the instances, where a backend reported them"),
    dataTable(
      ["op version", "backend", "paths", "never tested"],
      shown.map((r) => [
        r.key,
        r.b,
        r.taken.map(([path, n]) => `${path} ${whole(n)}`).join(", ") || "–",
        r.never.map(([, , kind]) => kind).join(", "),
      ]),
    ),
    andMore(rows.length - shown.length),
  );
}

// Cases that did not run on a backend, since it never took similar ones.
function unaskedTable(keys) {
  const rows = keys.flatMap((key) =>
    Object.entries(D.unasked[key] || {}).map(([b, types]) => {
      const whys = new Map();
      for (const told of Object.values(types))
        for (const [why, n] of Object.entries(told)) whys.set(why, (whys.get(why) || 0) + n);
      return { key, b, whys: [...whys].sort((x, y) => y[1] - x[1]) };
    }),
  );
  if (!rows.length) return null;
  const shown = rows.slice(0, 2000);
  return h(
    "details",
    { class: "card", id: "unasked" },
    h(
      "summary",
      {},
      "Not run: cases that a backend would probably not take, by its earlier answers; they have no verdict",
    ),
    dataTable(
      ["op version", "backend", "cases", "why"],
      shown.map((r) => [
        r.key,
        r.b,
        whole(r.whys.reduce((n, w) => n + w[1], 0)),
        r.whys.map(([why, n]) => `${why} (${whole(n)})`).join("; "),
      ]),
    ),
    andMore(rows.length - shown.length),
  );
}

// How programs were respelt, and how often a runtime changed the program then.
function labelTable(keys) {
  const asked = new Set(keys);
  const rows = D.labels.filter((r) => asked.has(r.key));
  if (!rows.length) return null;
  const shown = rows.slice(0, 2000);
  return h(
    "details",
    { class: "card", id: "labels" },
    h("summary", {}, "Programs by how they were respelt, and the paths that they took"),
    dataTable(
      ["op version", "label", "backend", "paths"],
      shown.map((r) => [
        r.key,
        r.label,
        r.backend,
        Object.entries(r.paths)
          .map(([path, n]) => `${path} ${whole(n)}`)
          .join(", "),
      ]),
    ),
    andMore(rows.length - shown.length),
  );
}

const instances = (c) => Object.values(c.dtype).reduce((s, n) => s + n, 0);

function dialectCards(rows) {
  const cards = [...groupBy(rows, (r) => r.dialect)].map(([d, own]) => {
    const have = own.filter((r) => r.c);
    const pairs = have.reduce((s, r) => [s[0] + r.c.pairs[0], s[1] + r.c.pairs[1]], [0, 0]);
    const rules = have.flatMap((r) => Object.values(r.c.rules));
    const declared = D.runs.map((r) => r.op_versions?.[d]).find((n) => n);
    return h(
      "div",
      { class: "card dcard" },
      h("h2", {}, h("span", { class: `dialect d-${d}` }, d)),
      h(
        "dl",
        {},
        h("dt", {}, "op versions"),
        h("dd", {}, whole(own.length), declared ? h("span", { class: "dim" }, ` of ${whole(declared)}`) : null),
        h("dt", {}, "ops"),
        h("dd", {}, whole(new Set(own.map((r) => r.op)).size)),
        h("dt", {}, "instances"),
        h("dd", {}, compact(have.reduce((s, r) => s + instances(r.c), 0))),
        h("dt", {}, "pairs"),
        h("dd", {}, percent(pairs[0], pairs[1])),
        h("dt", {}, "rules broken"),
        h("dd", {}, rules.length ? `${rules.filter(Boolean).length} of ${rules.length}` : "–"),
        ...reachOf(have.map((r) => r.c.reach).filter(Boolean)),
      ),
    );
  });
  return h("div", { class: "dcards" }, cards);
}

function reachOf(rows) {
  if (!rows.length) return [];
  const sum = (f) => whole(rows.reduce((s, r) => s + f(r), 0));
  return [
    h("dt", {}, "reach goals"),
    h("dd", {}, `${sum((r) => r.met)} met, ${sum((r) => r.ruled_out)} ruled out, ${sum((r) => r.unmet.length)} unmet`),
  ];
}

function unsupportedTable() {
  const cells = cellsFor({ ...state, verdict: "" });
  const dtypes = [...new Set(cells.map((c) => c.dtype))].sort();
  const backends = D.cube.backends.filter((b) => cells.some((c) => c.backend === b));
  if (!cells.some((c) => c.verdict === "unsupported"))
    return h("p", { class: "dim" }, "No backend declared anything unsupported.");
  return h(
    "details",
    { class: "card", open: true },
    h("summary", {}, "Declared unsupported, per backend and dtype"),
    dataTable(
      ["backend", ...dtypes],
      backends.map((b) => [
        b,
        ...dtypes.map((d) => {
          const t = tally(cells.filter((c) => c.backend === b && c.dtype === d));
          const all = sumOf(t, () => true);
          if (!all) return cell("none", "");
          const share = (t.unsupported || 0) / all;
          return h(
            "td",
            { title: `${whole(t.unsupported || 0)} of ${whole(all)}` },
            h(
              "span",
              { class: "heat plain", style: { "--share": String(share) } },
              share ? percent(t.unsupported, all) : "0",
            ),
          );
        }),
      ]),
      "cross wide",
    ),
  );
}

function coverageOf(key) {
  const c = D.coverage[key];
  if (!c) return null;
  const most = (o, n) =>
    Object.entries(o)
      .sort((a, b) => b[1] - a[1])
      .slice(0, n);
  const part = (title, o) =>
    Object.keys(o).length
      ? [
          h("h3", {}, title),
          h(
            "div",
            { class: "attrs" },
            most(o, 60).map(([k, n]) =>
              h("span", { class: n ? "attr" : "attr zero" }, h("span", {}, k), h("b", {}, compact(n))),
            ),
          ),
        ]
      : null;
  return [
    part("Dtypes drawn", c.dtype),
    part("Rules broken on purpose", c.rules),
    part("Choices drawn", c.choices),
    c.reach ? h("h3", {}, "Reach goals") : null,
    c.reach
      ? h(
          "p",
          { class: "dim" },
          `${whole(c.reach.met)} met, ${whole(c.reach.ruled_out)} ruled out by a clause, ${whole(c.reach.unmet.length)} unmet`,
        )
      : null,
    c.reach?.unmet.length
      ? h(
          "div",
          { class: "attrs", id: "unmet-goals" },
          c.reach.unmet.map((g) => h("span", { class: "attr zero" }, h("span", {}, g))),
        )
      : null,
    c.pairs[1]
      ? h("p", { class: "dim" }, `${whole(c.pairs[0])} of ${whole(c.pairs[1])} pairs of choices were drawn together.`)
      : null,
  ];
}

// What the known differences would excuse: faults of which they let none through, by op version and backend.
function behind(rows) {
  const met = new Map();
  const groups = new Map();
  for (const r of rows) {
    for (const [backend, ids] of Object.entries(r.behind || {})) {
      const sum = met.get(backend) || [0, 0, 0];
      met.set(backend, [sum[0] + (ids.length ? 1 : 0), sum[1] + 1, sum[2] + (r.identified?.[backend] ? 1 : 0)]);
      if (!ids.length) continue;
      const key = [r.key, backend, ...ids].join("\n");
      const g = groups.get(key) || { key: r.key, backend, ids, dtypes: new Set(), faults: new Set() };
      g.dtypes.add(r.dtype);
      g.faults.add(r.fault);
      groups.set(key, g);
    }
  }
  if (!met.size) return null;
  const list = [...groups.values()].sort((a, b) => b.faults.size * b.dtypes.size - a.faults.size * a.dtypes.size);
  const shown = list.slice(0, 300);
  return h(
    "section",
    { class: "card", id: "hidden-faults" },
    h("h2", {}, "Hidden behind known differences"),
    h(
      "p",
      { class: "dim" },
      "Faults that the judge catches, but that listed differences excused in every trial. If the defect models of those entries give every such answer bit for bit, a fault counts as the listed defect itself and not as hidden.",
    ),
    dataTable(
      ["backend", "hidden", "share", "the listed defect itself"],
      [...met]
        .sort()
        .map(([b, [n, all, same]]) => [
          b,
          cell("num", `${whole(n)} of ${whole(all)}`),
          cell("num", percent(n, all)),
          cell("num", whole(same)),
        ]),
    ),
    shown.length
      ? dataTable(
          ["op version", "backend", "types", "faults", "entries"],
          shown.map((g) => [
            g.key,
            g.backend,
            [...g.dtypes].join(", "),
            [...g.faults].join(", "),
            cell("dim", g.ids.join(", ")),
          ]),
        )
      : null,
    andMore(list.length - shown.length),
  );
}

// Planted faults: which op lets which fault through.
function sensitivity() {
  const list = new VirtualList(28, row, { "aria-label": "Faults caught by op version", id: "fault-list" });
  const head = h("div", { class: "headwrap" });
  const lead = h("p", { class: "lead" });
  const table = h("div", { class: "card faults" }, head, list.el);
  const missing = h("div", {});
  const hidden = h("div", {});
  const el = h("section", { class: "page" }, lead, table, missing, hidden);
  let faults = [];

  const sum = (rows) => rows.reduce((s, r) => [s[0] + r.caught, s[1] + r.planted], [0, 0]);

  function share(rows, label) {
    const [caught, planted] = sum(rows);
    if (!planted) return h("span", {});
    const missed = rows.filter((r) => r.caught < r.planted).map((r) => `${r.dtype} ${r.caught}/${r.planted}`);
    return h(
      "span",
      {
        class: `heat v-${caught / planted >= 0.95 ? "agree" : "mismatch"}${caught < planted ? " part" : ""}`,
        title: `${label}: ${caught} of ${planted}${missed.length ? `; missed: ${missed.join(", ")}` : ""}`,
      },
      caught === planted ? "✓" : `${caught}/${planted}`,
    );
  }

  function row(r) {
    const by = groupBy(r.rows, (x) => x.fault || "any");
    return h(
      "div",
      { class: `frow${r.all ? " all" : ""}` },
      h("span", { class: "fname" }, r.key),
      share(r.rows, r.key),
      faults.map((f) => share(by.get(f) || [], `${r.key}, ${f}`)),
    );
  }

  function update() {
    const words = (state.q || "").toLowerCase();
    const rows = D.sensitivity.filter(
      (r) =>
        r.key.toLowerCase().includes(words) &&
        (!state.dialect || r.key.startsWith(`${state.dialect}/`)) &&
        (!state.dtype || r.dtype === state.dtype) &&
        (!state.key || r.key === state.key),
    );
    table.hidden = !rows.length;
    fill(hidden, behind(rows));
    if (!rows.length) {
      lead.textContent = "";
      return void fill(
        missing,
        empty(
          D.sensitivity.length
            ? "No op passes these filters."
            : "No faults were planted in this run: opconform run --sensitivity measures it.",
        ),
      );
    }
    faults = [...new Set(rows.map((r) => r.fault || "any"))].sort();
    table.style.setProperty("--faults", String(faults.length));
    const [caught, planted] = sum(rows);
    lead.textContent = `${whole(caught)} of ${whole(planted)} planted faults caught (${percent(caught, planted)}).`;
    fill(
      head,
      h(
        "div",
        { class: "frow fhead" },
        h("span", {}, "op version"),
        ["all", ...faults].map((f) => h("span", {}, f.replaceAll("_", " "))),
      ),
    );
    list.set([
      { key: "every op", rows, all: true },
      ...[...groupBy(rows, (r) => r.key)].map(([key, own]) => ({ key, rows: own })),
    ]);
    const missed = rows.filter((r) => r.caught < r.planted);
    const shown = missed.slice(0, 300);
    fill(
      missing,
      missed.length
        ? h(
            "section",
            { class: "card" },
            h("h2", {}, `Missed: ${whole(missed.length)}`),
            dataTable(
              null,
              shown.map((r) => [
                r.key,
                r.dtype,
                r.fault,
                cell("num", `${r.caught}/${r.planted}`),
                cell("dim", (r.missed || []).join(", ")),
              ]),
            ),
            andMore(missed.length - shown.length),
          )
        : null,
    );
  }
  return { el, update };
}
