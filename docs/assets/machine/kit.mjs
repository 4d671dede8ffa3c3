// A worker with the kit's own Python (src/measuretwice/in_page/): it plans trials, and makes a run's folder of what the
// machine gave, with the same code as ./lab.
import { fetched, forget, keep, kept_names, kept_value } from "./store.mjs";
import { pack, unpack } from "./tar.mjs";

const RUNS = "/runs";
const GIVEN = "/tmp/given.tar";
const SAVED = "/tmp/saved.zip";
const BOOK = "lab-book.md";
// As src/measuretwice/runs/first_try_history.py calls them.
const START = "start";
const STATES = "steps.json";

let python = null;
let api = null;
// By lab: the names of what this browser keeps that are here, too, and the book as it was read or kept last.
const restored_names = new Map();
const books = new Map();

async function open({ base, loads, system }) {
  const named = Object.fromEntries([...loads.python.files, ...loads.kit.files].map((file) => [file.name, file]));
  const bytes = Object.fromEntries(await Promise.all(
    ["python/pyodide.asm.wasm.gz", "python/python_stdlib.zip", "kit.zip"].map(async (name) => [name, await fetched(base, named[name])]),
  ));
  // Pyodide asks for its files by name: it gets those that the page keeps.
  const ask = globalThis.fetch;
  const kept_here = { "pyodide.asm.wasm": ["python/pyodide.asm.wasm.gz", "application/wasm"], "python_stdlib.zip": ["python/python_stdlib.zip", "application/zip"] };
  globalThis.fetch = (url, options) => {
    const [name, type] = kept_here[String(url.url || url).split("/").pop().split("?")[0]] || [];
    return name ? Promise.resolve(new Response(bytes[name], { headers: { "Content-Type": type } })) : ask(url, options);
  };
  const { loadPyodide } = await import(new URL("python/pyodide.mjs", base));
  python = await loadPyodide({
    indexURL: new URL("python/", base).href, checkAPIVersion: false,
    lockFileContents: JSON.stringify(loads.python.lock),
    packageBaseUrl: new URL("python/", base).href,
  });
  globalThis.fetch = ask;
  python.FS.mkdirTree("/kit");
  python.FS.mkdirTree("/etc");
  python.FS.writeFile("/etc/os-release", `PRETTY_NAME="${system.replace(/[^\w .()/-]/g, "")}"\n`);
  python.unpackArchive(bytes["kit.zip"], "zip", { extractDir: "/kit" });
  python.globals.set("key", loads.machine.key);
  python.globals.set("facts", JSON.stringify(loads.machine.facts));
  python.runPython(`
import sys
sys.dont_write_bytecode = True
sys.path[:0] = ["/kit/src/measuretwice/in_page/shims", "/kit/src", "/kit/libraries"]
from measuretwice.in_page.api import PageApi
api = PageApi("/kit", "${RUNS}", key, facts)
`);
  api = python.globals.get("api");
}

function ask(what, request) {
  const { answer, problem } = JSON.parse(api.ask(what, JSON.stringify(request)));
  if (problem !== undefined) throw new Error(problem);
  return answer;
}

function write(path, bytes, at) {
  python.FS.mkdirTree(path.slice(0, path.lastIndexOf("/")));
  python.FS.writeFile(path, bytes);
  if (at) python.FS.utime(path, at, at);
}

/** Bring in what this browser keeps of a lab, also what another tab has added; where that has forgotten it, it goes here, too. */
async function restore(lab) {
  const names = await kept_names(lab).catch(() => null);
  if (!names) return;
  if ([...(restored_names.get(lab) || [])].some((name) => !names.includes(name))) drop(lab);
  if (!restored_names.has(lab)) restored_names.set(lab, new Set());
  for (const name of names) {
    if (name.endsWith(BOOK)) await restore_book(lab, name);
    else if (!restored_names.get(lab).has(name)) await bring(name, place_of(lab, name));
    restored_names.get(lab).add(name);
  }
}

async function bring(name, place) {
  const value = await kept_value(name);
  if (!value) return;
  for (const [file, bytes] of Object.entries(unpack(new Uint8Array(value.tar)))) write(`${RUNS}/${place}/${file}`, bytes, value.at);
}

// A first try's runs are beside the labs' own, as ./lab start has them, and the list of its states with them.
function place_of(lab, name) {
  const first_try = `${lab}/${START}/`;
  if (!name.startsWith(first_try)) return name;
  return name === first_try + STATES ? `${START}/${lab}` : `${START}/${lab}/${name.slice(first_try.length)}`;
}

