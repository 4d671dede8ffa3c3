// What figures share that replay recorded runs: lists of numbers as the scripts with data have them, choices,
// a clock that is played, dragged and stepped, and a story whose steps set the figure.
(() => {
  "use strict";
  const { h, still } = measureTwice;
  const FRAME_MOST_MS = 100;

  // Each number but the first is what it has more than the one before it.
  function sums(list) {
    let sum = 0;
    return list.map((more) => (sum += more));
  }

  // The last place in an ascending list whose value is at or before `value`.
  function indexAt(list, value) {
    let low = 0, high = list.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (list[middle] <= value) low = middle; else high = middle - 1;
    }
    return low;
  }

  async function fetched(load, script, name) {
    await load(script);
    return window.measureTwiceData[name];
  }

  // A line as its figure draws it.
  function swatch(colour) {
    const line = measureTwice.s("svg", { class: "swatch", width: 30, height: 10, "aria-hidden": "true" });
    line.append(measureTwice.s("path", { d: "M0,5h30", class: "trace", style: `--line: var(--c-${colour}, var(--ink)); --dash: var(--dash-${colour}, none)` }));
    return line;
  }

  // Radio buttons: options are [value, text, colour]. `set` chooses without a reader.
  function choice(name, legend, options, onChoose) {
    const inputs = options.map(([value], n) => h("input", {
      type: "radio", name, value, checked: n === 0, onchange: () => onChoose(value),
    }));
    const box = h("fieldset", { class: "choice" }, h("legend", {}, legend), ...options.map(([, text, colour], n) => h(
      "label", {}, inputs[n], colour ? swatch(colour) : null, text)));
    box.set = (value) => inputs.forEach((input) => { input.checked = input.value === String(value); });
    return box;
  }

  // A slider over recorded time with Play beside it. on.show(time) draws; `step` is what an arrow key moves.
  function clock({ id, end, step, speeds, say, show }) {
    let time = 0, playing = 0, until = end, speed = speeds[0][0], ended = null;
    const slider = h("input", {
      type: "range", id, min: 0, max: end, step, value: 0,
      oninput: () => { stop(); go(Number(slider.value)); },
    });
    const play = h("button", { type: "button", class: "md-button", onclick: () => (playing ? stop() : start(end)) }, "Play");
    const pace = h("select", { "aria-label": "Speed", onchange: () => { speed = Number(pace.value); } },
      ...speeds.map(([value, text]) => h("option", { value }, text)));
    // With reduced motion nothing plays: the slider and its arrow keys do the same.
    if (still()) for (const control of [play, pace]) control.hidden = true;

    function go(to) {
      time = Math.max(0, Math.min(end, to));
      slider.value = time;
      slider.setAttribute("aria-valuetext", say(time));
      show(time);
    }

    function stop() {
      cancelAnimationFrame(playing);
      playing = 0;
      play.textContent = "Play";
    }

    function start(to, then = null) {
      stop();
      [until, ended] = [to, then];
      if (time >= until) go(0);
      let before = performance.now();
      play.textContent = "Pause";
      const frame = (now) => {
        go(Math.min(until, time + Math.min(FRAME_MOST_MS, Math.max(0, now - before)) / 1e3 * speed));
        before = now;
        if (time < until) playing = requestAnimationFrame(frame);
        else {
          stop();
          if (ended) ended();
        }
      };
      playing = requestAnimationFrame(frame);
    }

    return {
      element: h("div", { class: "clock" }, play, pace, h("label", { for: id }, "Time"), slider),
      go, stop,
      pick: (to) => { stop(); go(to); },
      // From one time to another, or, where nothing may move, at once to its end.
      run: (from, to, then, rate) => {
        speed = rate;
        pace.value = rate;
        go(from);
        if (still()) { go(to); then(); } else start(to, then);
      },
      get time() { return time; },
    };
  }

  // Steps, each a question, what to do, and a sentence on what was seen; then free play. `act(step, done)` does it.
  function story(steps, act) {
    let at = 0, turn = 0;
    const count = h("p", { class: "story-count" });
    const ask = h("p", { class: "story-ask" });
    const doing = h("p", { class: "story-do" });
    const seen = h("p", { class: "story-seen", role: "status" });
    const button = (text, primary, onclick) => h("button", { type: "button", class: `md-button${primary ? " md-button--primary" : ""}`, onclick }, text);
    const show = button("Show me", true, () => {
      const request = ++turn;
      seen.textContent = "";
      act(steps[at], () => { if (request === turn) tell(); });
    });
    const back = button("Back", false, () => to(at - 1));
    const next = button("Next", false, () => to(at + 1));

    function tell() {
      seen.textContent = steps[at].seen;
      seen.classList.add("told");
    }

    function to(n) {
      at = Math.max(0, Math.min(steps.length, n));
      turn++;
      const free = at === steps.length;
      count.textContent = free ? "Now you" : `Step ${at + 1} of ${steps.length}`;
      ask.textContent = free ? "What else would you like to know?" : steps[at].ask;
      doing.textContent = free ? "Every control below is yours: choose, play, drag." : steps[at].do;
      seen.textContent = "";
      seen.classList.remove("told");
      show.hidden = free;
      back.disabled = at === 0;
      next.disabled = free;
    }

    to(0);
    return h("section", { class: "story", "aria-label": "A guided look" }, count, ask, doing, h("div", { class: "turn" }, show, back, next), seen);
  }

  Object.assign(window.measureTwice, { sums, indexAt, fetched, choice, clock, story });
})();
