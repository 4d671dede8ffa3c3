// A run over time, as ./lab plot --over-time draws it: window, round-trip time, queue, losses, one above the other.
const { h } = window.measureTwice;

// Each panel's name, and its axis' title in lines: a panel is not high enough for some in one.
const PANELS = [["cwnd", ["congestion window", "(segments)"]], ["rtt", ["round-trip time", "(ms)"]], ["queue", ["queue", "(packets)"]], ["losses", ["losses so far"]]];
const COLOURS = ["var(--measured)", "var(--shade-2)", "var(--ink-2)", "var(--ink)"];
const DASHES = [[1, 0], [6, 3], [2, 2], [8, 2, 2, 2]];

// Of "host-1", "host-1, ss", "host-1, ping-busy, mean"; of "host-1 5201"; of "router-1 red, dropped".
const of_what = (label) => label.split(",")[0];

const dark = () => document.body.getAttribute("data-md-color-scheme") === "slate";

function specification(panels, width) {
  const shown = PANELS.filter(([name]) => (panels[name] || []).some((line) => line.values.length));
  // What a line is of has one colour in all panels; its lines in one panel differ by their dashes.
  const all = [...new Set(shown.flatMap(([name]) => panels[name].map((line) => of_what(line.label))))];
  const colour = (label) => COLOURS[all.indexOf(of_what(label)) % COLOURS.length];
  const dash = (label, names) => {
    const before = names.slice(0, names.indexOf(label)).filter((other) => colour(other) === colour(label));
    return DASHES[before.length % DASHES.length];
  };
  return {
    $schema: "https://vega.github.io/schema/vega-lite/v6.json",
    description: `One run over time, in seconds: ${shown.map(([, title]) => title.join(" ")).join(", ")}.`,
    background: "transparent", spacing: 8,
    vconcat: shown.map(([name, title], at) => {
      const lines = panels[name];
      const most = Math.max(...lines.flatMap((line) => line.values));
      const end = Math.max(...lines.flatMap((line) => line.time_s));
      const values = lines.flatMap((line) => (line.steady
        ? [0, end].map((time_s) => ({ time_s, value: line.values[0], line: line.label }))
        : line.time_s.map((time_s, n) => ({ time_s, value: line.values[n], line: line.label }))));
      const names = lines.map((line) => line.label);
      const legend = names.length > 1 || name === "queue" ? { title: null, orient: "top", direction: "horizontal", columns: 2, labelLimit: 260, symbolType: "stroke", symbolSize: 400 } : null;
      return {
        width, height: 110, data: { values }, mark: { type: "line", strokeWidth: 1.2, interpolate: "step-after" },
        encoding: {
          x: { field: "time_s", type: "quantitative", title: at === shown.length - 1 ? "time (s)" : null, axis: { labels: at === shown.length - 1, grid: false, format: ",.6~g" } },
          y: { field: "value", type: "quantitative", title, scale: { domainMin: 0, ...(most > 0 ? {} : { domainMax: 1 }) }, axis: { titleFontWeight: "normal", tickCount: 4, format: ",.6~g" } },
          color: { field: "line", scale: { domain: names, range: names.map(colour) }, legend },
          strokeDash: { field: "line", scale: { domain: names, range: names.map((each) => dash(each, names)) }, legend },
        },
      };
    }),
    resolve: { scale: { x: "shared", color: "independent", strokeDash: "independent" } },
  };
}

export async function over_time({ notes, panels }) {
  // What is drawn makes its own element as wide as itself.
  const drawing = h("div");
  const place = h("div", { class: "here-figure here-wide" }, drawing);
  const load = window.measureTwice.load;
  await load("vendor/vega/vega.min.js");
  await load("vendor/vega-lite/vega-lite.min.js");
  await load("vendor/vega-embed/vega-embed.min.js");
  let drawn = "";
  // Drawn anew where the page becomes narrower, or dark.
  const draw = () => {
    const room = Math.max(200, Math.min(640, (place.clientWidth || 560) - 70));
    const look = `${room} ${dark()}`;
    if (look === drawn) return;
    drawn = look;
    vegaEmbed(drawing, specification(panels, room), { actions: false, renderer: "svg", theme: dark() ? "dark" : undefined });
  };
  const watched = new MutationObserver(() => (place.isConnected ? draw() : watched.disconnect()));
  watched.observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
  new ResizeObserver(() => requestAnimationFrame(draw)).observe(place);
  return [place, ...notes.map((note) => h("p", { class: "recorded" }, note))];
}
