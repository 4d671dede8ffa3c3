// Goodput against the model's bandwidth, one mark a run: drawn by vega, moved from step to step.
// Colours are the style sheet's variables, so light and dark need no second drawing.
(() => {
  "use strict";
  const SHAPES = ["circle", "square", "triangle-up", "diamond", "triangle-down"];
  const CROSSES = { before: "M-1,-1L1,1M1,-1L-1,1", after: "M-1,0L1,0M0,-1L0,1" };
  const ROOM = 1.6;
  const MOVE_MS = 700;
  const NEAR_PX = 22;
  const MOST_PX = 520;

  const distinct = (values) => [...new Set(values)].sort((a, b) => a - b);

  function limits(values) {
    return [Math.min(...values) / ROOM, Math.max(...values) * ROOM];
  }

  function powersOfTen([low, high]) {
    const found = [];
    for (let n = Math.ceil(Math.log10(low)); n <= Math.log10(high); n++) found.push(10 ** n);
    return found;
  }

  // How the values of a parameter look: shapes for MSS, shades for RTT.
  function looks(runs) {
    const sizes = distinct(runs.map((run) => run.mss_bytes));
    const trips = distinct(runs.map((run) => run.rtt_ms));
    const shade = (n) => `var(--shade-${trips.length > 1 ? Math.round(n * 4 / (trips.length - 1)) : 0})`;
    return {
      mss: sizes.map((value, n) => ({ value, shape: SHAPES[n % SHAPES.length] })),
      rtt: trips.map((value, n) => ({ value, shade: shade(n) })),
    };
  }

  function axis(scale, orient, title, domain) {
    return {
      scale, orient, title, values: powersOfTen(domain), format: "~f", grid: true, domain: false,
      gridColor: "var(--faint)", tickColor: "var(--faint)", labelColor: "var(--ink-2)",
      titleColor: "var(--ink)", titleFontWeight: "normal", titleFontSize: 13, labelFontSize: 12,
      titlePadding: 8, labelOverlap: true, aria: false,
    };
  }

  // Of a trial's published values that lie together one bears its number.
  const numbered = (values) => values.map((value, n) => ({
    ...value, number: values.slice(0, n).some((other) => other.trial === value.trial
      && Math.abs(Math.log(other.measured_mbit / value.measured_mbit)) < 0.5) ? "" : value.trial,
  }));

  const at = (x, y) => [{ scale: "x", field: x }, { scale: "y", field: y }];

  // Where a run's mark stands. On its way from step to step that moves; what was measured doesn't.
  const place = (run) => ({
    x: run.model_mbit, y: run.goodput_mbit, low: run.goodput_low_mbit, high: run.goodput_high_mbit,
  });

  // A line goodput = factor * model, or the band between two of them, over the whole width.
  const ends = (x, factors) => x.map((mbit) => ({ x: mbit, a: mbit * factors[0], b: mbit * factors.at(-1) }));

  function specification(data, look, x, y, constant) {
    const font = getComputedStyle(document.body).fontFamily;
    const line = { x: { scale: "x", field: "x" }, y: { scale: "y", field: "a" } };
    const [runX, runY] = at("x", "y");
    const [crossX, crossY] = at("model_mbit", "measured_mbit");
    const only = (signal) => [{ test: signal, value: 1 }, { value: 0 }];
    return {
      $schema: "https://vega.github.io/schema/vega/v6.json",
      description: "Measured goodput against the model's bandwidth, both in Mbit/s on logarithmic axes; one mark for each trial.",
      width: 500, height: 500, padding: 4, autosize: { type: "fit", contains: "padding" },
      config: { font, text: { font }, axis: { labelFont: font, titleFont: font } },
      signals: [
        { name: "selected", value: null },
        { name: "intervals", value: true },
        { name: "published", value: false },
        { name: "owns", value: false },
        { name: "size", update: "width < 340 ? 44 : 80" },
      ],
      data: [
        { name: "band", values: ends(x, data.range) },
        { name: "one", values: ends(x, [1]) },
        { name: "fit", values: constant ? ends(x, [constant]) : [] },
        { name: "runs", values: [] },
        { name: "own", values: [] },
        { name: "published", values: numbered(data.published) },
      ],
      scales: [
        { name: "x", type: "log", domain: x, range: "width", zero: false, nice: false },
        { name: "y", type: "log", domain: y, range: "height", zero: false, nice: false },
        { name: "shape", type: "ordinal", domain: look.mss.map((one) => one.value), range: look.mss.map((one) => one.shape) },
        { name: "shade", type: "ordinal", domain: look.rtt.map((one) => one.value), range: look.rtt.map((one) => one.shade) },
      ],
      axes: [
        axis("x", "bottom", "model’s bandwidth, C = 1 (Mbit/s)", x),
        axis("y", "left", "measured goodput (Mbit/s)", y),
      ],
      marks: [
        {
          type: "area", clip: true, aria: false, from: { data: "band" },
          encode: { update: { ...line, y2: { scale: "y", field: "b" }, fill: { value: "var(--band)" } } },
        },
        {
          type: "line", clip: true, aria: false, from: { data: "one" },
          encode: { update: { ...line, stroke: { value: "var(--ink-2)" }, strokeWidth: { value: 1.2 } } },
        },
        {
          type: "line", clip: true, aria: false, from: { data: "fit" },
          encode: { update: { ...line, stroke: { value: "var(--measured)" }, strokeWidth: { value: 1.6 }, strokeDash: { value: [6, 4] } } },
        },
        {
          type: "rule", clip: true, aria: false, key: "trial", from: { data: "runs" },
          encode: {
            update: {
              x: runX, y: { scale: "y", field: "low" }, y2: { scale: "y", field: "high" },
              stroke: { value: "var(--bar)" }, strokeWidth: { value: 1 }, opacity: only("intervals && datum.low"),
            },
          },
        },
        {
          type: "symbol", name: "points", key: "trial", from: { data: "runs" },
          encode: {
            update: {
              x: runX, y: runY, size: { signal: "size" }, strokeWidth: { value: 1.5 },
              shape: { scale: "shape", field: "mss_bytes" },
              stroke: { scale: "shade", field: "rtt_ms" },
              fill: [{ test: "datum.comparable", scale: "shade", field: "rtt_ms" }, { value: "transparent" }],
              opacity: { signal: "owns ? 0.35 : 1" },
              description: { field: "said" },
            },
          },
        },
        {
          type: "symbol", name: "mine", aria: false, interactive: false, clip: true, from: { data: "own" },
          encode: {
            update: {
              x: runX, y: runY, size: { signal: "size" }, shape: { scale: "shape", field: "mss_bytes" },
              stroke: { value: "var(--own)" }, strokeWidth: { value: 1.5 },
              fill: [{ test: "datum.comparable", value: "var(--own)" }, { value: "transparent" }],
            },
          },
        },
        {
          type: "symbol", aria: false, interactive: false, from: { data: "published" },
          encode: {
            update: {
              x: crossX, y: crossY, size: { signal: "size * 1.6" }, opacity: only("published"),
              shape: { signal: `datum.state === 'before' ? '${CROSSES.before}' : '${CROSSES.after}'` },
              stroke: { value: "var(--published)" }, strokeWidth: { value: 2.2 },
            },
          },
        },
        {
          type: "text", aria: false, interactive: false, from: { data: "published" },
          encode: {
            update: {
              x: crossX, y: crossY, dx: { value: 7 }, dy: { value: 4 }, text: { field: "number" },
              fill: { value: "var(--published)" }, fontSize: { value: 12 }, opacity: only("published"),
            },
          },
        },
        {
          type: "symbol", aria: false, interactive: false, key: "trial", from: { data: "runs" },
          encode: {
            update: {
              x: runX, y: runY, size: { signal: "size * 5" }, stroke: { value: "var(--measured)" },
              strokeWidth: { value: 2.5 }, fill: { value: "transparent" }, opacity: only("datum.trial === selected"),
            },
          },
        },
      ],
    };
  }

  // Draws into `box`; calls on.point(run or null, {x, y}) and on.choose(run) as a reader points and chooses.
  async function chart(box, data, runs, constant, on) {
    const look = looks(runs);
    const x = limits([...runs, ...data.published].map((one) => one.model_mbit));
    const y = limits([...runs.map((run) => run.goodput_mbit), ...data.published.map((one) => one.measured_mbit)]);
    const steepness = Math.log(y[1] / y[0]) / Math.log(x[1] / x[0]);
    const view = new vega.View(vega.parse(specification(data, look, x, y, constant)), {
      container: box, renderer: "svg", hover: false, logLevel: vega.Error,
    });

    // The slopes stay at 45 degrees: a decade is as long on one axis as on the other.
    const fit = () => {
      const width = Math.max(240, Math.min(box.clientWidth, MOST_PX));
      return view.width(width).height(Math.round((width - 60) * steepness) + 50).runAsync();
    };

    let shown = new Map();
    let order = [];
    let moving = 0;
    const show = (rows) => view.data("runs", rows).runAsync().then(dress);
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
        const done = show(rows);
        if (time < 1) moving = requestAnimationFrame(frame);
        return done;
      };
      return frame(animated ? begun : begun + MOVE_MS);
    }

    const marks = () => [...box.querySelectorAll(".mark-symbol.points > path")];
    const runOf = (mark) => mark.__data__.datum;
    let stop = null;

    // One mark takes the focus from Tab; arrow keys lead on.
    function dress() {
      const all = marks();
      if (!all.some((mark) => runOf(mark).trial === stop)) stop = order[0].trial;
      for (const mark of all) {
        mark.setAttribute("tabindex", runOf(mark).trial === stop ? "0" : "-1");
      }
    }

    const placeOf = (run) => {
      const [left, top] = view.origin();
      const of = shown.get(run.trial);
      return { x: left + view.scale("x")(of.x), y: top + view.scale("y")(of.y) };
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

    await fit();
    let width = box.clientWidth;
    new ResizeObserver(() => {
      if (box.clientWidth === width) return;
      width = box.clientWidth;
      fit().then(dress);
    }).observe(box);
    return {
      look, to,
      choose: (trial) => {
        stop = trial === null ? stop : trial;
        return view.signal("selected", trial).runAsync().then(dress);
      },
      layer: (name, shows) => view.signal(name, shows).runAsync(),
      // A student's own runs over the recorded ones.
      own: (runs) => view.data("own", runs.filter((run) => run.goodput_mbit > 0)
        .map((run) => ({ ...run, ...place(run) }))).signal("owns", runs.length > 0).runAsync().then(dress),
    };
  }

  Object.assign(window.measureTwice, { chart });
})();
