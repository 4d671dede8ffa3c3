// "Run it here": a trial of the kit in this page, from its settings to a folder that can be handed in.
//
// <div class="here" data-here='{"lab": "mathis", "case": 5, "kind": "first", "likely_s": 33, "runs": 1}'></div>
// kind: "start", a lab's first try; "first", a case's; "fix", a student's own changes to it; "show", the case as it is fixed; "trials".
import { kept_names } from "./store.mjs";
import { all_loads, base, fetch_all, fetch_words, files_of, for_book, forget_written, has_written, hint_button, loads, megabytes, open_kit, SILENT, to_fetch, written } from "./page.mjs";
import { over_time } from "./over-time.mjs";
import { blocks, files_list, findings, table_of_runs } from "./render.mjs";

const { h } = window.measureTwice;
// Set-up and end, where this browser has not seen yet how long they are; and when flows have begun.
const SETTLE_S = 12;
// What takes longer than this is better run in a terminal.
const LONG_S = 600;
const MOST_RUNS = 10000;
const FLOWING_S = 8;
// Where nothing is to be done, virtual time leaps: a run that waits for what never comes is here within seconds.
const LIMIT_S = 3600;
const LIMIT_TIMES = 10;
const LEAST_SEEN_PX = 120;
// A worker that has said nothing for so long waits for what never comes; one that is begun anew doesn't.
const SILENT_MS = 30000;
const ALOUD_MS = 20000;
const PACE = "measure-twice/page-pace";
const SETTLES = "measure-twice/page-settles";
const BROKEN_OFF = "measure-twice/page-runs";

let running = null;

// The worker of the last trial, or of a rehearsal: what its machine has compiled makes the next trial faster.
let warm_worker = null;

function new_worker() {
  return new Worker(new URL("trial.mjs", base), { type: "module" });
}

function keep(worker) {
  warm_worker = worker;
  // Then the next trial has one of its own, which says why.
  const drop = () => {
    worker.terminate();
    if (warm_worker === worker) warm_worker = null;
  };
  worker.onerror = worker.onmessage = drop;
}

/** One trial; resolves to what the machine gave. `handle.cancel()` ends it. */
function run_trial(given, on_tick, handle) {
  return new Promise((resolve, reject) => {
    let worker = null;
    let silent = 0;
    const end = (finish, value) => { clearTimeout(silent); worker.terminate(); finish(value); };
    handle.cancel = () => end(reject, new Error("cancelled"));
    handle.give_up = (why) => end(reject, new Error(why));
    const begin = (with_worker) => {
      worker = with_worker;
      worker.onerror = (event) => end(reject, new Error(event.message || SILENT));
      worker.onmessage = ({ data }) => {
        clearTimeout(silent);
        if (data.seconds !== undefined) on_tick(data);
        else if (data.problem !== undefined) end(reject, new Error(data.problem));
        else {
          keep(worker);
          resolve(data);
        }
      };
      worker.postMessage({ base, machine: loads.machine, ...given });
    };
    begin(warm_worker || new_worker());
    warm_worker = null;
    silent = setTimeout(() => { worker.terminate(); begin(new_worker()); }, SILENT_MS);
  });
}

/** Run something short that nobody sees, so that v86 has compiled what a trial needs. */
async function rehearse(lab) {
  const { words, packs, files } = await (await fetch(new URL(`rehearsal-${lab}.json?${loads.machine.key}`, base))).json();
  if (warm_worker || running) return;
  const worker = new_worker();
  keep(worker);
  worker.postMessage({ base, machine: loads.machine, words, files, packs: files_of(packs), rehearsal: true });
}

const learnt = (key) => Number(localStorage.getItem(key)) || null;
// How many times what was thought likely this browser takes.
const pace_of_all = () => learnt(PACE) ?? 1;
/** How many seconds a run will still take; null until enough of it is seen. Before the flows begin its clock leaps or stands. */
function left_of(virtual_s) {
  let since = null;
  return (seconds) => {
    const now = performance.now();
    if (seconds < FLOWING_S) return null;
    since ||= { seconds, now };
    if (seconds - since.seconds < 2 || seconds >= virtual_s) return null;
    return ((virtual_s - seconds) * (now - since.now)) / 1e3 / (seconds - since.seconds);
  };
}

