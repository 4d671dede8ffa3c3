// How a page shows what the kit's Python answers: a table of runs, findings, files.
const { h } = window.measureTwice;

const wide = (table) => h("div", { class: "here-wide md-typeset__scrollwrap" }, table);

/** Runs side by side, a column each; what was changed stands above what was measured, and that begins with what a case asks. */
export function table_of_runs(headings, runs, asked) {
  const name = (run, n) => (run.shown ? "fixed" : Object.keys(run.changes).length ? `run ${n + 1}: yours` : runs.length > 1 ? `run ${n + 1}` : "measured");
  const row = (label, cells) => h("tr", {}, h("th", { scope: "row" }, label), ...cells.map((cell) => h("td", {}, cell)));
  const changed = [...new Set(runs.flatMap((run) => Object.keys(run.changes)))];
  const rows = [
    row("seed", runs.map((run) => String(run.seed))),
    ...changed.map((key) => row(h("code", {}, key), runs.map((run) => run.settings[key] ?? ""))),
    ...(asked && runs.some((run) => run.answer !== null) ? [row(asked, runs.map((run) => run.answer ?? ""))] : []),
    ...headings.map((heading, n) => row(in_line(heading), runs.map((run) => run.values[n])))
      .filter((_, n) => runs.some((run) => run.values[n] !== "-")),
    ...(runs.some((run) => run.verdict) ? [row("verdict", runs.map((run) => run.verdict || ""))] : []),
  ];
  const expected = runs.flatMap((run) => run.expectations.map(([mark, text]) => h("li", {}, `${mark.trim() || "-"}: ${text}`)));
  return h("div", {},
    wide(h("table", {}, h("thead", {}, h("tr", {}, h("th", {}), ...runs.map((run, n) => h("th", { scope: "col" }, name(run, n))))), h("tbody", {}, ...rows))),
    h("p", { class: "recorded" }, `Goodput: ${[...new Set(runs.map((run) => run.goodput))].join("; ")}.`),
    ...(expected.length ? [h("details", {}, h("summary", {}, "Each reading, and what it should be"), h("ul", {}, ...expected))] : []));
}

function in_line(heading) {
  const [name, unit] = heading.split("\n");
  if (!unit) return name;
  return ["set", "measured"].includes(unit) ? `${name} ${unit}` : `${name} (${unit})`;
}

// A page that a finding is explained on: a link, but on that page itself, where it says nothing.
function page_line(page) {
  const address = new URL(`../../${page}`, import.meta.url);
  return address.pathname === location.pathname.replace(/index\.html$/, "") ? [] : [h("p", {}, "page: ", h("a", { href: address.href }, page))];
}

/** What the button of a step of help says. */
export const hint_words = (step) => (step === 3 ? "Hint 3: the cause" : `Hint ${step}`);

/** What ./lab check says, in its words; `runs` are called as the table of runs calls them. */
export function findings({ documents, said, missing = [] }, runs = []) {
  const parts = [];
  const named = (text) => (runs.length > 1 ? runs.reduce((renamed, run, n) => renamed.replaceAll(run.folder, `run ${n + 1}`), text) : text);
  // Runs of which the same is said are one line.
  const alike = new Map();
  for (const document of documents) {
    const key = JSON.stringify(document.findings);
    alike.set(key, [...(alike.get(key) || []), document]);
  }
  for (const [document, ...others] of alike.values()) {
    const count = document.findings.length;
    if (documents.length > 1 || !count) {
      parts.push(h("p", {}, h("strong", {}, `${[document, ...others].map(({ name }) => named(name)).join(", ")}: ${count === 0 ? (missing.length ? "no finding in what there is to look at" : "no finding") : count === 1 ? "1 finding" : `${count} findings`}`)));
    }
    for (const { heading, lines } of document.findings) {
      parts.push(h("div", { class: "here-finding" }, h("strong", {}, heading), ...lines.flatMap((line) => (line.startsWith("page: ") ? page_line(line.slice(6)) : [h("p", {}, named(line))]))));
    }
  }
  for (const line of said.split("\n").filter(Boolean)) parts.push(h("p", { class: "here-said" }, named(line)));
  return parts;
}

/** The files of a run, those of a word together and first; `open(what)` shows one. */
export function files_list(listing, open) {
  const groups = new Map();
  for (const file of listing.files.filter((entry) => entry.bytes)) {
    const key = file.what || file.file.split("/").pop();
    if (!groups.has(key)) groups.set(key, { about: file.about, word: Boolean(file.what), files: [] });
    groups.get(key).files.push(file);
  }
  const empty = listing.files.filter((file) => !file.bytes).length;
  const link = (what) => h("button", { type: "button", class: "here-link", onclick: () => open(what) }, what);
  const rows = [...groups].sort(([, a], [, b]) => b.word - a.word).map(([key, group]) => h("tr", {},
    h("td", {}, group.word ? link(key) : ""), h("td", { class: "here-said-of" }, group.about),
    h("td", {}, ...group.files.flatMap((file, n) => [n ? ", " : "", link(file.file)]))));
  return h("div", { class: "here-files" },
    wide(h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, "what"), h("th", {}, "what it is"), h("th", {}, "files, word for word"))), h("tbody", {}, ...rows))),
    ...(empty ? [h("p", { class: "recorded" }, `Left out: ${empty} files that are empty.`)] : []));
}

const cell_text = (value) => (value === null || value === undefined ? "" : value === true ? "yes" : value === false ? "no"
  : typeof value === "number" ? value.toLocaleString("en", Number.isInteger(value) ? {} : { maximumSignificantDigits: 9 }) : String(value));

/** A program's JSON in lines; null where a text isn't all of it in one. */
function in_lines(text) {
  if (!/^[[{]/.test(text) || text.trim().includes("\n")) return null;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return null;
  }
}

/** What ./lab show shows: blocks of named values, or a text. */
export function blocks(what, shown) {
  if (shown.text !== undefined) {
    const lines = in_lines(shown.text);
    const note = lines ? [h("p", { class: "recorded" }, "The file has all this in one line.")] : [];
    return [h("h4", {}, what), ...note, h("pre", { class: "here-text" }, h("code", {}, lines || shown.text))];
  }
  const parts = shown.problems.map((problem) => h("p", {}, `not shown: ${problem}`));
  for (const block of shown.blocks) {
    const columns = block.fields.length ? Object.keys(block.fields[0]).filter((key) => !["name", "unit", "meaning", "source"].includes(key)) : [];
    parts.push(h("h4", {}, block.title), h("p", { class: "recorded" }, block.place));
    if (columns.length) {
      parts.push(wide(h("table", {}, h("thead", {}, h("tr", {}, h("th", {}), ...columns.map((column) => h("th", { scope: "col" }, column)), h("th", {}, "unit"), h("th", {}, "meaning"))),
        h("tbody", {}, ...block.fields.map((field) => h("tr", {}, h("th", { scope: "row" }, h("code", {}, field.name)),
          ...columns.map((column) => h("td", {}, cell_text(field[column]))), h("td", {}, field.unit), h("td", { class: "here-said-of" }, field.meaning)))))));
    }
    for (const note of block.notes) parts.push(h("p", {}, note));
  }
  return parts;
}