async function keep_states(lab) {
  const path = `${RUNS}/${START}/${lab}/${STATES}`;
  if (!python.FS.analyzePath(path).exists) return;
  await keep(`${lab}/${START}/${STATES}`, { at: Date.now(), tar: pack({ [STATES]: python.FS.readFile(path) }).buffer });
  restored_names.get(lab)?.add(`${lab}/${START}/${STATES}`);
}

function book_text(lab) {
  const path = `${RUNS}/${lab}/${BOOK}`;
  return python.FS.analyzePath(path).exists ? python.FS.readFile(path, { encoding: "utf8" }) : null;
}

// What stands here and couldn't be kept is more than what is kept.
async function restore_book(lab, name) {
  if (book_text(lab) !== (books.get(lab) ?? null)) return;
  await bring(name, lab);
  books.set(lab, book_text(lab));
}

function drop(lab) {
  ask("forget", { lab });
  restored_names.delete(lab);
  books.delete(lab);
}

async function keep_book(lab) {
  const text = book_text(lab);
  if (text === null || text === books.get(lab)) return;
  const name = `${lab}/${BOOK}`;
  await keep(name, { at: Date.now(), tar: pack({ [BOOK]: text }).buffer });
  books.set(lab, text);
  restored_names.get(lab)?.add(name);
}

/** Work on a lab's runs and book: what other tabs have done is read before, what is done is kept after; one tab at a time. */
function with_lab(lab, work) {
  const all = async () => {
    await restore(lab);
    try {
      return await work();
    } finally {
      await keep_book(lab).catch(() => {});
    }
  };
  return navigator.locks ? navigator.locks.request(`measure-twice-runs/${lab}`, all) : all();
}

async function keep_run(lab, folder, files) {
  const is_first_try = files[0].startsWith(`${START}/`);
  const top = is_first_try ? `${START}/${lab}/${folder}/` : `${lab}/${folder}/`;
  const name = is_first_try ? `${lab}/${START}/${folder}` : `${lab}/${folder}`;
  const tar = pack(Object.fromEntries(files.map((file) => [file.slice(top.length), python.FS.readFile(`${RUNS}/${file}`)])));
  await keep(name, { at: Date.now(), tar: tar.buffer });
  restored_names.get(lab)?.add(name);
}

const is_kept = (lab, folder, files) => keep_run(lab, folder, files).then(() => true, () => false);

const works = {
  open,
  ask: ({ what, request, lab }) => (lab ? with_lab(lab, async () => {
    const answer = ask(what, request);
    if (what === "finish") await keep_states(lab).catch(() => {});
    return answer;
  }) : ask(what, request)),
  /** What a trial's machine needs; or {is_made, is_kept, said}, where its run needs none. */
  begin: ({ lab, folder }) => with_lab(lab, async () => {
    const { files_of_run, ...rest } = ask("begin", { folder });
    return files_of_run ? { is_made: true, is_kept: await is_kept(lab, folder, files_of_run), ...rest } : rest;
  }),
  conclude: ({ lab, folder, tar, said, predicted }) => with_lab(lab, () => {
    python.FS.writeFile(GIVEN, tar);
    const answer = ask("conclude", { folder, given: GIVEN, said, predicted });
    return is_kept(lab, folder, answer.files);
  }),
  keep_live: ({ lab, folder, tar }) => with_lab(lab, async () => {
    python.FS.writeFile(GIVEN, tar);
    const { files } = ask("live_files", { lab, folder, given: GIVEN });
    if (files.length) await keep_run(lab, folder, files).catch(() => {});
    return files.length > 0;
  }),
  save: ({ lab, ...written }) => with_lab(lab, () => {
    const about = ask("archive", { lab, to: SAVED, ...written });
    const bytes = python.FS.readFile(SAVED);
    python.FS.unlink(SAVED);
    return { ...about, bytes };
  }),
  forget: ({ lab }) => with_lab(lab, async () => {
    await forget(lab);
    drop(lab);
  }),
};

// One after another: Python has one API.
let last = Promise.resolve();
addEventListener("message", ({ data: { id, work, request } }) => {
  last = last.then(() => works[work](request)).then(
    (answer) => postMessage({ id, answer }),
    (error) => postMessage({ id, problem: String(error.message || error).trim().split("\n").pop() }),
  );
});
