// What pages need besides the theme. Everything comes from this site, and only where it is used.
(() => {
  "use strict";
  const here = new URL(".", document.currentScript.src);
  const loaded = new Map();

  function load(path) {
    if (!loaded.has(path)) {
      loaded.set(path, new Promise((done, failed) => {
        const css = path.endsWith(".css");
        const tag = document.createElement(css ? "link" : "script");
        if (css) tag.rel = "stylesheet";
        tag[css ? "href" : "src"] = new URL(`vendor/${path}`, here).href;
        tag.onload = done;
        tag.onerror = () => failed(new Error(`${path} is missing from this site`));
        document.head.append(tag);
      }));
    }
    return loaded.get(path);
  }

  const dark = () => document.body.getAttribute("data-md-color-scheme") === "slate";

  async function maths() {
    const places = document.querySelectorAll(".arithmatex");
    if (!places.length) return;
    await Promise.all([load("katex/katex.min.css"), load("katex/katex.min.js")]);
    for (const place of places) {
      const tex = place.textContent.trim().replace(/^\\[([]|\\[\])]$/g, "");
      katex.render(tex, place, { displayMode: place.tagName === "DIV", throwOnError: false });
      // A long formula scrolls in its own box; that must work from the keyboard too.
      if (place.tagName === "DIV") place.tabIndex = 0;
    }
  }

  async function diagrams() {
    const places = document.querySelectorAll("pre.diagram");
    if (!places.length) return;
    await load("mermaid/mermaid.tiny.js");
    // A wide diagram scrolls in its own box instead of shrinking until nobody can read it.
    mermaid.initialize({
      startOnLoad: false, theme: dark() ? "dark" : "neutral", flowchart: { useMaxWidth: false },
    });
    let count = 0;
    for (const place of places) {
      const { svg } = await mermaid.render(`diagram-${count++}`, place.textContent);
      const figure = document.createElement("div");
      figure.className = "diagram";
      figure.innerHTML = svg;
      place.replaceWith(figure);
      if (figure.scrollWidth > figure.clientWidth) figure.tabIndex = 0;
    }
  }

  // <div class="vega" data-spec="spec.json or nothing">a picture and a table where scripts are off
  // <script type="application/json">the specification, data inlined</script></div>
  async function figures() {
    const places = document.querySelectorAll("div.vega");
    if (!places.length) return;
    await load("vega/vega.min.js");
    await load("vega-lite/vega-lite.min.js");
    await load("vega-embed/vega-embed.min.js");
    for (const place of places) {
      const spec = JSON.parse(place.querySelector("script").textContent);
      await vegaEmbed(place, spec, {
        actions: false, renderer: "svg", theme: dark() ? "dark" : undefined,
      });
    }
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
    for (const box of document.querySelectorAll("pre, .tabbed-labels, .md-typeset__scrollwrap, .md-typeset__table")) {
      if (box.scrollWidth > box.clientWidth && !box.querySelector("[tabindex]")) box.tabIndex = 0;
    }
  }

  function start() {
    names();
    for (const work of [maths, diagrams, figures]) work().catch((error) => console.error(error));
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
  window.addEventListener("load", names);
})();
