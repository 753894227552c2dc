// Puts the page together: header, tabs, filters, views, keys.

const THEMES = ["auto", "light", "dark"];

function setTheme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  try {
    localStorage.setItem("opconform-theme", name);
  } catch {
    /* a page opened from a file may have no storage */
  }
  const button = $("#theme");
  if (button) button.textContent = { auto: "◐ Auto", light: "○ Light", dark: "● Dark" }[name];
  for (const canvas of document.querySelectorAll("canvas.map")) canvas.paint();
}

function themeNow() {
  return document.documentElement.dataset.theme || "auto";
}

const KEYS_HELP = [
  ["1 … 8", "switch the view"],
  ["/", "search"],
  ["j  k", "next and previous case"],
  ["↑ ↓ PgUp PgDn Home End", "move in a list that has the focus"],
  ["c", "clear the filters"],
  ["t", "light, dark or as the system"],
  ["Esc", "leave the search, close the panel"],
  ["?", "this help"],
];

function helpDialog() {
  const dialog = h(
    "dialog",
    { "aria-label": "Keys" },
    h("h2", {}, "Keys"),
    h(
      "dl",
      { class: "keys" },
      KEYS_HELP.map(([k, text]) => [
        h(
          "dt",
          {},
          k
            .split(" ")
            .filter(Boolean)
            .map((x) => h("kbd", {}, x)),
        ),
        h("dd", {}, text),
      ]),
    ),
    h("form", { method: "dialog" }, h("button", { class: "button" }, "Close")),
  );
  document.body.append(dialog);
  return dialog;
}

function header(tabs) {
  const wrong = [
    [D.bad, "unexplained"],
    [D.undecided, "without verdict"],
    [D.unused.length, "listed, not met"],
  ]
    .filter(([n]) => n)
    .map(([n, what]) => `${whole(n)} ${what}`);
  const run = D.runs[0] || {};
  const mark = svg(
    "svg",
    { class: "mark", viewBox: "0 0 28 28", "aria-hidden": "true" },
    [
      [0, 0],
      [1, 0],
      [2, 0],
      [0, 1],
      [1, 1],
      [2, 1],
      [0, 2],
      [1, 2],
      [2, 2],
    ].map(([x, y]) =>
      svg("rect", {
        x: 2 + x * 8.5,
        y: 2 + y * 8.5,
        width: 7,
        height: 7,
        rx: 1.6,
        class: x === 1 && y === 1 ? "off" : "on",
      }),
    ),
  );
  return [
    h(
      "div",
      { class: "brand" },
      mark,
      h("h1", {}, "opconform"),
      h("span", { class: `state ${wrong.length ? "bad" : "ok"}` }, wrong.join(", ") || "no unexplained mismatch"),
      h(
        "span",
        { class: "dim when" },
        `${run.started ? String(run.started).replace("T", " ").slice(0, 16) : ""}${D.elapsed ? ` · ${duration(D.elapsed)}` : ""}${D.runs.length > 1 ? ` · ${D.runs.length} record files` : ""}`,
      ),
      h("span", { class: "grow" }),
      h("button", {
        type: "button",
        id: "theme",
        class: "quiet",
        title: "Theme (t)",
        onclick: () => setTheme(THEMES[(THEMES.indexOf(themeNow()) + 1) % 3]),
      }),
      h(
        "button",
        { type: "button", id: "help", class: "quiet", "aria-label": "Keys", onclick: () => $("dialog").showModal() },
        "? Keys",
      ),
    ),
    h("nav", { class: "tabs", "aria-label": "Views" }, tabs),
  ];
}

function start() {
  const views = {
    overview: overview(),
    matrix: matrix(),
    cases: cases(),
    clusters: clusters(),
    coverage: coverage(),
    sensitivity: sensitivity(),
    listed: listed(),
    changes: changes(),
  };
  const sizes = {
    cases: D.cases.length,
    clusters: D.clusters.length,
    listed: Object.keys(D.known).length + Object.keys(D.ambiguity).length,
    changes: D.diff ? D.diff.new.length : null,
  };
  const tabs = VIEWS.map(([id, label], i) =>
    h(
      "a",
      { href: "#", data: { view: id }, "aria-keyshortcuts": String(i + 1) },
      label,
      sizes[id] ? h("span", { class: "n" }, compact(sizes[id])) : null,
    ),
  );
  const filters = filterBar();
  $("#top").append(...header(tabs), filters.el);
  const dialog = helpDialog();
  let saved = "auto";
  try {
    saved = localStorage.getItem("opconform-theme") || "auto";
  } catch {
    /* none */
  }
  setTheme(THEMES.includes(saved) ? saved : "auto");
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme(themeNow()));
  const main = $("#main");

  listeners.push(() => {
    for (const [i, tab] of tabs.entries()) {
      const id = VIEWS[i][0];
      tab.href = hashOf({ ...Object.fromEntries(FILTERS.filter((f) => state[f]).map((f) => [f, state[f]])), view: id });
      if (id === state.view) tab.setAttribute("aria-current", "page");
      else tab.removeAttribute("aria-current");
    }
    filters.update();
    const view = views[state.view];
    if (main.firstChild !== view.el) fill(main, view.el);
    document.body.dataset.view = state.view;
    view.update();
    $("#count").textContent = state.view === "cases" ? "" : filterText();
  });

  addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || dialog.open) return;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName) && e.target.type !== "checkbox";
    if (e.key === "Escape") {
      if (typing) e.target.blur();
      else if (state.key && state.view !== "cases") go({ key: null });
      return;
    }
    if (typing) return;
    const number = Number(e.key);
    if (number >= 1 && number <= VIEWS.length) return void go({ view: VIEWS[number - 1][0] });
    const actions = {
      "/": () => $("#q").select(),
      "?": () => dialog.showModal(),
      t: () => $("#theme").click(),
      c: () => $("#clear")?.click(),
      j: () => state.view === "cases" && views.cases.step(1),
      k: () => state.view === "cases" && views.cases.step(-1),
    };
    if (!actions[e.key]) return;
    e.preventDefault();
    actions[e.key]();
  });
  changed();
}

function filterText() {
  if (!FILTERS.some((f) => state[f])) return "";
  const t = tally(cellsFor(state));
  return `${compact(sumOf(t, () => true))} outcomes, ${compact(badOf(t))} unexplained`;
}

unpack()
  .then(start)
  .catch((e) => {
    fill($("#main"), h("p", { class: "loading" }, `This report cannot be shown: ${e.message}`));
    throw e;
  });
