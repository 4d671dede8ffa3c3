// A worker for a live lab: shells on nodes, each on a serial line of the saved machine, in real time. To end it is to
// end its worker.
//
// It gets {base, machine, words, packs, files, sizes: [[rows, columns], ...]} first, then {line, typed: bytes},
// {line, size: [rows, columns]} and {wanted: "files"}; it tells {up}, {line, shown: bytes}, {tar} and {problem}.
import { fetched, from_packs } from "./store.mjs";
import { take_turns_here } from "./v86-speedups.mjs";
import { Machine } from "./machine.mjs";
import { pack, unpack } from "./tar.mjs";

const SHOW_MS = 8;
// As backends/live_script.py has them.
const SIZES = "run/terminals";

let guest = null;
const shown = [[], [], []];
let showing = false;

function show(line, byte) {
  shown[line].push(byte);
  if (showing) return;
  showing = true;
  setTimeout(() => {
    showing = false;
    for (const [number, bytes] of shown.entries()) {
      if (bytes.length) postMessage({ line: number, shown: Uint8Array.from(bytes) });
      shown[number] = [];
    }
  }, SHOW_MS);
}

// What the guest is asked and hasn't read yet; once it is up it looks every other second.
const pending = new Map();
let is_up = false;

function ask(what, words) {
  if (is_up && guest.input_at >= guest.input.length) pending.clear();
  pending.set(what, words);
  if (is_up) pass_on();
}

function pass_on() {
  if (pending.size) guest.give(`${[...pending.values()].join(" ")}\n`, new Uint8Array());
}

function handle_event(event) {
  if (event === "live") {
    is_up = true;
    pass_on();
    postMessage({ up: true });
  } else if (event === "files") {
    hand_over();
  } else if (/^(done|failed)/.test(event)) {
    give_up(event);
  }
}

function hand_over() {
  const tar = guest.result();
  guest.output = [];
  postMessage({ tar }, [tar.buffer]);
}

// Its script failed: a live lab is never done by itself.
function give_up(event) {
  guest.emulator.stop();
  const log = unpack(guest.result())["experiment.log"];
  const last = log && new TextDecoder().decode(log).trim().split("\n").pop();
  postMessage({ problem: last || event });
}

async function start({ base, machine, words, packs, files, sizes }) {
  const named = Object.fromEntries(machine.files.map((file) => [file.name, file]));
  const [wasm, state] = await Promise.all([fetched(base, named["v86.wasm.gz"]), fetched(base, named["state.bin.zst"])]);
  const { V86 } = await import(new URL(`libv86.mjs?${named["libv86.mjs"].digest}`, base));
  guest = new Machine({ V86, files: { wasm, state }, on_event: handle_event, on_serial: show });
  const terminals = sizes.map(([rows, columns], line) => [`${SIZES}/ttyS${line}`, `rows ${rows} cols ${columns}\n`]);
  guest.give(`${words}\n`, pack({ ...(await from_packs(base, packs)), ...files, ...Object.fromEntries(terminals) }));
  await guest.ready;
  take_turns_here(guest);
  guest.run();
}

addEventListener("message", ({ data }) => {
  const { line, typed, size, wanted } = data;
  if (typed && is_up) guest.type(line, typed);
  else if (size) ask(`size ${line}`, `size ${line} ${size.join(" ")}`);
  else if (wanted) ask(wanted, wanted);
  else if (data.base) start(data).catch((error) => postMessage({ problem: String(error.message || error) }));
});
