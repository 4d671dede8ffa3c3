// The browser's machine: Linux for i686 with a virtual clock, in v86. The same in a worker and in node.
//
// v86 is used as published. One hook is the OUT instruction on one port, by which the guest's kernel hands over requests
// (struct vtime_request in scripts/browser/patches); the other takes up at once what v86 has compiled.
const PORT = 0x5600;
const OUT = 1, IN = 2, EVENT = 3, CONSOLE = 4, SLEEP = 5, CLOCK = 6;
const REQUEST_BYTES = 24;
const HEADER_BYTES = 512;
const NOT_YET = -1;
const LONGEST_SLEEP_MS = 60000;
// Where in v86's table of functions what it compiles begins.
const TABLE_OFFSET = 1024;

// Ten senders with room for the kernel's events of a minute each (lab 03).
export const MEMORY_MB = 256;
/** What the kernel is told when it starts; a saved machine has started already. */
export const COMMAND_LINE =
  "lpj=100000 tsc=unstable rdinit=/sbin/guest-init panic=-1 mitigations=off quiet tcp_reader_interval_us=10000";

export class Machine {
  /**
   * `V86` is the class of libv86.mjs. `files` are ArrayBuffers: wasm, and either state, a saved machine, or
   * bios, vga_bios, kernel and initrd. `on_event(text)` gets what the guest's first process tells, `on_console(text)`
   * the kernel's messages, `on_serial(line, byte)` what is written to a serial line. Without `compiles` each instruction
   * is interpreted.
   */
  constructor({ V86, files, on_event = () => {}, on_console = () => {}, on_serial = null, on_waiting = null, compiles = true }) {
    this.on_event = on_event;
    this.on_console = on_console;
    this.on_waiting = on_waiting;
    this.input = null;
    this.input_at = 0;
    this.output = [];
    this.clock_address = 0;
    this.decoder = new TextDecoder();
    const options = {
      wasm_fn: async (env) => {
        const write32 = env.env.io_port_write32;
        env.env.io_port_write32 = (port, value) => (port === PORT ? this.serve(value >>> 0) : write32(port, value));
        if (compiles) this.compile_at_once(env.env);
        const { instance } = await WebAssembly.instantiate(files.wasm, env);
        // Less is compiled at once: compiling is most of what a run costs. A page of code at a time, no block of it twice.
        instance.exports.set_jit_config(1, 1);
        instance.exports.set_jit_config(3, 0);
        if (!compiles) instance.exports.set_jit_config(0, 1);
        return instance.exports;
      },
      memory_size: MEMORY_MB << 20,
      vga_memory_size: 1 << 20,
      acpi: false,
      autostart: false,
      disable_speaker: true,
      disable_keyboard: true,
      disable_mouse: true,
      uart1: true,
      uart2: true,
      fastboot: true,
    };
    if (files.state) {
      options.initial_state = { buffer: files.state };
    } else {
      options.bios = { buffer: files.bios };
      options.vga_bios = { buffer: files.vga_bios };
      options.bzimage = { buffer: files.kernel };
      options.initrd = { buffer: files.initrd };
      options.cmdline = COMMAND_LINE;
    }
    this.emulator = new V86(options);
    this.ready = new Promise((resolve) => this.emulator.add_listener("emulator-ready", resolve));
    if (on_serial) {
      for (let line = 0; line < 3; line++) {
        this.emulator.add_listener(`serial${line}-output-byte`, (byte) => on_serial(line, byte));
      }
    }
  }

  run() {
    this.state = "running";
    this.emulator.run();
  }

  // As published, v86 interprets on while the browser compiles a page of code, and compiles no other meanwhile. Here each
  // is there as soon as v86's loop next looks at the clock.
  compile_at_once(env) {
    const { microtick } = env;
    let finished = null;
    env.codegen_finalize = (index, page, flags, at, length) => {
      const { cpu } = this.emulator.v86;
      const module = new WebAssembly.Module(new Uint8Array(cpu.wasm_memory.buffer, at >>> 0, length >>> 0));
      const { exports } = new WebAssembly.Instance(module, { e: cpu.jit_imports });
      cpu.wm.wasm_table.set(index + TABLE_OFFSET, exports.f);
      finished = [index, page, flags];
    };
    env.microtick = () => {
      if (finished) {
        const done = finished;
        finished = null;
        this.emulator.v86.cpu.codegen_finalize_finished(...done);
      }
      return microtick();
    };
  }

