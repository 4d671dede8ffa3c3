// What the interactive figures share: elements, and numbers as the pages' filters write them.
window.measureTwice = (() => {
  "use strict";
  const SPACE = "\u00a0";
  const THIN = "\u202f";

  // h("p", { class: "x", onclick: f }, "text", child): an element.
  function h(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (typeof value === "function") element.addEventListener(key.slice(2), value);
      else if (value === true) element.setAttribute(key, "");
      else if (value !== false && value !== undefined) element.setAttribute(key, value);
    }
    element.append(...children.filter((child) => child !== null));
    return element;
  }

  // s("line", { x1: 0 }, "text"): an element of a drawing.
  function s(name, attributes = {}, text) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    return element;
  }

  function grouped(text) {
    const [whole, part] = text.split(".");
    const groups = whole.length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, THIN) : whole;
    return part === undefined ? groups : `${groups}.${part}`;
  }

  // As docs_filters.sig: so many significant digits, never an exponent; whole numbers stay whole.
  function sig(value, digits = 3) {
    if (!Number.isFinite(value)) return value > 0 ? "∞" : String(value);
    if (value === 0) return "0";
    const places = digits - 1 - Math.floor(Math.log10(Math.abs(value)));
    const whole = Math.abs(value - Math.round(value)) <= 1e-9 * Math.abs(value);
    const rounded = places < 0 ? Math.round(value / 10 ** -places) * 10 ** -places : value;
    return grouped(rounded.toFixed(whole ? 0 : Math.min(100, Math.max(places, 0))));
  }

  function seconds(value) {
    for (const [size, unit] of [[3600, "hours"], [60, "minutes"]]) {
      if (value >= 2 * size) return `${sig(value / size)}${SPACE}${unit}`;
    }
    return `${sig(value)}${SPACE}s`;
  }

  return {
    h,
    s,
    sig,
    // What was set, as it was set.
    plain: (value) => String(Number(value.toPrecision(6))),
    seconds,
    // Of Mbit/s.
    mbit: (value) => `${sig(value)}${SPACE}Mbit/s`,
    ms: (value) => `${sig(value, 4)}${SPACE}ms`,
    bytes: (value) => `${sig(value, 4)}${SPACE}B`,
    count: (value) => grouped(value.toFixed(0)),
    plural: (number, singular, many = `${singular}s`) => `${number} ${number === 1 ? singular : many}`,
    still: () => matchMedia("(prefers-reduced-motion: reduce)").matches,
  };
})();
