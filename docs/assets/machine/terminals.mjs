// "Open terminals here": a lab's network in this page, in real time, with shells on its nodes; ./lab up in a page.
//
// <div class="here" data-live='{"lab": "mathis", "case": 5, "show_me": false, "nodes": ["romeo", ...], "chosen": [...]}'></div>
import { all_loads, base, fetch_all, fetch_words, files_of, hint_button, loads, megabytes, open_kit, to_fetch } from "./page.mjs";
import { findings } from "./render.mjs";
import { Screens } from "./screens.mjs";

const { h } = window.measureTwice;
const MOST = 3;
const MOST_HINTS = 3;
const FILES_MS = 20000;
const END_MS = 8000;

/** A live lab in a worker: `on.shown(line, bytes)`, `on.ended(problem)`. */
class Live {
  constructor(on) {
    this.on = on;
    this.worker = new Worker(new URL("live.mjs", base), { type: "module" });
    this.worker.onerror = (event) => this.fail(event.message || "the machine stopped");
    this.worker.onmessage = ({ data }) => {
      if (data.shown) on.shown(data.line, data.shown);
      else if (data.up) this.is_up();
      else if (data.tar) this.has_files(data.tar);
      else if (data.problem) this.fail(data.problem);
    };
  }

  start(what) {
    return new Promise((resolve, reject) => {
      this.is_up = resolve;
      this.reject = reject;
      this.worker.postMessage({ base, machine: loads.machine, ...what });
    });
  }

  fail(problem) {
    this.worker.terminate();
    this.reject(new Error(problem));
    this.on.ended(problem);
  }

  type(line, text) {
    this.worker.postMessage({ line, typed: new TextEncoder().encode(text) });
  }

  size(line, size) {
    this.worker.postMessage({ line, size });
  }

  /** The run's folder inside, as a tar file. */
  files(limit_ms) {
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error("the machine is too busy to hand its files over")), limit_ms);
      this.has_files = (tar) => { clearTimeout(late); resolve(tar); };
      this.worker.postMessage({ wanted: "files" });
    });
  }

  end() {
    this.worker.terminate();
  }
}

let up = null;

class Place {
  constructor(place) {
    this.place = place;
    this.asked = JSON.parse(place.dataset.live);
    this.says = h("p", { class: "here-says", role: "status" });
    this.bar = h("progress", { hidden: true, "aria-label": "How far fetching has come" });
    this.button = h("button", { type: "button", class: "md-button md-button--primary", onclick: () => this.press() }, "Open terminals here");
    this.results = h("div", { class: "here-results" });
    const { nodes, chosen } = this.asked;
    this.boxes = nodes.length > MOST ? nodes.map((node) => h("input", { type: "checkbox", value: node, checked: chosen.includes(node), onchange: () => this.count() })) : [];
    const choice = this.boxes.length
      ? [h("fieldset", { class: "here-choice" }, h("legend", {}, `Nodes with a terminal, at most ${MOST}`), ...this.boxes.map((box) => h("label", {}, box, box.value))),
        h("p", {}, "In any terminal, ", h("code", {}, "enter NODE"), " goes to another node, and ", h("code", {}, "exit"), " comes back.")]
      : [];
    place.replaceChildren(
      h("p", {}, "This page brings the network up, in real time, and opens terminals on its nodes."), ...choice,
      h("div", { class: "here-buttons" }, this.button), this.bar, this.says, this.results);
    if (this.boxes.length) this.count();
  }

  async prepare() {
    try {
      await all_loads();
      this.rest(await this.costs());
      // A run beside it on the page may fetch the same.
      document.addEventListener("measure-twice:fetched", async () => {
        if (!this.opened) this.rest(await this.costs());
      });
    } catch (error) {
      this.button.disabled = true;
      this.says.textContent = `It can't be opened here: ${error.message}.`;
    }
  }

  async costs() {
    return `${await fetch_words(this.asked.packs)}It needs some ten seconds to come up.`;
  }

  rest(text) {
    this.says.textContent = text;
    this.bar.hidden = true;
    this.button.textContent = "Open terminals here";
  }

  nodes() {
    return this.boxes.length ? this.boxes.filter((box) => box.checked).map((box) => box.value) : this.asked.nodes;
  }

  count() {
    const full = this.nodes().length >= MOST;
    for (const box of this.boxes) box.disabled = full && !box.checked;
    this.button.disabled = !this.nodes().length;
  }

  press() {
    if (up === this) this.screens.focus();
    else if (up) this.says.textContent = "Other terminals of this page are open. End them first.";
    else this.open();
  }

