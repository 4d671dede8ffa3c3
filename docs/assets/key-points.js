// The page of all key points: a field that leaves only the cards with these words, and opens their folds. The site's own
// search doesn't know this page, because each card names a cause.
window.measureTwice = Object.assign(window.measureTwice || {}, { key_points(place) {
  "use strict";
  const cards = [...place.querySelectorAll(".key-point")];
  const folds = [...place.querySelectorAll(":scope > details")];
  const form = document.createElement("form");
  form.className = "key-points__find";
  form.setAttribute("role", "search");
  form.setAttribute("aria-label", "Key points");
  form.innerHTML = '<label for="find-key-point">Find a key point</label> <input id="find-key-point" type="search" autocomplete="off" placeholder="retransmissions"> <span role="status"></span>';
  const [field, status] = [form.querySelector("input"), form.querySelector("span")];
  const find = () => {
    const words = field.value.toLowerCase().match(/\S+/g) || [];
    for (const card of cards) {
      const text = card.textContent.toLowerCase();
      card.hidden = !words.every((word) => text.includes(word));
    }
    for (const fold of folds) {
      const left = fold.querySelector(".key-point:not([hidden])");
      fold.open = Boolean(words.length && left);
    }
    const found = cards.filter((card) => !card.hidden).length;
    status.textContent = words.length ? `${found} of ${cards.length} cases` : "";
  };
  field.addEventListener("input", find);
  form.addEventListener("submit", (event) => event.preventDefault());
  place.prepend(form);
} });
