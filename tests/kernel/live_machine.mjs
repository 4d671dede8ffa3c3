// node live_machine.mjs MACHINE <JSON: {words, files, nodes, typed: [[line, command, what it must show], ...]}: a live lab in
// the browser's machine. Prints JSON: what each terminal shows, the files that the guest hands over, and the CPU time of
// three idle seconds.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { Machine } from "../../docs/assets/machine/machine.mjs";
import { pack, unpack } from "../../docs/assets/machine/tar.mjs";

const LIMIT_MS = 120_000;
const IDLE_MS = 3000;
const [folder] = process.argv.slice(2);
const { words, files, nodes, typed } = JSON.parse(fs.readFileSync(0, "utf8"));

function read(name) {
  const bytes = fs.readFileSync(path.join(folder, name));
  return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
}

const text = ["", "", ""];
const events = [];
const later = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
async function until(seen, what) {
  for (const end = performance.now() + LIMIT_MS; !seen(); await later(50)) {
    if (performance.now() < end && !events.some((event) => /^(done|failed)/.test(event))) continue;
    process.stderr.write(`never seen: ${what}\n${events.join("\n")}\n${text.join("\n---\n")}\n`);
    process.exit(1);
  }
}

const { V86 } = await import(pathToFileURL(path.resolve(folder, "libv86.mjs")));
const machine = new Machine({
  V86,
  files: { wasm: read("v86.wasm"), state: read("state.bin.zst") },
  on_event: (event) => events.push(event),
  on_serial: (line, byte) => { text[line] += String.fromCharCode(byte); },
});
const sizes = Object.fromEntries(nodes.map((_, line) => [`run/terminals/ttyS${line}`, "rows 30 cols 100\n"]));
machine.give(`${words}\n`, pack({ ...files, ...sizes }));
await machine.ready;
machine.run();
await until(() => nodes.every((_, line) => text[line].includes("# ")), "prompts");
for (const [line, command, shown] of typed) {
  const from = text[line].length + command.length;
  machine.type(line, new TextEncoder().encode(`${command}\n`));
  await until(() => text[line].indexOf(shown, from) >= 0, shown);
}
const before = process.cpuUsage();
await later(IDLE_MS);
const { user, system } = process.cpuUsage(before);
machine.give("size 0 41 121 files\n", new Uint8Array());
await until(() => events.includes("files"), "files");
const given = Object.entries(unpack(machine.result())).map(([name, bytes]) => [name, new TextDecoder().decode(bytes)]);
machine.type(0, new TextEncoder().encode("stty size\n"));
await until(() => text[0].includes("41 121"), "the new size");
const result = { text, files: Object.fromEntries(given), idle_cpu_s: (user + system) / 1e6 };
process.stdout.write(JSON.stringify(result), () => process.exit(0));
