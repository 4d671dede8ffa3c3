// How long is long enough: a recorded run's losses arrive, and the intervals of what they tell narrow.
(() => {
  "use strict";
  const { h, s, sig, count, seconds, ms, still, along, levels, steps, plane } = measureTwice;
  const LEFT = 44, EDGE = 24, TOP = 22, MIDDLE = 156, LOWER = 190, BOTTOM = 324, HIGH = 368;
  const TIMES = [1, 10000];
  // p over the one that was set, and goodput over the model: the scales of all runs.
  const LOSS = [0.1, 10], GOODPUT = [0.5, 20];
  const [TIME, LOSSES, SEGMENTS, P, P_LOW, P_HIGH, RATIO, LOW, HIGH_END] = [0, 1, 2, 3, 4, 5, 6, 7, 8];
  const PLAYED_MS = 9000;
  const within = ([low, high], value) => Math.min(high, Math.max(low, value));

  async function losses(live, data) {
    let run = data.runs[0], n = 0, playing = 0, x;
    const last = () => run.moments.length - 1;

    function panel(svg, scale, y, title, [at, low, high], ends) {
      svg.append(s("text", { x: LEFT, y: y(scale[1]) - 7, class: "plane-ink" }, title));
      const past = run.moments.slice(0, n + 1).filter((m) => m[at] > 0);
      const bound = past.filter((m) => m[low] !== null);
      const point = (m, key) => `${x(m[TIME]).toFixed(1)},${y(within(scale, m[key] || scale[0])).toFixed(1)}`;
      svg.append(s("line", { x1: LEFT, x2: ends, y1: y(1), y2: y(1), class: "plane-model" }));
      if (bound.length > 1) {
        svg.append(s("polygon", { points: [...bound.map((m) => point(m, high)), ...bound.map((m) => point(m, low)).reverse()].join(" "), class: "plane-span" }));
      }
      if (past.length > 1) svg.append(s("polyline", { points: past.map((m) => point(m, at)).join(" "), class: "plane-line" }));
      const now = run.moments[n];
      if (now[low] !== null) {
        svg.append(s("line", { x1: x(now[TIME]), x2: x(now[TIME]), y1: y(within(scale, now[low] || scale[0])), y2: y(within(scale, now[high])), class: "plane-interval" }));
      }
      if (now[at] > 0) svg.append(s("circle", { cx: x(now[TIME]), cy: y(within(scale, now[at])), r: 5, class: "plane-mark plane-mark--now" }));
    }

    function draw(svg, width) {
      const right = width - EDGE;
      x = along(TIMES, [LEFT, right]);
      const p = along(LOSS, [MIDDLE, TOP]), goodput = along(GOODPUT, [BOTTOM, LOWER]);
      levels(svg, [0.1, 0.5, 2, 10].map((v) => [v, String(v)]), p, LEFT, right);
      levels(svg, [0.5, 1, 2, 5, 20].map((v) => [v, String(v)]), goodput, LEFT, right);
      steps(svg, [1, 10, 100, 1000, 10000].map((t) => [t, width < 480 && t === 10000 ? "10⁴" : count(t)]), x, TOP, BOTTOM);
      svg.append(s("text", { x: (LEFT + right) / 2, y: HIGH - 8, "text-anchor": "middle", class: "plane-ink" }, "time since the connection began (s)"));
      // Where each run had enough, as recorded; the one in view by name.
      for (const recordedRun of data.runs) {
        if (!recordedRun.reached_s) continue;
        const isSelected = recordedRun === run;
        svg.append(s("line", { x1: x(recordedRun.reached_s), x2: x(recordedRun.reached_s), y1: isSelected ? TOP : BOTTOM - 10, y2: BOTTOM, class: isSelected ? "plane-enough" : "plane-enough plane-enough--other" }));
        if (isSelected) svg.append(s("text", { x: x(recordedRun.reached_s) - 5, y: MIDDLE - 6, "text-anchor": "end", class: "plane-strong" }, `${data.enough} losses`));
      }
      panel(svg, LOSS, p, "p by the count, over the p that was set", [P, P_LOW, P_HIGH], right);
      panel(svg, GOODPUT, goodput, "goodput over the model’s, C = 1", [RATIO, LOW, HIGH_END], right);
    }

    function tell() {
      const now = run.moments[n], enough = now[LOSSES] >= data.enough;
      const ends = now[LOW] === null ? "but nothing bounds that yet" : `${sig(now[LOW], 2)} to ${sig(now[HIGH_END], 2)} by chance alone`;
      const words = `${count(now[LOSSES])} of ${count(now[SEGMENTS])} segments lost. p is ${sig(now[P_LOW], 2)} to ${sig(now[P_HIGH], 2)} times the one that was set; `
        + `the goodput is ${sig(now[RATIO], 2)} times the model’s, ${ends}.`;
      const verdict = enough ? `Long enough for most claims: ${data.enough} losses and more.`
        : now[LOSSES] < 10 ? "Too short: that is an anecdote." : `Still too short: it has fewer than ${data.enough} losses.`;
      says.classList.toggle("applies", enough);
      says.replaceChildren(h("strong", {}, `After ${seconds(now[TIME])}: `), `${words} ${verdict}`);
      slider.max = last();
      slider.value = n;
      slider.setAttribute("aria-valuetext", `${seconds(now[TIME])}: ${words}`);
      prediction.textContent = `For ${data.enough} losses the model predicts ${seconds(run.model_s)} (C = 1). ${run.reached_s ? `In this run they took ${seconds(run.reached_s)}.` : "This run has fewer."} Short bars below show when the other two had as many.`;
    }

    function go(to) {
      n = Math.max(0, Math.min(last(), Math.round(to)));
      redraw();
      tell();
    }

    function stop() {
      cancelAnimationFrame(playing);
      playing = 0;
      play.textContent = "Play";
    }

    function start() {
      const from = n >= last() ? 0 : n, begun = performance.now();
      play.textContent = "Pause";
      const frame = (now) => {
        go(from + Math.max(0, now - begun) / PLAYED_MS * run.moments.length);
        if (n >= last()) stop(); else playing = requestAnimationFrame(frame);
      };
      playing = requestAnimationFrame(frame);
    }

    // The moment that is nearest to a place, on the scale of the drawing.
    function nearest(place) {
      const time = Math.log(x.back(place));
      const distances = run.moments.map((m) => Math.abs(Math.log(m[TIME]) - time));
      return distances.indexOf(Math.min(...distances));
    }

    const says = h("p", { class: "verdict" });
    const prediction = h("p", { class: "plane-caption" });
    const slider = h("input", { type: "range", id: "losses-time", min: 0, max: last(), step: 1, style: "width:100%", oninput: () => { stop(); go(Number(slider.value)); } });
    const play = h("button", { type: "button", class: "md-button", hidden: still(), style: still() ? "display:none" : "", onclick: () => (playing ? stop() : start()) }, "Play");
    const box = h("div", { class: "plane-box" });
    live.append(
      h("fieldset", {}, h("legend", {}, "A recorded run"), h("div", { class: "turn" }, ...data.runs.map((recordedRun, k) => h("label", {},
        h("input", { type: "radio", name: "losses-run", value: k, checked: k === 0, onchange: () => { stop(); run = recordedRun; go(Math.min(n, last())); } }),
        ` p = ${sig(recordedRun.loss_ratio, 2)}, ${ms(recordedRun.rtt_ms)}`)))),
      box,
      h("div", {}, h("label", { for: "losses-time" }, "Time"), slider),
      h("div", { class: "turn" }, play),
      says, prediction);
    const redraw = plane(box, HIGH, draw, (place) => { stop(); go(nearest(place)); });
    go(Math.round(last() * 0.45));
  }

  Object.assign(measureTwice, { losses });
})();
