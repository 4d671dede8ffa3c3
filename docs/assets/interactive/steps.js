// The recorded steps from the first try to the result: which has been taken is the reader's choice.
(() => {
  "use strict";
  const { h, sig, plain, mbit, ms, bytes, count, seconds, plural, still } = measureTwice;

  const runsOf = (data, step) => step.runs.map((values) => {
    const run = Object.fromEntries(data.keys.map((key, n) => [key, values[n]]));
    const description = `Trial ${run.trial}: RTT ${ms(run.rtt_ms)}, MSS ${bytes(run.mss_bytes)}, p ${sig(run.loss_ratio)}. `
      + `Goodput ${mbit(run.goodput_mbit)}, ${sig(run.ratio)} times the model.`;
    return { ...run, description };
  });

  function sentence(data, n, runs) {
    const [low, high] = data.range;
    const inside = (run) => run.ratio !== null && run.ratio >= low && run.ratio <= high;
    const within = runs.filter(inside).length;
    const claims = runs.filter((run) => run.comparable);
    const step = data.steps[n];
    const left = data.trials - runs.length;
    return [
      h("strong", {}, `${within} of ${plural(runs.length, "trial")}`),
      ` ${within === 1 ? "lies" : "lie"} in the expected range, ${plain(low)} to ${plain(high)} times the model. `
      + `${claims.length} can be compared with the model, and of these ${claims.filter(inside).length} `
      + `${claims.filter(inside).length === 1 ? "is" : "are"} in the range.`
      + (step.fit ? ` Fitted to these ${claims.length}, C is ${sig(step.fit[0])}.` : "")
      + (left > 0 ? ` The other ${left} were not run at this step.` : ""),
    ];
  }

  // Steps are named by what is wrong: until a case is solved it is called by its number and what is seen.
  // A page asks this browser's lab book; a student's own figure holds the names of solved cases alone.
  function solved(lab, number) {
    try {
      return Boolean(localStorage.getItem(`measure-twice/${lab} ${number}/diagnosis`));
    } catch {
      return false;
    }
  }
  const isOpen = (data, step) => Boolean(step.title)
    && (step.open || step.cases.length === 0 || step.cases.every(({ number }) => solved(data.lab, number)));
  function neutralName(step) {
    const [first] = step.cases;
    if (step.cases.length === 1) return `Case ${first.number}: ${first.symptom}`;
    const numbers = step.cases.map(({ number }) => number);
    return `Cases ${numbers.slice(0, -1).join(", ")} and ${numbers.at(-1)}`;
  }

  function details(run, published, own, open) {
    const span = run.losses ? ` (${sig(run.goodput_low_mbit)} to ${sig(run.goodput_high_mbit)} by its losses)` : "";
    const rows = [
      ["path", `RTT ${ms(run.rtt_ms)}, MSS ${bytes(run.mss_bytes)}, p = ${sig(run.loss_ratio)}`],
      ["goodput", `${mbit(run.goodput_mbit)}${span}`],
      ["model", `${mbit(run.model_mbit)}, so a ratio of ${sig(run.ratio)}`],
      ["losses", `${count(run.losses)} counted by the router in ${seconds(run.duration_s)}`],
    ];
    if (!run.comparable) rows.push(["not compared", (open && run.because) || "p is too large for the model, or too few losses are expected"]);
    if (own) rows.push(["yours", `${mbit(own.goodput_mbit)}, so a ratio of ${sig(own.ratio)}`]);
    for (const entry of published.filter((value) => value.trial === run.trial)) {
      const note = entry.note ? ` (${entry.note})` : "";
      rows.push([`published, ${entry.state}`, `${mbit(entry.measured_mbit)}, model ${mbit(entry.model_mbit)}${note}`]);
    }
    return h("dl", {}, ...rows.flatMap(([name, text]) => [h("dt", {}, name), h("dd", {}, text)]));
  }

  // A mark as the legend shows it.
  const PATHS = {
    circle: "M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0", square: "M-5,-5h10v10h-10z",
    "triangle-up": "M0,-5l5.8,10h-11.6z", diamond: "M0,-7l6,7l-6,7l-6,-7z", "triangle-down": "M0,5l5.8,-10h-11.6z",
    before: "M-5,-5L5,5M5,-5L-5,5", after: "M-6,0H6M0,-6V6", line: "M-9,0H9", band: "M-9,-6h18v12h-18z",
  };
  function sample(shape, stroke, fill, dashes) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", "-10 -8 20 16");
    svg.setAttribute("aria-hidden", "true");
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", PATHS[shape]);
    path.setAttribute("style", `stroke:${stroke};fill:${fill};stroke-width:1.8;stroke-dasharray:${dashes || "none"}`);
    svg.append(path);
    return svg;
  }

  function legend(data, look, constant, fitted, own) {
    const item = (picture, text) => h("li", {}, picture, text);
    const group = (title, ...items) => h("div", {}, h("p", {}, title), h("ul", {}, ...items));
    const some = "var(--shade-1)";
    const groups = [
      group("MSS", ...look.mss.map(({ value, shape }) => item(sample(shape, some, some), bytes(value)))),
      group("RTT", ...look.rtt.map(({ value, shade }) => item(sample("circle", shade, shade), ms(value)))),
      group("The model", item(sample("circle", some, some), "applies"), item(sample("circle", some, "none"), "makes no claim, or too few losses")),
      group("Lines",
        item(sample("line", "var(--c-model)", "none"), "goodput = model, C = 1"),
        ...(constant ? [item(sample("line", "var(--measured)", "none", "5 3"), `C = ${sig(constant)}, fitted to ${fitted}`)] : []),
        item(sample("band", "none", "var(--band)"), `${plain(data.range[0])} to ${plain(data.range[1])} times the model`)),
    ];
    if (own.length) groups.push(group("Your own runs", item(sample("circle", "var(--own)", "var(--own)"), "as you had them")));
    if (data.published.length) {
      groups.push(group("Published", item(sample("before", "var(--published)", "none"), "first try"), item(sample("after", "var(--published)", "none"), "last")));
    }
    return groups;
  }

  async function steps(live, data) {
    const sets = data.steps.map((step) => runsOf(data, step));
    const last = data.steps.at(-1);
    const constant = last.fit && last.fit[0];
    const own = (data.own || []).map((ownSet) => ({ ...ownSet, runs: runsOf(data, ownSet) }));
    const state = { step: 0, trial: null, names: false, own: own.length - 1 };
    const open = (n) => state.names || isOpen(data, data.steps[n]);
    const allOpen = () => data.steps.every((_, n) => open(n));
    const nameOf = (n) => (open(n) ? data.steps[n].title : neutralName(data.steps[n]));

    const status = h("p", { class: "status", role: "status" });
    const tip = h("div", { class: "tip", "aria-hidden": "true", hidden: true });
    const plot = h("div", { class: "plot" });
    const key = h("div", { class: "legend" });
    const card = h("div", { class: "card" });
    const command = h("code");
    const copyStatus = h("span", { role: "status" });
    const pick = h("select", { id: "interactive-trial", onchange: () => choose(Number(pick.value) || null) });

    // One group of radio buttons: only what was recorded can be chosen, and each step keeps those before it.
    const radios = data.steps.map((step, n) => h("input", {
      type: "radio", name: "interactive-step", id: `interactive-step-${n}`, value: n, checked: n === 0, onchange: () => go(n),
    }));
    const labels = radios.map((radio, n) => h("label", { for: radio.id }, nameOf(n)));
    const list = h("ol", {}, ...radios.map((radio, n) => h("li", {}, radio, labels[n])));
    const back = h("button", { type: "button", class: "md-button", onclick: () => go(state.step - 1) }, "Back");
    const on = h("button", { type: "button", class: "md-button md-button--primary", onclick: () => go(state.step + 1) }, "Next discovery");

    const drawn = await (async () => {
      live.append(
        h("fieldset", { class: "switches" }, h("legend", {}, "Solved so far"), list),
        h("div", { class: "stage" }, h("div", { class: "turn" }, back, on), status,
          h("div", { class: "beside" }, plot, key, tip)),
      );
      return measureTwice.chart(plot, data, [...sets, ...own.map((ownSet) => ownSet.runs)].flat(), constant, { point, choose: (run) => choose(run.trial) });
    })();

    const layers = [["intervals", "95 % intervals", true], ["published", "published values, with the trial’s number", false]]
      .filter(([name]) => name !== "published" || data.published.length)
      .map(([name, text, checked]) => h("label", {},
        h("input", { type: "checkbox", name: `interactive-${name}`, checked, onchange: (event) => drawn.layer(name, event.target.checked) }), text));
    if (data.steps.every((step) => step.title) && !allOpen()) {
      layers.push(h("label", {}, h("input", {
        type: "checkbox", name: "interactive-names", onchange: (event) => {
          state.names = event.target.checked;
          labels.forEach((label, n) => { label.textContent = nameOf(n); });
          say();
          tell();
        },
      }), "what each step was, and the commands: this tells the cases’ causes"));
    }
    live.querySelector(".switches").append(h("div", { class: "layers" }, h("p", {}, "Show"), ...layers));
    if (own.length) {
      const ownPick = h("select", { id: "interactive-own", onchange: () => showOwn(Number(ownPick.value)) },
        ...own.map((ownSet, n) => h("option", { value: n }, ownSet.title)), h("option", { value: -1 }, "none"));
      ownPick.value = state.own;
      live.querySelector(".switches").append(h("p", { class: "pick" }, h("label", { for: "interactive-own" }, "Your own runs"), ownPick));
    }
    const fitted = plural(sets.at(-1).filter((run) => run.comparable).length, "trial");
    key.append(...legend(data, drawn.look, constant, `the ${fitted} of the last step`, own));
    live.append(
      h("div", { class: "chosen" },
        h("p", { class: "pick" }, h("label", { for: "interactive-trial" }, "Follow one trial"), pick),
        card),
    );
    const trials = [...new Map(sets.flat().map((run) => [run.trial, run])).values()].sort((a, b) => a.trial - b.trial);
    pick.append(h("option", { value: "" }, "none"), ...trials.map((run) => h("option", { value: run.trial },
      `${run.trial}: ${ms(run.rtt_ms)}, ${bytes(run.mss_bytes)}, p ${sig(run.loss_ratio)}`)));
    const copy = h("button", {
      type: "button", class: "md-button", onclick: async () => {
        await navigator.clipboard.writeText(command.textContent);
        copyStatus.textContent = "Copied";
      },
    }, "Copy");

    function point(run, place) {
      tip.hidden = !run;
      if (!run) return;
      tip.replaceChildren(h("strong", {}, `Trial ${run.trial}`), details(run, [], ownRun(run.trial), allOpen()),
        ...(allOpen() && run.command ? [h("code", {}, run.command)] : []));
      // Below the line no marks lie: so to the right of the mark and beneath it, if there is room.
      const wide = tip.parentElement.clientWidth;
      tip.style.left = `${Math.max(0, Math.min(place.x + 14, wide - tip.offsetWidth))}px`;
      tip.style.top = `${place.y + 14}px`;
    }

    const ownRun = (trial) => (state.own < 0 ? undefined : own[state.own].runs.find((run) => run.trial === trial));

    async function showOwn(n) {
      state.own = n;
      say();
      tell();
      await drawn.own(n < 0 ? [] : own[n].runs);
    }

    // A command has the settings in it, and these tell what was wrong.
    function repeat(run) {
      if (!allOpen() || !run.command) return [];
      command.textContent = run.command;
      return [h("p", { class: "again" }, "To repeat this run:"), h("p", { class: "command" }, command, ...(navigator.clipboard ? [copy, copyStatus] : []))];
    }

    function tell() {
      const run = sets[state.step].find((candidate) => candidate.trial === state.trial);
      pick.value = state.trial ?? "";
      copyStatus.textContent = "";
      if (run) {
        card.replaceChildren(details(run, data.published, ownRun(run.trial), allOpen()), ...repeat(run));
      } else {
        card.replaceChildren(h("p", {}, state.trial === null
          ? "Point at a mark, or choose a trial here, and see how it fares from step to step."
          : `Trial ${state.trial} was not run at this step.`));
      }
    }

    function choose(trial) {
      state.trial = trial;
      tell();
      return drawn.choose(trial);
    }

    function say() {
      const n = state.step;
      const ownText = state.own < 0 ? [] : [` Yours, ${own[state.own].title}: ${own[state.own].brief}.`];
      status.replaceChildren(h("span", {}, `Step ${n + 1} of ${data.steps.length}, ${nameOf(n)}. `), ...sentence(data, n, sets[n]), ...ownText);
    }

    async function go(n, animated = !still()) {
      state.step = n;
      radios[n].checked = true;
      list.querySelectorAll("li").forEach((item, i) => item.classList.toggle("taken", i <= n));
      back.disabled = n === 0;
      on.disabled = n === data.steps.length - 1;
      say();
      tip.hidden = true;
      tell();
      await drawn.to(sets[n], animated);
    }
    await go(0, false);
    if (own.length) await drawn.own(own[state.own].runs);
  }

  measureTwice.steps = steps;
})();
