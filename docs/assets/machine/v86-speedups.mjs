// What makes one trial after another fast in v86. A machine is the same with and without it, byte for byte.
const PAGE_BYTES = 4096;
const PAGE_WORDS = PAGE_BYTES / 4;

/**
 * Each millisecond v86 lets its page have a turn. As published, a worker of its own tells it to go on; a message to
 * itself comes sooner. For a machine that is ready, in a browser.
 */
export function take_turns_here({ emulator: { v86 } }) {
  v86.unregister_yield();
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = ({ data }) => v86.yield_callback(data);
  v86.yield = (ms, turn) => {
    if (ms < 1) port2.postMessage(turn);
    else setTimeout(() => v86.yield_callback(turn), ms);
  };
}

/**
 * v86 forgets all compiled code when a saved machine is put back. But code depends on nothing but the page of memory
 * that it was compiled from, and most pages are what they were: only what differs is written, and forgotten.
 */
export function keep_what_is_compiled({ emulator: { v86: { cpu } } }) {
  cpu.jit_clear_cache = () => {};
  cpu.unpack_memory = (is_packed, packed) => {
    const memory = new Int32Array(cpu.mem8.buffer, cpu.mem8.byteOffset, cpu.mem8.length / 4);
    const saved = new Int32Array(packed.buffer, packed.byteOffset, packed.length / 4);
    const empty = new Int32Array(PAGE_WORDS);
    let at = 0;
    for (let page = 0; page * PAGE_WORDS < memory.length; page++) {
      const from = page * PAGE_WORDS;
      const was = is_packed.get(page) ? saved.subarray(at, (at += PAGE_WORDS)) : empty;
      let same = 0;
      while (same < PAGE_WORDS && memory[from + same] === was[same]) same++;
      if (same === PAGE_WORDS) continue;
      cpu.jit_dirty_cache(page * PAGE_BYTES, (page + 1) * PAGE_BYTES);
      memory.set(was, from);
    }
  };
}

/** The saved machine once more, wherever this one is. */
export async function put_back(machine, state) {
  await machine.emulator.stop();
  machine.input = null;
  machine.input_at = 0;
  machine.output = [];
  await machine.emulator.restore_state(state);
}
