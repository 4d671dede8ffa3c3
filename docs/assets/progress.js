// Which cases are solved and which are diagnosed, which is next, and how much time is left. A case is solved when the lab book of
// this browser's runs says so, or its question is answered right. One that is diagnosed may be solved in a terminal, so it
// isn't the next. A module without cases is done when its reader says so. Nothing of it leaves the browser.
window.measureTwice = Object.assign(window.measureTwice || {}, { progress(place) {
  "use strict";
  const { h } = window.measureTwice;
  const modules = JSON.parse(place.querySelector("script").textContent);
  const address = (module, about, kind) => `measure-twice/${module.name} ${about}/${kind}`;

  function stored_text(key) {
    try {
      return localStorage.getItem(key) || "";
    } catch {
      return "";
    }
  }

  function keep(key, text) {
    try {
      if (text) localStorage.setItem(key, text);
      else localStorage.removeItem(key);
    } catch { /* then it is forgotten with the page */ }
  }

  const has = (module, lab_case, ...kinds) => kinds.some((kind) => stored_text(address(module, lab_case.number, kind)));
  const solved = (module, lab_case) => has(module, lab_case, "solved", "judgement");
  const diagnosed = (module, lab_case) => solved(module, lab_case) || has(module, lab_case, lab_case.solved_by);
  const begun = (module, lab_case) => has(module, lab_case, "prediction", "diagnosis");
  const marked_done = (module) => Boolean(stored_text(address(module, "module", "done")));

  // A module's own minutes, for its front, its results and its questions, pass as its cases do.
  function state(module) {
    const open = module.cases.filter((lab_case) => !diagnosed(module, lab_case));
    const solved_cases = module.cases.filter((lab_case) => solved(module, lab_case)).length;
    const of = module.cases.length;
    const left = of ? open.length / of : Number(!marked_done(module));
    return {
      open, solved: solved_cases, diagnosed: of - open.length - solved_cases, of, finished: left === 0,
      left: left * module.minutes + open.reduce((sum, lab_case) => sum + lab_case.minutes, 0),
      began: module.cases.some((lab_case) => begun(module, lab_case) || diagnosed(module, lab_case)) || Boolean(stored_text(address(module, "start", "prediction"))),
    };
  }

  const time = (minutes) => (minutes < 90 ? `${Math.round(minutes / 10) * 10} minutes` : `${(Math.round(minutes / 30) / 2).toString().replace(".5", "½")} hours`);
  const says = h("p", { role: "status" });
  place.append(says);

  function next(states) {
    const n = states.findIndex((module_state) => !module_state.finished);
    if (n < 0) return ["All is done. ", h("a", { href: "../reference/checks/" }, "What else can go wrong"), "?"];
    const [module, module_state] = [modules[n], states[n]];
    if (!module_state.of || !module_state.began) return ["Next: ", h("a", { href: module.page, class: "next" }, module.title), "."];
    return [`Next in ${module.title}: `, h("a", { href: module_state.open[0].page, class: "next" }, module_state.open[0].title), "."];
  }

  function show() {
    const states = modules.map(state);
    const sum_of = (key) => states.reduce((sum, module_state) => sum + module_state[key], 0);
    const more = (count) => (count ? `, ${count} more diagnosed` : "");
    const left = states.reduce((sum, module_state) => sum + module_state.left, 0);
    says.replaceChildren(h("strong", {}, `${sum_of("solved")} of ${sum_of("of")} cases`), ` solved${more(sum_of("diagnosed"))}. `,
      ...(left ? [`About ${time(left)} are left. `] : []), ...next(states));
    modules.forEach((module, n) => {
      const module_state = states[n];
      for (const box of document.querySelectorAll(`[data-module="${module.name}"]`)) box.classList.toggle("done", module_state.finished);
      for (const link of document.querySelectorAll(`[data-cases="${module.name}"] a`)) {
        const lab_case = module.cases.find(({ number }) => String(number) === link.dataset.case);
        const now = solved(module, lab_case) ? "solved" : diagnosed(module, lab_case) ? "diagnosed" : begun(module, lab_case) ? "begun" : "";
        link.className = now;
        link.setAttribute("aria-label", [lab_case.title, now].filter(Boolean).join(", "));
      }
      for (const line of document.querySelectorAll(`[data-left="${module.name}"]`)) {
        if (!module_state.of) continue;
        const counted = `${module_state.solved} of ${module_state.of} cases solved${more(module_state.diagnosed)}`;
        const begun_here = module_state.solved + module_state.diagnosed > 0;
        line.textContent = module_state.finished ? `${module_state.diagnosed ? counted : "All cases solved"}.` : begun_here ? `${counted}, about ${time(module_state.left)} left.` : "";
      }
    });
  }

  // A module without cases has no diagnosis to count.
  for (const module of modules.filter((candidate) => !candidate.cases.length)) {
    for (const line of document.querySelectorAll(`[data-left="${module.name}"]`)) {
      const box = h("input", { type: "checkbox", id: `done-${module.name}`, onchange: () => { keep(address(module, "module", "done"), box.checked ? "yes" : ""); show(); } });
      box.checked = marked_done(module);
      line.append(box, h("label", { for: box.id }, "I have been through it"));
    }
  }
  show();
  // Another tab may write a diagnosis meanwhile.
  window.addEventListener("storage", show);
  window.addEventListener("pageshow", show);
} });
