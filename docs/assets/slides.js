// A page of slides, shown one at a time: <div class="slides"></div>, and each second-level heading behind it begins one.
// Without this the page reads from top to bottom. An admonition "say" is for the speaker.
(() => {
  "use strict";
  const root = document.documentElement;
  const SMALLEST = .5; // to this of its size a slide may shrink that is too full
  let slides, bar, count, now = 0, opener = null;

  // Every slide becomes a section that its heading names.
  function cut(place) {
    const sections = [];
    for (let next = place.nextElementSibling; next;) {
      const element = next;
      next = element.nextElementSibling;
      if (element.tagName === "H2") {
        const slide = document.createElement("section");
        slide.className = `slide ${element.className}`;
        slide.setAttribute("aria-labelledby", element.id);
        element.tabIndex = -1;
        element.before(slide);
        sections.push(slide);
      }
      if (sections.length) sections.at(-1).append(element);
    }
    for (const image of place.parentElement.querySelectorAll(".slide img")) {
      image.loading = "eager";
      image.addEventListener("load", fit);
    }
    return sections;
  }

  function button(text, help, act) {
    const element = document.createElement("button");
    element.type = "button";
    element.className = "md-button";
    element.textContent = text;
    if (help) element.title = help;
    element.addEventListener("click", act);
    return element;
  }

  const presenting = () => root.classList.contains("presenting");

  function show(number) {
    now = Math.max(0, Math.min(slides.length - 1, number));
    slides.forEach((slide, n) => slide.classList.toggle("shown", n === now));
    const heading = slides[now].querySelector("h2");
    count.textContent = `${now + 1} of ${slides.length}`;
    history.replaceState(null, "", `#${heading.id}`);
    fit();
    slides[now].scrollTop = 0;
    // Said by a screen reader, and where Tab goes on from.
    heading.focus({ preventScroll: true });
  }

  // A slide with more than fits is set smaller, and so is one with a line of code that is too long.
  function fit() {
    if (!presenting()) return;
    const slide = slides[now], code = slide.querySelectorAll("pre > code");
    const full = () => slide.scrollHeight > slide.clientHeight + 1 || [...code].some((block) => block.scrollWidth > block.clientWidth + 1);
    let share = 1;
    do {
      root.style.setProperty("--slide", share.toFixed(2));
      share -= .05;
    } while (share > SMALLEST && full());
  }

  function present(number) {
    opener = document.activeElement;
    root.classList.add("presenting");
    document.body.append(bar);
    show(number);
  }

  function end() {
    if (document.fullscreenElement) document.exitFullscreen();
    root.classList.remove("presenting", "with-notes");
    bar.remove();
    slides[now].scrollIntoView();
    if (opener) opener.focus({ preventScroll: true });
  }

  function full() {
    if (document.fullscreenElement) document.exitFullscreen();
    else if (root.requestFullscreen) root.requestFullscreen().catch(() => {});
  }

  function notes() {
    root.classList.toggle("with-notes");
    fit();
  }

  // Where the reader is, by the address or by how far the page is scrolled.
  function slideInView() {
    const named = slides.findIndex((slide) => slide.querySelector("h2").id === decodeURIComponent(location.hash.slice(1)));
    if (named >= 0) return named;
    return Math.max(0, slides.findLastIndex((slide) => slide.getBoundingClientRect().top < innerHeight / 2));
  }

  const KEYS = {
    ArrowRight: () => show(now + 1), ArrowDown: () => show(now + 1), PageDown: () => show(now + 1), " ": () => show(now + 1),
    ArrowLeft: () => show(now - 1), ArrowUp: () => show(now - 1), PageUp: () => show(now - 1), Backspace: () => show(now - 1),
    Home: () => show(0), End: () => show(slides.length - 1), n: notes, f: full, Escape: end,
  };

  function key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, [contenteditable]")) return;
    if (event.key === " " && event.target.closest("button, a, summary")) return;
    const act = presenting() ? KEYS[event.key] : event.key === "f" && (() => { present(slideInView()); full(); });
    // The theme's own keys lead to the search and to other pages.
    if (act || presenting()) event.stopImmediatePropagation();
    if (!act) return;
    event.preventDefault();
    act();
  }

  function paper(withNotes) {
    root.classList.toggle("with-notes", withNotes);
    window.print();
    root.classList.remove("with-notes");
  }

  function slidesOf(place) {
    slides = cut(place);
    count = document.createElement("span");
    bar = document.createElement("div");
    bar.className = "slides-bar md-typeset";
    bar.setAttribute("role", "group");
    bar.setAttribute("aria-label", "Slides");
    bar.append(
      button("Back", "Left arrow", () => show(now - 1)), button("Next", "Right arrow", () => show(now + 1)), count,
      button("Notes", "n", notes), button("Full screen", "f", full), button("End", "Escape", end),
    );
    place.append(
      button("Present", "f", () => present(slideInView())), " ",
      button("Print the slides", "", () => paper(false)), " ", button("Print with notes", "", () => paper(true)),
    );
    root.classList.add("has-slides");
    window.addEventListener("keydown", key, true);
    window.addEventListener("resize", fit);
  }
  window.measureTwice = Object.assign(window.measureTwice || {}, { slides: slidesOf });
})();
