// A run over time, as ./lab plot --over-time draws it: window, round-trip time, queue, losses, one above the other.
const { h, s, sig } = window.measureTwice;

const PANELS = [["cwnd", "congestion window (segments)"], ["rtt", "round-trip time (ms)"], ["queue", "queue (packets)"], ["losses", "losses so far"]];
const COLOURS = ["--measured", "--shade-2", "--ink-2", "--ink"];
const DASHES = ["none", "6 3", "2 2", "8 2 2 2"];

// Of "host-1", "host-1, ss", "host-1, ping-busy, mean"; of "host-1 5201"; of "router-1 red, dropped".
const owner = (label) => label.split(",")[0];

// Each panel's lines, each with its look: what is of one node has one colour in all panels, and its lines in one panel
// differ by their dashes.
function rows_of(panels) {
  const shown = PANELS.filter(([id]) => (panels[id] || []).some((line) => line.values.length));
  const owners = [...new Set(shown.flatMap(([id]) => panels[id].map((line) => owner(line.label))))];
  return shown.map(([id, label]) => {
    const most = Math.max(...panels[id].flatMap((line) => line.values));
    const lines = panels[id].map((line, n) => {
      const before = panels[id].slice(0, n).filter((other) => owner(other.label) === owner(line.label));
      const colour = COLOURS[owners.indexOf(owner(line.label)) % COLOURS.length];
      return { ...line, look: `--line: var(${colour}); --dash: ${DASHES[before.length % DASHES.length]}` };
    });
    return { id, label, most: (most > 0 ? most : 1) * 1.04, high: 110, lines };
  });
}

function legend({ label, lines }) {
  const entries = lines.map((line) => {
    const swatch = s("svg", { class: "swatch", width: 30, height: 10, "aria-hidden": "true" });
    swatch.append(s("path", { d: "M0,5h30", class: "trace", style: line.look }));
    return h("span", {}, swatch, line.label);
  });
  return h("p", { class: "over-time-legend" }, h("b", {}, label.split(" (")[0]), ...entries);
}

// What a line's value is at a time: the last one measured before it.
function value_at(line, time_s) {
  const after = line.time_s.findIndex((at) => at > time_s);
  return line.values[after < 0 ? line.values.length - 1 : Math.max(0, after - 1)];
}

export async function over_time({ notes, panels }) {
  await window.measureTwice.load("interactive/panels.js");
  const rows = rows_of(panels);
  const end = Math.max(...rows.flatMap(({ lines }) => lines.flatMap((line) => line.time_s)));
  const status = h("p", { class: "over-time-said", "aria-live": "polite" }, "Click into it for the values at a moment.");
  const say = (time_s) => {
    board.cursor(time_s);
    status.textContent = `At ${sig(time_s)}\u00a0s: ${rows.map(({ label, lines }) => `${label} ${
      lines.map((line) => `${line.label} ${sig(value_at(line, time_s))}`).join(", ")}`).join("; ")}.`;
  };
  const board = window.measureTwice.panels({ end, unit: "time (s)", rows, pick: say });
  board.show(rows.flatMap(({ id, lines }) => lines.map((line) => ({
    row: id, kind: "steps", look: line.look,
    x: line.steady ? [0, end] : line.time_s, y: line.steady ? [line.values[0], line.values[0]] : line.values,
  }))));
  board.label(`One run over ${sig(end)} seconds: ${rows.map(({ label }) => label).join(", ")}.`);
  const legends = rows.filter(({ id, lines }) => lines.length > 1 || id === "queue").map(legend);
  return [
    h("div", { class: "here-figure over-time" }, ...legends, board.element, status),
    ...notes.map((note) => h("p", { class: "recorded" }, note)),
  ];
}
