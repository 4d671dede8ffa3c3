// What all that a page runs itself has in common: what is fetched for it, once, and the kit's Python in a worker.
import { hint_words } from "./render.mjs";
import { fetched, missing, sweep } from "./store.mjs";

export const base = new URL(".", import.meta.url).href;
const MEMORY_MB = 700;
const LAST_HINT = 3;
// A worker whose script can't be had says nothing at all.
export const SILENT = "this page's own scripts can't be fetched. Is there a connection? Runs and what was fetched are kept.";

/** What loads.json says, once all_loads() has been waited for. */
export let loads = null;
let kit = null;
// As docs/offline.js calls them.
const PAGES = "measure-twice-pages";
const LONGEST_WAIT_MS = 3000;

export async function all_loads() {
  if (!loads) {
    const response = await fetch(new URL("loads.json", base), { cache: "no-cache" });
    if (!response.ok) throw new Error("this site lacks the browser's machine");
    loads = await response.json();
  }
  return loads;
}

// Modules aren't fetched but imported, when they are needed.
const listed = () => [...loads.machine.files, ...loads.python.files, ...loads.kit.files];
const all_files = () => listed().filter((file) => !file.module);

/** The files of packs by their names: what the machine's guest gets besides, for labs that need it. */
export const files_of = (packs) => packs.map((name) => loads.packs[name]);
/** What these files are together, in MB; who fetches the machine imports the modules, too. */
export function megabytes(files) {
  const modules = files.some((file) => loads.machine.files.includes(file)) ? listed().filter((file) => file.module) : [];
  return Math.max(1, Math.round([...files, ...modules].reduce((sum, file) => sum + file.bytes, 0) / 1e6));
}

/** What a reader is told before anything is fetched for `packs`; nothing where all is there. */
export async function fetch_words(packs) {
  const todo = await to_fetch(packs);
  if (!todo.length) return "";
  if (todo.every((file) => files_of(packs).includes(file))) return `This lab needs ${megabytes(todo)} MB more than this browser has kept so far. They are fetched once, and kept. `;
  // Without HTTPS a browser keeps no files for a page.
  const fetches = "caches" in globalThis ? `The first time it fetches ${megabytes(todo)} MB, which this browser keeps` : `On each visit it fetches ${megabytes(todo)} MB, since this site comes without HTTPS`;
  return `${fetches}. Nothing is installed. It needs about ${MEMORY_MB} MB of memory. `;
}

/** The files that this browser doesn't have yet, with those of `packs`. */
export const to_fetch = (packs) => missing(base, [...all_files(), ...files_of(packs)]);

/** Fetch them; `on_share` is told how far it has come. */
export async function fetch_all(packs, on_share) {
  const todo = await to_fetch(packs);
  const whole = todo.reduce((sum, file) => sum + file.bytes, 0);
  let arrived = 0;
  // One after another: on a slow line each that has arrived is kept.
  for (const file of todo) await fetched(base, file, (bytes) => on_share((arrived += bytes) / whole));
  await sweep(base, [...all_files(), ...Object.values(loads.packs)]);
  document.dispatchEvent(new CustomEvent("measure-twice:fetched"));
  // Where a browser never answers, a run doesn't wait for it.
  await Promise.race([stay_offline(), new Promise((resolve) => setTimeout(resolve, LONGEST_WAIT_MS))]);
}

/** Let this page, and those that are looked at from now on, be there without a connection (docs/offline.js). */
async function stay_offline() {
  try {
    const edition = `?${loads.kit.files.map(({ digest }) => digest).join("-")}`;
    await navigator.serviceWorker.register(new URL(`../../offline.js${edition}`, base));
    await navigator.serviceWorker.ready;
    const parts = performance.getEntriesByType("resource").map(({ name }) => name);
    const cache = await caches.open(PAGES + edition);
    const urls = [...new Set([location.href.split("#")[0], ...parts])].filter((url) => url.startsWith(new URL("../../", base)) && !url.includes("offline.js"));
    await Promise.all(urls.map((url) => cache.add(url).catch(() => {})));
  } catch { /* then it is there with a connection, as before */ }
}

class Kit {
  constructor() {
    this.worker = new Worker(new URL("kit.mjs", base), { type: "module" });
    this.waiting = new Map();
    this.count = 0;
    this.worker.onmessage = ({ data: { id, answer, problem } }) => {
      const { resolve, reject } = this.waiting.get(id);
      this.waiting.delete(id);
      if (problem === undefined) resolve(answer);
      else reject(new Error(problem));
    };
    this.worker.onerror = (event) => {
      for (const { reject } of this.waiting.values()) reject(new Error(event.message || SILENT));
      this.waiting.clear();
    };
  }