function roughly(seconds) {
  if (seconds < 90) return `${Math.max(5, 5 * Math.round(seconds / 5))} seconds`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} minutes`;
  return `${+(seconds / 3600).toPrecision(2)} hours`;
}

function kept_answer(asked, kind) {
  try {
    return localStorage.getItem(`measure-twice/${asked.lab} ${asked.case}/${kind}`) || "";
  } catch {
    return "";
  }
}

const INTRODUCTION = {
  fix: "Change a setting here, or the number of runs, and run it in this page. The list has the usual settings. The others are named once you have written down your diagnosis.",
  trials: "A Linux kernel in this page makes the run.",
  start: "A Linux kernel in this page makes your first try.",
};

/** Save all that this browser keeps of a lab as one archive; `done` says what came of it. */
async function save(lab, done) {
  done.textContent = "Packing all runs of this lab, the lab book and a report.";
  try {
    const answers = written(lab, "answer");
    const { name, bytes, runs, live, report } = await (await open_kit()).call("save", { lab, ...for_book(lab), answers });
    const link = h("a", { href: URL.createObjectURL(new Blob([bytes], { type: "application/zip" })), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    const counted = (number, singular, plural) => (number === 1 ? `1 ${singular}` : number ? `${number} ${plural}` : "");
    const what = [counted(runs, "run", "runs"), counted(live, "time at live terminals", "times at live terminals"), "your lab book", report ? "report.html" : ""].filter(Boolean);
    const many = Object.values(answers).filter(Boolean).length;
    const of_questions = !report ? "" : many ? ` Your answers to ${many === 1 ? "1 question are" : `${many} questions are`} in the report.` : " The report asks questions: answer them on the module's page Questions, and save again.";
    done.textContent = `Saved as ${name}: ${what.slice(0, -1).join(", ")}${what[1] ? " and " : ""}${what.at(-1)}.${of_questions} Hand it in where your course collects work.`;
  } catch (error) {
    done.textContent = `It can't be saved: ${error.message}`;
  }
}

/** Which panel of this tab's page has a run going; null where none has any more. */
function note_going(panel) {
  try {
    if (panel) sessionStorage.setItem(BROKEN_OFF, `${location.pathname} ${panel.number}`);
    else sessionStorage.removeItem(BROKEN_OFF);
  } catch { /* this browser keeps nothing */ }
}

/** Had it one when the page was left? True once. */
function was_going(panel) {
  try {
    if (sessionStorage.getItem(BROKEN_OFF) !== `${location.pathname} ${panel.number}`) return false;
  } catch {
    return false;
  }
  note_going(null);
  return true;
}

class Panel {
  constructor(place, number) {
    this.place = place;
    this.asked = JSON.parse(place.dataset.here);
    this.number = number;
    this.says = h("p", { class: "here-says" });
    // What a screen reader says: what changes many times a second isn't in it.
    this.aloud = h("p", { class: "here-aloud", role: "status" });
    this.bar = h("progress", { hidden: true, "aria-label": "How far the run has come" });
    this.run = h("button", { type: "button", class: "md-button md-button--primary", onclick: () => this.start() }, "Run it here");
    this.stop = h("button", { type: "button", class: "md-button", hidden: true, onclick: () => this.cancel() }, "Cancel");
    this.save_buttons = h("div", { class: "here-buttons" });
    this.dealt = h("p", { class: "here-said", role: "status" });
    this.results = h("div", { class: "here-results" });
    // What is said of runs below their table stands there.
    this.done = h("p", { class: "here-says", role: "status" });
    this.settings = h("div", { class: "here-settings" });
    this.rows = h("div", {});
    const whole = (name, min, max, placeholder) => h("input", { type: "number", min, max, step: 1, id: this.id(name), placeholder });
    this.seed = whole("seed", 0, 2147483647, this.asked.case ? "your own" : "1");
    this.repeat = whole("repeat", 1, MOST_RUNS, "1");
    const buttons = h("div", { class: "here-buttons" }, this.run, this.stop);
    const goes = [this.dealt, this.bar, this.says, this.aloud];
    // Where nothing has to be chosen the button comes first, and what may be chosen is folded.
    const head = ["first", "show"].includes(this.asked.kind)
      ? [buttons, ...goes, h("details", { class: "here-more" }, h("summary", {}, "Seed, and how many runs"), this.settings)]
      : [h("p", {}, INTRODUCTION[this.asked.kind]), this.settings, buttons, ...goes];
    place.classList.toggle("here--first", this.asked.kind === "first");
    place.replaceChildren(...head, this.results, this.save_buttons, this.done);
  }

