// The lab book of a page: a field for the prediction, and one for the diagnosis. What is written stays in
// this browser, and opens what comes after it. Without scripts there is no field, and all folds still open.
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
      open(kind);
    });
    place.append(form);
    if (field.value) open(kind);
  });
} });
