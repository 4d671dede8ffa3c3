// The models with the reader's own numbers: what they promise, and whether they may be asked.
(() => {
  "use strict";
  const { h, s, sig, plain, ms, bytes, count, seconds, formulas } = measureTwice;

  const mbit = (bps) => measureTwice.mbit(bps / 1e6);

  // A number with a slider, logarithmic, and a field for it to be typed into.
  function input(name, label, [low, high], value, changed) {
    const id = `explorer-${name}`;
    const log = (x) => Math.log10(x);
    const slider = h("input", {
      type: "range", min: log(low), max: log(high), step: 0.005, value: log(value), "aria-label": `${label}, slider`,
      oninput: () => take(Number((10 ** slider.value).toPrecision(3)), slider),
    });
    const field = h("input", {
      type: "number", id, min: low, max: high, step: "any", value,
      oninput: () => { if (field.checkValidity() && field.value !== "") take(Number(field.value), field); },
      onchange: () => { if (!field.checkValidity() || field.value === "") field.value = control.value; },
    });
    function take(number, from) {
      control.value = number;
      if (from !== slider) slider.value = log(number);
      if (from !== field) field.value = number;
      slider.setAttribute("aria-valuetext", sig(number, 4));
      if (from) changed();
    }
    const control = { value, take, row: h("div", { class: "input" }, h("label", { for: id }, label), slider, field) };
    take(value, null);
    return control;
  }

  // The window against p, on logarithmic axes: where in the model's land these numbers stand.
  function picture(data, [pLow, pHigh]) {
    const wide = 420, high = 300, left = 44, bottom = 42, top = 12, right = 12;
    const wHigh = 2 / Math.sqrt(pLow), wLow = 0.3;
    const x = (p) => left + (wide - left - right) * Math.log(p / pLow) / Math.log(pHigh / pLow);
    const y = (w) => high - bottom - (high - bottom - top) * Math.log(w / wLow) / Math.log(wHigh / wLow);
    const grid = "stroke:var(--faint)", ink = "fill:var(--ink-2)";
    const svg = s("svg", { viewBox: `0 0 ${wide} ${high}`, "aria-hidden": "true" });
    const end = Math.min(Math.max(data.max_loss_ratio, pLow), pHigh);
    svg.append(s("rect", { x: x(end), y: top, width: x(pHigh) - x(end), height: high - bottom - top, style: "fill:var(--band)" }));
    svg.append(s("text", { x: (x(end) + x(pHigh)) / 2, y: top + 15, "text-anchor": "middle", style: ink }, "no claim"));
    for (let n = Math.ceil(Math.log10(pLow) - 1e-9); 10 ** n <= pHigh; n++) {
      svg.append(s("line", { x1: x(10 ** n), x2: x(10 ** n), y1: top, y2: high - bottom, style: grid }));
      svg.append(s("text", { x: x(10 ** n), y: high - bottom + 16, "text-anchor": "middle", style: ink }, (10 ** n).toFixed(Math.max(0, -n))));
    }
    for (let n = 0; 10 ** n <= wHigh; n++) {
      svg.append(s("line", { x1: left, x2: wide - right, y1: y(10 ** n), y2: y(10 ** n), style: grid }));
      svg.append(s("text", { x: left - 6, y: y(10 ** n) + 4, "text-anchor": "end", style: ink }, String(10 ** n)));
    }
    svg.append(s("text", { x: (left + wide - right) / 2, y: high - 6, "text-anchor": "middle", style: ink }, "loss ratio p"));
    svg.append(s("text", { x: 12, y: (top + high - bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${(top + high - bottom) / 2})`, style: ink }, "window (segments)"));
    const line = (style) => svg.appendChild(s("path", { style: `fill:none;stroke-width:1.6;${style}` }));
    const drawn = [
      [(p) => 1 / Math.sqrt(p), line("stroke:var(--c-model)")],
      [(p, rtt) => formulas.pftk(1, rtt, p, data.rto_margin_ms) / 8 * rtt / 1e3, line("stroke:var(--c-model);stroke-dasharray:6 4")],
    ];
    const dot = svg.appendChild(s("circle", { r: 6, style: "fill:var(--shade-1);stroke:var(--md-default-bg-color);stroke-width:2" }));
    const points = Array.from({ length: 121 }, (_, n) => pLow * (pHigh / pLow) ** (n / 120));
    return {
      svg,
      move(rtt, p) {
        for (const [windowAt, path] of drawn) {
          const visible = points.map((at) => [at, windowAt(at, rtt)]).filter(([, w]) => w >= wLow && w <= wHigh);
          path.setAttribute("d", `M${visible.map(([at, w]) => `${x(at).toFixed(1)},${y(w).toFixed(1)}`).join("L")}`);
        }
        dot.setAttribute("cx", x(Math.min(Math.max(p, pLow), pHigh)));
        dot.setAttribute("cy", y(1 / Math.sqrt(p)));
      },
    };
  }

  function verdict(data, mss, rtt, p, duration) {
    const expected = formulas.losses(rtt, p, duration);
    if (p >= data.max_loss_ratio) {
      return [false, `No claim: p is ${sig(p)}. From ${plain(data.max_loss_ratio)} on, the window is so small that timeouts dominate, and the Mathis model leaves them out. Ask PFTK.`];
    }
    if (expected < data.min_losses) {
      const needed = formulas.timeForLossesS(rtt, p, data.min_losses);
      return [false, `Too short: ${sig(expected)} losses expected in ${seconds(duration)}. For the ${plain(data.min_losses)} that this lab asks for, run ${seconds(needed)}.`];
    }
    return [true, `The model applies: p is below ${plain(data.max_loss_ratio)}, and ${count(expected)} losses are expected in ${seconds(duration)}.`];
  }

  async function explorer(live, data) {
    const [ranges, first] = [data.ranges, data.trials[Math.min(6, data.trials.length - 1)]];
    const changed = () => { pick.value = ""; tell(); };
    const mss = input("mss", "MSS (bytes)", ranges[0], first[1], changed);
    const rtt = input("rtt", "RTT (ms)", ranges[1], first[2], changed);
    const p = input("p", "loss ratio p", ranges[2], first[3], changed);
    const duration = input("duration", "length of the run (s)", [10, 86400], data.duration_s, tell);
    const wanted = input("losses", "losses wanted", [10, 10000], data.min_losses, tell);
    const pick = h("select", { id: "explorer-trial", onchange: () => {
      const trial = data.trials.find(([number]) => number === Number(pick.value));
      if (!trial) return;
      [mss, rtt, p].forEach((control, n) => control.take(trial[n + 1], null));
      tell();
    } }, h("option", { value: "" }, "your own numbers"), ...data.trials.map(([number, m, r, loss]) =>
      h("option", { value: number }, `trial ${number}: ${ms(r)}, ${bytes(m)}, p ${sig(loss)}`)));
    pick.value = first[0];

    const lines = [];
    const answer = (name, label, formula, format) => {
      const value = h("data", { id: `explorer-says-${name}` });
      lines.push(() => {
        const number = formula(mss.value, rtt.value, p.value);
        value.value = number;
        value.textContent = format(number);
      });
      return h("tr", {}, h("th", { scope: "row" }, label), h("td", {}, value));
    };
    const timeTitle = h("span");
    const table = h("table", { class: "answers" }, h("caption", {}, "What the models predict"), h("tbody", {},
      answer("one", "goodput, C = 1", (m, r, l) => formulas.mathis(m, r, l), mbit),
      answer("periodic", "goodput, C = √(3/2)", (m, r, l) => formulas.mathis(m, r, l, data.constants["sqrt(3/2)"]), mbit),
      answer("pftk", "goodput, PFTK", (m, r, l) => formulas.pftk(m, r, l, data.rto_margin_ms), mbit),
      answer("window", "window, C = 1", (m, r, l) => 1 / Math.sqrt(l), (w) => `${sig(w)} segments`),
      answer("spacing", "packets from loss to loss", (m, r, l) => 1 / l, (n) => sig(n)),
      answer("minute", "losses per minute", (m, r, l) => formulas.losses(r, l, 60), (n) => sig(n)),
      answer("time", timeTitle, (m, r, l) => formulas.timeForLossesS(r, l, wanted.value), seconds),
      answer("precise", `time for ±5 % (95 %), ${data.losses_for_precision} losses`, (m, r, l) => formulas.timeForLossesS(r, l, data.losses_for_precision), seconds),
    ));
    const ruling = h("p", { class: "verdict", role: "status" });
    const plot = picture(data, ranges[2]);

    function tell() {
      timeTitle.textContent = `time for ${count(wanted.value)} losses`;
      lines.forEach((line) => line());
      const [applies, text] = verdict(data, mss.value, rtt.value, p.value, duration.value);
      ruling.textContent = text;
      ruling.classList.toggle("applies", applies);
      plot.move(rtt.value, p.value);
    }
    live.append(
      h("div", {},
        h("p", { class: "pick" }, h("label", { for: "explorer-trial" }, "Begin with"), pick),
        mss.row, rtt.row, p.row,
        h("figure", { class: "window" }, plot.svg, h("figcaption", {},
          "The line: 1/√p, the window with C = 1. Dashed: PFTK’s, which moves with the RTT. The dot is where you are."))),
      h("div", {}, ruling, table, h("div", { class: "run" }, duration.row, wanted.row)),
    );
    tell();
  }

  measureTwice.explorer = explorer;
})();
