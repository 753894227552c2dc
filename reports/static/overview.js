// First page: is the run clean, who deviates, what are the largest defects, what changed.

function overview() {
  const el = h("section", { class: "page overview" });
  function update() {
    const cells = cellsFor(state);
    const t = tally(cells);
    const bad = badOf(t);
    const versions = new Set(cells.map((c) => c.key));
    fill(
      el,
      notes(),
      h(
        "div",
        { class: "kpis" },
        kpi(
          compact(bad),
          "unexplained",
          bad ? "bad" : t.unknown ? "" : "ok",
          { view: "cases", verdict: D.bad_verdicts.join(",") },
          bad
            ? `${percent(bad, judgedOf(t))} of what was judged`
            : t.unknown
              ? `${whole(t.unknown)} without verdict`
              : "every deviation has its reason",
        ),
        kpi(
          compact(judgedOf(t)),
          "judged outcomes",
          "",
          null,
          `${percent(t.agree || 0, judgedOf(t))} agree; ${compact(t.unsupported || 0)} unsupported, ${compact(t.uninformative || 0)} uninformative`,
        ),
        kpi(
          whole(versions.size),
          "op versions",
          "",
          { view: "coverage" },
          [...groupBy([...versions], (k) => k.split("/")[0])].map(([d, v]) => `${d} ${v.length}`).join(" · "),
        ),
        kpi(
          whole(D.clusters.length),
          "clusters",
          "",
          { view: "clusters" },
          D.clusters.length ? `largest: ${whole(D.clusters[0].failed)} failures` : "nothing to explain",
        ),
        kpi(
          compact((t.known || 0) + (t.ambiguous || 0)),
          "known or ambiguous",
          "",
          { view: "listed" },
          `${plural(Object.keys(D.known).length, "entry", "entries")}, ${plural(Object.keys(D.ambiguity).length, "ambiguity", "ambiguities")}`,
        ),
        kpiSensitivity(),
      ),
      causeBox(),
      h("div", { class: "two" }, backendTable(cells), h("div", {}, changesBox(), clusterBox())),
      runBox(),
    );
  }
  return { el, update };
}

function kpi(value, label, mood, target, note) {
  const inner = [h("b", {}, value), h("span", {}, label), h("small", {}, note || "")];
  return target
    ? h("a", { class: `kpi ${mood}`, href: linkTo({ ...picked(), ...target }) }, inner)
    : h("div", { class: `kpi ${mood}` }, inner);
}

const picked = () =>
  Object.fromEntries(["dialect", "backend", "opset", "dtype", "q"].filter((f) => state[f]).map((f) => [f, state[f]]));

function kpiSensitivity() {
  const planted = D.sensitivity.reduce((s, r) => s + r.planted, 0);
  const caught = D.sensitivity.reduce((s, r) => s + r.caught, 0);
  if (!planted) return kpi("–", "sensitivity", "", { view: "sensitivity" }, "not measured in this run");
  return kpi(
    percent(caught, planted),
    "sensitivity",
    caught / planted >= 0.95 ? "ok" : "warn",
    { view: "sensitivity" },
    `${whole(caught)} of ${whole(planted)} planted faults`,
  );
}

function notes() {
  const lines = [...D.notes];
  if (D.interrupted) lines.push("What follows is what had been judged until then.");
  return lines.length
    ? h(
        "ul",
        { class: "notes" },
        lines.map((n) => h("li", {}, n)),
      )
    : null;
}

function backendTable(cells) {
  const by = groupBy(cells, (c) => c.backend);
  const rows = D.cube.backends
    .filter((b) => by.has(b))
    .map((b) => {
      const t = tally(by.get(b));
      const shown = SEVERITY.filter((v) => t[v] && v !== "agree");
      const version = D.backends[b]?.version;
      return h(
        "div",
        { class: "backend" },
        h(
          "div",
          { class: "backend-head" },
          h("a", { class: "name", href: linkTo({ ...picked(), view: "matrix", backend: b }) }, b),
          version && !b.includes(version) ? h("span", { class: "dim" }, version) : null,
          h("span", { class: "grow" }),
          h(
            "span",
            { class: badOf(t) || t.unknown ? "hot" : "dim" },
            badOf(t) ? `${whole(badOf(t))} unexplained` : t.unknown ? `${whole(t.unknown)} without verdict` : "clean",
          ),
        ),
        verdictBar(t, b),
        h(
          "div",
          { class: "legend" },
          h("span", { class: "dim" }, `${compact(t.agree || 0)} agree`),
          shown.map((v) =>
            h(
              "a",
              {
                class: `leg v-${v}`,
                href: linkTo({ ...picked(), view: casesHave(v, b) ? "cases" : "matrix", backend: b, verdict: v }),
              },
              h("i", { class: "dot" }),
              `${compact(t[v])} ${VERDICTS[v].label}`,
            ),
          ),
        ),
      );
    });
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "Backends"),
    rows.length ? rows : empty("No outcome passes these filters."),
  );
}

