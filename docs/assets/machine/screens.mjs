// Terminals side by side at the foot of the page, on a narrow one behind each other; what they show and send is their owner's.
import { base } from "./page.mjs";

const { h } = window.measureTwice;
const SETTLE_MS = 150;
// A terminal that is this wide has the larger letters.
const ROOMY_PX = 520;
const FONT = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace";
const LIGHT = {
  background: "#ffffff", foreground: "#1d2429", cursor: "#0b5c80", cursorAccent: "#ffffff", selectionBackground: "#b5d9e8",
  black: "#1d2429", red: "#b3261e", green: "#1d6b36", yellow: "#7a5200", blue: "#2c56b8", magenta: "#7a3aa8", cyan: "#0b5c80", white: "#5b666d",
};
const DARK = {
  background: "#11171b", foreground: "#e3e8eb", cursor: "#83cdec", cursorAccent: "#11171b", selectionBackground: "#2c5366",
  black: "#7c8890", red: "#ff9fa5", green: "#8ed7a1", yellow: "#ffd08a", blue: "#9dbdf5", magenta: "#d5aef2", cyan: "#83cdec", white: "#e3e8eb",
};

const theme = () => {
  const colours = document.body.getAttribute("data-md-color-scheme") === "slate" ? DARK : LIGHT;
  const bright = Object.entries(colours).slice(5).map(([name, colour]) => [`bright${name[0].toUpperCase()}${name.slice(1)}`, colour]);
  return { ...colours, ...Object.fromEntries(bright) };
};

// What a phone's keyboard lacks.
const KEYS = [["Tab", "\t"], ["Ctrl-C", "\x03"], ["\u2191", "\x1b[A", "Up"], ["\u2193", "\x1b[B", "Down"]];

/** Escape, then Tab leaves a terminal, and Shift and Tab leaves it backwards: an Escape is kept until the next key. */
function ways_out(terminal, send) {
  let escape_held = false;
  terminal.attachCustomKeyEventHandler((event) => {
    if (event.type !== "keydown" || ["Shift", "Control", "Alt", "Meta"].includes(event.key)) return true;
    if (event.key === "Tab" && (event.shiftKey || escape_held)) {
      escape_held = false;
      return false;
    }
    if (event.key !== "Escape" || escape_held) return true;
    escape_held = true;
    return false;
  });
  terminal.textarea.addEventListener("blur", () => { escape_held = false; });
  terminal.onData((data) => {
    send(escape_held && data !== "\x1b" ? `\x1b${data}` : data);
    escape_held = false;
  });
}

export class Screens {
  /** `on_typed(line, text)`, `on_size(line, [rows, columns])`; `buttons` stand in the bar above the terminals. */
  constructor({ title, nodes, buttons, on_typed, on_size }) {
    Object.assign(this, { nodes, on_typed, on_size, settling: 0, chosen: 0 });
    this.places = nodes.map((node) => h("div", { class: "node-terminal-screen" }));
    this.frames = nodes.map((node, n) => h("div", { class: "node-terminal", role: "group", "aria-label": `Terminal on ${node}` }, h("p", { class: "node-terminal-name" }, node), this.places[n]));
    this.tabs = nodes.map((node, n) => h("button", { type: "button", class: "md-button", onclick: () => this.choose(n, true) }, node));
    this.larger = h("button", { type: "button", class: "md-button", "aria-pressed": "false", onclick: () => this.resize() }, "Larger");
    const keys = KEYS.map(([text, sent, name]) => h("button", { type: "button", class: "md-button", "aria-label": name, onclick: () => this.press(sent) }, text));
    this.element = h("section", { class: "terminals md-typeset", "aria-label": `Terminals: ${title}` },
      h("div", { class: "terminals-bar" },
        h("div", { class: "terminals-tabs", role: "group", "aria-label": "Which terminal is shown" }, ...this.tabs),
        h("p", { class: "terminals-help", id: "terminals-help" }, h("kbd", {}, "Esc"), ", then ", h("kbd", {}, "Tab"), " leaves a terminal; ", h("kbd", {}, "Shift"), " ", h("kbd", {}, "Tab"), " leaves it backwards."),
        h("div", { class: "terminals-buttons" }, ...buttons, this.larger)),
      h("div", { class: "terminals-screens" }, ...this.frames),
      h("div", { class: "terminals-keys", role: "group", "aria-label": "Keys" }, ...keys));
    this.element.style.setProperty("--terminals", nodes.length);
  }

  /** Put them on the page; resolves to their sizes, [rows, columns] each. */
  async open() {
    await window.measureTwice.load("machine/xterm.css");
    const [{ Terminal }, { FitAddon }] = await Promise.all([import(new URL("xterm.mjs", base)), import(new URL("xterm-addon-fit.mjs", base))]);
    document.body.append(this.element);
    document.body.classList.add("has-terminals");
    this.terminals = this.nodes.map((node, line) => {
      const terminal = new Terminal({ screenReaderMode: true, minimumContrastRatio: 4.5, theme: theme(), fontFamily: FONT, fontSize: this.places[line].clientWidth < ROOMY_PX ? 12 : 13, scrollback: 5000, showCursorImmediately: true });
      const fit = new FitAddon();
      terminal.loadAddon(fit);
      terminal.open(this.places[line]);
      terminal.textarea.setAttribute("aria-label", `Terminal on ${node}`);
      terminal.textarea.setAttribute("aria-describedby", "terminals-help");
      ways_out(terminal, (text) => this.on_typed(line, text));
      terminal.onResize(({ rows, cols }) => this.on_size(line, [rows, cols]));
      return { terminal, fit };
    });
    this.choose(0, false);
    this.colours = new MutationObserver(() => { for (const { terminal } of this.terminals) terminal.options.theme = theme(); });
    this.colours.observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
    this.room = new ResizeObserver(() => {
      clearTimeout(this.settling);
      this.settling = setTimeout(() => this.fit(), SETTLE_MS);
    });
    this.room.observe(this.element);
    this.fit();
    return this.terminals.map(({ terminal }) => [terminal.rows, terminal.cols]);
  }

  // A terminal that isn't shown has no size: it gets that of the one that is.
  fit() {
    const shown_size = this.terminals[this.chosen].fit.proposeDimensions();
    for (const [n, { terminal, fit }] of this.terminals.entries()) {
      const size = (this.places[n].clientWidth && fit.proposeDimensions()) || shown_size;
      if (size && size.rows > 1 && size.cols > 1) terminal.resize(size.cols, size.rows);
    }
    document.body.style.setProperty("--terminals-height", `${this.element.offsetHeight}px`);
  }

  choose(n, go) {
    this.chosen = n;
    for (const [index, frame] of this.frames.entries()) frame.classList.toggle("chosen", index === n);
    for (const [index, tab] of this.tabs.entries()) tab.setAttribute("aria-pressed", String(index === n));
    if (go) this.focus();
  }

  resize() {
    const large = this.element.classList.toggle("large");
    this.larger.setAttribute("aria-pressed", String(large));
  }

  press(text) {
    this.on_typed(this.chosen, text);
    this.focus();
  }

  focus() {
    this.terminals[this.chosen].terminal.focus();
  }

  show(line, bytes) {
    this.terminals[line].terminal.write(bytes);
  }

  close() {
    clearTimeout(this.settling);
    if (this.terminals) {
      this.room.disconnect();
      this.colours.disconnect();
      for (const { terminal } of this.terminals) terminal.dispose();
    }
    this.element.remove();
    document.body.classList.remove("has-terminals");
    document.body.style.removeProperty("--terminals-height");
  }
}