  /** What the guest's first process waits for: "run SEED READER_US" or "live SEED READER_US NODE...", and files for its root. */
  give(words, tar) {
    this.input = new Uint8Array(HEADER_BYTES + tar.length);
    this.input.set(new TextEncoder().encode(words));
    this.input.set(tar, HEADER_BYTES);
    this.input_at = 0;
  }

  /** What the guest has handed over: a tar file. */
  result() {
    const all = new Uint8Array(this.output.reduce((total, part) => total + part.length, 0));
    let at = 0;
    for (const part of this.output) {
      all.set(part, at);
      at += part.length;
    }
    return all;
  }

  /** Virtual time since the machine started, in seconds: read from the guest's memory, which costs it nothing. */
  seconds() {
    if (!this.clock_address) return 0;
    const bytes = this.emulator.read_memory(this.clock_address, 8).slice();
    return Number(new DataView(bytes.buffer).getBigUint64(0, true)) / 1e9;
  }

  serve(address) {
    const view = new DataView(this.emulator.read_memory(address, REQUEST_BYTES).slice().buffer);
    const op = view.getUint32(0, true);
    const buffer = view.getUint32(4, true);
    const length = view.getUint32(8, true);
    let result = 0;
    if (op === OUT) {
      this.output.push(this.emulator.read_memory(buffer, length).slice());
    } else if (op === IN) {
      result = this.take(buffer, length);
    } else if (op === EVENT) {
      this.on_event(this.text(buffer, length));
    } else if (op === CONSOLE) {
      const text = this.text(buffer, length);
      this.on_console(text);
      // What was killed is waited for in vain.
      if (text.includes("Out of memory")) this.on_event(`failed: its ${MEMORY_MB} MB of memory ran out`);
    } else if (op === SLEEP) {
      this.sleep(address, view);
    } else if (op === CLOCK) {
      this.clock_address = buffer;
    }
    view.setInt32(12, result, true);
    this.emulator.write_memory(new Uint8Array(view.buffer, 12, 4), address + 12);
  }

  take(buffer, length) {
    if (!this.input) {
      const waiting = this.on_waiting;
      this.on_waiting = null;
      if (waiting) waiting();
      return NOT_YET;
    }
    const part = this.input.subarray(this.input_at, this.input_at + length);
    if (part.length) this.emulator.write_memory(part, buffer);
    this.input_at += part.length;
    return part.length;
  }

  text(buffer, length) {
    return this.decoder.decode(this.emulator.read_memory(buffer, length).slice());
  }

  // Live: virtual time follows this machine's clock, or comes after it. Until the next timer there is nothing to do.
  sleep(address, view) {
    const now_ns = Number(view.getBigUint64(4, true));
    const next_ns = Number(view.getBigUint64(16, true));
    this.live_from ??= performance.now() - now_ns / 1e6;
    const target_ns = (performance.now() - this.live_from) * 1e6;
    if (target_ns < next_ns) this.pause(Math.min((next_ns - target_ns) / 1e6, LONGEST_SLEEP_MS));
    view.setBigUint64(16, BigInt(Math.max(0, Math.floor(target_ns))), true);
    this.emulator.write_memory(new Uint8Array(view.buffer, 16, 8), address + 16);
  }

  // v86 stops some time after it is told to; it mustn't be told to run meanwhile.
  pause(ms) {
    this.due = performance.now() + ms;
    if (this.state === "stopping" || ms < 1) return;
    this.state = "stopping";
    this.wanted = false;
    this.emulator.stop().then(() => {
      this.state = "stopped";
      if (this.wanted) this.wake();
      else this.timer = setTimeout(() => this.wake(), this.due - performance.now());
    });
  }

  wake() {
    clearTimeout(this.timer);
    this.run();
  }

  /** Live: what a person types on a serial line. */
  type(line, bytes) {
    this.emulator.serial_send_bytes(line, bytes);
    if (this.state === "stopped") this.wake();
    else this.wanted = true;
  }
}
