// What a page fetches once and keeps, and a reader's runs. All of it stays in this browser.
import { unpack } from "./tar.mjs";

const KEPT = "measure-twice-machine-";
const BOOKS = "measure-twice-runs";
// Firefox, seldom, never finishes reading what it keeps, in a worker: then it is asked once more, and after that the site.
const SLOW_MS = 10000;
const TRIES = 2;

const cache_of = async (key) => ("caches" in globalThis ? caches.open(KEPT + key).catch(() => null) : null);

/** Which of `files` ({name, bytes, digest}) aren't kept yet. */
export async function missing(base, files) {
  const cache = await cache_of("files");
  const responses = await Promise.all(files.map(async (file) => cache && (await cache.match(address(base, file)))));
  return files.filter((_, n) => !responses[n]);
}

const address = (base, file) => new URL(`${file.name}?${file.digest}`, base).href;

/** The bytes of a file, unpacked where its name ends in .gz; `on_bytes(n)` is told of what arrives. */
export async function fetched(base, file, on_bytes = () => {}) {
  const cache = await cache_of("files");
  const url = address(base, file);
  let bytes = cache && (await kept_bytes(cache, url));
  if (!bytes || !is_whole(file, bytes)) {
    bytes = await bytes_of_site(url, file, on_bytes);
    if (cache) await cache.put(url, new Response(bytes)).catch(() => {});
  }
  return unpacked(file.name, bytes);
}

async function kept_bytes(cache, url) {
  for (let tries = 0; tries < TRIES; tries++) {
    const read = cache.match(url).then((response) => (response ? response.arrayBuffer() : undefined));
    const bytes = await in_time(read.catch(() => undefined));
    if (bytes !== null) return bytes;
  }
  return undefined;
}

/** What `work` comes to; null where that takes too long. */
async function in_time(work) {
  let timer = 0;
  const late = new Promise((resolve) => { timer = setTimeout(resolve, SLOW_MS, null); });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

async function bytes_of_site(url, file, on_bytes) {
  const response = await fetch(url).catch(() => {
    throw new Error(`${file.name} can't be fetched. Is there a connection? Everything that has arrived is kept.`);
  });
  if (!response.ok) throw new Error(`${file.name} is missing from this site (${response.status})`);
  const reader = response.body.getReader();
  const parts = [];
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    parts.push(part.value);
    on_bytes(part.value.length);
  }
  const bytes = await new Blob(parts).arrayBuffer();
  if (!is_whole(file, bytes)) throw new Error(`${file.name} didn't arrive whole. Try again.`);
  return bytes;
}

// Some hosts serve a .gz as what is in it.
function is_gzip(bytes) {
  const [first, second] = new Uint8Array(bytes);
  return first === 0x1f && second === 0x8b;
}

function is_whole(file, bytes) {
  if (file.name.endsWith(".gz") && bytes.byteLength && !is_gzip(bytes)) return true;
  return bytes.byteLength === file.bytes;
}

async function unpacked(name, bytes) {
  if (!name.endsWith(".gz") || !is_gzip(bytes)) return bytes;
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

/** The files of packs, tar files that a guest gets besides, as {path: Uint8Array}. */
export async function from_packs(base, packs) {
  const tars = await Promise.all(packs.map((file) => fetched(base, file)));
  return Object.assign({}, ...tars.map((tar) => unpack(new Uint8Array(tar))));
}

/** Forget what an earlier edition of the site had fetched. */
export async function sweep(base, files) {
  const cache = await cache_of("files");
  if (!cache) return;
  const current = new Set(files.map((file) => address(base, file)));
  for (const request of await cache.keys()) {
    if (!current.has(request.url) && request.url.startsWith(new URL(".", base).href)) await cache.delete(request);
  }
}

// --- runs --------------------------------------------------------------------------------------

function open_database() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(BOOKS, 1);
    request.onupgradeneeded = () => request.result.createObjectStore("runs");
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

async function transact(mode, work) {
  const database = await open_database();
  try {
    return await new Promise((resolve, reject) => {
      const transaction = database.transaction("runs", mode);
      const request = work(transaction.objectStore("runs"));
      transaction.oncomplete = () => resolve(request.result);
      transaction.onerror = transaction.onabort = () => reject(transaction.error);
    });
  } finally {
    database.close();
  }
}

const of_lab = (lab) => IDBKeyRange.bound(`${lab}/`, `${lab}/\uffff`);

/** Keep a run or a lab book, {at, tar: ArrayBuffer}, under "LAB/FOLDER". */
export const keep = (name, value) => transact("readwrite", (store) => store.put(value, name));
export const forget = (lab) => transact("readwrite", (store) => store.delete(of_lab(lab)));

/** The names of what is kept of a lab. */
export const kept_names = (lab) => transact("readonly", (store) => store.getAllKeys(of_lab(lab)));

/** What is kept under a name; undefined where there is nothing. */
export const kept_value = (name) => transact("readonly", (store) => store.get(name));