  async prepare() {
    try {
      await all_loads();
    } catch (error) {
      this.run.disabled = true;
      this.refuse(`It can't run here: ${error.message}.`);
      return;
    }
    const field = (name, label, input) => h("div", { class: "here-field" }, h("label", { for: this.id(name) }, label), input);
    this.settings.replaceChildren(this.rows);
    if (this.asked.kind === "fix" || this.asked.kind === "trials") this.settings.append(this.adder());
    if (this.asked.kind === "fix") {
      this.add_row();
      this.predicted = h("input", { id: this.id("predicted"), autocomplete: "off", class: "here-long" });
      this.settings.append(field("predicted", `Your prediction: ${this.asked.quantity}`, this.predicted));
    }
    for (const [setting, value] of Object.entries(this.asked.preset || {})) this.add_row(setting, value);
    // A first try is as the lab book has it.
    if (this.asked.kind !== "start") this.settings.append(field("seed", "Seed, where all randomness starts", this.seed));
    // A case is shown with as many runs as its fix has.
    if (!["show", "start"].includes(this.asked.kind)) this.settings.append(field("repeat", `How many runs${this.asked.runs > 1 ? " of each trial" : ""}, with this seed and those after it`, this.repeat));
    // How long it takes, and what a terminal is to be told, follows from what is filled in.
    this.settings.addEventListener("input", () => this.tell());
    if (this.asked.dealt) this.run.after(this.offer_dealt());
    await this.offer_kept();
    await this.tell();
    this.tell_broken_off();
    this.get_ready();
  }

  /** A run ends with its page: where this one was reloaded in the middle, that is said. */
  tell_broken_off() {
    if (!was_going(this)) return;
    this.says.textContent = `The run that was going when you left this page ended with it, and nothing of it is kept. ${this.says.textContent}`;
  }

  /** Python takes seconds to start, the machine to become fast, and a reader to press the button: where all is kept already, both begin as the panel is seen. */
  get_ready() {
    const observer = new IntersectionObserver(async (entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      if ((await to_fetch(this.asked.packs)).length) return;
      try {
        await Promise.all([open_kit(), rehearse(this.asked.lab)]);
      } catch { /* pressed, the button says why */ }
    });
    observer.observe(this.run);
  }

  /** Which values the reader's own run has, before a prediction is made of it: Python deals them. */
  offer_dealt() {
    const look = async () => {
      button.disabled = true;
      this.step("Starting Python. A few seconds.");
      try {
        const { lab, case: number } = this.asked;
        const { says } = await (await open_kit()).ask("dealt", { lab, case: number, ...(this.seed.value !== "" && { seed: Number(this.seed.value) }) });
        this.dealt.textContent = says;
        await this.tell();
      } catch (error) {
        this.refuse(`They aren't known, because ${error.message}`);
      }
      button.disabled = false;
    };
    const button = h("button", { type: "button", class: "md-button here-small", onclick: look }, "My run’s values");
    return button;
  }

  /** What this browser keeps of the lab: shown, saved or forgotten where the reader asks for it, since Python must be started for that. */
  async offer_kept() {
    this.save_buttons.replaceChildren();
    const { lab, kind } = this.asked;
    const begins = kind === "trials" ? "trial-" : kind === "start" ? "start/" : `case-${String(this.asked.case).padStart(2, "0")}-`;
    const names = await kept_names(lab).catch(() => []);
    const are_mine = kind !== "show" && names.some((name) => name.startsWith(`${lab}/${begins}`));
    const of_lab = panels.filter((panel) => panel.asked.lab === lab);
    const is_first = of_lab[0] === this;
    if (this.shown || !names.length || !(is_first || (are_mine && ["trials", "start"].includes(kind)))) return;
    const look = async () => {
      button.disabled = true;
      this.step("Starting Python. A few seconds.");
      try {
        const kit = await open_kit();
        // All of them in one list, here.
        this.shows_all = true;
        await this.show(kit, []);
        await this.tell();
      } catch (error) {
        button.disabled = false;
        this.refuse(`They can't be shown: ${error.message}`);
      }
    };
    const button = h("button", { type: "button", class: "md-button here-small", onclick: look }, "Show my earlier runs");
    this.save_buttons.replaceChildren(...(are_mine ? [button] : []), ...this.save_and_forget());
  }

