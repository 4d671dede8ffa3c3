// The question that solves a case whose mistake is in what is said of its runs, <div class="judgement">: a choice, and where
// it fits a number. The number is held against the reader's own runs, where this browser keeps some of the case, else
// against the recorded ones; then the lab book says so. What is right is kept in this browser, and opens what comes after
// it. Without scripts the question stands there by itself, and all folds still open.
window.measureTwice = Object.assign(window.measureTwice || {}, { judgement(places, assets_url) {
  "use strict";
  const { h } = window.measureTwice;

  function stored_text(place, kind) {
    try {
      return localStorage.getItem(`measure-twice/${place.dataset.case}/${kind}`) || "";
    } catch {
      return "";
    }
  }

  function keep(place, text, kind) {
    try {
      localStorage.setItem(`measure-twice/${place.dataset.case}/${kind}`, text);
    } catch { /* then it is forgotten with the page */ }
  }

  // For the lab book: each answer that the recorded runs have judged, a line each.
  function keep_judged(place, answer) {
    const before = stored_text(place, "judged").split("\n").filter(Boolean);
    if (!before.includes(answer)) keep(place, [...before, answer].join("\n"), "judged");
  }

  // What the kit says by the reader's own runs; null where there are none.
  async function by_own_runs(lab, number, answer) {
    if (location.protocol === "file:") return null;
    let page;
    try {
      const { kept_names } = await import(new URL("machine/store.mjs", assets_url));
      const begins = `${lab}/case-${String(number).padStart(2, "0")}-trial-`;
      if (!(await kept_names(lab)).some((name) => name.startsWith(begins))) return null;
      page = await import(new URL("machine/page.mjs", assets_url));
      await page.all_loads();
    } catch {
      return null;
    }
    const judged = await (await page.open_kit()).ask("judge", { lab, case: number, answer });
    return judged.counted ? judged : null;
  }

  // As the kit reads them: 66.5, 66,5 in many languages, and 1,200, where three digits follow.
  const NUMBER = /[-+]?(?:([1-9]\d{0,2}(?:,\d{3})+(?![\d,])(?:\.\d+)?)|\d+(?:[.,]\d+)?|\.\d+)(?:[eE][-+]?\d+)?/;

  // The longest of some units that a text begins with; in other letters' case where that is no other unit.
  function unit_of(text, units) {
    for (const same of [(word) => word, (word) => word.toLowerCase()]) {
      const found = [...units].filter((unit) => same(text).startsWith(same(unit)) && !/^[\w/]/.test(text.slice(unit.length)));
      if (found.length) return found.sort((a, b) => b.length - a.length)[0];
    }
    return null;
  }

  // A number in the unit that is asked for: null where its own unit is of another kind, NaN where there is none.
  function number_in(text, asked) {
    const match = text.match(NUMBER);
    if (!match) return NaN;
    const given = Number(match[1] ? match[0].replaceAll(",", "") : match[0].replace(",", "."));
    const behind = text.slice(match.index + match[0].length).trimStart();
    const unit = unit_of(behind, Object.keys(asked.units));
    if (unit) return given * asked.units[unit];
    return unit_of(behind, asked.others) ? null : given;
  }

  function by_recorded_runs(asked, choice, text) {
    const problems = [];
    const why = asked.whys[asked.letters.indexOf(choice)];
    if (why) problems.push(`${choice}: ${why}`);
    if (asked.label) {
      const given = number_in(text, asked);
      if (given === null) problems.push(`${text}: the question asks for ${asked.label}.`);
      else if (Number.isNaN(given)) problems.push(`A number is missing: ${asked.again}`);
      else if (Math.abs(given - asked.recorded) > asked.tolerance * Math.abs(asked.recorded)) {
        problems.push(`${text}: the recorded runs give another number, by more than ${+(100 * asked.tolerance).toFixed(1)} %. ${asked.again}`);
      }
    }
    return { problems, outcome: problems.length ? "" : "That is right, by the recorded runs, since this browser keeps no runs of your own for this case. Your lab book will note that." };
  }

  function open_diagnosis() {
    for (const fold of document.querySelectorAll('details.behind[data-behind="diagnosis"]')) fold.open = true;
  }

  places.forEach((place, n) => {
    const asked = JSON.parse(place.dataset.asked);
    const [lab, number] = place.dataset.case.split(" ");
    const name = `judgement-${n}`;
    const [kept_choice = "", kept_number = ""] = stored_text(place, "judgement").split(/, (.*)/);
    const choices = [...asked.letters].map((letter) => h("label", { class: "judgement-choice" },
      h("input", { type: "radio", name, value: letter, checked: letter === kept_choice }), letter));
    const field = asked.label && h("input", { id: `${name}-number`, autocomplete: "off", value: kept_number });
    const button = h("button", { class: "md-button" }, "Answer");
    const status = h("div", { role: "status" });
    const form = h("form", {},
      h("fieldset", {}, h("legend", {}, "Your answer"), ...choices),
      ...(field ? [h("label", { for: field.id }, `Your number: ${asked.label}`), field] : []),
      button, status);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const chosen = form.querySelector("input:checked");
      if (!chosen) {
        status.textContent = "Choose an answer first.";
        return;
      }
      if (!stored_text(place, "diagnosis")) {
        status.textContent = "Write down your diagnosis first, in the field above.";
        return;
      }
      const text = field ? field.value.trim() : "";
      const answer = text ? `${chosen.value}, ${text}` : chosen.value;
      button.disabled = true;
      status.textContent = "One moment.";
      try {
        const by_own = await by_own_runs(lab, Number(number), answer);
        const { problems, outcome } = by_own || by_recorded_runs(asked, chosen.value, text);
        status.replaceChildren(...(problems.length ? problems : outcome.split("\n")).map((line) => h("p", {}, line)));
        if (!problems.length) {
          keep(place, answer, "judgement");
          open_diagnosis();
        }
        if (!by_own) {
          keep_judged(place, answer);
          document.dispatchEvent(new CustomEvent("measure-twice:written", { detail: { lab } }));
        }
      } catch (error) {
        status.textContent = `It can't be judged now: ${error.message}`;
      }
      button.disabled = false;
    });
    document.addEventListener("measure-twice:forgotten", ({ detail }) => {
      if (detail.lab !== lab) return;
      form.reset();
      for (const input of form.querySelectorAll("input")) { input.checked = false; if (input === field) input.value = ""; }
      status.textContent = "";
    });
    place.append(form);
  });
} });
