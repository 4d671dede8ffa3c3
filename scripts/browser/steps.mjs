// How often v86 steps from one place of code to another, where each function stands in a page of its own: what it compiles
// is a page, so each step is a call from its loop, through its table of functions.
import fs from "node:fs";

const INSTRUCTION_POINTER = 139; // in words, of v86's memory
const KERNEL_AT = 0xc0000000;
const PAGE_MASK = ~4095;
// A module that hands on a function of one number and nothing else: a table takes no function of JavaScript's.
const HANDS_ON = new WebAssembly.Module(new Uint8Array([
  0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 5, 1, 0x60, 1, 0x7f, 0, 2, 7, 1, 1, 0x65, 1, 0x66, 0, 0, 7, 5, 1, 1, 0x66, 0, 0,
]));

/** A V86 that counts its steps, and writes them to `file` when the process ends: two addresses and a number a line. */
export function counting_steps(V86, file) {
  const steps = new Map();
  let memory = null;
  let words = new Int32Array();
  let last = 0;
  const counted = (run) => (state) => {
    if (!words.length) words = new Int32Array(memory.buffer);
    let now = words[INSTRUCTION_POINTER] >>> 0;
    if (now < KERNEL_AT) now &= PAGE_MASK;
    let after = steps.get(last);
    if (!after) steps.set(last, (after = new Map()));
    after.set(now, (after.get(now) || 0) + 1);
    last = now;
    run(state);
  };
  process.on("exit", () => {
    const lines = [...steps].flatMap(([from, all]) => [...all].map(([to, n]) => `${from.toString(16)} ${to.toString(16)} ${n}\n`));
    fs.writeFileSync(file, lines.join(""));
  });
  return class extends V86 {
    constructor(options) {
      const started = options.wasm_fn;
      options.wasm_fn = async (env) => {
        const table = env.env.__indirect_function_table;
        const set = table.set.bind(table);
        table.set = (at, run) => set(at, run && new WebAssembly.Instance(HANDS_ON, { e: { f: counted(run) } }).exports.f);
        const exports = await started(env);
        memory = exports.memory;
        return exports;
      };
      super(options);
    }
  };
}