  save_and_forget() {
    const button = (text, work) => h("button", { type: "button", class: "md-button here-small", onclick: work }, text);
    return [button("Save my runs", () => this.save()), button("Forget my runs", () => this.forget())];
  }

  about() {
    return `${this.asked.lab} ${this.asked.case || this.asked.trials} ${this.asked.kind}`;
  }

  /** How many times what was thought likely: of these very runs, or else of all so far. */
  pace() {
    return learnt(`${PACE}/${this.about()}`) ?? pace_of_all();
  }

  /** What comes before and after the measurement itself, by the experiment's clock: in these very runs, or else in the lab's last. */
  settle_s() {
    return learnt(`${SETTLES}/${this.about()}`) ?? learnt(`${SETTLES}/${this.asked.lab}`) ?? SETTLE_S;
  }

  learn(job, took_s, virtual_s) {
    const times = took_s * this.asked.runs / this.asked.likely_s;
    try {
      // With other settings a run is longer or shorter for another reason than this computer.
      if (!this.changes().length) localStorage.setItem(PACE, String((pace_of_all() + times) / 2));
      localStorage.setItem(`${PACE}/${this.about()}`, String(times));
      for (const scope of [this.about(), this.asked.lab]) localStorage.setItem(`${SETTLES}/${scope}`, String(virtual_s - job.duration_s));
    } catch { /* nothing is learnt then */ }
  }

  id(name) {
    return `here-${this.number}-${name}`;
  }

  /** How many runs there are to be for each that the case has by itself; those that are measured already are among them. */
  times() {
    return this.repeat.checkValidity() ? Number(this.repeat.value) || 1 : 1;
  }

  async tell() {
    const fetching = await fetch_words(this.asked.packs);
    if (running === this) return;
    this.says.classList.remove("here-wrong");
    const runs = this.asked.runs * this.times();
    const takes_s = this.asked.likely_s * this.times() * this.pace();
    this.told = this.says.textContent = `${fetching}${runs > 1 ? `These ${runs} runs take` : "A run takes"} about ${roughly(takes_s)}.`;
    if (takes_s < LONG_S) return;
    this.says.append(" That is long for a page. A terminal is quicker: ", h("code", {}, this.command()), ". It makes runs of its own, so make all of them there. "
      + "If you run them here nevertheless, each run that is finished is kept: should you cancel, or close this page, press the button again, and it goes on with the rest.");
  }

  /** What does the same in a terminal. */
  command() {
    const { lab, kind, trials } = this.asked;
    if (kind === "start") return `./lab start ${lab}`;
    const what = kind === "trials" ? `--trials ${trials}` : `--case ${this.asked.case}`;
    const option = (name, input) => (input.value !== "" && input.checkValidity() ? ` --${name} ${Number(input.value)}` : "");
    const changes = this.changes().map((change) => ` --set ${/[^\w.=:,+/-]/.test(change) ? `'${change.replaceAll("'", "'\\''")}'` : change}`).join("");
    return `./lab run ${lab} ${what}${kind === "show" ? " --show-me" : ""}${changes}${option("seed", this.seed)}${option("repeat", this.repeat)}`;
  }

  // --- settings ----------------------------------------------------------------------------------

  adder() {
    const words = this.asked.kind === "fix" ? "One more setting" : "Change a setting";
    return h("button", { type: "button", class: "md-button here-small", onclick: () => this.add_row().focus() }, words);
  }

  /** The settings that a list names: once the page's diagnosis is open, those that the case is about, too. */
  parameters() {
    const also = told_fold()?.open && told_fold().querySelector(".here-also");
    return { ...loads.parameters[this.asked.lab], ...(also && JSON.parse(also.dataset.also)) };
  }

