// node save.mjs FOLDER: starts the machine of a build (FOLDER has libv86.mjs, v86.wasm, kernel, initrd, seabios.bin,
// vgabios.bin), waits until its first process does, and saves it as FOLDER/state.bin; prints the clock's place.
//
// The same files give the same bytes: v86's clocks count how often they are asked, its dice are loaded, and nothing is
// compiled, since when that is done depends on this machine's speed.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { Machine } from "../../docs/assets/machine/machine.mjs";

const folder = process.argv[2];
const LIMIT_S = 3600;
const START_MS = 1700000000000;
const TICK_MS = 0.25;

let asked = 0;
const now = () => (asked += TICK_MS);
performance.now = now;
Date.now = () => START_MS + Math.floor(asked);
Math.random = () => 0.5;
crypto.getRandomValues = (numbers) => numbers.fill(1);


function read(name) {
  const bytes = fs.readFileSync(path.join(folder, name));
  return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
}

const { V86 } = await import(pathToFileURL(path.resolve(folder, "libv86.mjs")));
const files = {
  wasm: read("v86.wasm"),
  bios: read("seabios.bin"),
  vga_bios: read("vgabios.bin"),
  kernel: read("kernel"),
  initrd: read("initrd"),
};
const said = [];
function fail(why) {
  process.stderr.write(`${said.slice(-20).join("")}\nsave.mjs: ${why}\n`);
  process.exit(1);
}
setTimeout(() => fail(`the machine isn't ready after ${LIMIT_S} s`), LIMIT_S * 1000).unref();
await new Promise((waiting) => {
  const machine = new Machine({
    V86,
    files,
    compiles: false,
    on_console: (text) => said.push(text),
    on_event: (text) => {
      if (text.startsWith("failed")) fail(text);
    },
    on_waiting: () => machine.emulator.stop().then(() => waiting(machine)),
  });
  machine.ready.then(() => machine.run());
}).then(async (machine) => {
  const state = await machine.emulator.save_state();
  fs.writeFileSync(path.join(folder, "state.bin"), new Uint8Array(state));
  process.stdout.write(`${machine.clock_address}\n`);
});
process.exit(0);
