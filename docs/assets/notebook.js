// The lab book of a page: a field for the prediction, and one for the diagnosis; on a page of questions one for each
// answer, <div class="notebook" data-case="mathis 3" data-kind="answer">. What is written stays in
// this browser, and opens what comes after it; where the page can run the case, what was recorded stays folded until
// there is a diagnosis, or until the reader opens it: its lines are chosen, and one's own run has them all. Without
// scripts there is no field, and all folds still open.
window.measureTwice = Object.assign(window.measureTwice || {}, { notebook(places) {
  "use strict";
  // No more is read of it, in the lab book or in a report.
  const MOST_CHARACTERS = 20000;
  // What a diagnosis has at least, as in book/lab_book.py: different words, or letters that aren't Latin.
  const DIAGNOSIS_WORDS = 3;
  const DIAGNOSIS_LETTERS = 6;
  const address = (place, kind = place.dataset.kind) => `measure-twice/${place.dataset.case}/${kind}`;

  function stored_text(place, kind) {
    try {
      return localStorage.getItem(address(place, kind)) || "";
    } catch {
      return "";
    }
  }

  function keep(place, text, kind) {
    try {
      localStorage.setItem(address(place, kind), text);
      if (text.length >= MOST_CHARACTERS) return `Written down, in this browser. The field is full: it takes ${MOST_CHARACTERS} characters.`;
      return "Written down, in this browser.";
    } catch {
      return "This browser keeps nothing. Write it down on paper as well.";
    }
  }

  // Can this page run the case? And is that way chosen: of tabs only the chosen one is laid out.
  const panels = () => (location.protocol === "file:" ? [] : [...document.querySelectorAll(".here[data-here]")]
    .filter((panel) => JSON.parse(panel.dataset.here).kind === "first"));

  // A module's first try is begun in a terminal, or by its front page: no diagnosis comes after it.
  const is_first_try = (place) => place.dataset.case.endsWith(" start");
  const waits = (place) => place.dataset.kind === "prediction" && (panels().length || is_first_try(place)) && !stored_text(place, "recorded") && !stored_text(place, "diagnosis");

  // Where a question solves the case, the diagnosis opens that, and the right answer what comes after it.
  const question = document.querySelector('details.behind[data-behind="judgement"]');
  const comes_after = (place) => (place.dataset.kind === "diagnosis" && question && !stored_text(place, "judgement") ? "judgement" : place.dataset.kind);

  function is_in_words(diagnosis) {
    const words = new Set((diagnosis.toLowerCase().match(/\p{L}{2,}/gu) || []));
    const others = diagnosis.match(/(?![a-z])\p{L}/giu) || [];
    return words.size >= DIAGNOSIS_WORDS || others.length >= DIAGNOSIS_LETTERS;
  }

  function open(kind) {
    for (const fold of document.querySelectorAll(`details.behind[data-behind="${kind}"]`)) fold.open = true;
  }

  // Which hint was opened before there was a diagnosis, or the page's own diagnosis, which is as good as the last: the lab
  // book of this page's own runs says so, as it does of the checker's.
  function note_hints(place) {
    const folds = panels().length ? [...document.querySelectorAll(`.hints[data-case="${place.dataset.case}"] > details`)] : [];
    if (!folds.length) return;
    const says = document.createElement("p");
    says.textContent = "Your lab book records the hints you open. Opening the diagnosis first counts as hint 3.";
    folds[0].before(says);
    const note = (fold, step) => fold.addEventListener("toggle", () => {
      if (!fold.open || stored_text(place) || Number(stored_text(place, "hint")) >= step) return;
      keep(place, String(step), "hint");
      tell_written(place);
    });
    folds.forEach((fold, n) => note(fold, n + 1));
    for (const fold of document.querySelectorAll('details.behind[data-behind="diagnosis"]')) note(fold, folds.length);
  }

  // The last hint tells the cause: who says first what they think it is, even wrongly, remembers it better. `field` is for that.
  function ask_before_last_hint(place, field) {
    const last = [...document.querySelectorAll(`.hints[data-case="${place.dataset.case}"] > details`)].at(-1);
    if (!last) return;
    const says = document.createElement("p");
    says.setAttribute("role", "status");
    last.after(says);
    last.querySelector("summary").addEventListener("click", (event) => {
      says.textContent = "";
      if (last.open || is_said(place)) return;
      event.preventDefault();
      says.textContent = "The last hint tells the cause. First write down as your diagnosis what you think it is, in three words or more. A wrong guess will do.";
      field.focus();
    });
  }

  // A browser that keeps nothing knows it as long as the page is open.
  const is_said = (place) => stored_text(place) || place.dataset.said;

  function tell_written(place) {
    document.dispatchEvent(new CustomEvent("measure-twice:written", { detail: { lab: place.dataset.case.split(" ")[0] } }));
  }

  // By which run, or by which answer, the case of this page is solved: as the lab book of this browser's runs has it.
  function tell_solved(place) {
    const says = document.createElement("p");
    says.className = "case-solved";
    const say = () => {
      const how = stored_text(place, "solved") || (stored_text(place, "judgement") && "its question is answered right");
      says.textContent = how ? `You have solved this case: ${how}.` : "";
      says.hidden = !how;
    };
    (document.querySelector(".case-facts") || document.querySelector("h1")).after(says);
    for (const event of ["solved", "written", "forgotten"]) document.addEventListener(`measure-twice:${event}`, say);
    say();
  }

  places.forEach((place, n) => {
    const { kind, asked, quantity } = place.dataset;
    const form = document.createElement("form");
    const label = document.createElement("label");
    const field = document.createElement(kind === "prediction" ? "input" : "textarea");
    const button = document.createElement("button");
    const status = document.createElement("span");
    field.id = `notebook-${n}`;
    field.value = stored_text(place);
    field.maxLength = MOST_CHARACTERS;
    field.autocomplete = "off";
    if (kind !== "prediction") field.rows = kind === "answer" ? 6 : 3;
    label.htmlFor = field.id;
    label.textContent = {
      prediction: quantity ? `Your prediction: ${quantity}` : "Your prediction, with its unit",
      diagnosis: "Your diagnosis: what is it, in your own words?",
      answer: `Your answer to question ${place.dataset.case.split(" ")[1]}`,
    }[kind];
    field.setAttribute("aria-description", asked || "");
    button.className = "md-button";
    button.textContent = "Write it down";
    status.setAttribute("role", "status");
    form.append(label, field, button, status);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (!field.value.trim() && kind !== "answer") {
        status.textContent = "Write something first, or open what follows without it.";
        return;
      }
      if (kind === "diagnosis" && !is_in_words(field.value)) {
        status.textContent = "Say in three words or more what it is, and where. Then the page names what to change.";
        return;
      }
      status.textContent = keep(place, field.value.trim());
      place.dataset.said = "yes";
      if (quantity && /\.\/lab\b/.test(field.value)) status.textContent += " But it reads like a command. Write the number that you predict in its place.";
      else if (quantity && !/\d/.test(field.value)) status.textContent += " It has no number, so what is measured can't be compared with it.";
      if (waits(place)) status.textContent += is_first_try(place) ? " Now make your own first try. What the recorded one came to stays folded until you open it."
        : " Now make your own run. The recorded run stays folded until you write down a diagnosis, or open it.";
      else open(comes_after(place));
      if (kind === "diagnosis") open("prediction");
      tell_written(place);
    });
    if (kind === "answer") {
      // A long answer is lost neither with a tab that ends nor on the way to the button that saves all of them.
      field.addEventListener("input", () => keep(place, field.value.trim()));
      field.addEventListener("change", () => { status.textContent = keep(place, field.value.trim()); });
      const fold = field.value && place.closest("details");
      if (fold) fold.open = true;
    }
    document.addEventListener("measure-twice:forgotten", ({ detail: { lab } }) => {
      if (!place.dataset.case.startsWith(`${lab} `)) return;
      field.value = status.textContent = "";
      delete place.dataset.said;
    });
    place.append(form);
    if (field.value && !waits(place)) open(comes_after(place));
    if (kind === "diagnosis") {
      tell_solved(place);
      note_hints(place);
      ask_before_last_hint(place, field);
    }
    if (kind !== "prediction") return;
    // Who opened it by hand, after a run in a terminal or instead of one, finds it open again.
    for (const fold of document.querySelectorAll('details.behind[data-behind="prediction"]')) {
      fold.addEventListener("toggle", () => { if (fold.open && field.value.trim()) keep(place, "opened", "recorded"); });
    }
  });
} });