  add_row(setting = "", chosen = "") {
    const number = this.rows.children.length;
    const says = h("span", { class: "here-help", id: this.id(`help-${number}`) });
    const value = h("input", { id: this.id(`value-${number}`), value: chosen, "aria-describedby": this.id(`help-${number}`), size: 10, autocomplete: "off" });
    const names = h("datalist", { id: this.id(`names-${number}`) });
    const name = h("input", { id: this.id(`name-${number}`), value: setting, list: names.id, class: "here-name", "aria-describedby": says.id, size: 20, autocomplete: "off",
      autocapitalize: "none", spellcheck: "false", placeholder: "its name", oninput: () => tell() });
    const tell = () => {
      const parameters = this.parameters();
      const usual = Object.keys(parameters).sort();
      names.replaceChildren(...usual.map((option) => h("option", { value: option })));
      const parameter = parameters[name.value];
      value.placeholder = parameter && parameter.default !== null ? String(parameter.default) : "";
      const matches = usual.filter((option) => option.includes(name.value));
      says.textContent = parameter ? [parameter.help, bounds(parameter)].filter(Boolean).join("; ")
        : matches.length ? `The usual ones${name.value ? ` with “${name.value}”` : ""}: ${matches.join(", ")}.`
          : `None of the usual ones has “${name.value}” in its name: ${usual.join(", ")}. Try it anyway: if no setting has that name, you are told the nearest.`;
    };
    tell();
    told_fold()?.addEventListener("toggle", tell);
    const labelled = (text, control) => h("span", {}, h("label", { for: control.id }, text), control);
    this.rows.append(h("div", { class: "here-field here-setting" }, labelled("Setting", name), names, labelled("Value", value), says));
    return name;
  }

  /** As --set takes them: a name with nothing after the = takes a setting away that isn't set by itself. */
  changes() {
    return [...this.rows.children].map((row) => [...row.querySelectorAll("input")].map((input) => input.value.trim()))
      .filter(([name]) => name).map(([name, value]) => `${name}=${value}`);
  }

  // --- running -----------------------------------------------------------------------------------

  async start() {
    if (running) {
      this.refuse("This page is running something already. Wait for it, or cancel it.");
      return;
    }
    const request = this.request();
    if (!request) return;
    running = this;
    this.handle = {};
    this.made = 0;
    this.done.textContent = "";
    this.run.disabled = true;
    this.stop.hidden = this.bar.hidden = false;
    note_going(this);
    try {
      await this.work(request);
    } catch (error) {
      if (this.made) await this.show(await open_kit(), []).catch(() => {});
      if (error.message === "cancelled") this.step("Cancelled. Runs that were finished are kept.");
      else this.refuse(`It didn't work: ${error.message.replace(/^--set \S+: /, "")}`);
    } finally {
      running = null;
      note_going(null);
      const had_focus = this.stop === document.activeElement;
      this.run.disabled = false;
      if (had_focus) this.run.focus();
      this.stop.hidden = this.bar.hidden = true;
      document.title = this.title || document.title;
      await this.offer_kept();
    }
  }

  request() {
    const { lab, kind, trials } = this.asked;
    const request = { lab, changes: this.changes() };
    if (kind === "trials") request.trials = trials;
    else if (kind === "start") return { lab, predicted: this.kept_prediction() };
    else Object.assign(request, { case: this.asked.case, show_me: kind === "show", predicted: this.predicted ? this.predicted.value.trim() : this.kept_prediction() });
    if (!this.seed.checkValidity()) {
      this.refuse(`The seed is a whole number from ${this.seed.min} to ${this.seed.max}.`);
      this.seed.focus();
      return null;
    }
    if (this.seed.value !== "") request.seed = Number(this.seed.value);
    if (!this.repeat.checkValidity()) {
      this.refuse(`The number of runs is a whole number from ${this.repeat.min} to ${this.repeat.max}.`);
      this.repeat.focus();
      return null;
    }
    if (this.repeat.value !== "") request.repeat = Number(this.repeat.value);
    if (kind === "fix" && !request.changes.length && !request.repeat) {
      this.refuse("Change something first: choose a setting, and give it a value, or choose the number of runs.");
      return null;
    }
    return request;
  }

  /** What was written down on the page, of the case or of the first try. */
  kept_prediction() {
    return kept_answer(this.asked.kind === "start" ? { ...this.asked, case: "start" } : this.asked, "prediction");
  }

  cancel() {
    this.step("Cancelled: one moment.");
    if (this.handle.cancel) this.handle.cancel();
    else this.handle.cancelled = true;
  }

  still_wanted() {
    if (this.handle.cancelled) throw new Error("cancelled");
  }

  refuse(text) {
    this.says.textContent = this.aloud.textContent = text;
    this.says.classList.add("here-wrong");
  }

