// "What I know so far": lines of what the tools printed, or fields in them, that a reader keeps, by a click or a line's button. The list
// stands beside the problem where there is room, and again at the diagnosis; it stays in this browser with the rest of the
// lab book. Without scripts there is no list.
window.measureTwice = Object.assign(window.measureTwice || {}, { known(place) {
  "use strict";
  const { h } = window.measureTwice;
  const key = `measure-twice/${place.dataset.case}/known`;
  const MOST_LINES = 40;
  const MOST_CHARACTERS = 200;
  const OUTPUT = "details.behind[data-behind=prediction] pre > code, .here-detail pre > code";
  const COMMANDS = ".language-sh, .language-bash, .lines";
  const points = matchMedia("(hover: hover)");
  let kept = stored();

  function stored() {
    try {
      return (localStorage.getItem(key) || "").split("\n").filter(Boolean);
    } catch {
      return [];
    }
  }

  const list = () => h("ul", {});
  const says = h("p", { class: "known-says", role: "status" });
  const beside = h("aside", { class: "known", "aria-label": "What I know so far" }, h("p", { class: "known-title" }, "What I know so far"), list(), says);
  const quoted = h("div", { class: "known known--quoted" }, h("p", { class: "known-title" }, "What I know so far"), list());

  function change(lines, words) {
    kept = lines;
    try {
      localStorage.setItem(key, kept.join("\n"));
    } catch { /* then it is forgotten with the page */ }
    show(words);
    document.dispatchEvent(new CustomEvent("measure-twice:written", { detail: { lab: place.dataset.case.split(" ")[0] } }));
  }

  function toggle(line) {
    const count = kept.length;
    if (kept.includes(line)) change(kept.filter((other) => other !== line), `Removed. ${count - 1 || "Nothing"} left.`);
    else if (count >= MOST_LINES) says.textContent = `The list takes ${MOST_LINES} lines. Remove one first.`;
    else change([...kept, line], `Kept as number ${count + 1}.`);
  }

  function show(words = "") {
    says.textContent = words || (kept.length ? "" : "Click a line of output, or a field in it, to keep it here.");
    for (const ul of [beside, quoted].map((box) => box.querySelector("ul"))) {
      ul.replaceChildren(...kept.map((line) => h("li", {}, h("code", {}, line),
        h("button", { type: "button", class: "known-remove", "aria-label": `Remove ${line}`, onclick: () => remove(ul, line) }, "×"))));
    }
    quoted.hidden = !kept.length;
    for (const part of document.querySelectorAll(".lines > .line, .lines .field")) mark(part);
  }

  // What was pressed is gone: the keyboard goes on from the next one.
  function remove(ul, line) {
    const at = kept.indexOf(line);
    toggle(line);
    const buttons = ul.querySelectorAll("button");
    (buttons[Math.min(at, buttons.length - 1)] || document.querySelector(".keep-line"))?.focus({ preventScroll: true });
  }

  // A line, by its button, or a field of one, which is a button itself.
  function mark(part) {
    const is_kept = kept.includes(part.dataset.line);
    part.classList.toggle("kept", is_kept);
    (part.matches(".field") ? part : part.firstChild).setAttribute("aria-pressed", String(is_kept));
  }

  /** The nodes of a line each, with the line's end; one that holds several lines is divided. */
  function lines_of(code) {
    const lines = [[]];
    for (const node of [...code.childNodes]) {
      const parts = node.textContent.split(/(?<=\n)/);
      const is_whole = parts.length < 2 && !node.textContent.endsWith("\n");
      for (const part of is_whole ? [node] : parts) {
        const copy = is_whole ? node : node.cloneNode(false);
        if (!is_whole) copy.textContent = part;
        lines.at(-1).push(copy);
        if (copy.textContent.endsWith("\n")) lines.push([]);
      }
    }
    return lines.filter((nodes) => nodes.length);
  }

  const text_of = (nodes) => nodes.filter((node) => !node.classList?.contains("meaning")).map((node) => node.textContent).join("");

  function tidy(text) {
    const plain = text.replace(/\s+/g, " ").trim().replace(/,$/, "");
    return plain.length > MOST_CHARACTERS ? `${plain.slice(0, MOST_CHARACTERS)} …` : plain;
  }

  /** Each line of a block gets a button: one stop for Tab, then the arrow keys. */
  function divide(code) {
    const named = code.closest(".highlight")?.querySelector(".filename") || code.closest(".here-detail")?.querySelector("h4");
    const file = named ? `${named.textContent.trim()}: ` : "";
    const lines = lines_of(code).map((nodes, n) => {
      const text = tidy(text_of(nodes));
      for (const field of nodes.filter((node) => node.matches?.(".field"))) field.dataset.line = file + tidy(field.textContent);
      const button = h("button", { type: "button", class: "keep-line", tabIndex: n ? -1 : 0, "aria-label": `Keep line ${n + 1}` });
      const line = h("span", { class: "line" }, button, ...nodes);
      line.dataset.line = file + text;
      if (!text) button.disabled = true;
      return line;
    });
    code.classList.add("lines");
    code.replaceChildren(...lines);
    for (const part of code.querySelectorAll(".line, .field")) mark(part);
    let had_focus = null;
    code.addEventListener("pointerdown", () => { had_focus = document.activeElement; });
    code.addEventListener("click", (event) => {
      const line = event.target.closest(".line");
      const field = event.target.closest(".field");
      // Who marks text wants to copy it.
      if (!line || line.firstChild.disabled || event.target.closest(".meaning") || !getSelection().isCollapsed) return;
      // A finger that taps a field wants to know first what it is, and keeps it by tapping again.
      if (field && event.detail && !points.matches && had_focus !== field) return;
      toggle((field || line).dataset.line);
    });
    code.addEventListener("keydown", (event) => {
      const buttons = [...code.querySelectorAll(".keep-line:not(:disabled)")];
      const at = buttons.indexOf(document.activeElement);
      const to = buttons[{ ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1 }[event.key]];
      if (at < 0 || !to) return;
      event.preventDefault();
      buttons[at].tabIndex = -1;
      to.tabIndex = 0;
      to.focus();
    });
  }

  // Beside the problem, in the column of the contents; on a phone, below it.
  const room = matchMedia("(min-width: 60em)");
  const column = document.querySelector(".md-sidebar--secondary .md-sidebar__inner");
  const prediction = document.querySelector(".notebook[data-kind=prediction]");
  const settle = () => { if (room.matches && column) column.prepend(beside); else (prediction || place).after(beside); };
  room.addEventListener("change", settle);
  settle();
  place.querySelector("form")?.prepend(quoted);
  document.addEventListener("measure-twice:forgotten", ({ detail: { lab } }) => {
    if (!place.dataset.case.startsWith(`${lab} `)) return;
    kept = [];
    show();
  });
  window.addEventListener("storage", (event) => { if (event.key === key) { kept = stored(); show(); } });
  window.measureTwice.lines = () => {
    for (const code of document.querySelectorAll(OUTPUT)) if (!code.closest(COMMANDS)) divide(code);
  };
  show();
  window.measureTwice.lines();
} });
