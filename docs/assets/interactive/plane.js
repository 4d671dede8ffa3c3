// A plane to draw on as wide as there is room, so that its text keeps its size on a phone: axes that
// stay where they are, and a mark that is dragged along the lower one.
(() => {
  "use strict";
  const { s } = measureTwice;

  // A logarithmic scale from values to places, and back: along(v), along.back(place).
  function along([low, high], [from, to]) {
    const scale = (value) => from + (to - from) * Math.log(value / low) / Math.log(high / low);
    scale.back = (place) => low * (high / low) ** ((place - from) / (to - from));
    return scale;
  }

  // An axis's line and text at each of `marks`, [value, text]: levels across, or steps along.
  function levels(svg, marks, y, left, right) {
    for (const [value, text] of marks) {
      svg.append(
        s("line", { x1: left, x2: right, y1: y(value), y2: y(value), class: "plane-grid" }),
        s("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end", class: "plane-faint" }, text));
    }
  }

  function steps(svg, marks, x, top, bottom) {
    for (const [value, text] of marks) {
      svg.append(
        s("line", { x1: x(value), x2: x(value), y1: top, y2: bottom, class: "plane-grid" }),
        s("text", { x: x(value), y: bottom + 16, "text-anchor": "middle", class: "plane-faint" }, text));
    }
  }

  // Draws into `box` whenever its width changes; `dragged` gets the place in pixels, and gives way to scrolling.
  function plane(box, height, draw, dragged) {
    const svg = s("svg", { "aria-hidden": "true", class: "plane", height });
    box.append(svg);
    const again = () => {
      const width = Math.max(260, Math.round(box.clientWidth));
      svg.setAttribute("width", width);
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      svg.replaceChildren();
      draw(svg, width);
    };
    const at = (event) => dragged(event.clientX - svg.getBoundingClientRect().left);
    svg.addEventListener("pointerdown", (event) => {
      svg.setPointerCapture(event.pointerId);
      at(event);
    });
    svg.addEventListener("pointermove", (event) => { if (svg.hasPointerCapture(event.pointerId)) at(event); });
    let width = 0;
    new ResizeObserver(() => {
      if (box.clientWidth === width) return;
      width = box.clientWidth;
      again();
    }).observe(box);
    return again;
  }

  Object.assign(window.measureTwice, { along, levels, steps, plane });
})();
