// The embedded records and the indices over them.

// Set by unpack, from the one table of verdicts (harness/core/outcome.py).
let VERDICTS = {}; // name -> {name, label, sign, kind, sentence}
let SEVERITY = []; // names, worst first: a strip segment takes the colour of the worst verdict in it
let D = null; // the report: Summary.to_json() and the comparison with a baseline
let BAD = new Set();
let CUBE = []; // {key, dialect, op, version, opset, backend, dtype, verdict, n}
const KEYS = new Map(); // key -> {key, dialect, op, version}
const OPSETS = {}; // dialect -> its opsets in order

async function unpack() {
  const text = $("#data").textContent;
  if (typeof DecompressionStream === "undefined")
    throw new Error(
      "this browser is too old to unpack the report; report.json in the same folder holds the same facts",
    );
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  D = await new Response(stream).json();
  $("#data").remove();
  VERDICTS = Object.fromEntries(D.verdicts.map((v) => [v.name, v]));
  SEVERITY = D.verdicts.map((v) => v.name);
  BAD = new Set(D.bad_verdicts);
  const { keys, opsets, backends, dtypes, verdicts, rows } = D.cube;
  for (const key of keys) {
    const cut = key.indexOf("/");
    const end = key.lastIndexOf("/");
    KEYS.set(key, { key, dialect: key.slice(0, cut), op: key.slice(cut + 1, end), version: key.slice(end + 1) });
  }
  CUBE = rows.map(([k, o, b, d, v, n]) => ({
    ...KEYS.get(keys[k]),
    opset: String(opsets[o]),
    backend: backends[b],
    dtype: dtypes[d],
    verdict: verdicts[v],
    n,
  }));
  const seen = {};
  for (const c of CUBE) {
    seen[c.dialect] ??= new Set();
    seen[c.dialect].add(c.opset);
  }
  for (const [dialect, set] of Object.entries(seen)) OPSETS[dialect] = opsets.map(String).filter((o) => set.has(o));
  D.cases.forEach((c, i) => {
    c.n = i;
    c.at = `${c.id}@${c.backend}${c.output ? `.${c.output}` : ""}`;
    const k = KEYS.get(c.key) || splitKey(c.key);
    c.dialect = k.dialect;
    c.op = k.op;
    c.version = k.version;
    c.opset = String(c.opset);
    c.search =
      `${c.key} ${c.backend} ${c.id} ${c.message || ""} ${c.rule || ""} ${c.diff?.pattern || ""} ${c.known || ""} ${c.ambiguity || ""}`.toLowerCase();
  });
}

function splitKey(key) {
  const parts = key.split("/");
  const k = { key, dialect: parts[0], op: parts.slice(1, -1).join("/"), version: parts[parts.length - 1] };
  KEYS.set(key, k);
  return k;
}

// Does a cell of the cube, or a case, pass the filters?
function passes(x, f, skip) {
  return (
    (skip === "dialect" || !f.dialect || x.dialect === f.dialect) &&
    (skip === "backend" || !f.backend || x.backend === f.backend) &&
    (skip === "opset" || !f.opset || x.opset === f.opset) &&
    (skip === "dtype" || !f.dtype || x.dtype === f.dtype) &&
    (skip === "verdict" || !f.verdict || f.verdict.split(",").includes(x.verdict)) &&
    (skip === "key" || !f.key || x.key === f.key)
  );
}

function casesFor(f) {
  const words = (f.q || "").toLowerCase().split(/\s+/).filter(Boolean);
  const cluster = f.cluster === undefined || f.cluster === "" ? null : new Set(f.cluster.split(",").map(Number));
  return D.cases.filter(
    (c) =>
      passes(c, f) &&
      (!cluster || cluster.has(c.cluster_index)) &&
      (!f.new || c.baseline === "new") &&
      (!f.listed || c.known === f.listed || c.ambiguity === f.listed) &&
      words.every((w) => c.search.includes(w)),
  );
}

// Cells under the filters; the search text looks at the op's name only.
function cellsFor(f, skip) {
  const words = (f.q || "").toLowerCase().split(/\s+/).filter(Boolean);
  return CUBE.filter((c) => passes(c, f, skip) && words.every((w) => c.key.toLowerCase().includes(w)));
}

function tally(cells) {
  const out = {};
  for (const c of cells) out[c.verdict] = (out[c.verdict] || 0) + c.n;
  return out;
}

const sumOf = (t, want) => Object.entries(t).reduce((s, [v, n]) => (want(v) ? s + n : s), 0);
const badOf = (t) => sumOf(t, (v) => BAD.has(v));
const ranOf = (t) => sumOf(t, (v) => v !== "unsupported");
const judgedOf = (t) => sumOf(t, (v) => D.judged_verdicts.includes(v));
const worstOf = (t) => SEVERITY.find((v) => t[v]);
const tallyText = (t) =>
  SEVERITY.filter((v) => t[v])
    .map((v) => `${whole(t[v])} ${VERDICTS[v].label}`)
    .join(", ") || "not run";

function groupBy(items, key) {
  const out = new Map();
  for (const x of items) {
    const k = key(x);
    if (!out.has(k)) out.set(k, []);
    out.get(k).push(x);
  }
  return out;
}
