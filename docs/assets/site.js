// What pages need besides the theme. Everything comes from this site, and only where it is used.
(() => {
  "use strict";
  const assets_url = new URL(".", document.currentScript.src);
  const loaded = new Map();

  function load(path) {
    if (!loaded.has(path)) {
      loaded.set(path, new Promise((resolve, reject) => {
        const css = path.endsWith(".css");
        const tag = document.createElement(css ? "link" : "script");
        if (css) tag.rel = "stylesheet";
        tag[css ? "href" : "src"] = new URL(path, assets_url).href;
        tag.onload = resolve;
        tag.onerror = () => reject(new Error(`${path} is missing from this site`));
        document.head.append(tag);
      }));
    }
    return loaded.get(path);
  }

  // <div class="interactive" data-figure="name" data-scripts="names of files in assets/interactive">
  // <script type="application/json">the data</script><div class="fallback">without scripts</div></div>
  async function interactive() {
    for (const place of document.querySelectorAll("div.interactive")) {
      for (const name of place.dataset.scripts.split(" ")) await load(`interactive/${name}.js`);
      const live = document.createElement("div");
      live.className = `live live--${place.dataset.figure}`;
      place.prepend(live);
      try {
        const data = JSON.parse(place.querySelector("script").textContent);
        await measureTwice[place.dataset.figure](live, data, load);
        place.classList.add("drawn");
      } catch (error) {
        live.remove();
        throw error;
      }
    }
  }

  // <div class="notebook" data-case="mathis 5" data-kind="prediction" data-asked="the question"></div>
  async function notebooks() {
    const places = document.querySelectorAll("div.notebook");
    if (!places.length) return;
    await load("notebook.js");
    measureTwice.notebook(places);
    // A page to print has a whole module's cases: there, lines of output aren't collected for one of them.
    const diagnoses = [...places].filter((place) => place.dataset.kind === "diagnosis");
    if (diagnoses.length !== 1) return;
    await load("interactive/common.js");
    await load("known.js");
    measureTwice.known(diagnoses[0]);
  }

  // <div class="judgement" data-case="queues 2" data-asked='{"letters": "abcd", ...}'></div>: the question that solves a case.
  async function judgements() {
    const places = document.querySelectorAll("div.judgement");
    if (!places.length) return;
    await load("interactive/common.js");
    await load("judgement.js");
    measureTwice.judgement(places, assets_url);
  }

  // <div class="course-progress"><script type="application/json">modules, their cases, minutes</script></div>
  async function progress() {
    const place = document.querySelector("div.course-progress");
    if (!place) return;
    await load("interactive/common.js");
    await load("progress.js");
    measureTwice.progress(place);
  }

  // <div class="key-points">: all cases' key points, with a field that finds one.
  async function key_points() {
    const place = document.querySelector("div.key-points");
    if (!place) return;
    await load("key-points.js");
    measureTwice.key_points(place);
  }

  // <div class="here" data-here='{"lab": "mathis", "case": 5, ...}'></div>: a page that runs trials itself.
  async function runs_here() {
    await panels("div.here[data-here]", "run-panel");
  }

  // <div class="here" data-live='{"lab": "mathis", "case": 5, ...}'></div>: a page that opens terminals on a lab's nodes.
  async function terminals_here() {
    await panels("div.here[data-live]", "terminals");
  }

  async function panels(selector, name) {
    const all = [...document.querySelectorAll(selector)];
    const fold_of = (place) => place.closest("details:is(.run-one, .other-ways):not([open])");
    const folded = all.filter(fold_of);
    // What a fold offers to run is not fetched before it is opened.
    for (const place of folded) fold_of(place).addEventListener("toggle", () => fill_in([place], name), { once: true });
    await fill_in(all.filter((place) => !folded.includes(place)), name);
  }

  async function fill_in(places, name) {
    if (!places.length) return;
    if (location.protocol === "file:") {
      for (const place of places) {
        place.textContent = "This page can run it, but not as a file: a browser forbids that. In the folder with the site's index.html type "
          + "python3 serve.py, and open the address that it prints.";
      }
      return;
    }
    await load("interactive/common.js");
    Object.assign(window.measureTwice, { load, names });
    try {
      const { fill } = await import(new URL(`machine/${name}.mjs`, assets_url));
      fill(places);
    } catch {
      for (const place of places) place.textContent = "This page's own scripts can't be fetched. Is there a connection? Load the page again.";
    }
  }

  // <div class="slides"></div>: a page whose sections can be shown one at a time.
  async function slides() {
    const place = document.querySelector("div.slides");
    if (!place) return;
    await Promise.all([load("slides.css"), load("slides.js")]);
    measureTwice.slides(place);
  }

  // What the theme leaves without a name, so that a screen reader can say it.
  function names() {
    const search = document.querySelector(".md-search[role=dialog]");
    if (search && !search.hasAttribute("aria-label")) search.setAttribute("aria-label", "Search");
    for (const box of document.querySelectorAll(".task-list-item input:not([aria-label])")) {
      box.setAttribute("aria-label", box.closest("li").textContent.trim());
    }
    // Landmarks need names that differ: the theme gives some the same, or none.
    document.querySelectorAll(".md-code__nav").forEach((nav, n) => {
      nav.setAttribute("aria-label", `Code block ${n + 1}`);
    });
    document.querySelectorAll("nav.md-nav[aria-labelledby]").forEach((nav, n) => {
      const label = document.getElementById(nav.getAttribute("aria-labelledby"));
      nav.setAttribute("aria-label", `Section ${n + 1}: ${label ? label.textContent.trim() : ""}`);
      nav.removeAttribute("aria-labelledby");
    });
    const path = document.querySelector(".md-path");
    if (path) path.setAttribute("aria-label", "Where this page is");
    for (const table of document.querySelectorAll(".plan table, .here-files table")) stays_a_table(table);
    window.measureTwice?.lines?.();
    for (const box of document.querySelectorAll(WIDE)) {
      scrolls(box);
      sizes.observe(box);
    }
  }

  // A table whose parts a phone lays out as blocks is no table to a screen reader, unless its parts say so.
  function stays_a_table(table) {
    if (table.hasAttribute("role")) return;
    table.setAttribute("role", "table");
    for (const part of table.querySelectorAll("thead, tbody")) part.setAttribute("role", "rowgroup");
    for (const row of table.rows) row.setAttribute("role", "row");
    for (const cell of table.querySelectorAll("th, td")) {
      cell.setAttribute("role", cell.matches("td") ? "cell" : cell.closest("thead") ? "columnheader" : "rowheader");
    }
  }

  // What is wider than its place scrolls there: keys reach it, and its edge says that there is more. Looked at anew
  // when its place changes: a fold opens, a phone is turned. What only grows inside is seen as the page has loaded.
  const WIDE = "pre > code, .diagram, .drawn.wide, .here-wide, div.formula, .tabbed-labels, .md-typeset__scrollwrap";
  const sizes = new ResizeObserver((all) => { for (const { target } of all) scrolls(target); });

  function scrolls(box) {
    const wide = box.scrollWidth > box.clientWidth + 1;
    box.classList.toggle("scrolls", wide && !box.matches(".tabbed-labels"));
    if (wide && !box.querySelector("[tabindex]")) box.tabIndex = 0;
  }

  // A word of the glossary says what it is once in a section, and in no heading.
  function words() {
    let said = new Set();
    for (const at of document.querySelectorAll(".md-content :is(h1, h2, h3, h4, abbr)")) {
      if (!at.matches("abbr")) said = new Set();
      else if (at.closest("h1, h2, h3, h4") || said.has(at.title)) at.replaceWith(...at.childNodes);
      else said.add(at.title);
    }
  }

  // An interval stays on one line, and so does a number with its unit.
  const WITH_UNIT = /(\d) (?=(?:[kMG]?bit\/s|[kMGT]i?B|bytes|ms|µs|s|min|h|%)(?![\w-]))/g;
  function unbroken() {
    const article = document.querySelector(".md-content__inner");
    if (!article) return;
    const texts = document.createTreeWalker(article, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const text = texts.currentNode;
      if (!/\d (to \d|[kMGTbmµsh%])/.test(text.data) || text.parentElement.closest("pre, code, script, svg, math")) continue;
      text.data = text.data.replace(/(\d|%) to (?=[-−]?\d)/g, "$1\u00a0to\u00a0").replace(WITH_UNIT, "$1\u00a0");
    }
  }

  // The table of contents leads into a fold only once it is open: its headings tell, and a click would open it. Nor does it
  // name the diagnosis before there is one.
  function contents() {
    const folds = [...document.querySelectorAll("details.behind")];
    const place = document.querySelector(".notebook[data-kind=diagnosis]");
    const is_told = (target) => target.closest("details.behind:not([open])") || (target.id === "diagnosis" && place && !is_diagnosed(place));
    const show = () => {
      for (const link of document.querySelectorAll(".md-nav--secondary a[href^='#']")) {
        const target = document.getElementById(decodeURIComponent(link.hash.slice(1)));
        link.closest("li").hidden = Boolean(target && is_told(target));
      }
    };
    for (const fold of folds) fold.addEventListener("toggle", show);
    for (const event of ["written", "forgotten"]) document.addEventListener(`measure-twice:${event}`, show);
    if (folds.length) show();
  }

  // Written down, now or on an earlier visit, or what comes after it opened without it.
  function is_diagnosed(place) {
    if (place.dataset.said || document.querySelector('details.behind[data-behind="diagnosis"][open]')) return true;
    try {
      return Boolean(localStorage.getItem(`measure-twice/${place.dataset.case}/diagnosis`));
    } catch {
      return false;
    }
  }

  // A line's explained fields: one stop for Tab, then the arrow keys.
  function fields() {
    for (const line of document.querySelectorAll(".explained")) {
      const all = [...line.querySelectorAll(".field")];
      all.forEach((field, n) => { field.tabIndex = n ? -1 : 0; });
      line.addEventListener("keydown", (event) => {
        const at = all.indexOf(document.activeElement);
        const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
        if (event.key === "Escape" && at >= 0) all[at].blur();
        if (at < 0 || !all[to]) return;
        event.preventDefault();
        all[at].tabIndex = -1;
        all[to].tabIndex = 0;
        all[to].focus();
      });
      // Not every browser gives a button that is tapped the focus.
      line.addEventListener("click", (event) => event.target.closest(".field")?.focus());
    }
  }

  function start() {
    words();
    unbroken();
    names();
    fields();
    contents();
    for (const work of [interactive, notebooks, judgements, progress, key_points, runs_here, terminals_here, slides]) work().catch((error) => console.error(error));
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
  window.addEventListener("load", names);
})();