  step(text, share) {
    this.says.textContent = text;
    if (share === undefined || share >= 1 || performance.now() - this.said_at > ALOUD_MS) {
      this.aloud.textContent = text;
      this.said_at = performance.now();
    }
    this.says.classList.remove("here-wrong");
    if (share === undefined) this.bar.removeAttribute("value");
    else this.bar.value = Math.min(1, share);
  }

  async work(request) {
    this.title = document.title;
    const todo = await to_fetch(this.asked.packs);
    if (todo.length) {
      const size = megabytes(todo);
      await fetch_all(this.asked.packs, (share) => this.step(`Fetching ${size} MB, once: ${Math.round(100 * share)} %`, share));
    }
    this.still_wanted();
    this.step("Starting Python, which plans the run and reads its output. A few seconds.");
    const kit = await open_kit();
    this.still_wanted();
    const plan = await kit.ask(this.asked.kind === "start" ? "plan_first_try" : "plan", request);
    this.dealt.textContent = plan.dealt;
    const folders = plan.jobs.map((job) => job.folder);
    const measured = plan.jobs.every((job) => job.finished);
    this.ended = this.asked.kind === "fix" ? "Done. Is the case solved? Press “Is something off?”." : "Done.";
    for (let jobs = plan.jobs; jobs.length;) {
      const todo = jobs.filter((job) => !job.finished);
      for (const [n, job] of todo.entries()) await this.trial(kit, job, { number: jobs.indexOf(job) + 1, of: jobs.length, done: n, todo: todo.length });
      const end = await kit.ask("finish", {}, this.asked.lab);
      jobs = end.jobs || [];
      folders.push(...jobs.map((job) => job.folder));
      this.outcome = end.said;
    }
    await this.show(kit, folders);
    this.step(measured ? "Measured already: with the same seed and settings the result would be the same, byte for byte." : this.ended, 1);
    for (const other of panels) {
      if (other === this) continue;
      // What was shown on a return is in this list now.
      if (other.asked.lab === this.asked.lab) other.shows_all = false;
      // What it said before was of what isn't fetched yet, or of what was tried before this run.
      if (!other.shown || other.says.classList.contains("here-wrong")) await other.tell();
      if (other.shown && other.asked.lab === this.asked.lab) await other.show(kit, []);
    }
  }

  /** Run one trial, the one with this `number` among all; `done` of those that there are `todo` are behind it. */
  async trial(kit, job, { number, of, done, todo }) {
    const label = of > 1 ? `Run ${number} of ${of}` : "Running";
    const { is_made, is_kept, said: why, words, packs, files } = await kit.call("begin", { lab: this.asked.lab, folder: job.folder });
    if (is_made) {
      this.ended = why;
      return this.unkept_unless(is_kept);
    }
    this.still_wanted();
    const virtual_s = job.duration_s + this.settle_s();
    const left = left_of(virtual_s);
    const later = todo - done - 1;
    const likely_s = this.asked.likely_s / this.asked.runs * this.pace();
    const to_go = (left_s) => {
      if (later) return `, about ${roughly((left_s ?? likely_s) + later * likely_s)} to go for all of them`;
      return left_s === null ? "" : `, about ${roughly(left_s)} to go`;
    };
    const begun = performance.now();
    let held = 0;
    let reached_s = 0;
    const limit_s = LIMIT_S + LIMIT_TIMES * virtual_s;
    const tick = ({ seconds, held_s }) => {
      if (seconds > limit_s) {
        this.handle.give_up(`the experiment hadn't ended after ${Math.round(limit_s / 60)} minutes of its time, although ${virtual_s.toFixed(0)} s were likely. `
          + "A program waits for something that never arrives: perhaps no connection came up with these settings. Nothing was noted.");
        return;
      }
      held = held_s;
      reached_s = seconds;
      const paused = held ? ` This browser held the page for ${roughly(held)} while nobody saw it.` : "";
      const share = (done + Math.min(1, seconds / virtual_s)) / todo;
      const left_s = left(seconds);
      const at = seconds <= virtual_s
        ? `${seconds.toFixed(0)} of about ${virtual_s.toFixed(0)} s in the experiment${to_go(left_s)}`
        : `${seconds.toFixed(0)} s in the experiment, which takes longer than was likely`;
      this.step(`${label}: ${at}.${paused}`, share);
      document.title = document.hidden ? `${Math.round(100 * share)} % · ${this.title}` : this.title;
    };
    this.step(`${label}: starting the machine.`, todo > 1 ? done / todo : undefined);
    const { tar, said } = await run_trial({ words, files, packs: files_of(packs) }, tick, this.handle);
    this.handle.cancel = null;
    this.learn(job, (performance.now() - begun) / 1e3 - held, reached_s);
    this.step(todo > 1 ? `${label}: reading what the tools printed.` : "Reading what the tools printed.", todo > 1 ? (done + 1) / todo : undefined);
    const predicted = this.predicted ? "" : this.kept_prediction();
    this.unkept_unless(await kit.call("conclude", { lab: this.asked.lab, folder: job.folder, tar, said, predicted }, [tar.buffer]));
    this.made += 1;
  }

