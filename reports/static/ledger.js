// Clusters, the listed differences and ambiguities, and the comparison with a baseline.

// Clusters of different op versions that say the same of the same backend belong together.
function themes(f) {
  const wanted = D.clusters
    .map((c, i) => ({ ...c, i, dialect: c.key.split("/")[0] }))
    .filter(
      (c) =>
        (!f.dialect || c.dialect === f.dialect) &&
        (!f.backend || c.backend === f.backend) &&
        (!f.verdict || f.verdict.split(",").includes(c.verdict)) &&
        (!f.key || c.key === f.key) &&
        `${c.key} ${c.predicate}`.toLowerCase().includes((f.q || "").toLowerCase()),
    );
  const same = [
    ...groupBy(wanted, (c) => `${c.backend}\n${c.verdict}\n${c.predicate}\n${c.separates ? "" : c.kind}`).values(),
  ]
    .map((own) => ({
      ...own[0],
      ids: own.map((c) => c.i),
      keys: [...new Set(own.map((c) => c.key))],
      parts: own,
      failed: own.reduce((s, c) => s + c.failed, 0),
      passed: own.reduce((s, c) => s + c.passed, 0),
      elsewhere: own.reduce((s, c) => s + c.all_failed - c.failed, 0),
      fine: own.reduce((s, c) => s + Math.max(c.all_passed - c.passed, 0), 0),
    }))
    .sort((a, b) => b.failed - a.failed);
  // Two backends that fail in the same way (one runtime with and without optimisation) are shown once.
  return [
    ...groupBy(same, (t) => `${t.verdict}\n${t.predicate}\n${t.kind}\n${t.keys.join()}\n${t.failed}`).values(),
  ].map((own) => ({
    ...own[0],
    backend: own.map((t) => t.backend).join(", "),
    ids: own.flatMap((t) => t.ids),
    parts:
      own.length > 1
        ? own[0].parts.map((p) => ({
            ...p,
            i: own.flatMap((t) => t.parts.filter((x) => x.key === p.key).map((x) => x.i)).join(","),
          }))
        : own[0].parts,
  }));
}

function clusters() {
  const el = h("section", { class: "page" });
  let more = 60;
  function update() {
    const all = themes(state);
    fill(
      el,
      h(
        "p",
        { class: "dim" },
        "Failures of an op grouped by the fact about the instance that best separates them from the instances that pass. Passing instances are counted per dtype and opset exactly, per other choice from the coverage counts of the run.",
      ),
      all.length
        ? h("div", { class: "themes" }, all.slice(0, more).map(themeCard))
        : empty("No failure to explain here."),
      all.length > more
        ? h(
            "button",
            {
              type: "button",
              class: "button",
              onclick: () => {
                more += 200;
                update();
              },
            },
            `Show ${whole(all.length - more)} more`,
          )
        : null,
    );
  }
  return { el, update };
}

