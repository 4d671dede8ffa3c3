// A worker for a page's trials, one after another: it starts the saved machine, gives it what the guest reads, and hands
// back what that gave. To cancel a trial is to end its worker.
//
// It gets {base, machine, words, packs, files}, and tells {seconds, held_s} until {done, tar, said} or {problem}. With
// {rehearsal: true} nothing is told: what v86 compiles meanwhile makes the next trial faster, which ends a rehearsal.
import { fetched, from_packs } from "./store.mjs";
import { keep_what_is_compiled, put_back, take_turns_here } from "./v86-speedups.mjs";
import { Machine } from "./machine.mjs";
import { pack } from "./tar.mjs";

const TELL_MS = 200;
// Longer than anything but a browser that holds a page which nobody sees.
const HELD_MS = 5000;

let guest = null;
let console_output = [];
let telling = 0;

async function machine_of({ base, machine }) {
  const named = Object.fromEntries(machine.files.map((file) => [file.name, file]));
  const state = await fetched(base, named["state.bin.zst"]);
  if (guest) {
    await put_back(guest, state);
    return;
  }
  const wasm = await fetched(base, named["v86.wasm.gz"]);
  const { V86 } = await import(new URL(`libv86.mjs?${named["libv86.mjs"].digest}`, base));
  guest = new Machine({ V86, files: { wasm, state }, on_console: (text) => console_output.push(text) });
  guest.clock_address = machine.clock_address;
  await guest.ready;
  take_turns_here(guest);
  keep_what_is_compiled(guest);
}

function tell_seconds() {
  const begun = guest.seconds();
  let held_ms = 0;
  let last = performance.now();
  telling = setInterval(() => {
    const now = performance.now();
    if (now - last > HELD_MS) held_ms += now - last;
    last = now;
    postMessage({ seconds: guest.seconds() - begun, held_s: held_ms / 1e3 });
  }, TELL_MS);
}

async function run({ base, packs, files, words, rehearsal, ...rest }) {
  const given = { ...(await from_packs(base, packs)), ...files };
  await machine_of({ base, ...rest });
  console_output = [];
  guest.on_event = (text) => {
    if (!/^(done|failed)/.test(text)) return;
    clearInterval(telling);
    guest.emulator.stop();
    if (rehearsal) return;
    if (text.startsWith("failed")) {
      postMessage({ problem: text.replace("failed:", "the machine failed:") });
      return;
    }
    const tar = guest.result();
    postMessage({ done: text, tar, said: console_output.join("") }, [tar.buffer]);
  };
  guest.give(`${words}\n`, pack(given));
  if (!rehearsal) tell_seconds();
  guest.run();
}

// The machine isn't put back while it is being made.
let last = Promise.resolve();
addEventListener("message", ({ data }) => {
  last = last.then(() => run(data)).catch((error) => postMessage({ problem: String(error.message || error) }));
});
