// Recorded flows to be gone through in time: the window above, the queue below, and what the
// algorithm is doing. Shapes and labels carry all; nothing hangs on colour.
(() => {
  "use strict";
  const { h, sig, count, still } = measureTwice;
  const SVG = "http://www.w3.org/2000/svg";
  const WIDE = 640, HIGH = 340, LEFT = 52, RIGHT = 12, TOP = 14, MIDDLE = 216, LOWER = 236, BOTTOM = 300;
  const SPANS = [40, 10, 2];
  // Recorded seconds that pass in a second of the reader's, by how much is shown.
  const PACE = 0.15;

  function s(name, attributes, text) {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    return element;
  }

  // The last sample at or before a time.
  function indexAt(times, time) {
    let low = 0, high = times.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (times[middle] <= time) low = middle; else high = middle - 1;
    }
    return low;
  }

  function niceStep(range, wanted) {
    const raw = range / wanted, power = 10 ** Math.floor(Math.log10(raw));
    return [1, 2, 5, 10].map((one) => one * power).find((one) => one >= raw);
  }

  async function traces(live, data) {
    let run = data.runs[0], time = 0, span = SPANS[0], playing = 0;
    const svg = s("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, "aria-hidden": "true", style: "width:100%;height:auto;display:block;font-size:12px" });
    const last = () => run.time_s.at(-1);

    function draw() {
      svg.replaceChildren();
      const from = span >= last() ? 0 : Math.max(0, Math.min(time - span / 2, last() - span));
      const to = from + Math.min(span, last());
      const first = indexAt(run.time_s, from), end = indexAt(run.time_s, to);
      const x = (t) => LEFT + (WIDE - LEFT - RIGHT) * (t - from) / (to - from);
      const mostWindow = 1.05 * Math.max(...run.cwnd.slice(first, end + 1), 10);
      const mostQueue = 1.1 * Math.max(...run.queue.slice(first, end + 1), 5);
      const yWindow = (w) => MIDDLE - (MIDDLE - TOP) * w / mostWindow;
      const yQueue = (q) => BOTTOM - (BOTTOM - LOWER) * q / mostQueue;
      const ink = "fill:var(--ink-2)", grid = "stroke:var(--faint)";
      const level = (value, y) => svg.append(
        s("line", { x1: LEFT, x2: WIDE - RIGHT, y1: y, y2: y, style: grid }),
        s("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end", style: ink }, count(value)));
      for (let w = 0, step = niceStep(mostWindow, 4); w <= mostWindow; w += step) level(w, yWindow(w));
      for (let q = 0, step = niceStep(mostQueue, 2); q <= mostQueue; q += step) level(q, yQueue(q));
      const step = niceStep(to - from, 6);
      for (let t = Math.ceil(from / step) * step; t <= to + 1e-9; t += step) {
        svg.append(s("text", { x: x(t), y: BOTTOM + 16, "text-anchor": "middle", style: ink }, sig(t)));
      }
      svg.append(
        s("text", { x: (LEFT + WIDE) / 2, y: HIGH - 6, "text-anchor": "middle", style: ink }, "time (s)"),
        s("text", { x: LEFT + 4, y: TOP + 2, style: ink }, "window (segments)"),
        s("text", { x: LEFT + 4, y: LOWER - 4, style: ink }, "queue (packets)"));
      let upper = "", lower = `M${x(from)},${BOTTOM}`;
      for (let n = first; n <= end; n++) {
        const at = x(Math.max(from, run.time_s[n])).toFixed(1);
        upper += `${upper ? "L" : "M"}${at},${yWindow(run.cwnd[n]).toFixed(1)}`;
        lower += `L${at},${yQueue(run.queue[n]).toFixed(1)}`;
      }
      const n = indexAt(run.time_s, time);
      svg.append(
        s("path", { d: `${lower}L${x(to)},${BOTTOM}Z`, style: "fill:var(--bar)" }),
        s("path", { d: upper, style: "fill:none;stroke:var(--ink);stroke-width:1.4" }),
        s("line", { x1: x(time), x2: x(time), y1: TOP, y2: BOTTOM, style: "stroke:var(--measured);stroke-width:1.5;stroke-dasharray:4 3" }),
        s("circle", { cx: x(time), cy: yWindow(run.cwnd[n]), r: 5, style: "fill:var(--measured);stroke:var(--md-default-bg-color);stroke-width:2" }));
      const words = `${run.cwnd[n]} segments, ${run.queue[n]} packets in the queue, RTT ${sig(run.rtt_ms[n])} ms. ${data.says[run.doing[n]]}.`;
      says.replaceChildren(h("strong", {}, `${run.name}, ${time.toFixed(2)} s: `), words);
      slider.value = time;
      slider.setAttribute("aria-valuetext", `${time.toFixed(2)} seconds: ${words}`);
    }

    function go(to) {
      time = Math.max(0, Math.min(last(), to));
      draw();
    }

    function stop() {
      cancelAnimationFrame(playing);
      playing = 0;
      play.textContent = "Play";
    }

    function start() {
      if (time >= last()) time = 0;
      let before = performance.now();
      play.textContent = "Pause";
      const frame = (now) => {
        go(time + Math.max(0, now - before) / 1e3 * span * PACE);
        before = now;
        if (time >= last()) stop(); else playing = requestAnimationFrame(frame);
      };
      playing = requestAnimationFrame(frame);
    }

    const says = h("p", { class: "verdict applies" });
    const slider = h("input", {
      type: "range", id: "traces-time", min: 0, max: last(), step: 0.02, value: 0, style: "width:100%",
      oninput: () => { stop(); go(Number(slider.value)); },
    });
    // With reduced motion nothing plays: the slider and its arrow keys do the same.
    const play = h("button", { type: "button", class: "md-button", hidden: still(), style: still() ? "display:none" : "", onclick: () => (playing ? stop() : start()) }, "Play");
    const choose = (name, label, options, taken) => h("fieldset", {}, h("legend", {}, label), h("div", { class: "turn" },
      ...options.map(([value, text], n) => h("label", {},
        h("input", { type: "radio", name: `traces-${name}`, value, checked: n === 0, onchange: () => taken(value) }), ` ${text}`))));
    live.append(
      h("div", { class: "pick" },
        choose("run", "Algorithm", data.runs.map((one, n) => [n, one.name]), (n) => {
          stop();
          run = data.runs[n];
          slider.max = last();
          go(Math.min(time, last()));
        }),
        choose("span", "Show", SPANS.map((seconds, n) => [n, seconds >= last() ? "all" : `${seconds} s`]), (n) => { span = SPANS[n]; draw(); })),
      svg,
      h("div", { class: "input" }, h("label", { for: "traces-time" }, "Time"), slider, play),
      says,
    );
    go(0);
  }

  measureTwice.traces = traces;
})();
