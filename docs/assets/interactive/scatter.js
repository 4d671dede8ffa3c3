// The home page's picture: its marks are drawn already, and move to the next step when the reader asks for it.
(() => {
  "use strict";
  const { h } = measureTwice;

  measureTwice.scatter = (live, data) => {
    const place = live.parentElement;
    const marks = [...place.querySelectorAll(".marks > circle")];
    const { low, high } = place.dataset;
    let at = 0;
    const count = h("strong", { class: "count" });
    const on = h("button", { type: "button", class: "md-button md-button--primary", onclick: () => go((at + 1) % data.steps.length) });
    const status = h("p", { class: "said", role: "status" });

    function go(n) {
      at = n;
      const step = data.steps[n];
      marks.forEach((mark, i) => {
        const y = step.y[i];
        mark.classList.toggle("in", step.within[i] === "1");
        mark.classList.toggle("out", y === null);
        if (y !== null) mark.style.transform = `translate(${data.x[i]}px,${y}px)`;
      });
      const inside = [...step.within].filter((flag) => flag === "1").length;
      count.textContent = `${inside} of ${step.of}`;
      const left = data.x.length - step.of;
      status.replaceChildren(count, ` connections reach ${low} to ${high} times what the model predicts, which is the shaded band. `,
        h("span", { class: "when" }, `${step.after[0].toUpperCase()}${step.after.slice(1)}${step.page ? ": " : "."}`,
          ...(step.page ? [h("a", { href: step.page }, step.case.replace(/^Case \d+: /, "")), "."] : []),
          left ? ` The other ${left} weren't run at this step.` : ""));
      on.textContent = n < data.steps.length - 1 ? "Fix the next mistake" : "Back to the first try";
    }
    live.append(on, status);
    go(0);
  };
})();
