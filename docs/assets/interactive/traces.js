// All algorithms on one clock: window, round-trip time and queue of a recorded flow each, on the same axes.
(() => {
  "use strict";
  const { h, sig, count, sums, indexAt, fetched, choice, clock, story, panels } = measureTwice;
  const SPEEDS = [[2, "2 × real time"], [8, "8 × real time"], [0.2, "1/5 of real time"]];

  async function traces(live, data, load) {
    const recording = await fetched(load, data.script, "signatures");
    const runs = recording.runs.map((run) => ({
      ...run, time: sums(run.time).map((ms) => ms / 1e3), cwnd: sums(run.cwnd), queue: sums(run.queue),
      rtt: sums(run.rtt).map((tenths) => tenths / 10), doing: sums(run.doing),
    }));
    const end = data.most.time / 1e3;
    const spans = [[end, "all of it"], [10, "10 s"], [2, "2 s"]];
    let front = runs[0], beside = true, span = end;
    const board = panels({
      end, unit: "time (s)", pick: (t) => time.pick(t),
      rows: [
        { id: "cwnd", label: "window (segments)", most: data.most.cwnd * 1.04, high: 120 },
        { id: "rtt", label: "round-trip time (ms)", most: data.most.rtt / 10 * 1.04, high: 84 },
        { id: "queue", label: "queue (packets)", most: data.most.queue * 1.04, high: 84 },
      ],
    });
    const at = (run, t) => {
      const n = indexAt(run.time, t);
      return { cwnd: run.cwnd[n], rtt: run.rtt[n], queue: run.queue[n], doing: recording.says[run.doing[n]] };
    };
    const cells = new Map(runs.map((run) => [run, ["cwnd", "rtt", "queue"].map(() => h("td", {}))]));
    const rows = runs.map((run) => h("tr", {}, h("th", { scope: "row" }, run.name), ...cells.get(run)));
    const table = h("table", { class: "answers" }, h("caption", {}, "At this moment"), h("thead", {}, h("tr", {},
      ...["algorithm", "window", "RTT (ms)", "queue"].map((text) => h("th", { scope: "col" }, text)))), h("tbody", {}, ...rows));
    const says = h("p", { class: "verdict applies" });

    function draw() {
      const shown = beside ? [...runs.filter((run) => run !== front), front] : [front];
      board.show(shown.flatMap((run) => ["cwnd", "rtt", "queue"].map((row) => ({
        row, x: run.time, y: run[row], colour: run.algorithm, faint: run !== front,
      }))));
      board.label(`Window, round-trip time and queue over ${sig(end)} seconds: ${shown.map((run) => run.name).join(", ")}; ${front.name} in front. The slider below gives the values.`);
    }

    function show(t) {
      board.view(span, t);
      const now = at(front, t);
      board.cursor(t, ["cwnd", "rtt", "queue"].map((row) => ({ row, y: now[row], colour: front.algorithm })));
      for (const [n, run] of runs.entries()) {
        const value = at(run, t);
        const texts = [count(value.cwnd), sig(value.rtt), count(value.queue)];
        cells.get(run).forEach((cell, k) => { cell.textContent = texts[k]; });
        rows[n].classList.toggle("front", run === front);
      }
      says.replaceChildren(h("strong", {}, `${front.name}, ${t.toFixed(2)} s: `), `${now.doing}.`);
    }

    const say = (t) => {
      const now = at(front, t);
      return `${t.toFixed(2)} seconds, ${front.name}: ${now.cwnd} segments, ${now.queue} packets in the queue, RTT ${sig(now.rtt)} ms. ${now.doing}.`;
    };
    const time = clock({ id: "traces-time", end, step: 0.02, speeds: SPEEDS, say, show });
    const take = (id) => {
      front = runs.find((run) => run.algorithm === id);
      draw();
      time.go(time.time);
    };
    const look = (seconds) => {
      span = Number(seconds);
      time.go(time.time);
    };
    const ahead = choice("traces-run", "Highlight", runs.map((run) => [run.algorithm, run.name, run.algorithm]), take);
    const extent = choice("traces-span", "In view", spans, look);
    const others = h("input", { type: "checkbox", checked: true, onchange: () => { beside = others.checked; draw(); time.go(time.time); } });
    const act = (step, done) => {
      ahead.set(step.front);
      span = step.span || end;
      extent.set(span);
      others.checked = beside = step.others;
      take(step.front);
      time.run(step.from, step.to, done, step.speed);
    };
    live.append(
      h("div", { class: "aside" }, story(data.steps, act), ahead,
        h("label", { class: "also" }, others, "show the others as well"), extent),
      h("div", { class: "stage" }, board.element, time.element, says, table));
    board.laid = () => time.go(time.time);
    draw();
    time.go(0);
  }

  measureTwice.traces = traces;
})();
