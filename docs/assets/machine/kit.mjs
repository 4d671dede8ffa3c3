// A worker with the kit's own Python (src/measuretwice/in_page/): it plans trials, and makes a run's folder of what the
// machine gave, with the same code as ./lab.
import { fetched, forget, keep, kept } from "./store.mjs";
import { pack, unpack } from "./tar.mjs";

const RUNS = "/runs";
const GIVEN = "/tmp/given.tar";
const SAVED = "/tmp/saved.zip";
const BOOK = "lab-book.md";

let python = null;
let desk = null;
const restored = new Set();

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
sys.path[:0] = ["/kit/src/measuretwice/in_page/stand_ins", "/kit/src", "/kit/libraries"]
from measuretwice.in_page.desk import Desk
desk = Desk("/kit", "${RUNS}", key, facts)
`);
  desk = python.globals.get("desk");
}

function ask(what, request) {
  const { answer, problem } = JSON.parse(desk.ask(what, JSON.stringify(request)));
  if (problem !== undefined) throw new Error(problem);
  return answer;
}

function write(path, bytes, at) {
  python.FS.mkdirTree(path.slice(0, path.lastIndexOf("/")));
  python.FS.writeFile(path, bytes);
  if (at) python.FS.utime(path, at, at);
}

/** Bring back what this browser kept of a lab's runs. */
async function restore(lab) {
  if (restored.has(lab)) return;
  restored.add(lab);
  for (const [name, { at, tar }] of await kept(lab).catch(() => [])) {
    const place = name.endsWith(BOOK) ? lab : name;
    for (const [file, bytes] of Object.entries(unpack(new Uint8Array(tar)))) write(`${RUNS}/${place}/${file}`, bytes, at);
  }
}

async function keep_run(lab, folder, files) {
  const top = `${lab}/${folder}/`;
  const tar = pack(Object.fromEntries(files.map((file) => [file.slice(top.length), python.FS.readFile(`${RUNS}/${file}`)])));
  await keep(`${lab}/${folder}`, { at: Date.now(), tar: tar.buffer });
}

const is_kept = (lab, folder, files) => keep_run(lab, folder, files).then(() => true, () => false);

async function keep_books(books) {
  for (const [name, text] of Object.entries(books || {})) {
    await keep(name, { at: Date.now(), tar: pack({ [BOOK]: text }).buffer });
  }
}

const works = {
  open,
  restore: ({ lab }) => restore(lab),
  ask: async ({ what, request }) => {
    if (request.lab) await restore(request.lab);
    const answer = ask(what, request);
    await keep_books(answer && answer.book).catch(() => {});
    return answer;
  },
  /** What a trial's machine needs; or {is_made, is_kept, said}, where its run needs none. */
  begin: async ({ lab, folder }) => {
    const { files_of_run, ...rest } = ask("begin", { folder });
    return files_of_run ? { is_made: true, is_kept: await is_kept(lab, folder, files_of_run), ...rest } : rest;
  },
  conclude: async ({ lab, folder, tar, said }) => {
    python.FS.writeFile(GIVEN, tar);
    const answer = ask("conclude", { folder, given: GIVEN, said });
    return is_kept(lab, folder, answer.files);
  },
  keep_live: async ({ lab, folder, tar }) => {
    python.FS.writeFile(GIVEN, tar);
    const { files } = ask("live_files", { lab, folder, given: GIVEN });
    if (files.length) await keep_run(lab, folder, files).catch(() => {});
    return files.length > 0;
  },
  save: async ({ lab }) => {
    await restore(lab);
    const { name } = ask("archive", { lab, to: SAVED });
    const bytes = python.FS.readFile(SAVED);
    python.FS.unlink(SAVED);
    return { name, bytes };
  },
  forget: async ({ lab }) => {
    await forget(lab);
    python.runPython(`import shutil; shutil.rmtree("${RUNS}/${lab}", ignore_errors=True)`);
  },
};

// One after another: Python has one desk.
let last = Promise.resolve();
addEventListener("message", ({ data: { id, work, request } }) => {
  last = last.then(() => works[work](request)).then(
    (answer) => postMessage({ id, answer }),
    (error) => postMessage({ id, problem: String(error.message || error).trim().split("\n").pop() }),
  );
});