function themeCard(t) {
  const line = (label, fails, passes) =>
    h(
      "div",
      { class: "sep" },
      h("span", {}, label),
      h(
        "span",
        { class: "sepbar", role: "img", "aria-label": `${label}: ${whole(fails)} fail, ${whole(passes)} pass` },
        h("span", { class: "f", style: { "flex-grow": String(fails) } }),
        h("span", { class: "p", style: { "flex-grow": String(passes) } }),
      ),
      h(
        "span",
        { class: "num" },
        h("b", { class: fails ? "hot" : "" }, compact(fails)),
        " fail · ",
        compact(passes),
        " pass",
      ),
    );
  const common = t.parts.length === 1 ? t.common.filter((f) => !f.startsWith("opset=")).slice(0, 8) : [];
  return h(
    "section",
    { class: "card theme" },
    h(
      "div",
      { class: "theme-head" },
      verdictTag(t.verdict),
      h("span", { class: "dim" }, t.backend),
      h("span", { class: "grow" }),
      h(
        "a",
        { class: "button", href: linkTo({ view: "cases", cluster: t.ids.join(",") }) },
        plural(t.failed, "failure"),
      ),
    ),
    h(
      "h2",
      { class: "pred" },
      t.separates ? t.predicate : `${t.predicate} separates them`,
      t.kind && !t.separates ? h("span", { class: "dim small" }, ` · ${t.kind}`) : null,
    ),
    t.separates && t.predicate !== "every instance"
      ? [line("with it", t.failed, t.passed), line("without it", t.elsewhere, t.fine)]
      : line("in all", t.failed, t.passed),
    h(
      "div",
      { class: "ops" },
      t.parts
        .slice(0, 12)
        .map((c) =>
          h(
            "a",
            { class: "op-chip", href: linkTo({ view: "cases", cluster: String(c.i) }) },
            c.key.replace(/^[^/]*\//, "").replace("/", " "),
            h("span", { class: "dim" }, compact(c.failed)),
          ),
        ),
      t.parts.length > 12 ? h("span", { class: "dim" }, `and ${t.parts.length - 12} more`) : null,
    ),
    common.length ? h("p", { class: "dim small" }, "All of them: ", common.join(" · ")) : null,
    t.exact ? null : h("p", { class: "dim small" }, "Passing instances estimated from the coverage counts."),
  );
}

function listed() {
  const el = h("section", { class: "page" });
  function update() {
    const words = (state.q || "").toLowerCase();
    const pick = (ledger) =>
      Object.values(ledger)
        .filter(
          (e) =>
            `${e.id} ${e.reason} ${e.clause} ${e.backend || ""}`.toLowerCase().includes(words) &&
            (!state.backend || !e.backend || e.backend === state.backend),
        )
        .sort((a, b) => b.hits - a.hits || a.id.localeCompare(b.id));
    fill(
      el,
      h(
        "div",
        { class: "two even" },
        ledgerBox(
          "Known differences",
          "Deviations with a reason and a clause. One that is not seen in a full run fails the run, so the list shrinks.",
          pick(D.known),
          "known",
        ),
        ledgerBox(
          "Ambiguities",
          "Where the specification is silent and implementations differ. Counted apart, never called a mismatch.",
          pick(D.ambiguity),
          "ambiguous",
        ),
      ),
    );
  }
  return { el, update };
}

function ledgerBox(title, text, entries, verdict) {
  return h(
    "section",
    {},
    h("h2", {}, title, " ", h("span", { class: "dim" }, whole(entries.length))),
    h("p", { class: "dim" }, text),
    entries.length
      ? entries.map((e) =>
          h(
            "div",
            { class: `card entry${e.hits || e.cases ? "" : " idle"}` },
            h(
              "div",
              { class: "theme-head" },
              h("b", { class: "mono" }, e.id),
              h("span", { class: "grow" }),
              e.hits || e.cases
                ? verdictTag(verdict, ` ${compact(e.hits || e.cases)}`)
                : h("span", { class: "tag v-timed_out" }, "not seen"),
            ),
            e.reason
              ? h("p", {}, e.reason)
              : e.hits || e.cases
                ? verdict === "ambiguous"
                  ? h("p", { class: "dim" }, "Stated with the meaning of the op.")
                  : h("p", { class: "hot" }, "No reason is recorded.")
                : h("p", { class: "dim" }, "Listed, but a full run did not meet it: to be taken off the list."),
            e.readings?.length
              ? h(
                  "ol",
                  { class: "small" },
                  e.readings.map((x, i) => h("li", {}, x, i ? "" : " (ours)")),
                )
              : null,
            e.clause ? h("p", { class: "clause" }, e.clause) : null,
            e.link || e.status
              ? h("p", { class: "dim mono small" }, [e.status, e.link].filter(Boolean).join(": "))
              : null,
            D.cases.some((c) => c.known === e.id || c.ambiguity === e.id)
              ? h("a", { class: "button", href: linkTo({ view: "cases", listed: e.id }) }, "Show cases")
              : null,
          ),
        )
      : empty("None."),
  );
}

function changes() {
  const el = h("section", { class: "page" });
  const kinds = [
    ["new", "New", "Fails now, did not before, both runs tried it."],
    ["seldom", "Seen only now", "Too rare to call new, since the seed differs."],
    ["gone", "Gone", "Failed before, does not now, both runs tried it."],
    ["still", "Still there", "Fails in both."],
    ["not_run", "Not run now", "Failed before; this run did not try it, so nothing can be said."],
    ["first_run", "First tried", "Fails now; the baseline did not try it."],
  ];
  const listed = [
    ["listed_new", "Listed, only now", "Known differences and ambiguities of this run alone; both tried their ops."],
    ["listed_gone", "Listed, no longer", "Those of the baseline alone."],
  ];
  const types = [
    ["taken", "Types taken only now", "All instances of the type were unsupported before."],
    ["dropped", "Types no longer taken", "All are unsupported now."],
  ];
  function update() {
    if (!D.diff)
      return fill(
        el,
        empty("This report has no baseline. Make one with: opconform report RECORDS --baseline OLDER_RECORDS"),
      );
    const fits = (e) =>
      e.key.toLowerCase().includes((state.q || "").toLowerCase()) &&
      (!state.dialect || e.key.startsWith(`${state.dialect}/`)) &&
      (!state.backend || e.backend === D.backends[state.backend]?.name) &&
      (!state.verdict || state.verdict.split(",").includes(e.verdict));
    const { now, before } = D.diff.versions;
    const moved = [...new Set([...Object.keys(now), ...Object.keys(before)])].sort().map((b) => [b, before[b], now[b]]);
    const cpu = [
      ["only now", D.diff.processor.now],
      ["no longer", D.diff.processor.before],
    ]
      .filter(([, names]) => names.length)
      .map(([word, names]) => `${word} ${names.join(" ")}`);
    fill(
      el,
      h(
        "p",
        { class: "lead" },
        `Baseline of ${D.diff.started.before || "unknown date"} against this run of ${D.diff.started.now || "unknown date"}.`,
      ),
      h(
        "div",
        { class: "attrs" },
        moved.map(([b, was, is]) =>
          h(
            "span",
            { class: was === is ? "attr" : "attr moved" },
            h("span", {}, b),
            h("b", {}, was === is ? is : `${was || "absent"} → ${is || "absent"}`),
          ),
        ),
      ),
      cpu.length
        ? h(
            "p",
            { class: "lead", id: "processors" },
            `The processors differ, and kernels are chosen by them: ${cpu.join("; ")}.`,
          )
        : null,
      ...kinds.map((kind) =>
        changeFold(
          kind,
          ["op version", "backend", "verdict", "before", "now"],
          3,
          D.diff[kind[0]].filter(fits),
          (e) => [
            h("a", { href: linkTo({ view: "cases", key: e.key, verdict: e.verdict }) }, e.key),
            e.backend,
            verdictTag(e.verdict),
            `${whole(e.was)} / ${compact(e.was_of)}`,
            `${whole(e.n)} / ${compact(e.of)}`,
          ],
        ),
      ),
      ...listed.map((kind) =>
        changeFold(
          kind,
          ["difference", "backend", "op versions", "reason"],
          4,
          D.diff[kind[0]].filter((e) => e.keys.some((key) => fits({ ...e, key }))),
          (e) => [
            kind[0] === "listed_new" ? h("a", { href: linkTo({ view: "cases", listed: e.id }) }, e.id) : e.id,
            e.backend,
            e.keys.join(", "),
            [e.reason, e.clause ? h("p", { class: "clause" }, e.clause) : null],
          ],
        ),
      ),
      ...types.map((kind) =>
        changeFold(
          kind,
          ["op version", "backend", "types"],
          3,
          D.diff[kind[0]].filter((e) => fits({ ...e, verdict: "unsupported" })),
          (e) => [e.key, e.backend, e.dtypes.join(" ")],
        ),
      ),
    );
  }
  return { el, update };
}

// A fold of the changes page, open where it tells something new.  Cells of an entry from number `numbers` on are numbers.
function changeFold([kind, title, text], head, numbers, list, cells) {
  const row = (e) => cells(e).map((x, i) => (i < numbers ? x : cell("num", x)));
  const shown = list.slice(0, 500);
  return h(
    "details",
    { class: `card change ${kind}`, open: list.length > 0 && !["still", "not_run"].includes(kind) },
    h(
      "summary",
      {},
      title,
      " ",
      h("span", { class: "n" }, whole(list.length)),
      h("span", { class: "dim small" }, text),
    ),
    list.length ? dataTable(head, shown.map(row)) : empty("None."),
    andMore(list.length - shown.length),
  );
}