  unkept_unless(is_kept) {
    if (!is_kept) this.unkept = "This browser keeps no runs: save the folder before you leave the page.";
  }

  // --- looking -----------------------------------------------------------------------------------

  async show(kit, folders) {
    const { lab, kind, trials } = this.asked;
    const results = kind === "start" ? await kit.ask("first_try", { lab }) : await kit.ask("results", { lab, ...(kind === "trials" ? { trials } : { case: this.asked.case }) });
    const belongs = this.shows_all ? () => true : { first: (run) => !run.shown && !Object.keys(run.changes).length, show: (run) => run.shown, fix: () => true, trials: () => true, start: () => true }[kind];
    const runs = results.runs.filter(belongs);
    const left_out = results.left_out.map((line) => h("p", {}, line));
    if (!runs.length) {
      this.results.replaceChildren(...left_out);
      return;
    }
    this.shown = true;
    this.save_buttons.replaceChildren();
    if (!this.chosen || folders.length) this.chosen = folders.at(-1);
    const chosen = () => runs.find((run) => run.folder === this.chosen) || runs.at(-1);
    const detail = h("div", { class: "here-detail", tabIndex: -1 });
    const look = async (work, meanwhile = "One moment.") => {
      detail.replaceChildren(h("p", {}, meanwhile));
      try {
        const had_focus = document.activeElement === document.body;
        detail.replaceChildren(...[await work()].flat());
        // What was pressed is gone: a keyboard goes on from here.
        if (had_focus) detail.focus({ preventScroll: true });
      } catch (error) {
        detail.replaceChildren(h("p", {}, error.message));
      }
      window.measureTwice.names();
      // A long list that made room for something shorter has left the view above it.
      const { top } = detail.getBoundingClientRect();
      if (top < parseFloat(getComputedStyle(detail).scrollMarginTop) || top > innerHeight - LEAST_SEEN_PX) detail.scrollIntoView({ block: "start", behavior: "instant" });
    };
    const button = (text, work, meanwhile) => h("button", { type: "button", class: "md-button here-small", onclick: () => look(work, meanwhile) }, text);
    // A set of runs is one thing, a try is another.
    const checked = () => (this.asked.runs > 1 ? runs : [chosen()]);
    const reads = runs.length > 1 && this.asked.runs > 1 ? `One moment: what ${runs.length} runs printed is read again.` : undefined;
    const choose = runs.length > 1
      ? [h("label", { for: this.id("run") }, "Look at"), h("select", { id: this.id("run"), onchange: (event) => { this.chosen = event.target.value; detail.replaceChildren(); } },
        ...runs.map((run, n) => h("option", { value: run.folder, selected: run === chosen() }, `run ${n + 1}`)))]
      : [];
    this.results.replaceChildren(
      ...(this.outcome || "").split("\n").filter(Boolean).map((line) => h("p", { class: "here-said" }, line)),
      table_of_runs(results.headings, runs, results.asked),
      ...left_out,
      ...(this.unkept ? [h("p", {}, this.unkept)] : []),
      h("div", { class: "here-buttons" }, ...choose,
        button("What the tools printed", () => this.files(kit, chosen(), look)),
        button("Over time", async () => over_time(await kit.ask("over_time", { lab, folder: chosen().folder }))),
        // What is off in a first try, its cases ask.
        ...(kind === "start" ? [] : [button("Is something off?", () => this.check(kit, runs, checked(), null, look, reads), reads)]),
        ...this.save_and_forget()),
      this.done, detail);
  }

