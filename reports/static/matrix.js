// Op x backend x opset: a row per op version, a column per backend, and in each cell the opsets side by side.

function matrix() {
  const list = new VirtualList(34, row, { "aria-label": "Op versions", id: "matrix-list" });
  const head = h("div", { class: "headwrap" });
  const only = h("input", {
    type: "checkbox",
    id: "only-bad",
    onchange: () => go({ bad: only.checked ? "1" : null }, true),
  });
  const sort = h(
    "select",
    { id: "matrix-sort", "aria-label": "Sort rows", onchange: () => go({ msort: sort.value }, true) },
    h("option", { value: "" }, "by name"),
    h("option", { value: "bad" }, "by failures"),
    h("option", { value: "rate" }, "by failure rate"),
  );
  const caption = h("span", { class: "dim" });
  const side = h("div", { class: "side" });
  const el = h(
    "section",
    { class: "page fill" },
    h(
      "div",
      { class: "bar" },
      caption,
      h("span", { class: "grow" }),
      h("label", { class: "check" }, only, "only rows with failures"),
      sort,
    ),
    h("div", { class: "split" }, h("div", { class: "matrix card" }, head, list.el), side),
  );
  let columns = {}; // dialect -> the backends that were given its models
  let last = "";
  let headed = null;

  // The header names the columns of the dialect that is at the top of the view.
  list.onscroll = (i) => {
    const dialect = list.items[i]?.dialect;
    if (dialect === headed) return;
    headed = dialect;
    fill(head, dialect ? headRow(dialect) : null);
  };

  function update() {
    const cells = cellsFor(state, "key");
    columns = {};
    for (const [dialect, own] of groupBy(cells, (c) => c.dialect))
      columns[dialect] = D.cube.backends.filter((b) => own.some((c) => c.backend === b));
    let rows = [...groupBy(cells, (c) => c.key)].map(([key, own]) => {
      const t = tally(own);
      return { ...KEYS.get(key), by: groupBy(own, (c) => c.backend), bad: badOf(t), ran: ranOf(t) };
    });
    const all = rows.length;
    if (state.bad) rows = rows.filter((r) => r.bad);
    const worth = { bad: (r) => r.bad, rate: (r) => r.bad / (r.ran || 1) }[state.msort];
    const sections = [...groupBy(rows, (r) => r.dialect)];
    if (worth) for (const [, own] of sections) own.sort((a, b) => worth(b) - worth(a));
    const items = sections.flatMap(([dialect, own], i) => {
      for (const [j, r] of own.entries()) r.repeat = j > 0 && own[j - 1].op === r.op;
      return i ? [{ dialect, heading: true }, ...own] : own;
    });
    only.checked = Boolean(state.bad);
    sort.value = state.msort || "";
    caption.textContent = `${plural(rows.length, "op version")}${rows.length < all ? ` of ${whole(all)}` : ""} · a cell shows the opsets from first to last, the number counts failures, or what ran when there is none`;
    headed = null;
    const look = JSON.stringify([state.q, state.dialect, state.msort, state.bad]);
    if (look !== last) list.el.scrollTop = 0;
    last = look;
    list.set(items);
    fill(side, state.key ? opPanel(state.key) : null);
    el.classList.toggle("open", Boolean(state.key));
    if (!rows.length) fill(list.space, empty("No op version passes these filters."));
  }

  function row(r) {
    if (r.heading) return headRow(r.dialect);
    const open = () => go({ key: state.key === r.key ? null : r.key });
    return h(
      "div",
      { class: `mrow${state.key === r.key ? " sel" : ""}`, style: { "--cols": String(columns[r.dialect].length) } },
      h(
        "button",
        { type: "button", class: "mname", onclick: open, "aria-expanded": String(state.key === r.key), title: r.key },
        h("span", { class: r.repeat ? "op dim" : "op" }, r.op),
        h("span", { class: "ver" }, r.version),
      ),
      columns[r.dialect].map((b) => backendCell(r, b)),
    );
  }

  function headRow(dialect) {
    return h(
      "div",
      { class: "mrow mhead", style: { "--cols": String(columns[dialect].length) } },
      h("span", { class: "mname" }, h("span", { class: `dialect d-${dialect}` }, dialect), " ", opsetRange(dialect)),
      columns[dialect].map((b) => h("span", { class: "mcol", title: b }, columnName(b, columns[dialect]))),
    );
  }

  function backendCell(r, b) {
    const own = r.by.get(b);
    if (!own) return h("span", { class: "mcell none", title: `${b}: not run` }, "");
    const t = tally(own);
    const bad = badOf(t);
    const ran = ranOf(t);
    const told = `${r.key} on ${b}: ${tallyText(t)}`;
    return h(
      "a",
      {
        class: "mcell",
        title: `${told}\nopsets run: ${[...new Set(own.map((c) => c.opset))].join(" ")}`,
        "aria-label": told,
        href: linkTo({
          ...picked(),
          ...(bad || t.known || t.ambiguous ? { view: "cases" } : { view: "matrix" }),
          key: r.key,
          backend: b,
          verdict: state.verdict,
        }),
      },
      strip(own, OPSETS[r.dialect]),
      h("span", { class: bad ? "mnum bad" : "mnum" }, bad ? compact(bad) : ran ? compact(ran) : "–"),
    );
  }

  return { el, update, list };
}

