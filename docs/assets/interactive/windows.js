// One flow's part of a link against the hosts' socket buffers: recorded runs, and between them what a
// window can carry. What isn't recorded says so, in the drawing and in words.
(() => {
  "use strict";
  const { h, s, sig, plain, count, along, levels, steps, plane } = measureTwice;
  const MIB = 2 ** 20;
  const HIGH = 330, LEFT = 50, TOP = 12, BOTTOM = 282, EDGE = 14;
  // The slider's steps: four to a doubling, so that powers of two are among them.
  const FINE = 4;
  const SHARES = [0.0005, 1];
  const percent = (share) => `${sig(100 * share)}\u00a0%`;
  // What was set or printed, as it was: 0.1 %, not 0.100 %.
  const plainly = (share) => `${plain(100 * share)}\u00a0%`;
  const mib = (bytes) => `${sig(bytes / MIB)}\u00a0MiB`;

  // What a window of so many bytes can carry of the link: the least, the most. Linux keeps up to half of
  // a buffer for its own use; and no window gives more than the flow takes when nothing limits it.
  function bounds(series, bytes) {
    const carries = bytes * 8e3 / series.rtt_ms / series.total_bps;
    const most = Math.max(...series.points.map((point) => point.share));
    return [carries / 2, carries].map((share) => Math.min(share, most));
  }

  function quotation(data, share) {
    const [low, high] = data.published;
    if (share <= Math.sqrt(low.share * high.share) / 3) return `“${low.said}”, as ${low.who} said of ${plainly(low.share)}`;
    if (share >= 0.75 * high.share) return `“${high.said}”, as ${high.who} said`;
    return "neither paper’s number: it lies between them";
  }

  async function windows(live, data) {
    let series = data.series[0], step = FINE * Math.log2(series.points[0].bytes / data.bytes[0]);
    const last = FINE * Math.log2(data.bytes[1] / data.bytes[0]);
    const bytes = () => data.bytes[0] * 2 ** (step / FINE);
    const recorded = () => series.points.find((point) => Math.abs(Math.log2(point.bytes / bytes())) < 0.01);
    let x, narrow;

    function draw(svg, width) {
      narrow = width < 480;
      const right = width - EDGE;
      x = along(data.bytes, [LEFT, right]);
      const y = along(SHARES, [BOTTOM, TOP]);
      levels(svg, [0.001, 0.01, 0.1, 1].map((share) => [share, plainly(share)]), y, LEFT, right);
      steps(svg, [1, 4, 32, 128, 512].filter((n) => !narrow || n !== 128).map((n) => [n * MIB, String(n)]), x, TOP, BOTTOM);
      svg.append(s("text", { x: (LEFT + right) / 2, y: BOTTOM + 36, "text-anchor": "middle", class: "plane-ink" }, "largest socket buffer (MiB)"));
      model(svg, y);
      data.published.forEach(({ share, who }, n) => svg.append(
        s("line", { x1: LEFT, x2: right, y1: y(share), y2: y(share), class: "plane-published" }),
        s("text", { x: n ? LEFT + 6 : right - 4, y: y(share) - 5, "text-anchor": n ? "start" : "end", class: "plane-text-published" }, `${who}: ${plainly(share)}`)));
      svg.append(
        s("line", { x1: LEFT, x2: right, y1: y(data.fair), y2: y(data.fair), class: "plane-fair" }),
        s("text", { x: right - 4, y: y(data.fair) + 14, "text-anchor": "end", class: "plane-ink" }, `fair share: ${plainly(data.fair)}`));
      marks(svg, y);
    }

    function model(svg, y) {
      const all = Array.from({ length: last + 1 }, (_, n) => data.bytes[0] * 2 ** (n / FINE));
      const edge = (n) => all.map((b) => `${x(b).toFixed(1)},${y(bounds(series, b)[n]).toFixed(1)}`);
      svg.append(
        s("polygon", { points: [...edge(1), ...edge(0).reverse()].join(" "), class: "plane-band" }),
        s("polyline", { points: edge(1).join(" "), class: "plane-model" }),
        s("polyline", { points: edge(0).join(" "), class: "plane-model" }));
      const at = 80 * MIB;
      svg.append(s("text", { x: x(at), y: y(bounds(series, at)[0]) + 26, class: "plane-text-model" }, narrow ? "model" : "model: what a buffer carries"));
    }

    function marks(svg, y) {
      svg.append(s("line", { x1: x(bytes()), x2: x(bytes()), y1: TOP, y2: BOTTOM, class: "plane-now" }));
      for (const point of series.points) {
        const now = point === recorded();
        svg.append(
          s("circle", { cx: x(point.bytes), cy: y(point.share), r: now ? 8 : 6, class: now ? "plane-mark plane-mark--now" : "plane-mark" }),
          s("text", { x: x(point.bytes), y: y(point.share) + 22, "text-anchor": "middle", class: "plane-strong" }, percent(point.share)));
      }
      if (!recorded()) {
        const [low, high] = bounds(series, bytes());
        svg.append(s("line", { x1: x(bytes()), x2: x(bytes()), y1: y(low), y2: y(high), class: "plane-between" }));
      }
    }

    function tell() {
      const point = recorded();
      const [low, high] = bounds(series, bytes());
      const share = point ? point.share : Math.sqrt(low * high);
      const times = point || low === high ? sig(share / data.fair, 2) : `${sig(low / data.fair, 2)} to ${sig(high / data.fair, 2)}`;
      const what = point ? percent(share) : low === high ? `about ${percent(low)}` : `${percent(low)} to ${percent(high)}`;
      const first = point ? `Recorded, with ${mib(bytes())}: ` : `Not recorded, by the model, with ${mib(bytes())}: `;
      says.classList.toggle("applies", Boolean(point));
      says.replaceChildren(
        h("strong", {}, `${first}the one ${data.rival} flow takes ${what}.`),
        ` Its fair share is ${plainly(data.fair)}, so that is ${times} times as much. As a report would put it: ${quotation(data, share)}.`);
      command.textContent = point ? point.command : "";
      again.hidden = !point;
      part.style.width = `${100 * share}%`;
      link.classList.toggle("guess", !point);
      slider.value = step;
      slider.setAttribute("aria-valuetext", `${mib(bytes())}: ${point ? "recorded" : "model"}, ${what}`);
      for (const button of buttons.children) button.setAttribute("aria-pressed", String(Number(button.value) === step));
    }

    function go(to) {
      step = Math.max(0, Math.min(last, Math.round(to)));
      redraw();
      tell();
    }

    const says = h("p", { class: "verdict", role: "status" });
    const command = h("code", {});
    const again = h("p", { class: "plane-again" }, "The same again, to the last byte: ", command);
    const part = h("span", {});
    const link = h("div", { class: "plane-link", "aria-hidden": "true" }, part);
    const buttons = h("div", { class: "turn", role: "group", "aria-label": "Recorded runs" });
    const slider = h("input", {
      type: "range", id: "windows-bytes", min: 0, max: last, step: 1, style: "width:100%", oninput: () => go(Number(slider.value)),
    });

    function offer() {
      buttons.replaceChildren(...series.points.map((point) => {
        const to = FINE * Math.log2(point.bytes / data.bytes[0]);
        return h("button", { type: "button", class: "md-button", value: to, onclick: () => go(to) }, `${mib(point.bytes)}${point.usual ? ", Linux’s default" : ""}`);
      }));
    }

    const box = h("div", { class: "plane-box" });
    live.append(
      h("fieldset", {}, h("legend", {}, `One ${data.rival} flow beside ${count(data.others)} of`), h("div", { class: "turn" },
        ...data.series.map((option, n) => h("label", {},
          h("input", { type: "radio", name: "windows-beside", value: n, checked: n === 0, onchange: () => { series = option; offer(); go(step); } }), ` ${option.beside}`)))),
      buttons, box,
      h("div", {}, h("label", { for: "windows-bytes" }, "Largest socket buffer on the hosts"), slider),
      h("div", {}, h("p", { class: "plane-caption" }, `The link: ${data.rival}’s part, and the other ${count(data.others)} flows’`), link),
      says, again);
    const redraw = plane(box, HIGH, draw, (place) => go(FINE * Math.log2(x.back(place) / data.bytes[0])));
    offer();
    redraw();
    tell();
  }

  Object.assign(measureTwice, { windows });
})();
