// One case, top to bottom in the order a reader asks: what happened, on what, which numbers, by which rule, who else,
// and how to see it again.

function caseDetail(c) {
  const d = c.diff;
  return h(
    "article",
    { class: "card case-detail", "aria-label": `${c.key} on ${c.backend}` },
    h(
      "div",
      { class: "detail-head" },
      verdictTag(c.verdict),
      h(
        "h2",
        {},
        h("span", { class: `dialect d-${c.dialect}` }, c.dialect),
        c.op,
        h("span", { class: "ver" }, c.version),
      ),
      c.baseline === "new" ? h("span", { class: "newtag" }, "new") : null,
      h("span", { class: "grow" }),
      h("code", { class: "id", title: "instance id" }, c.id),
    ),
    h("p", { class: "lead" }, story(c)),
    c.cluster_index !== null && c.cluster_index !== undefined ? clusterLine(c) : null,
    c.replay ? codeLine(c.replay, "replay command") : null,
    // What the records tell about a failure (text, elements, pictures) is told of the smallest instance that shows it.
    h("h3", {}, c.minimal ? "Minimal instance" : "Instance"),
    c.notation ? h("pre", { class: "notation", tabindex: "0" }, c.notation) : null,
    c.neighbours?.length
      ? [
          h("p", {}, `Right alone, wrong in one model of ${c.neighbours.length}:`),
          h("pre", { class: "notation", tabindex: "0" }, c.neighbours.join("\n")),
        ]
      : null,
    c.prior_models?.length
      ? [
          h("p", {}, `Right in a fresh process, wrong in one that has served ${c.prior_models.length} before:`),
          h("pre", { class: "notation", tabindex: "0" }, c.prior_models.flat().join("\n")),
        ]
      : null,
    c.nondeterministic
      ? h("p", { class: "nondeterministic" }, `${c.nondeterministic[0].toUpperCase() + c.nondeterministic.slice(1)}.`)
      : null,
    instanceTable(c.minimal || c.instance),
    c.minimal ? h("details", {}, h("summary", {}, "As it was drawn"), instanceTable(c.instance)) : null,
    d?.elements?.length ? elementsTable(c, d) : null,
    d ? pictures(d) : null,
    ruleBox(c, d),
    votes(c),
    c.message && c.status !== "value"
      ? [h("h3", {}, "In the backend's words"), h("pre", { class: "message", tabindex: "0" }, c.message)]
      : null,
    listedBox(c),
    c.folder ? h("p", { class: "dim" }, "Reproduction folder: ", h("code", {}, c.folder)) : null,
    c.instance
      ? [h("h3", {}, "Instance as JSON"), codeLine(JSON.stringify(c.minimal || c.instance), "instance")]
      : null,
    h("details", {}, h("summary", {}, "Record as JSON"), rawJson(c)),
  );
}

const rawJson = (c) => {
  const { n, at, search, dialect, op, version, ...record } = c;
  return h("pre", { class: "raw", tabindex: "0" }, JSON.stringify(record, null, 1));
};

function story(c) {
  const info = D.backends[c.backend] || {};
  const who = `${c.backend}${info.version && !c.backend.includes(info.version) ? ` ${info.version}` : ""}`;
  const d = c.diff;
  const where = ` at opset ${c.opset} for ${c.dtype}`;
  const texts = {
    crashed: `${who} died while it was to ${c.phase || "run"} this instance${where}.`,
    timed_out: `${who} gave no answer in time${where}.`,
    wrongly_rejected: `${who} refused a valid instance${c.phase ? ` at ${c.phase}` : ""}${where}.`,
    wrongly_accepted: `${who} took an instance that breaks the stated rule “${c.rule}”${where}.`,
  };
  if (texts[c.verdict]) return texts[c.verdict];
  if (d?.got_shape && String(d.got_shape) !== String(d.shape))
    return `${who} returned shape [${d.got_shape.join(", ")}] where [${d.shape.join(", ")}] is right${where}.`;
  if (d?.got_dtype && d.got_dtype !== c.dtype && d.expected_dtype && d.got_dtype !== d.expected_dtype)
    return `${who} returned ${d.got_dtype} where ${d.expected_dtype} is right${where}.`;
  if (d?.count)
    return `${who} is outside the bound in ${whole(d.count)} of ${plural(d.size, "element")}${c.output ? ` of output ${c.output}` : ""}${where}${d.pattern ? `; pattern: ${d.pattern}` : ""}.`;
  return `${who}${where}: ${VERDICTS[c.verdict]?.sentence || c.verdict}`;
}

