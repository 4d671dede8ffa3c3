// The lab book of a page: a field for the prediction, and one for the diagnosis. What is written stays in
// this browser, and opens what comes after it; where a reader runs the case in this page, what was recorded waits for
// that run. Without scripts there is no field, and all folds still open.
window.measureTwice = Object.assign(window.measureTwice || {}, { notebook(places) {
  "use strict";
  const address = (place) => `measure-twice/${place.dataset.case}/${place.dataset.kind}`;

  function kept(place) {
    try {
      return localStorage.getItem(address(place)) || "";
    } catch {
      return "";
    }
  }

  function keep(place, text) {
    try {
      localStorage.setItem(address(place), text);
      return "Written down, in this browser.";
    } catch {
      return "This browser keeps nothing. Write it down on paper as well.";
    }
  }

  // Is the way chosen that runs it in this page? Of tabs only the chosen one is laid out.
  const runs_here = () => location.protocol !== "file:" && [...document.querySelectorAll(".here[data-here]")]
    .some((each) => JSON.parse(each.dataset.here).kind === "first" && each.offsetParent);

  function measured(place) {
    try {
      return Boolean(localStorage.getItem(`measure-twice/${place.dataset.case}/measured`));
    } catch {
      return false;
    }
  }

  const waits = (place) => place.dataset.kind === "prediction" && runs_here() && !measured(place);

  function open(kind) {
    for (const fold of document.querySelectorAll(`details.behind[data-behind="${kind}"]`)) fold.open = true;
  }

  places.forEach((place, n) => {
    const { kind, asked, quantity } = place.dataset;
    const form = document.createElement("form");
    const label = document.createElement("label");
    const field = document.createElement(kind === "prediction" ? "input" : "textarea");
    const button = document.createElement("button");
    const status = document.createElement("span");
    field.id = `notebook-${n}`;
    field.value = kept(place);
    field.autocomplete = "off";
    if (kind !== "prediction") field.rows = 3;
    label.htmlFor = field.id;
    label.textContent = kind === "prediction" ? quantity ? `Your prediction: ${quantity}` : "Your prediction, with its unit" : "Your diagnosis";
    field.setAttribute("aria-description", asked || "");
    button.className = "md-button";
    button.textContent = "Write it down";
    status.setAttribute("role", "status");
    form.append(label, field, button, status);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (!field.value.trim()) {
        status.textContent = "Write something first, or open what follows without it.";
        return;
      }
      status.textContent = keep(place, field.value.trim());
      if (waits(place)) status.textContent += " What was recorded opens after your own run, below.";
      else open(kind);
      document.dispatchEvent(new CustomEvent("measure-twice:written", { detail: { lab: place.dataset.case.split(" ")[0] } }));
    });
    document.addEventListener("measure-twice:measured", ({ detail: { about } }) => {
      if (about === place.dataset.case && kind === "prediction" && field.value) open(kind);
    });
    document.addEventListener("measure-twice:forgotten", ({ detail: { lab } }) => {
      if (place.dataset.case.startsWith(`${lab} `)) field.value = status.textContent = "";
    });
    place.append(form);
    if (field.value && !waits(place)) open(kind);
  });
} });