  async open() {
    up = this;
    this.opened = true;
    this.button.disabled = true;
    this.results.replaceChildren();
    try {
      await this.bring_up();
      this.button.textContent = "Go to the terminals";
      this.says.textContent = "The network is up, in real time. Files that you write on a node stay there until you end it.";
      this.place.scrollIntoView({ block: "start", behavior: "instant" });
      this.screens.focus();
    } catch (error) {
      this.close(`It didn't work: ${error.message}`);
    }
    this.button.disabled = false;
  }

  async bring_up() {
    const { lab, trial, show_me } = this.asked;
    const size = megabytes(await to_fetch(this.asked.packs));
    this.bar.hidden = false;
    await fetch_all(this.asked.packs, (share) => {
      this.says.textContent = `Fetching ${size} MB, once.`;
      this.bar.value = Math.min(1, share);
    });
    this.bar.hidden = true;
    this.says.textContent = "Starting Python, which prepares the network. A few seconds.";
    this.kit = await open_kit();
    const nodes = this.nodes();
    const { folder, words, packs, files } = await this.kit.ask("live", { lab, trial, case: this.asked.case, show_me: Boolean(show_me), nodes });
    this.folder = folder;
    this.says.textContent = "Starting the machine.";
    const sizes = await this.lay_out(nodes);
    await this.live.start({ words, packs: files_of(packs), files, sizes });
  }

  lay_out(nodes) {
    const button = (text, work) => h("button", { type: "button", class: "md-button", onclick: work }, text);
    this.live = new Live({ shown: (line, bytes) => this.screens.show(line, bytes), ended: (problem) => this.close(`The machine stopped: ${problem}`) });
    this.checks = button("Check what I did", () => this.check(null));
    this.screens = new Screens({
      title: this.asked.case ? `${this.asked.lab}, case ${this.asked.case}` : `${this.asked.lab}, trial ${this.asked.trial}`,
      nodes, buttons: [this.checks, button("End", () => this.end())],
      on_typed: (line, text) => this.live.type(line, text),
      on_size: (line, size) => this.live.size(line, size),
    });
    return this.screens.open();
  }

  /** What was written on the nodes, kept as a live lab's folder. Is there any file? */
  async keep(limit_ms) {
    const tar = await this.live.files(limit_ms);
    return this.kit.call("keep_live", { lab: this.asked.lab, folder: this.folder, tar }, [tar.buffer]);
  }

  async check(hint) {
    this.checks.disabled = true;
    this.says.textContent = "Reading what you wrote on the nodes.";
    try {
      if (this.live && !(await this.keep(FILES_MS))) throw new Error("there is no file on any node yet; what its script prints, it writes to files");
      const answer = await this.kit.ask("live_check", { lab: this.asked.lab, folder: this.folder, hint });
      this.tell(answer, hint);
      this.says.textContent = "Checked. This is what the checker says:";
    } catch (error) {
      this.says.textContent = `It can't be checked: ${error.message}.`;
    }
    this.checks.disabled = false;
    this.checks.focus({ preventScroll: true });
    this.says.scrollIntoView({ block: "start", behavior: "instant" });
  }

  tell(answer, hint) {
    const has_findings = answer.documents.some((document) => document.findings.length);
    const next = has_findings && (hint || 0) < MOST_HINTS
      ? hint_button(this.asked, (hint || 0) + 1, () => this.check((hint || 0) + 1))
      : [];
    const missing = answer.missing.length ? [h("p", {}, "Not looked at:"), h("ul", {}, ...answer.missing.map((line) => h("li", {}, line)))] : [];
    this.results.replaceChildren(...findings(answer), ...next, ...missing,
      h("details", {}, h("summary", {}, "Which files it looked at"), h("ul", {}, ...answer.taken.map((line) => h("li", {}, line)))));
  }

  async end() {
    this.says.textContent = "Ending.";
    const is_kept = this.live && (await this.keep(END_MS).catch(() => false));
    this.close(is_kept ? `Ended. Your files are kept with your runs, as ${this.folder}.` : "Ended.");
    this.button.focus();
  }

  close(text) {
    if (this.live) this.live.end();
    if (this.screens) this.screens.close();
    this.live = this.screens = null;
    if (up === this) up = null;
    this.rest(text);
  }
}

/** Fill in all places of a page; nothing is fetched before its button is pressed, but what there is to fetch. */
export function fill(places) {
  for (const place of places) new Place(place).prepare();
}

addEventListener("beforeunload", (event) => {
  if (up) event.preventDefault();
});
