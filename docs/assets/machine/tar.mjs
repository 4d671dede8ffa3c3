// Just enough of ustar for the guest's folders: files with names of at most 100 bytes, no owners, one date.
const BLOCK = 512;
const encoder = new TextEncoder();
const decoder = new TextDecoder();
// Virtual time begins 2023-11-14 22:13:20 UTC (1700000000), and so do all files.
const DATE = "14524764400\0";

const padded = (length) => Math.ceil(length / BLOCK) * BLOCK;

function header(name, length) {
  const head = new Uint8Array(BLOCK);
  const put = (at, text) => head.set(encoder.encode(text), at);
  if (encoder.encode(name).length > 100) throw new Error(`${name}: a name of more than 100 bytes`);
  put(0, name);
  put(100, "0000755\0");
  put(108, "0000000\0");
  put(116, "0000000\0");
  put(124, `${length.toString(8).padStart(11, "0")}\0`);
  put(136, DATE);
  put(148, "        ");
  put(156, "0");
  put(257, "ustar\x0000");
  const sum = head.reduce((total, byte) => total + byte, 0);
  put(148, `${sum.toString(8).padStart(6, "0")}\0 `);
  return head;
}

/** A tar file of {path: Uint8Array or string}, in the order given. */
export function pack(files) {
  const entries = Object.entries(files).map(([name, body]) => [name, typeof body === "string" ? encoder.encode(body) : body]);
  const all = new Uint8Array(entries.reduce((total, [, body]) => total + BLOCK + padded(body.length), 0) + 2 * BLOCK);
  let at = 0;
  for (const [name, body] of entries) {
    all.set(header(name, body.length), at);
    all.set(body, at + BLOCK);
    at += BLOCK + padded(body.length);
  }
  return all;
}

// Root in the guest writes these: a name that leads out of the folder it is unpacked in is no name.
const leads_out = (name) => name === "" || /^[/\\]|[\0-\x1f\x7f]|(^|[/\\])\.\.([/\\]|$)/.test(name);

/** The files of a tar file, as {path: Uint8Array}, each below where it is unpacked; what is no plain file is left out. */
export function unpack(bytes) {
  const files = Object.create(null);
  for (let at = 0; at + BLOCK <= bytes.length && bytes[at]; ) {
    const field = (from, length) => decoder.decode(bytes.subarray(at + from, at + from + length)).replace(/\0.*$/s, "");
    const length = parseInt(field(124, 12), 8) || 0;
    const plain = bytes[at + 156] === 48 || bytes[at + 156] === 0;
    const folder = field(345, 155);
    const name = (folder ? `${folder}/` : "") + field(0, 100);
    const place = name.replace(/^\.\//, "");
    if (plain && leads_out(place)) throw new Error(`${JSON.stringify(place)}: no name of a run's file`);
    if (plain) files[place] = bytes.slice(at + BLOCK, at + BLOCK + length);
    at += BLOCK + padded(length);
  }
  return files;
}
