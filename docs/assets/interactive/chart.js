// Goodput against the model's bandwidth, one mark a run, moved from step to step.
// Colours are the style sheet's variables, so light and dark need no second drawing.
(() => {
  "use strict";
  const SHAPES = ["circle", "square", "triangle-up", "diamond", "triangle-down"];
  // Each about as large as a circle of radius 1.
  const UNITS = {
    circle: "M-1,0a1,1 0 1,0 2,0a1,1 0 1,0 -2,0", square: "M-.9,-.9h1.8v1.8h-1.8z", "triangle-up": "M0,-1.1l1.15,2h-2.3z",
    diamond: "M0,-1.3l1.1,1.3l-1.1,1.3l-1.1,-1.3z", "triangle-down": "M0,1.1l1.15,-2h-2.3z",
  };
  const CROSSES = { before: "M-1,-1L1,1M1,-1L-1,1", after: "M-1,0L1,0M0,-1L0,1" };
  // Room for the axes, in pixels.
  const LEFT = 60;
  const TOP = 8;
  const BELOW = 46;
  const ROOM = 1.6;
  const MOVE_MS = 700;
  const NEAR_PX = 22;
  const MOST_PX = 520;

  const distinct = (values) => [...new Set(values)].sort((a, b) => a - b);

  function limits(values) {
    return [Math.min(...values) / ROOM, Math.max(...values) * ROOM];
  }

  function powersOfTen([low, high]) {
    const powers = [];
    for (let n = Math.ceil(Math.log10(low)); n <= Math.log10(high); n++) powers.push(10 ** n);
    return powers;
  }

  // How the values of a parameter look: shapes for MSS, shades for RTT.
  function markEncodings(runs) {
    const sizes = distinct(runs.map((run) => run.mss_bytes));
    const trips = distinct(runs.map((run) => run.rtt_ms));
    const shade = (n) => `var(--shade-${trips.length > 1 ? Math.round(n * 4 / (trips.length - 1)) : 0})`;
    return {
      mss: sizes.map((value, n) => ({ value, shape: SHAPES[n % SHAPES.length] })),
      rtt: trips.map((value, n) => ({ value, shade: shade(n) })),
    };
  }

  const NAMESPACE = "http://www.w3.org/2000/svg";
  // svg("path", { d: "M0,0" }, child): an element. Colours are given as styles: they are the style sheet's variables.
  function svg(name, attributes = {}, ...children) {
    const element = document.createElementNS(NAMESPACE, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  }

  // Of a trial's published values that lie together one bears its number.
  const numbered = (values) => values.map((value, n) => ({
    ...value, number: values.slice(0, n).some((other) => other.trial === value.trial
      && Math.abs(Math.log(other.measured_mbit / value.measured_mbit)) < 0.5) ? "" : value.trial,
  }));

  // Where a run's mark stands. On its way from step to step that moves; what was measured doesn't.
  const place = (run) => ({
    x: run.model_mbit, y: run.goodput_mbit, low: run.goodput_low_mbit, high: run.goodput_high_mbit,
  });

  const rounded = (value) => value.toFixed(1);

  // The elements of the drawing, and what places them; `size` is that of marks.
  function canvas(box, data, look, x, y, constant) {
    const steepness = Math.log(y[1] / y[0]) / Math.log(x[1] / x[0]);
    const share = ([low, high], value) => Math.log(value / low) / Math.log(high / low);
    const shapeOf = new Map(look.mss.map(({ value, shape }) => [value, UNITS[shape]]));
    const shadeOf = new Map(look.rtt.map(({ value, shade }) => [value, shade]));
    const grid = svg("g");
    const band = svg("path", { style: "fill:var(--band)" });
    const modelLine = svg("path", { style: "stroke:var(--c-model);stroke-width:1.4" });
    const fit = svg("path", { style: "stroke:var(--measured);stroke-width:1.6;stroke-dasharray:6 4" });
    const inside = svg("svg", { overflow: "hidden" }, band, modelLine, ...(constant ? [fit] : []));
    const bars = svg("path", { style: "stroke:var(--bar);stroke-width:1" });
    const points = svg("g", { class: "points" });
    const mine = svg("g", { class: "mine" });
    const crosses = svg("g", { style: "display:none" });
    const numbers = svg("g", { class: "mark-text", style: "display:none" });
    const ring = svg("circle", { style: "display:none;fill:none;stroke:var(--measured);stroke-width:2.5" });
    const marks = svg("g", {}, bars, points, mine, crosses, numbers, ring);
    const whole = svg("svg", {
      role: "group", class: "chart",
      "aria-label": "Measured goodput against the model's bandwidth, both in Mbit/s on logarithmic axes; one mark for each trial.",
    }, grid, inside, marks);
    box.append(whole);

    const drawn = { bars, points, mine, crosses, numbers, ring };
    drawn.x = (value) => share(x, value) * drawn.width;
    drawn.y = (value) => (1 - share(y, value)) * drawn.height;
    drawn.put = (mark, run, scale = drawn.size) => mark.setAttribute(
      "transform", `translate(${rounded(drawn.x(run.x))},${rounded(drawn.y(run.y))}) scale(${scale})`);
    // A run's mark: its shape for the MSS, its shade for the RTT unless it has a colour of its own, hollow without a claim.
    drawn.mark = (run, colour = shadeOf.get(run.rtt_ms)) => svg("path", {
      d: shapeOf.get(run.mss_bytes) || UNITS.circle, "vector-effect": "non-scaling-stroke",
      style: `stroke:${colour};stroke-width:1.5;fill:${run.comparable ? colour : "transparent"}`,
    });
    const line = (factor) => `M0,${rounded(drawn.y(x[0] * factor))}L${drawn.width},${rounded(drawn.y(x[1] * factor))}`;
    const words = (content, at) => {
      const text = svg("text", { style: "fill:var(--ink-2)", "font-size": 12, "aria-hidden": true, ...at });
      text.textContent = content;
      return text;
    };
    // The slopes stay at 45 degrees: a decade is as long on one axis as on the other.
    drawn.fit = () => {
      const wide = Math.max(240, Math.min(box.clientWidth, MOST_PX));
      drawn.width = wide - LEFT - 10;
      drawn.height = Math.round(drawn.width * steepness);
      drawn.size = wide < 400 ? 3.5 : 4.6;
      const { width, height } = drawn;
      for (const [key, value] of Object.entries({ width: wide, height: TOP + height + BELOW })) whole.setAttribute(key, value);
      for (const [key, value] of Object.entries({ x: LEFT, y: TOP, width, height })) inside.setAttribute(key, value);
      marks.setAttribute("transform", `translate(${LEFT},${TOP})`);
      band.setAttribute("d", `${line(data.range[0])}L${width},${rounded(drawn.y(x[1] * data.range[1]))}L0,${rounded(drawn.y(x[0] * data.range[1]))}z`);
      modelLine.setAttribute("d", line(1));
      if (constant) fit.setAttribute("d", line(constant));
      const rules = [];
      const names = [];
      for (const value of powersOfTen(x)) {
        const left = rounded(LEFT + drawn.x(value));
        rules.push(`M${left},${TOP}v${height + 5}`);
        names.push(words(Number(value.toPrecision(1)), { x: left, y: TOP + height + 18, "text-anchor": "middle" }));
      }
      for (const value of powersOfTen(y)) {
        const top = rounded(TOP + drawn.y(value));
        rules.push(`M${LEFT - 5},${top}h${width + 5}`);
        names.push(words(Number(value.toPrecision(1)), { x: LEFT - 8, y: Number(top) + 4, "text-anchor": "end" }));
      }
      const title = { "text-anchor": "middle", "font-size": 13, style: "fill:var(--ink)" };
      grid.replaceChildren(
        svg("path", { d: rules.join(""), style: "stroke:var(--faint);fill:none" }), ...names,
        words("model’s bandwidth, C = 1 (Mbit/s)", { ...title, x: LEFT + width / 2, y: TOP + height + 38 }),
        words("measured goodput (Mbit/s)", { ...title, transform: `translate(13,${TOP + height / 2}) rotate(-90)` }),
      );
    };
    return drawn;
  }

  // Draws into `box`; calls on.point(run or null, {x, y}) and on.choose(run) as a reader points and chooses.
  function chart(box, data, runs, constant, on) {
    const look = markEncodings(runs);
    const x = limits([...runs, ...data.published].map((row) => row.model_mbit));
    const y = limits([...runs.map((run) => run.goodput_mbit), ...data.published.map((value) => value.measured_mbit)]);
    const drawn = canvas(box, data, look, x, y, constant);
    const marked = new Map();
    const state = { selected: null, own: [] };

    let shown = new Map();
    let order = [];
    let moving = 0;
    const between = (a, b, share) => (a && b ? Math.exp(Math.log(a) + (Math.log(b) - Math.log(a)) * share) : b);

    function to(next, animated) {
      const before = shown;
      const begun = performance.now();
      cancelAnimationFrame(moving);
      order = [...next].sort((a, b) => a.model_mbit - b.model_mbit || a.trial - b.trial);
      const frame = (now) => {
        const time = animated ? Math.min(1, Math.max(0, now - begun) / MOVE_MS) : 1;
        const share = 1 - (1 - time) ** 3;
        const rows = next.map((run) => {
          const was = before.get(run.trial);
          const now = place(run);
          if (was && time < 1) for (const key in now) now[key] = between(was[key], now[key], share);
          return { ...run, ...now };
        });
        shown = new Map(rows.map((run) => [run.trial, run]));
        draw();
        if (time < 1) moving = requestAnimationFrame(frame);
      };
      return frame(animated ? begun : begun + MOVE_MS);
    }

    const marks = () => [...marked.values()];
    const runOf = (mark) => mark.__data__.datum;
    let stop = null;

    function draw() {
      for (const [trial, mark] of marked) {
        if (!shown.has(trial)) {
          mark.remove();
          marked.delete(trial);
        }
      }
      for (const run of shown.values()) {
        const previous = marked.get(run.trial);
        // Another step may make another claim of the same trial: then the mark is another one.
        const same = previous && runOf(previous).comparable === run.comparable && runOf(previous).mss_bytes === run.mss_bytes;
        const mark = same ? previous : drawn.mark(run);
        if (!same) {
          mark.setAttribute("role", "img");
          if (previous) previous.replaceWith(mark);
          else drawn.points.append(mark);
          marked.set(run.trial, mark);
        }
        mark.__data__ = { datum: run };
        mark.setAttribute("aria-label", run.description);
        drawn.put(mark, run);
      }
      drawn.bars.setAttribute("d", [...shown.values()].filter((run) => run.low && run.high).map((run) => (
        `M${rounded(drawn.x(run.x))},${rounded(drawn.y(run.low))}V${rounded(drawn.y(run.high))}`)).join(""));
      drawn.points.style.opacity = state.own.length ? 0.35 : 1;
      const chosen = shown.get(state.selected);
      drawn.ring.style.display = chosen ? "" : "none";
      if (chosen) {
        const [cx, cy] = [drawn.x(chosen.x), drawn.y(chosen.y)];
        for (const [key, value] of Object.entries({ cx, cy, r: drawn.size * 2.2 })) drawn.ring.setAttribute(key, value);
      }
      dress();
    }

    function drawOwn() {
      drawn.mine.replaceChildren(...state.own.map((run) => {
        const mark = drawn.mark(run, "var(--own)");
        mark.__data__ = { datum: run };
        drawn.put(mark, run);
        return mark;
      }));
    }

    function drawPublished() {
      const values = numbered(data.published).map((value) => ({ ...value, x: value.model_mbit, y: value.measured_mbit }));
      drawn.crosses.replaceChildren(...values.map((value) => {
        const cross = svg("path", {
          d: CROSSES[value.state] || CROSSES.after, "vector-effect": "non-scaling-stroke",
          style: "stroke:var(--published);stroke-width:2.2;fill:none",
        });
        drawn.put(cross, value, drawn.size * 1.25);
        return cross;
      }));
      drawn.numbers.replaceChildren(...values.map((value) => {
        const text = svg("text", { x: rounded(drawn.x(value.x) + 7), y: rounded(drawn.y(value.y) + 4), "font-size": 12, style: "fill:var(--published)" });
        text.textContent = value.number;
        return text;
      }));
    }

    function fit() {
      drawn.fit();
      draw();
      drawOwn();
      drawPublished();
    }

    // One mark takes the focus from Tab; arrow keys lead on.
    function dress() {
      const all = marks();
      if (!all.length) return;
      if (!all.some((mark) => runOf(mark).trial === stop)) stop = order[0].trial;
      for (const mark of all) {
        mark.setAttribute("tabindex", runOf(mark).trial === stop ? "0" : "-1");
      }
    }

    const placeOf = (run) => {
      const shownRun = shown.get(run.trial);
      return { x: LEFT + drawn.x(shownRun.x), y: TOP + drawn.y(shownRun.y) };
    };

    function nearest(event) {
      const frame = box.getBoundingClientRect();
      const [px, py] = [event.clientX - frame.left, event.clientY - frame.top];
      let best = null;
      for (const run of order) {
        const { x: rx, y: ry } = placeOf(run);
        const far = Math.hypot(px - rx, py - ry);
        if (far < NEAR_PX && (!best || far < best.far)) best = { run, far };
      }
      return best && best.run;
    }

    const point = (run) => on.point(run, run && placeOf(run));
    const focused = () => box.contains(document.activeElement) && document.activeElement.matches(".points > path");
    box.addEventListener("pointermove", (event) => point(nearest(event)));
    const byKey = () => focused() && document.activeElement.matches(":focus-visible");
    box.addEventListener("pointerleave", () => point(byKey() ? runOf(document.activeElement) : null));
    box.addEventListener("click", (event) => {
      const run = nearest(event);
      if (run) on.choose(run);
    });
    box.addEventListener("focusin", (event) => {
      if (!event.target.matches(".points > path")) return;
      const run = runOf(event.target);
      stop = run.trial;
      dress();
      on.choose(run);
      point(run);
    });
    box.addEventListener("focusout", () => point(null));
    const turns = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 };
    box.addEventListener("keydown", (event) => {
      if (event.key === "Escape") return point(null);
      if (!focused()) return;
      const now = order.findIndex((run) => run.trial === stop);
      let next = null;
      if (event.key in turns) next = (now + turns[event.key] + order.length) % order.length;
      else if (event.key === "Home") next = 0;
      else if (event.key === "End") next = order.length - 1;
      if (next === null) return;
      event.preventDefault();
      marks().find((mark) => runOf(mark).trial === order[next].trial).focus();
    });

    fit();
    let width = box.clientWidth;
    new ResizeObserver(() => {
      if (box.clientWidth === width) return;
      width = box.clientWidth;
      fit();
    }).observe(box);
    return {
      look, to,
      choose: (trial) => {
        stop = trial === null ? stop : trial;
        state.selected = trial;
        draw();
      },
      layer: (name, shows) => {
        const parts = { intervals: [drawn.bars], published: [drawn.crosses, drawn.numbers] }[name];
        for (const part of parts) part.style.display = shows ? "" : "none";
      },
      // A student's own runs over the recorded ones.
      own: (runs) => {
        state.own = runs.filter((run) => run.goodput_mbit > 0).map((run) => ({ ...run, ...place(run) }));
        draw();
        drawOwn();
      },
    };
  }

  Object.assign(window.measureTwice, { chart });
})();
