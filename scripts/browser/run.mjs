// node run.mjs MACHINE FOLDER WORDS [--memory MEMORY | --steps STEPS]: one trial in the browser's machine, without a browser. MACHINE is the folder
// that build.sh prints; WORDS is what its guest is told; FOLDER/files/ holds what that gets at its root; FOLDER gets what the
// guest hands back. MEMORY.before and MEMORY.after get the memory that its kernel and programs began in; STEPS gets how
// often v86 stepped from one place to another (steps.mjs).
import fs from "node:fs";
import path from "node:path";
import v8 from "node:v8";
import { pathToFileURL } from "node:url";
import { Machine } from "../../docs/assets/machine/machine.mjs";
import { counting_steps } from "./steps.mjs";
import { pack, unpack } from "../../docs/assets/machine/tar.mjs";

const [machine_folder, folder, words, option, file] = process.argv.slice(2);
const memory = option === "--memory" && file;
const KEPT_BYTES = 64 << 20;

// v86's functions are long, so V8 takes each for hot after a few calls, and compiling it anew is half of what a short run
// costs. The bytes that are to be executed before are some hundred times what they are.
v8.setFlagsFromString("--wasm-tiering-budget=1000000000");

function keep_memory(machine, when) {
  if (memory) fs.writeFileSync(`${memory}.${when}`, machine.emulator.read_memory(0, KEPT_BYTES));
}

function read(...names) {
  const bytes = fs.readFileSync(path.join(...names));
  return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
}

function below(top, place = "") {
  return fs.readdirSync(path.join(top, place), { withFileTypes: true }).flatMap((entry) => {
    const name = path.posix.join(place, entry.name);
    return entry.isDirectory() ? below(top, name) : [name];
  });
}

const published = await import(pathToFileURL(path.resolve(machine_folder, "libv86.mjs")));
const V86 = option === "--steps" ? counting_steps(published.V86, file) : published.V86;
const facts = JSON.parse(fs.readFileSync(path.join(machine_folder, "machine.json"), "utf8"));
const given = {};
for (const name of below(path.join(folder, "files")).sort()) given[name] = new Uint8Array(read(folder, "files", name));
const said = [];
const status = await new Promise((finish) => {
  const machine = new Machine({
    V86,
    files: { wasm: read(machine_folder, "v86.wasm"), state: read(machine_folder, "state.bin.zst") },
    on_console: (text) => said.push(text),
    on_event: (text) => {
      if (!/^(done|failed)/.test(text)) return;
      machine.emulator.stop();
      keep_memory(machine, "after");
      finish([text, machine.result()]);
    },
  });
  machine.clock_address = facts.clock_address;
  machine.give(`${words}\n`, pack(given));
  machine.ready.then(() => {
    keep_memory(machine, "before");
    machine.run();
  });
}).then(([text, tar]) => {
  for (const [name, bytes] of Object.entries(unpack(tar))) {
    const file = path.join(folder, name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, bytes);
  }
  return text;
});
fs.writeFileSync(path.join(folder, "console.txt"), said.join(""));
if (status !== "done 0") process.stderr.write(`${status}\n`);
process.exit(status.startsWith("done") ? 0 : 1);