const casesHave = (v, b) => D.cases.some((c) => c.verdict === v && c.backend === b);
const empty = (text) => h("p", { class: "empty" }, text);

// What one change would settle: crashes first, then silent wrong values, then refusals.
function causeBox() {
  const fits = (c) => !state.backend || c.backend === state.backend;
  const list = D.causes.filter((c) => c.first && fits(c));
  if (list.length < 2) return null;
  const share = list.reduce((s, c) => s + c.share, 0);
  return h(
    "section",
    { class: "card causes" },
    h("h2", {}, "What to do first"),
    h(
      "p",
      { class: "dim" },
      `${plural(list.length, "cause")} of ${whole(D.causes.filter(fits).length)} would settle ${percent(share, 1)} of the failures.`,
    ),
    h(
      "ol",
      { class: "plain" },
      list.map((c) =>
        h(
          "li",
          {},
          h(
            "a",
            { class: "theme-line", href: linkTo({ view: "cases", ...placeOf(c) }) },
            verdictTag(c.verdict),
            h("span", { class: "what" }, h("b", {}, c.text), c.ops.length ? ` in ${someOf(c.ops)}` : ""),
            h("span", { class: "dim" }, c.backend),
            h("span", { class: "num" }, whole(c.failed)),
          ),
        ),
      ),
    ),
  );
}

const someOf = (ops) => ops.slice(0, 4).join(", ") + (ops.length > 4 ? ` and ${ops.length - 4} more ops` : "");

const placeOf = (c) => ({ backend: c.backend, verdict: c.verdict, cluster: c.clusters.join(",") });

function clusterBox() {
  const list = themes(state).slice(0, 8);
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "Largest clusters", h("a", { class: "more", href: linkTo({ ...picked(), view: "clusters" }) }, "all")),
    list.length
      ? h(
          "ol",
          { class: "plain" },
          list.map((t) =>
            h(
              "li",
              {},
              h(
                "a",
                { class: "theme-line", href: linkTo({ view: "cases", cluster: t.ids.join(","), ...picked() }) },
                verdictTag(t.verdict),
                h("span", { class: "what" }, h("b", {}, t.predicate), " in ", opNames(t.keys)),
                h("span", { class: "dim" }, t.backend),
                h("span", { class: "num" }, whole(t.failed)),
              ),
            ),
          ),
        )
      : empty("No failure to explain."),
  );
}

function opNames(keys) {
  const names = [...new Set(keys.map((k) => KEYS.get(k).op))];
  return names.slice(0, 3).join(", ") + (names.length > 3 ? ` and ${names.length - 3} more ops` : "");
}

function changesBox() {
  if (!D.diff) return null;
  const line = (kind, label, mood) =>
    h(
      "a",
      { class: `delta ${D.diff[kind].length ? mood : ""}`, href: linkTo({ view: "changes" }) },
      h("b", {}, whole(D.diff[kind].length)),
      label,
    );
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "Against the baseline", h("a", { class: "more", href: linkTo({ view: "changes" }) }, "details")),
    h(
      "div",
      { class: "deltas" },
      line("new", "new", "bad"),
      line("gone", "gone", "ok"),
      line("still", "still there", ""),
      line("not_run", "not run now", ""),
    ),
  );
}

function runBox() {
  const run = D.runs[0] || {};
  const facts = [
    [
      "started",
      D.runs.length > 1 ? `${D.runs.map((r) => r.started).sort()[0]} and ${D.runs.length - 1} more` : run.started,
    ],
    ["took", duration(D.elapsed)],
    ["seed", [...new Set(D.runs.map((r) => r.seed))].join(", ")],
    ["command", run.command],
    ["opconform", run.opconform],
    ["instruction set", [...new Set(D.runs.map((r) => r.isa))].join(", ")],
    ["processor of the backends", [...new Set(D.runs.map((r) => r.cpu).filter(Boolean))].join(" and ")],
    [
      "dialects",
      Object.entries(run.dialects || {})
        .map(([d, s]) => `${d} (${s})`)
        .join(", "),
    ],
    ["selection", run.selection && Object.keys(run.selection).length ? JSON.stringify(run.selection) : "everything"],
    [
      "pythons",
      Object.entries(D.backends)
        .filter(([, i]) => i.python)
        .map(([b, i]) => `${b}: ${i.python}`)
        .join(", "),
    ],
  ];
  return h(
    "details",
    { class: "card run" },
    h("summary", {}, "About this run"),
    h(
      "dl",
      {},
      facts
        .filter(([, v]) => v !== undefined && v !== "" && v !== null)
        .map(([k, v]) => [h("dt", {}, k), h("dd", {}, String(v))]),
    ),
  );
}