  call(work, request, moved = []) {
    return new Promise((resolve, reject) => {
      const id = this.count++;
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage({ id, work, request }, moved);
    });
  }

  /** `lab` is the one whose runs and book may be read or changed. What was written down on its pages comes into the book. */
  async ask(what, request, lab = request.lab) {
    const answer = await this.call("ask", { what, request: { ...request, ...(request.lab && for_book(request.lab)) }, lab });
    if (answer.solved) keep_solved(lab, answer.solved);
    return answer;
  }
}

function browser_name() {
  const match = navigator.userAgent.match(/(Firefox|Edg|OPR|Chrome|Version)\/(\d+)/);
  const name = { Edg: "Edge", OPR: "Opera", Version: "Safari" };
  return match ? `${name[match[1]] || match[1]} ${match[2]}` : "a browser";
}

// --- what was written down on pages (assets/notebook.js) ---------------------------------------

const OF_PAGES = /^measure-twice\/(\S+) (\S+)\/(prediction|diagnosis|judgement|judged|answer|recorded|hint|known|solved)$/;

function* written_of(lab) {
  try {
    for (const key of Object.keys(localStorage)) {
      const [, of_lab, about, kind] = key.match(OF_PAGES) || [];
      if (of_lab === lab) yield { key, about, kind };
    }
  } catch { /* this browser keeps nothing */ }
}

/** What was written down of one kind on a lab's pages, by the cases' numbers; the answers by their questions'. */
export const written = (lab, which) => Object.fromEntries(
  [...written_of(lab)].filter(({ kind }) => kind === which).map(({ key, about }) => [about, localStorage.getItem(key)]));

/** What a lab book gets from its pages: `judged` are the answers that the recorded runs have judged, `answered` is the right
 * one, `known` the lines of output that a reader keeps. */
export const for_book = (lab) => ({
  diagnoses: written(lab, "diagnosis"), hints: written(lab, "hint"), judged: written(lab, "judged"), answered: written(lab, "judgement"), known: written(lab, "known"),
});

/** Keep by what cases are solved, as the lab book has it: their pages and the map of modules say so without Python. */
function keep_solved(lab, solved) {
  try {
    for (const [about, how] of Object.entries(solved)) localStorage.setItem(`measure-twice/${lab} ${about}/solved`, how);
  } catch { /* then it is in the lab book alone */ }
  document.dispatchEvent(new CustomEvent("measure-twice:solved", { detail: { lab } }));
}

/** Would a lab book have something to say of a lab, even if nothing of it was run? */
export const has_written = (lab) => ["diagnosis", "judged", "known"].some((which) => Object.values(written(lab, which)).some(Boolean));

/** The button of a step of help for a case, or of a lab's run: it does `go`. The last one tells the cause, so first its reader
 * writes down on this page what they think it is. */
export function hint_button({ lab, case: number }, step, go) {
  const { h } = window.measureTwice;
  const says = h("span", { role: "status" });
  const button = h("button", { type: "button", class: "md-button here-small", onclick: () => {
    const place = step === LAST_HINT && document.querySelector(`.notebook[data-case="${lab} ${number}"][data-kind="diagnosis"]`);
    if (!place || place.dataset.said || written(lab, "diagnosis")[number]) {
      go();
      return;
    }
    says.textContent = " It tells the cause. First write down as your diagnosis what you think it is, in three words or more. A wrong guess will do.";
    place.querySelector("textarea")?.focus();
  } }, hint_words(step));
  return [button, says];
}

export function forget_written(lab) {
  for (const { key } of [...written_of(lab)]) localStorage.removeItem(key);
  document.dispatchEvent(new CustomEvent("measure-twice:forgotten", { detail: { lab } }));
}

// Without Python it waits in this browser, and comes into the book before anything else does.
document.addEventListener("measure-twice:written", ({ detail: { lab } }) => {
  if (kit) kit.then((opened) => opened.ask("note", { lab })).catch(() => {});
});

export async function open_kit() {
  if (!kit) {
    const opened = new Kit();
    kit = opened.call("open", { base, loads, system: browser_name() }).then(() => opened);
    kit.catch(() => { kit = null; });
  }
  return kit;
}