// A column is narrow: of backends that begin alike the end tells them apart.
function columnName(b, all) {
  const first = b.split("-")[0];
  return first.length > 4 && first !== b && all.filter((x) => x.split("-")[0] === first).length > 2
    ? `…${b.slice(first.length + 1)}`
    : b;
}

function opsetRange(dialect) {
  const all = OPSETS[dialect] || [];
  return all.length > 1 ? `opsets ${all[0]} to ${all[all.length - 1]}` : "";
}

// Everything about one op version: opset x backend, dtype x backend, its clusters, what was covered.
function opPanel(key) {
  const k = KEYS.get(key) || splitKey(key);
  const cells = CUBE.filter((c) => c.key === key);
  const clusters = D.clusters.map((c, i) => ({ ...c, i })).filter((c) => c.key === key);
  const bad = badOf(tally(cells));
  return h(
    "aside",
    { class: "card panel", "aria-label": `About ${key}` },
    h(
      "div",
      { class: "panel-head" },
      h(
        "h2",
        {},
        h("span", { class: `dialect d-${k.dialect}` }, k.dialect),
        k.op,
        h("span", { class: "ver" }, k.version),
      ),
      h("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => go({ key: null }) }, "×"),
    ),
    bad
      ? h(
          "p",
          {},
          h(
            "a",
            { class: "button", href: linkTo({ view: "cases", key }) },
            `Show ${plural(casesFor({ key }).length, "case")}`,
          ),
        )
      : h("p", { class: "dim" }, cells.length ? "No unexplained outcome." : "Not run."),
    cells.length
      ? [
          h("h3", {}, "Oracles"),
          oracles(cells, key),
          h("h3", {}, "Opset × backend"),
          cross(
            cells,
            "opset",
            (OPSETS[k.dialect] || []).filter((o) => cells.some((c) => c.opset === o)),
            key,
          ),
          h("h3", {}, "Dtype × backend"),
          cross(cells, "dtype", [...new Set(cells.map((c) => c.dtype))].sort(), key),
        ]
      : null,
    clusters.length
      ? [
          h("h3", {}, "Clusters"),
          clusters.map((c) =>
            h(
              "a",
              { class: "theme-line", href: linkTo({ view: "cases", cluster: String(c.i) }) },
              verdictTag(c.verdict),
              h("span", { class: "what" }, h("b", {}, c.predicate)),
              h("span", { class: "dim" }, c.backend),
              h("span", { class: "num" }, whole(c.failed)),
            ),
          ),
        ]
      : null,
    coverageOf(key),
  );
}

// Which backends agreed with the reference: a row each, what came of the instances that it was asked.
function oracles(cells, key) {
  const rows = D.cube.backends
    .map((b) => [b, tally(cells.filter((c) => c.backend === b))])
    .filter(([, t]) => Object.keys(t).length);
  const columns = D.kinds.map((kind) => [kind, (t) => sumOf(t, (v) => VERDICTS[v].kind === kind)]);
  const took = rows.filter(([, t]) => ranOf(t));
  const agreed = took.filter(([, t]) => t.agree && !badOf(t));
  return [
    h(
      "p",
      { class: "oracle-line" },
      took.length
        ? `${agreed.length} of the ${plural(took.length, "backend")} that took instances ${took.length === 1 ? "agrees" : "agree"} with the reference${agreed.length < took.length ? "" : " in all that is not listed"}.`
        : "No backend takes it.",
    ),
    dataTable(
      ["backend", ...columns.map(([name]) => name)],
      rows.map(([b, t]) => [
        h("a", { href: linkTo({ view: "cases", key, backend: b }) }, b),
        ...columns.map(([name, of]) =>
          cell(`num${name === "differs" && of(t) ? " bad" : ""}`, of(t) ? whole(of(t)) : "–"),
        ),
      ]),
      "cross oracles",
    ),
  ];
}

function cross(cells, by, names, key) {
  const backends = D.cube.backends.filter((b) => cells.some((c) => c.backend === b));
  const one = (n, b) => {
    const t = tally(cells.filter((c) => c[by] === n && c.backend === b));
    const worst = worstOf(t);
    if (!worst) return cell("none", "");
    const bad = badOf(t);
    const text = bad ? `${compact(bad)} / ${compact(ranOf(t))}` : ranOf(t) ? compact(ranOf(t)) : "–";
    return h(
      "td",
      { title: tallyText(t) },
      h(
        "a",
        {
          class: `heat v-${worst}${bad ? " bad" : ""}`,
          "aria-label": `${by} ${n} on ${b}: ${tallyText(t)}`,
          href: linkTo({ view: "cases", key, [by]: n, backend: b }),
        },
        text,
      ),
    );
  };
  return dataTable(
    [by, ...backends],
    names.map((n) => [n, ...backends.map((b) => one(n, b))]),
    "cross",
  );
}
