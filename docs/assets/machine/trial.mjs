// A worker for one trial: it starts the saved machine, gives it what the guest reads, and hands back what that gave.
// To cancel a trial is to end its worker.
import { fetched, from_packs } from "./store.mjs";
import { Machine } from "./machine.mjs";
import { pack } from "./tar.mjs";

const TELL_MS = 200;
// Longer than anything but a browser that holds a page which nobody sees.
const HELD_MS = 5000;

addEventListener("message", async ({ data: { base, machine, words, packs, files } }) => {
  try {
    const named = Object.fromEntries(machine.files.map((file) => [file.name, file]));
    const [wasm, state] = await Promise.all([fetched(base, named["v86.wasm.gz"]), fetched(base, named["state.bin.zst"])]);
    const given = { ...(await from_packs(base, packs)), ...files };
    const { V86 } = await import(new URL(`libv86.mjs?${named["libv86.mjs"].digest}`, base));
    const said = [];
    let telling = 0;
    const guest = new Machine({
      V86,
      files: { wasm, state },
      on_console: (text) => said.push(text),
      on_event: (text) => {
        if (!/^(done|failed)/.test(text)) return;
        clearInterval(telling);
        guest.emulator.stop();
        if (text.startsWith("failed")) {
          postMessage({ problem: text.replace("failed:", "the machine failed:") });
          return;
        }
        const tar = guest.result();
        postMessage({ done: text, tar, said: said.join("") }, [tar.buffer]);
      },
    });
    guest.clock_address = machine.clock_address;
    guest.give(`${words}\n`, pack(given));
    await guest.ready;
    const begun = guest.seconds();
    let held_ms = 0;
    let last = performance.now();
    telling = setInterval(() => {
      const now = performance.now();
      if (now - last > HELD_MS) held_ms += now - last;
      last = now;
      postMessage({ seconds: guest.seconds() - begun, held_s: held_ms / 1e3 });
    }, TELL_MS);
    guest.run();
  } catch (error) {
    postMessage({ problem: String(error.message || error) });
  }
});
