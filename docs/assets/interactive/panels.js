// Panels below each other over one axis of time, drawn in pixels. Their scales are given, and never follow what
// is shown. What is drawn is drawn once; as time passes only a line and its marks move.
(() => {
  "use strict";
  const { h, s, plain, count } = measureTwice;
  const LEFT = 46, RIGHT = 14, GAP = 26, TOP = 18, FOOT = 34;

  // 1, 2 or 5 times a power of ten: about `wanted` of them in the range.
  function niceStep(range, wanted) {
    const raw = range / wanted, power = 10 ** Math.floor(Math.log10(raw));
    return [1, 2, 5, 10].map((factor) => factor * power).find((factor) => factor >= raw);
  }

  // `rows`: { id, label, most, high }. `pick(time)` is called as a reader points or drags.
  function panels({ end, unit, rows, pick }) {
    const svg = s("svg", { class: "panels", role: "img" });
    const box = h("div", { class: "panels-box" }, svg);
    let width = 0, from = 0, to = end, lines = [], marks = [], time = 0;
    let top = TOP;
    for (const row of rows) {
      Object.assign(row, { top, bottom: top + row.high, y: (value) => row.bottom - row.high * Math.min(1.02, value / row.most) });
      top = row.bottom + GAP;
    }
    const bottom = rows.at(-1).bottom, high = bottom + FOOT;
    // It is as high before its width is known.
    svg.setAttribute("height", high);
    const ground = s("g"), drawn = s("g"), over = s("g");
    const clip = s("rect"), clipped = s("g", { "clip-path": `url(#clip-${rows[0].id}-${rows.length})` });
    const paths = s("clipPath", { id: `clip-${rows[0].id}-${rows.length}` });
    paths.append(clip);
    clipped.append(drawn);
    svg.append(paths, ground, clipped, over);

    const inner = () => width - LEFT - RIGHT;
    const x = (t) => LEFT + inner() * (t - from) / (to - from);

    function lay() {
      svg.setAttribute("viewBox", `0 0 ${width} ${high}`);
      svg.setAttribute("width", width);
      svg.setAttribute("height", high);
      for (const [key, value] of Object.entries({ x: LEFT, y: 0, width: inner(), height: bottom + 4 })) clip.setAttribute(key, value);
      redraw();
    }

    function grid() {
      ground.replaceChildren();
      for (const row of rows) {
        const step = niceStep(row.most, 3.5);
        for (let value = 0; value <= row.most; value += step) {
          ground.append(
            s("line", { x1: LEFT, x2: width - RIGHT, y1: row.y(value), y2: row.y(value), class: "grid" }),
            s("text", { x: LEFT - 6, y: row.y(value) + 4, "text-anchor": "end" }, count(value)));
        }
        ground.append(s("text", { x: LEFT, y: row.top - 6, class: "name" }, row.label));
      }
      const step = niceStep(to - from, Math.max(2, Math.floor(inner() / 80)));
      for (let n = Math.ceil(from / step - 1e-9); n * step <= to + 1e-9; n++) {
        ground.append(s("text", { x: x(n * step), y: bottom + 16, "text-anchor": "middle" }, plain(n * step)));
      }
      ground.append(s("text", { x: width - RIGHT, y: bottom + 30, "text-anchor": "end" }, unit));
    }

    // A path in pixels of the whole run; what part of it is seen is a matter of its group's transform.
    function trace({ row, x: times, y: values, kind }) {
      const panel = rows.find((candidate) => candidate.id === row);
      const at = (n) => (inner() * times[n] / end).toFixed(2);
      if (kind === "dots") return times.map((_, n) => `M${at(n)},${panel.y(values[n]).toFixed(1)}h0`).join("");
      if (kind === "ticks") return times.map((_, n) => `M${at(n)},${panel.top}v8`).join("");
      if (kind === "steps") return times.map((_, n) => `${n ? "H" : "M0,"}${n ? at(n) : ""}${n ? "V" : ""}${panel.y(values[n]).toFixed(1)}`).join("");
      let d = "", last = null;
      for (let n = 0; n < times.length; n++) {
        const y = panel.y(values[n]).toFixed(1);
        // A level part needs no points inside it.
        if (y === last && n + 1 < times.length && panel.y(values[n + 1]).toFixed(1) === y) continue;
        d += `${d ? "L" : "M"}${at(n)},${y}`;
        last = y;
      }
      return kind === "area" ? `${d}L${at(times.length - 1)},${panel.bottom}L${at(0)},${panel.bottom}Z` : d;
    }

    function paint() {
      drawn.replaceChildren(...lines.map((line) => s("path", {
        d: trace(line), class: `trace ${line.kind || "line"}${line.faint ? " faint" : ""}`,
        style: line.look || `--line: var(--c-${line.colour}, var(--ink)); --dash: var(--dash-${line.colour}, none)`,
      })), ...marks.map((mark) => {
        const panel = rows.find((candidate) => candidate.id === mark.row);
        return s("path", { d: `M0,${panel.y(mark.y)}H${inner()}`, class: "level" });
      }));
    }

    function move() {
      const scale = end / (to - from);
      drawn.setAttribute("transform", `translate(${LEFT - inner() * from / (to - from)} 0) scale(${scale} 1)`);
    }

    function cursor(at, points = []) {
      time = at;
      over.replaceChildren(
        s("line", { x1: x(time), x2: x(time), y1: rows[0].top, y2: bottom, class: "now" }),
        ...points.map((point) => {
          const panel = rows.find((candidate) => candidate.id === point.row);
          return s("circle", { cx: x(time), cy: panel.y(point.y), r: 4.5, class: "now-at", style: `--line: var(--c-${point.colour}, var(--ink))` });
        }));
    }

    function redraw() {
      if (!width) return;
      grid();
      paint();
      move();
      cursor(time);
    }

    // Pointing and dragging: a press anywhere on the panels takes that time.
    let dragging = false;
    const take = (event) => {
      const frame = svg.getBoundingClientRect();
      pick(from + (to - from) * Math.max(0, Math.min(1, (event.clientX - frame.left - LEFT) / inner())));
    };
    svg.addEventListener("pointerdown", (event) => {
      dragging = true;
      svg.setPointerCapture(event.pointerId);
      take(event);
    });
    svg.addEventListener("pointermove", (event) => { if (dragging) take(event); });
    for (const name of ["pointerup", "pointercancel"]) svg.addEventListener(name, () => { dragging = false; });

    new ResizeObserver(() => {
      const now = Math.floor(box.clientWidth);
      if (now === width || !now) return;
      width = now;
      lay();
      if (api.laid) api.laid();
    }).observe(box);

    const api = {
      element: box, cursor,
      label: (text) => svg.setAttribute("aria-label", text),
      show: (next, levels = []) => { lines = next; marks = levels; redraw(); },
      // What part of the run is in view: it stays as long as the time is in it.
      view: (span, t) => {
        const wide = Math.min(span, end);
        if (Math.abs(to - from - wide) < 1e-9 && t >= from && t <= to) return;
        from = Math.max(0, Math.min(t - wide / 10, end - wide));
        to = from + wide;
        if (!width) return;
        grid();
        move();
      },
    };
    return api;
  }

  Object.assign(window.measureTwice, { panels });
})();
