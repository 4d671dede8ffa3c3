// Pages that were looked at can be read, and run trials, without a connection. A page asks for this once it has all that
// a run needs (assets/machine/page.mjs). With a connection everything comes from the site: nothing old is shown.
// It is asked for by its edition: offline.js?EDITION.
const PAGES = "measure-twice-pages";
const OF_EDITION = PAGES + location.search;
// What is large is kept by the page that has fetched it (assets/machine/store.mjs).
const KEPT_BY_PAGES = /\.(gz|zst|zip|tar)$/;

addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) => event.waitUntil(Promise.all([clients.claim(), forget_earlier_editions()])));

async function forget_earlier_editions() {
  const earlier = (await caches.keys()).filter((name) => name.startsWith(PAGES) && name !== OF_EDITION);
  await Promise.all(earlier.map((name) => caches.delete(name)));
}

addEventListener("fetch", (event) => {
  const { method, url } = event.request;
  if (method !== "GET" || !url.startsWith(registration.scope) || KEPT_BY_PAGES.test(new URL(url).pathname)) return;
  event.respondWith(answer(event));
});

async function answer(event) {
  const { request } = event;
  const cache = await caches.open(OF_EDITION);
  try {
    const response = await fetch(request);
    // The page has it at once; keeping it may take as long as it likes.
    if (response.status === 200) event.waitUntil(cache.put(request, response.clone()).catch(() => {}));
    return response;
  } catch (error) {
    const copy = await cache.match(request, { ignoreVary: true });
    if (copy) return copy;
    throw error;
  }
}
