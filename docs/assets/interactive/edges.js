// The edges of hosts: how a window arrives over cables of different speed, and what that does to drops for each
// halving. A speed's drops are shown once the reader has been there.
(() => {
  "use strict";
  const { h, s, sig, count, still, choice, story } = measureTwice;
  const AXIS_MS = 26, ROW = 28, LEFT = 46, RIGHT = 14;
  const DROPS = { least: 1, most: 200, high: 150, top: 26 };
  const COUNTS = [["after", "after the warm-up", "after"], ["all", "from the start", "before"]];

  const speedOf = (mbit) => (mbit ? `${count(mbit)} Mbit/s` : "infinitely fast");

  async function edges(live, data) {
    let group = data.groups[0], place = 0, seen = new Set();
    const points = () => group.points;
    // From cables without a speed to the slowest: a reader makes them slower.
    for (const dataGroup of data.groups) dataGroup.points = [...dataGroup.points].sort((a, b) => (b.cable || Infinity) - (a.cable || Infinity));

    const trains = s("svg", { class: "panels", role: "img" });
    const drops = s("svg", { class: "panels", role: "img" });
    const box = h("div", { class: "panels-box" }, trains, drops);
    const says = h("p", { class: "verdict applies", role: "status" });
    const slider = h("input", {
      type: "range", id: "edges-cable", min: 0, step: 1, value: 0, oninput: () => { stop(); go(Number(slider.value)); },
    });
    let width = 0, playing = 0;

    function windowsOf(point) {
      return data.arrivals.find((arrival) => arrival.cable === point.cable);
    }

    function drawTrains(point) {
      const arrival = windowsOf(point), parts = [];
      const x = (us) => LEFT + (width - LEFT - RIGHT) * us / (AXIS_MS * 1e3);
      const rows = data.arrivals[0].windows.length, bottom = 24 + rows * ROW;
      parts.push(s("text", { x: LEFT, y: 14, class: "name" }, "when a window’s packets arrive, as strokes"));
      for (let n = 0; n < rows; n++) {
        const y = 24 + n * ROW;
        parts.push(s("line", { x1: LEFT, x2: width - RIGHT, y1: y + 22, y2: y + 22, class: "grid" }),
          s("text", { x: LEFT - 6, y: y + 16, "text-anchor": "end" }, count(data.arrivals[0].windows[n].length)));
        if (!arrival) continue;
        parts.push(s("path", { d: arrival.windows[n].map((us) => `M${x(us).toFixed(1)},${y + 4}v18`).join(""), class: "arrival" }));
      }
      if (!arrival) parts.push(s("text", { x: LEFT + 8, y: 24 + 18 }, "no capture at this speed"));
      for (let ms = 0; ms <= AXIS_MS; ms += 5) parts.push(s("text", { x: x(ms * 1e3), y: bottom + 12, "text-anchor": "middle" }, String(ms)));
      parts.push(s("text", { x: width - RIGHT, y: bottom + 26, "text-anchor": "end" }, "ms after the window’s first packet"));
      size(trains, bottom + 32);
      trains.replaceChildren(...parts);
      trains.setAttribute("aria-label", arrival ? `Cables of ${speedOf(point.cable)}: ${arrival.windows.map((times) => `a window of ${times.length} packets arrives within ${sig(times.at(-1) / 1e3)} ms`).join(", ")}` : "no capture at this speed");
    }

    function size(svg, high) {
      svg.setAttribute("viewBox", `0 0 ${width} ${high}`);
      svg.setAttribute("width", width);
      svg.setAttribute("height", high);
    }

    function drawDrops() {
      const { least, most, high, top } = DROPS, parts = [], all = points();
      const y = (value) => top + high * (1 - Math.log(value / least) / Math.log(most / least));
      const x = (n) => LEFT + (width - LEFT - RIGHT) * (n + 0.5) / all.length;
      parts.push(s("text", { x: LEFT, y: 14, class: "name" }, "drops for each halving (log; 95 % intervals)"));
      for (const value of [1, 2, 5, 10, 20, 50, 100, 200]) {
        parts.push(s("line", { x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value), class: "grid" }),
          s("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, String(value)));
      }
      parts.push(s("rect", { x: x(place) - 16, y: top, width: 32, height: high, class: "here-now" }));
      all.forEach((point, n) => {
        parts.push(s("text", { x: x(n), y: top + high + 16, "text-anchor": "middle", class: n === place ? "name" : "" }, point.cable ? (width < 420 && point.cable >= 1000 ? `${point.cable / 1000}k` : count(point.cable)) : "∞"));
        if (!seen.has(point)) return;
        COUNTS.forEach(([key, , colour], k) => {
          if (!point[key].length) return;
          const [mean, low, up] = point[key], cx = x(n) + (k ? 4 : -4), style = `--line: var(--c-${colour}, var(--ink))`;
          if (low !== undefined) parts.push(s("line", { x1: cx, x2: cx, y1: y(Math.max(least, low)), y2: y(up), class: "interval", style }));
          parts.push(k ? s("rect", { x: cx - 4, y: y(mean) - 4, width: 8, height: 8, class: "value", style }) : s("circle", { cx, cy: y(mean), r: 4.5, class: "value", style }));
        });
      });
      parts.push(s("text", { x: width - RIGHT, y: top + high + 32, "text-anchor": "end" }, "the hosts’ cables (Mbit/s)"));
      size(drops, top + high + 38);
      drops.replaceChildren(...parts);
      drops.setAttribute("aria-label", `Drops for each halving, ${group.name}: ${all.filter((point) => seen.has(point)).map((point) => `${speedOf(point.cable)}: ${sig(point.after[0])} after the warm-up, ${sig(point.all[0])} from the start`).join("; ")}`);
    }

    const withInterval = ([mean, low, up]) => (low === undefined ? sig(mean) : `${sig(mean)} (${sig(low)} to ${sig(up)})`);

    function go(n) {
      place = Math.max(0, Math.min(points().length - 1, n));
      const point = points()[place], arrival = windowsOf(point);
      seen.add(point);
      const last = arrival && arrival.windows.at(-1);
      const arrived = last ? `${last.length} packets arrive within ${sig(last.at(-1) / 1e3)} ms. ` : "";
      const words = `${arrived}${withInterval(point.after)} drops for each halving after the warm-up, ${withInterval(point.all)} from the start; ${point.runs === 1 ? "one run" : `${point.runs} runs`}.`;
      slider.max = points().length - 1;
      slider.value = place;
      slider.setAttribute("aria-valuetext", `${speedOf(point.cable)}: ${words}`);
      says.replaceChildren(h("strong", {}, `Cables: ${speedOf(point.cable)}. `), words);
      draw();
    }

    function draw() {
      if (!width) return;
      drawTrains(points()[place]);
      drawDrops();
    }

    function stop() {
      clearTimeout(playing);
      playing = 0;
      play.textContent = "Play";
    }

    // From where it is to `to`, a speed at a time.
    function run(to, done) {
      stop();
      if (still()) {
        while (place !== to) go(place + Math.sign(to - place));
        done();
        return;
      }
      play.textContent = "Pause";
      const next = () => {
        if (place === to) {
          stop();
          done();
          return;
        }
        go(place + Math.sign(to - place));
        playing = setTimeout(next, 1100);
      };
      playing = setTimeout(next, 500);
    }

    const play = h("button", {
      type: "button", class: "md-button", hidden: still(),
      onclick: () => {
        if (playing) return stop();
        if (place === points().length - 1) go(0);
        run(points().length - 1, () => {});
      },
    }, "Play");
    const names = choice("edges-group", "How many flows", data.groups.map((dataGroup) => [dataGroup.name, dataGroup.name]), (name) => chooseGroup(name, 0));

    function chooseGroup(name, n) {
      stop();
      group = data.groups.find((dataGroup) => dataGroup.name === name);
      go(n);
    }

    const act = (step, done) => {
      names.set(step.group);
      chooseGroup(step.group, step.from);
      run(Math.min(step.to, points().length - 1), done);
    };

    // A press or a drag on the drops' picture takes the speed below it.
    let dragging = false;
    const take = (event) => {
      const frame = drops.getBoundingClientRect();
      stop();
      go(Math.floor((event.clientX - frame.left - LEFT) / (width - LEFT - RIGHT) * points().length));
    };
    drops.addEventListener("pointerdown", (event) => { dragging = true; drops.setPointerCapture(event.pointerId); take(event); });
    drops.addEventListener("pointermove", (event) => { if (dragging) take(event); });
    for (const name of ["pointerup", "pointercancel"]) drops.addEventListener(name, () => { dragging = false; });

    const legend = h("ul", { class: "keys" }, ...COUNTS.map(([, text, colour], k) => h("li", {}, h("span", { class: k ? "square" : "disc", style: `--line: var(--c-${colour}, var(--ink))`, "aria-hidden": "true" }), text)));
    live.append(
      h("div", { class: "aside" }, story(data.steps, act), names),
      h("div", { class: "stage" }, h("div", { class: "clock" }, play, h("label", { for: "edges-cable" }, "The hosts’ cables, from infinitely fast to slow"), slider), says, legend, box));
    new ResizeObserver(() => {
      const now = Math.floor(box.clientWidth);
      if (now === width || !now) return;
      width = now;
      draw();
    }).observe(box);
    go(0);
  }

  measureTwice.edges = edges;
})();