function clusterLine(c) {
  const cl = D.clusters[c.cluster_index];
  return h(
    "p",
    { class: "cluster-line" },
    "Fails ",
    h(
      "a",
      { href: linkTo({ view: "cases", cluster: String(c.cluster_index) }) },
      cl.separates ? `when ${cl.predicate}` : "without one fact that explains it",
    ),
    ` (${plural(cl.failed, "failure")}, ${whole(cl.passed)} pass ${cl.separates ? "with it" : "as well"}).`,
  );
}

function shapeText(a) {
  return `[${(a.shape || []).map((n, i) => ((a.dynamic || []).includes(i) ? `${n}?` : n)).join(" × ")}]`;
}

function instanceTable(instance) {
  if (!instance) return null;
  const rows = [];
  for (const [slot, arg] of Object.entries(instance.args || {})) {
    if (Array.isArray(arg)) rows.push(...arg.map((a, i) => [`${slot}[${i}]`, a]));
    else rows.push([slot, arg]);
  }
  const attrs = Object.entries(instance.attrs || {});
  return [
    rows.length
      ? dataTable(
          ["input", "dtype", "shape", "given as", "data"],
          rows.map(([slot, a]) => [
            slot,
            a.dtype,
            cell("mono", shapeText(a), a.kind && a.kind !== "tensor" ? ` ${a.kind}` : ""),
            [a.const ? "constant" : "run-time input", a.quant ? `, quantised ${quantText(a.quant)}` : ""],
            cell("mono", dataText(a)),
          ]),
        )
      : null,
    attrs.length
      ? h(
          "div",
          { class: "attrs" },
          attrs.map(([k, v]) => h("span", { class: "attr" }, h("span", {}, k), h("b", {}, plain(v)))),
        )
      : h("p", { class: "dim small" }, "No attribute is set."),
  ];
}

const quantText = (q) =>
  `scale ${[].concat(q.scale).slice(0, 3).map(figure).join(", ")}${[].concat(q.scale).length > 3 ? " …" : ""} zero ${[]
    .concat(q.zero_point ?? 0)
    .slice(0, 3)
    .join(", ")}`;

function dataText(a) {
  if (a.values) {
    const text = a.values.slice(0, 16).map(plain).join(", ");
    return a.values.length > 16 ? `${text}, … (${whole(a.values.length)})` : text || "empty";
  }
  return `${a.recipe || "–"}, seed ${a.seed ?? 0}`;
}

// The JSON form of an attribute value, as a reader would write it.
function plain(v) {
  if (Array.isArray(v)) return `[${v.slice(0, 24).map(plain).join(", ")}${v.length > 24 ? ", …" : ""}]`;
  if (v && typeof v === "object") {
    if ("f" in v) return v.f;
    if ("dtype" in v) return v.dtype;
    if ("array" in v) return `${v.array}[${v.shape.join(", ")}]`;
    if ("graph" in v) return "block";
    return JSON.stringify(v);
  }
  return typeof v === "number" ? figure(v) : String(v);
}

function elementsTable(_c, d) {
  return [
    h("h3", {}, "Elements"),
    dataTable(
      ["", "index", "expected", "actual", "bits expected", "bits actual", "ulp", "bound"],
      d.elements.map((e) => [
        cell("dim", e.why || ""),
        cell("mono", `[${[].concat(e.index).join(", ")}]`),
        cell("mono num", figure(e.expected)),
        cell("mono num hot", figure(e.actual)),
        cell("mono hex", e.expected_hex || ""),
        cell("mono hex", hexDiff(e.expected_hex, e.actual_hex)),
        cell("mono num", figure(e.ulp)),
        cell("mono num", e.bound === undefined || e.bound === null ? "–" : `±${figure(e.bound)}`),
      ]),
      "data elements",
    ),
  ];
}