  async files(kit, run, look) {
    const { lab } = this.asked;
    const listing = await kit.ask("listing", { lab, folder: run.folder });
    const list = files_list(listing, (what) => look(async () => {
      const shown = await kit.ask("show", { lab, folder: run.folder, what });
      return [h("button", { type: "button", class: "md-button here-small", onclick: () => look(() => this.files(kit, run, look)) }, "All files"), ...blocks(what, shown)];
    }));
    return [h("p", {}, "A word shows values with their meanings; a file's name shows its text. A terminal has the same by ", h("code", {}, "./lab show"), "."), list];
  }

  async check(kit, runs, checked, hint, look, meanwhile) {
    const { lab } = this.asked;
    const answer = await kit.ask("check", { lab, folders: checked.map((run) => run.folder), hint });
    this.done.textContent = "";
    const next = answer.documents.some((document) => document.findings.length) && (hint || 0) < 3
      ? hint_button(this.asked, (hint || 0) + 1, () => look(() => this.check(kit, runs, checked, (hint || 0) + 1, look, meanwhile), meanwhile))
      : [];
    return [...findings(answer, runs), ...next, ...(next.length && this.asked.case ? [h("p", {}, "Your lab book notes which hints you take.")] : [])];
  }

  async save() {
    await save(this.asked.lab, this.done);
  }

  /** On a computer that others use, too. */
  async forget() {
    const { lab } = this.asked;
    if (running) {
      this.done.textContent = "Something is running. Wait for it, or cancel it, before you forget runs.";
      return;
    }
    if (!confirm(`Delete all your runs, the lab book and what you wrote on the pages of ${lab} from this browser? Runs that you saved stay where you saved them.`)) return;
    try {
      await (await open_kit()).call("forget", { lab });
    } catch (error) {
      this.done.textContent = `They can't be forgotten: ${error.message}`;
      return;
    }
    forget_written(lab);
    for (const panel of panels) {
      if (panel.asked.lab !== lab) continue;
      panel.clear();
      await panel.tell();
    }
    this.done.textContent = "Forgotten.";
  }

  clear() {
    this.shown = false;
    this.chosen = this.outcome = null;
    this.results.replaceChildren();
    this.save_buttons.replaceChildren();
    this.results.after(this.save_buttons, this.done);
    this.done.textContent = "";
  }
}

const told_fold = () => document.querySelector('details.behind[data-behind="diagnosis"]');

function bounds({ unit, min, max, choices, default: usual }) {
  if (choices) return `one of ${choices.join(", ")}`;
  const range = min !== null && max !== null ? `${min} to ${max}` : min !== null ? `at least ${min}` : max !== null ? `at most ${max}` : "";
  return [range && `${range}${unit && unit !== range ? ` ${unit}` : ""}`, usual === null ? "not set by default; an empty value takes it away" : ""].filter(Boolean).join(", ");
}

const panels = [];

/** Below a lab's questions: save what this browser keeps of it. */
async function fill_hand_in(place) {
  const { lab } = JSON.parse(place.dataset.here);
  const done = h("p", { class: "here-says", role: "status" });
  const button = h("button", { type: "button", class: "md-button md-button--primary", onclick: () => save(lab, done) }, "Save my runs and answers");
  const names = await kept_names(lab).catch(() => []);
  const [can, why] = await all_loads().then(() => [names.length > 0 || has_written(lab), ""], (error) => [false, ` It can't save here: ${error.message}.`]);
  button.disabled = !can;
  place.replaceChildren(
    h("p", {}, `One archive has all runs of this lab that this browser keeps, the lab book, and the report with your answers.${can || why ? "" : " It keeps none yet, so run a case on its page."}${why}`),
    h("div", { class: "here-buttons" }, button), done);
}

/** Fill in all places of a page; nothing is fetched before its button is pressed, but what there is to fetch. */
export function fill(places) {
  for (const place of places) {
    if (JSON.parse(place.dataset.here).kind === "hand-in") {
      fill_hand_in(place);
      continue;
    }
    const panel = new Panel(place, panels.length);
    panels.push(panel);
    panel.prepare();
  }
}

// Another tab may have fetched everything meanwhile, or learnt how long a run takes here.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  for (const panel of panels) if (panel.told && panel.says.textContent.startsWith(panel.told)) panel.tell();
});

addEventListener("beforeunload", (event) => {
  if (running) event.preventDefault();
});
