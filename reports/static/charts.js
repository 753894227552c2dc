// Small pictures: verdict bars, opset strips, ULP histogram, index map.

// One bar, one part per verdict; a part is never thinner than three pixels, so a single failure stays visible.
function verdictBar(t, label) {
  const total = sumOf(t, () => true);
  return h(
    "div",
    { class: "vbar", role: "img", "aria-label": `${label}: ${tallyText(t)}`, title: tallyText(t) },
    SEVERITY.filter((v) => t[v]).map((v) =>
      h("span", { class: `fill v-${v}`, style: { "flex-grow": String(t[v] / total) } }),
    ),
  );
}

// The opsets of a row's dialect side by side, each in the colour of its worst verdict.
function strip(cells, opsets) {
  const by = groupBy(cells, (c) => c.opset);
  const step = 100 / opsets.length;
  const stops = opsets.map((o, i) => {
    const worst = by.has(o) ? worstOf(tally(by.get(o))) : null;
    const colour = worst ? `var(--v-${worst})` : "var(--hole)";
    const gap = opsets.length > 1 ? "2px" : "0px";
    return `${colour} ${i * step}% calc(${(i + 1) * step}% - ${gap}), transparent calc(${(i + 1) * step}% - ${gap}) ${(i + 1) * step}%`;
  });
  return h("span", {
    class: "strip",
    "aria-hidden": "true",
    style: { background: `linear-gradient(to right, ${stops.join(",")})` },
  });
}

function meter(part, all, label) {
  return h(
    "span",
    { class: "meter", role: "img", "aria-label": label, title: label },
    h("span", { style: { width: `${all ? (100 * part) / all : 0}%` } }),
  );
}

// Bars over powers of two; the root of the count is drawn, so one wrong element shows beside a million good ones.
function ulpHistogram(hist) {
  const bins = Object.entries(hist)
    .map(([k, n]) => [k, n])
    .sort((a, b) => rank(a[0]) - rank(b[0]));
  const max = Math.max(...bins.map(([, n]) => Math.sqrt(n)), 1);
  const w = Math.max(26, Math.min(46, 520 / bins.length));
  const height = 96;
  const width = bins.length * w;
  const text = bins.map(([k, n]) => `${n} at ${k}`).join(", ");
  return svg(
    "svg",
    {
      class: "hist",
      viewBox: `0 0 ${width} ${height + 34}`,
      width,
      height: height + 34,
      role: "img",
      "aria-label": `Elements by distance in ULP: ${text}`,
    },
    bins.map(([k, n], i) => {
      const tall = n ? Math.max(3, (Math.sqrt(n) / max) * height) : 0;
      return [
        svg("rect", {
          x: i * w + 3,
          y: 16 + height - tall,
          width: w - 6,
          height: tall,
          rx: 2,
          class: k === "0" ? "good" : "off",
        }),
        svg("text", { x: i * w + w / 2, y: 11 + height - tall, class: "n" }, n ? compact(n) : ""),
        svg("text", { x: i * w + w / 2, y: height + 30, class: "k" }, binName(k)),
      ];
    }),
  );
}

const rank = (k) => (k.toLowerCase() === "nan" || k === "special" ? Infinity : k === "inf" ? 1e308 : Number(k));

function binName(k) {
  const n = Number(k);
  if (!Number.isFinite(n) || n < 1024) return k;
  const p = Math.log2(n);
  return Number.isInteger(p) ? `2${String(p).replace(/\d/g, (d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d])}` : compact(n);
}

// Which elements are wrong, as a picture of the last two axes (or of all elements in rows).
function indexMap(map) {
  const [rows, cols] = map.shape;
  const wrong = [...map.cells].filter((c) => c !== "0").length;
  const size = Math.max(3, Math.min(18, Math.floor(360 / Math.max(cols, 1)), Math.floor(240 / Math.max(rows, 1))));
  const ratio = 2; // drawn at twice the size: sharp on dense screens
  const canvas = h("canvas", {
    class: "map",
    width: cols * size * ratio,
    height: rows * size * ratio,
    role: "img",
    "aria-label": `${wrong} of ${rows * cols} cells differ, drawn as ${rows} rows of ${cols}`,
    style: { width: `${cols * size}px`, height: `${rows * size}px` },
  });
  const paint = () => {
    const css = getComputedStyle(canvas); // resolved for the theme in force
    const g = canvas.getContext("2d");
    g.clearRect(0, 0, canvas.width, canvas.height);
    const unit = size * ratio;
    for (let r = 0; r < rows; r++) {
      for (let c = 0; c < cols; c++) {
        g.fillStyle = map.cells[r * cols + c] === "0" ? css.borderTopColor : css.color;
        g.fillRect(c * unit, r * unit, unit - ratio, unit - ratio);
      }
    }
  };
  canvas.paint = paint;
  requestAnimationFrame(paint);
  return h(
    "figure",
    { class: "mapbox" },
    canvas,
    h("figcaption", {}, `${whole(wrong)} of ${whole(rows * cols)} differ · ${rows} × ${cols}`),
  );
}

const verdictTag = (v, extra) =>
  h(
    "span",
    { class: `tag v-${v}` },
    h("span", { class: "glyph", "aria-hidden": "true" }, VERDICTS[v] ? VERDICTS[v].sign : "·"),
    VERDICTS[v] ? VERDICTS[v].label : v,
    extra,
  );
