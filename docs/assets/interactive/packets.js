// A queue packet by packet, with the flow's window and round-trip time beside it, from the kernel's own counters.
(() => {
  "use strict";
  const { h, s, sig, count, sums, indexAt, fetched, choice, clock, story, panels } = measureTwice;
  const SPEEDS = [[0.2, "1/5 of real time"], [0.5, "1/2 of real time"], [0.1, "1/10 of real time"], [0.02, "1/50 of real time"], [1, "real time"]];
  const BAND = 112, BOX = 26, TOP = 30, FALL_S = 0.15;
  // Every tenth packet is marked, so that an eye can follow it.
  const MARKED = 10;

  const between = (list, n, share) => list[n] + (list[Math.min(n + 1, list.length - 1)] - list[n]) * share;

  // How many packets have left the queue at a time, and how many have come.
  function edges(run, t) {
    const n = indexAt(run.time, t), next = n + 1 < run.time.length;
    const share = next ? Math.max(0, t - run.time[n]) / (run.time[n + 1] - run.time[n]) : 0;
    const left = between(run.left, n, share);
    return { left, come: Math.max(left, between(run.come, n, share)) };
  }

  // The run as lists over its samples; packets are numbered as they leave the queue, dropped ones too where they are
  // dropped at the head.
  function decoded(run) {
    const time = sums(run.time).map((tenths) => tenths / 1e4);
    const [sent, dropped, waiting] = [run.sent, run.dropped, run.waiting].map(sums);
    const left = sent.map((n, k) => n + (run.head_drops ? dropped[k] : 0));
    // In the time between two samples the drops come last: a queue is full before it drops.
    const drops = { x: [], y: [] };
    for (let k = 1; k < time.length; k++) {
      const many = dropped[k] - dropped[k - 1];
      for (let n = many; n > 0; n--) {
        drops.x.push(time[k] - (time[k] - time[k - 1]) * (n - 1) / (4 * many));
        drops.y.push(0);
      }
    }
    return {
      ...run, time, dropped, waiting, left, drops, come: left.map((n, k) => n + waiting[k]),
      cwnd: sums(run.cwnd), rtt: sums(run.rtt).map((tenths) => tenths / 10),
      pings: { x: run.ping.map(([ms]) => ms / 1e3), y: run.ping.map(([, rtt]) => rtt) },
    };
  }

  // The queue's own picture: its head at the right, where the link takes packets; one scale for all runs.
  function strip(data) {
    const svg = s("svg", { class: "queue", height: BAND, "aria-hidden": "true" });
    const box = h("div", { class: "panels-box" }, svg);
    let width = 0;
    new ResizeObserver(() => { width = Math.floor(box.clientWidth); if (api.laid) api.laid(); }).observe(box);
    const api = {
      element: box,
      draw(run, discipline, t) {
        if (!width) return;
        const slot = (width - 64) / (data.most.waiting + 2), head = width - 52;
        const { left, come } = edges(run, t);
        const at = (packets) => head - packets * slot;
        const parts = [];
        discipline.marks.forEach(([name, packets], k) => {
          parts.push(s("line", { x1: at(packets), x2: at(packets), y1: TOP - 8, y2: TOP + BOX + 6, class: "mark" }),
            s("text", { x: at(packets), y: TOP - 12, "text-anchor": "middle" }, name));
        });
        for (let id = Math.floor(left) + 1; id <= Math.ceil(come); id++) {
          parts.push(s("rect", {
            x: (at(id - left) + slot * 0.1).toFixed(1), y: TOP, width: Math.max(1.5, slot * 0.8).toFixed(1), height: BOX,
            class: id % MARKED ? "packet" : "packet tenth",
          }));
        }
        // What was dropped a moment ago falls from where it was dropped.
        const tail = run.head_drops ? head - slot / 2 : at(come - left) - slot;
        for (let k = indexAt(run.drops.x, t), many = 0; k >= 0 && many < 12 && run.drops.x[k] <= t && t - run.drops.x[k] < FALL_S; k--, many++) {
          const fallen = (t - run.drops.x[k]) / FALL_S;
          const [cx, cy] = [tail - (many % 6) * 9, TOP + BOX + 10 + fallen * 34];
          parts.push(s("path", { d: `M${cx - 4},${cy - 4}l8,8m0,-8l-8,8`, class: "drop" }));
        }
        parts.push(
          s("line", { x1: 4, x2: head, y1: TOP + BOX + 3, y2: TOP + BOX + 3, class: "floor" }),
          s("path", { d: `M${head + 6},${TOP + BOX / 2}h34m-7,-6l7,6l-7,6`, class: "floor" }),
          s("text", { x: width - 4, y: TOP + BOX + 18, "text-anchor": "end" }, `${sig(data.rate_mbit)} Mbit/s`),
          s("text", { x: 4, y: TOP + BOX + 18 }, "packets come"));
        svg.setAttribute("viewBox", `0 0 ${width} ${BAND}`);
        svg.setAttribute("width", width);
        svg.setAttribute("height", BAND);
        svg.style.setProperty("--line", `var(--c-${run.algorithm}, var(--ink))`);
        svg.replaceChildren(...parts);
      },
    };
    return api;
  }

  async function packets(live, data, load) {
    const end = data.most.time / 1e4;
    const runsByAlgorithm = new Map();
    let algorithm = data.algorithms[0], discipline = data.disciplines[0], run = null, span = end, latestRequest = 0;
    const board = panels({
      end, unit: "time (s)", pick: (t) => time.pick(t),
      rows: [
        { id: "waiting", label: "packets in the queue; strokes are drops", most: data.most.waiting * 1.04, high: 84 },
        { id: "cwnd", label: "window (segments)", most: data.most.cwnd * 1.04, high: 84 },
        { id: "rtt", label: "RTT (ms): line, the flow’s; dots, a ping’s", most: data.most.rtt / 10 * 1.04, high: 84 },
      ],
    });
    const queue = strip(data);
    const says = Object.fromEntries(["time", "in the queue", "window", "RTT", "dropped"].map((name) => [name, h("dd", {})]));
    const facts = h("dl", { class: "facts-now" }, ...Object.entries(says).map(([name, value]) => h("div", {}, h("dt", {}, name), value)));

    // What is drawn at a time: between two samples the queue is on its way from the one to the other.
    const at = (t) => {
      const n = indexAt(run.time, t), { left, come } = edges(run, t);
      const dropped = run.drops.x.length && run.drops.x[0] <= t ? indexAt(run.drops.x, t) + 1 : 0;
      return { waiting: Math.round(come - left), cwnd: run.cwnd[n], rtt: run.rtt[n], dropped };
    };
    const say = (t) => {
      if (!run) return "";
      const now = at(t);
      return `${t.toFixed(3)} seconds, ${algorithm.name} with ${discipline.name}: ${now.waiting} packets in the queue, a window of ${now.cwnd} segments, RTT ${sig(now.rtt)} ms, ${now.dropped} dropped so far`;
    };

    function show(t) {
      if (!run) return;
      const now = at(t);
      board.view(span, t);
      board.cursor(t, [
        { row: "waiting", y: now.waiting, colour: discipline.colour }, { row: "cwnd", y: now.cwnd, colour: algorithm.id },
        { row: "rtt", y: now.rtt, colour: algorithm.id },
      ]);
      queue.draw(run, discipline, t);
      const texts = [`${t.toFixed(3)} s`, count(now.waiting), `${count(now.cwnd)} segments`, `${sig(now.rtt)} ms`, count(now.dropped)];
      Object.values(says).forEach((place, n) => { place.textContent = texts[n]; });
    }

    const time = clock({ id: "packets-time", end, step: 0.008, speeds: SPEEDS, say, show });

    // An algorithm's runs are fetched as they are first asked for.
    async function take() {
      const request = ++latestRequest;
      if (!runsByAlgorithm.has(algorithm.id)) {
        const recording = await fetched(load, algorithm.script, `packets-${algorithm.id}`);
        runsByAlgorithm.set(algorithm.id, recording.runs.map(decoded));
      }
      if (request !== latestRequest) return false;
      run = runsByAlgorithm.get(algorithm.id).find((recordedRun) => recordedRun.discipline === discipline.id);
      const colour = algorithm.id;
      board.show([
        { row: "waiting", kind: "area", x: run.time, y: run.waiting, colour: "queue" },
        { row: "waiting", kind: "ticks", ...run.drops, colour: "ink" },
        { row: "cwnd", x: run.time, y: run.cwnd, colour },
        { row: "rtt", kind: "dots", ...run.pings, colour: "ink-faint" },
        { row: "rtt", x: run.time, y: run.rtt, colour },
      ], discipline.marks.map(([, packets]) => ({ row: "waiting", y: packets })));
      board.label(`${algorithm.name} with ${discipline.name}: packets in the queue, window and round-trip time over ${sig(end)} seconds. The slider below gives the values.`);
      time.go(time.time);
      return true;
    }

    const byId = (list, id) => list.find((item) => item.id === id);
    const algorithmChoice = choice("packets-algorithm", "Algorithm", data.algorithms.map((option) => [option.id, option.name, option.id]),
      (id) => { time.stop(); algorithm = byId(data.algorithms, id); take(); });
    const disciplineChoice = choice("packets-discipline", "Queue discipline", data.disciplines.map((option) => [option.id, option.name, option.colour]),
      (id) => { time.stop(); discipline = byId(data.disciplines, id); take(); });
    const extent = choice("packets-span", "In view", [[end, "all of it"], [1, "1 s"]], (seconds) => { span = Number(seconds); time.go(time.time); });
    const act = async (step, done) => {
      algorithmChoice.set(step.algorithm);
      disciplineChoice.set(step.discipline);
      extent.set(step.span || end);
      span = step.span || end;
      algorithm = byId(data.algorithms, step.algorithm);
      discipline = byId(data.disciplines, step.discipline);
      if (await take()) time.run(step.from, step.to, done, step.speed);
    };
    queue.laid = board.laid = () => time.go(time.time);
    live.append(
      h("div", { class: "aside" }, story(data.steps, act), algorithmChoice, disciplineChoice, extent),
      h("div", { class: "stage" }, queue.element, facts, board.element, time.element));
    await take();
  }

  measureTwice.packets = packets;
})();
