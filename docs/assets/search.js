// The theme's search, in this site's words: nothing of it is fetched before a reader goes to its field,
// readers' words find what pages call otherwise, and cases and tools come before questions and works.
// Loaded before the theme's own script (extra.polyfills in mkdocs.yml), whose worker and index it holds
// back. A theme whose search has no such field, Zensical's, goes on as if this weren't there.
(() => {
  "use strict";
  // What readers may type for a page, beside what stands on it: a page named here comes first.
  const CALLED = {
    "": "measure twice home",
    "start/": "git clone begin download quickstart",
    "start/machine/": "install installation setup requirements windows wsl wsl2 mac macos macbook apple arm ubuntu debian docker",
    "start/browser/": "wasm webassembly chromebook tablet",
    "start/ping/": "ping lag latency",
    "start/ss/": "cwnd retrans retransmissions",
    "start/nstat/": "retransmissions retransmits timeouts",
    "start/iperf3/": "iperf throughput bandwidth",
    "start/tc/": "delay lag latency qlen backlog length",
    "modules/00-calibrate/delay/": "delay delays lag latency",
    "modules/00-calibrate/loss/": "loss drops",
    "modules/00-calibrate/mtu/": "mtu jumbo",
    "modules/00-calibrate/offloads/": "offload offloads offloading tso gso gro",
    "modules/00-calibrate/rate/": "throughput bandwidth rate speed",
    "modules/02-buffers/": "bufferbloat bloat",
    "modules/04-variants/algorithms/": "bbr cubic vegas reno",
    "modules/05-queues/": "red aqm codel bufferbloat bloat",
    "modules/": "print pdf paper worksheet",
    "instructors/grading/": "grade grades grading marks",
    "instructors/students/": "handout distribute",
    "reference/troubleshooting/": "high low wrong times off why",
    "reference/cheat-sheet/": "cheatsheet high low print length",
    "reference/tc/": "red retransmissions",
    "reference/glossary/": "cwnd jain throughput bufferbloat",
    "reference/statistics/": "confidence significant noise",
  };
  // For a word that no page has: the word that they use.
  const SAID = {
    bufferbloat: "queue", fairness: "jain", grade: "grading", lag: "rtt", latency: "rtt", jain: "fairness",
    throughput: "goodput", bandwidth: "rate", speed: "goodput", retransmissions: "retrans", retransmission: "retrans",
  };
  const ORDER = [[/\/case-\d+\//, 3], [/^start\/\w/, 3], [/\/questions\//, 0.1], [/^reference\/bibliography\//, 0.2],
    [/^reference\/(lab-toml|checker-proof|cluster)\//, 0.3], [/^instructors\//, 0.5]];
  const IDLE = new Set(("a an and are be by can do does from how i in is it my of on or set so than that the then this to too "
    + "what when where which with you").split(" "));
  const SETUP = 0, QUERY = 2, RESULT = 3;

  const field = () => document.querySelector("input.md-search__input");
  let opened;
  const open = new Promise((done) => { opened = done; });
  document.addEventListener("focusin", (event) => { if (event.target === field()) opened(); });

  function prepare(docs) {
    for (const doc of docs) {
      const called = CALLED[doc.location];
      if (called) doc.tags = called.split(" ");
      doc.boost = ORDER.reduce((boost, [pages, factor]) => (pages.test(doc.location) ? factor : boost), doc.boost || 1);
    }
  }

  // "how to set the lag" asks for "lag rtt".
  function asked(text) {
    if (/["+~^-]/.test(text)) return text;
    const words = text.toLowerCase().split(/[\s?!.,]+/).filter(Boolean);
    const telling = words.filter((word) => !IDLE.has(word));
    return (telling.length ? telling : words).flatMap((word) => (SAID[word] ? [word, SAID[word]] : [word])).join(" ");
  }

  // Of a hit, what is shown: neither the words above nor which of them are missing.
  function shown({ items }) {
    for (const hit of items.flat()) {
      delete hit.tags;
      for (const [word, found] of Object.entries(hit.terms)) if (!found) delete hit.terms[word];
    }
  }

  const Theirs = window.Worker;
  class Waiting extends EventTarget {
    constructor(url) {
      super();
      this.worker = open.then(() => {
        const worker = new Theirs(url);
        worker.addEventListener("message", ({ data }) => {
          if (data.type === RESULT) shown(data.data);
          this.dispatchEvent(new MessageEvent("message", { data }));
        });
        return worker;
      });
    }

    postMessage(message) {
      if (message.type === SETUP) prepare(message.data.docs);
      if (message.type === QUERY) message = { ...message, data: asked(message.data) };
      this.worker.then((worker) => worker.postMessage(message));
    }
  }
  window.Worker = function (url, ...options) {
    return /\/workers\/search\.\w+\.min\.js$/.test(url) && field() ? new Waiting(url) : new Theirs(url, ...options);
  };

  const { open: ask, send } = XMLHttpRequest.prototype;
  XMLHttpRequest.prototype.open = function (method, url, ...rest) {
    this.waits = String(url).endsWith("/search/search_index.json");
    return ask.call(this, method, url, ...rest);
  };
  XMLHttpRequest.prototype.send = function (...body) {
    if (this.waits) open.then(() => send.apply(this, body));
    else send.apply(this, body);
  };
})();