// The digits that differ stand out.
function hexDiff(a, b) {
  if (!a || !b || a.length !== b.length) return b || "";
  return [...b].map((ch, i) => (ch === a[i] ? ch : h("mark", {}, ch)));
}

function pictures(d) {
  const parts = [];
  if (d.size === 1) return null; // one element: the table has said it all
  if (d.ulp_histogram && Object.keys(d.ulp_histogram).length)
    parts.push(
      h(
        "figure",
        {},
        ulpHistogram(d.ulp_histogram),
        h("figcaption", {}, "elements by distance in ULP (bar height: root of the count)"),
      ),
    );
  if (d.map?.cells) parts.push(indexMap(d.map));
  return parts.length ? [h("h3", {}, "Where and how far"), h("div", { class: "pictures" }, parts)] : null;
}

function ruleBox(c, d) {
  const facts = [
    ["kind of difference", c.kind],
    ["class", c.class],
    ["bound", c.formula],
    ["broken rule", c.rule],
  ];
  if (d) {
    const passing =
      d.factor === null || d.factor === undefined
        ? ["nan", "inf", "zero_sign", "shape", "dtype"].includes(c.kind)
          ? "none: the difference is no matter of distance"
          : null
        : Number.isFinite(numberOf(d.factor))
          ? `${figure(d.factor)} × the bound`
          : "none: no multiple of the bound would pass";
    facts.push(
      ["smallest passing tolerance", passing],
      ["largest difference", d.max_abs === undefined ? null : figure(d.max_abs)],
      [
        "ULP, max and 99 %",
        d.max_ulp === undefined || d.max_ulp === null ? null : `${figure(d.max_ulp)} and ${figure(d.p99_ulp)}`,
      ],
      ["shape", d.shape ? `[${d.shape.join(" × ")}]` : null],
    );
  }
  const shown = facts.filter(([, v]) => v !== null && v !== undefined && v !== "");
  return shown.length
    ? [
        h("h3", {}, "Rule"),
        h(
          "dl",
          { class: "rule" },
          shown.map(([k, v]) => [
            h("dt", {}, k),
            h("dd", { class: k === "smallest passing tolerance" ? "key" : "" }, String(v)),
          ]),
        ),
      ]
    : null;
}

function votes(c) {
  const all = Object.entries(c.votes || {});
  if (!all.length) return null;
  const agree = all
    .filter(([, v]) => v === "agree")
    .map(([b]) => b)
    .filter((b) => b !== "native_ref");
  const same = all
    .filter(([b, v]) => BAD.has(v) && b !== c.backend && b !== D.backends[c.backend]?.name)
    .map(([b]) => b);
  const text = c.blame
    ? `${c.blame}.`
    : !BAD.has(c.verdict)
      ? ""
      : same.length
        ? `Not alone: ${same.join(", ")} deviate${same.length === 1 ? "s" : ""} too.`
        : agree.length
          ? `Alone: ${agree.join(", ")} and the reference agree.`
          : "No other backend could run this instance; it is compared with the reference only.";
  return [
    h("h3", {}, "Votes"),
    text ? h("p", { class: "votes-text" }, text) : null,
    h(
      "div",
      { class: "votes" },
      all.map(([b, v]) =>
        h(
          "span",
          { class: `vote v-${v}` },
          h("span", { class: "glyph", "aria-hidden": "true" }, (VERDICTS[v] || { sign: "·" }).sign),
          h("b", {}, b),
          (VERDICTS[v] || { label: v }).label,
        ),
      ),
    ),
  ];
}

function listedBox(c) {
  const entry = (c.known && D.known[c.known]) || (c.ambiguity && D.ambiguity[c.ambiguity]);
  if (!entry) return null;
  return [
    h("h3", {}, c.known ? "Known difference" : "Ambiguity"),
    h(
      "div",
      { class: "listed" },
      h("b", {}, entry.id),
      entry.reason ? h("p", {}, entry.reason) : null,
      entry.clause ? h("p", { class: "dim" }, entry.clause) : null,
    ),
  ];
}
