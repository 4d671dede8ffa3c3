"""A case as a student plays it: its run, what the lab book gets of it, how a prediction compares.

And which trials and settings a request means, whether it was typed or chosen on a page.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from measuretwice.backends.browser import fitted
from measuretwice.base.errors import UserError
from measuretwice.base.files import read_object
from measuretwice.book.lab_book import NONE, Entry, LabBook
from measuretwice.book.prediction import (
    OF_ALL,
    Quantity,
    how_far_off,
    measured_by,
    number_of,
    number_text,
    of_one_run,
)
from measuretwice.execute.batch import Batch
from measuretwice.lab import (
    UNSET,
    Lab,
    OwnScripts,
    Plan,
    StageName,
    Value,
    select_trials,
    trial_params,
)
from measuretwice.lab.schema.cases import Again, Pitfall, Predict
from measuretwice.measure import fields
from measuretwice.measure.expectations import against_model
from measuretwice.runs.folder import PROVENANCE
from measuretwice.runs.result import Result

# The seed of the runs that pages show.
PAGES_SEED = 1
# Of more trials than that an outcome says the range of all values.
MOST_TRIALS = 3
# With so many seeds a trial is run at most.
MOST_RUNS = 10_000
NOT_MEASURED = "not measured"
# Questions that the model has a word on.
MODELLED = ("goodput_bps", "ratio")


@dataclass(frozen=True)
class PredictionCompared:
    """A prediction beside what was measured: the quantity's name, both values in words, and how far off it was.

    `off` is empty where that can't be said.
    """

    quantity: str
    predicted: str
    measured: str
    off: str


@dataclass(frozen=True)
class ModelAnswer:
    """What the model says to a case's question for a student's own settings, in bit/s."""

    settings: dict[str, float]
    constant: float
    bandwidth_bps: float


@dataclass(frozen=True)
class CaseRun:
    """One try at a case: the case, the seed, the lab book, and what the student changed.

    `varied` are the settings that the seed deals where the recorded run, which pages show, has other values.
    """

    lab: Lab
    number: int
    stage: StageName | None
    changes: Mapping[str, Value]
    book: LabBook
    own: OwnScripts | None = None
    varied: Mapping[str, Value] = field(default_factory=dict)
    seed: int = PAGES_SEED
    book_is_new: bool = False

    @property
    def pitfall(self) -> Pitfall:
        return self.lab.case(self.number)

    @property
    def recorded_values(self) -> dict[str, Value]:
        """Return the recorded run's values of the settings that vary."""
        trial, defaults = self.lab.trials[self.pitfall.trial].set, self.lab.defaults()
        return {name: trial.get(name, defaults[name]) for name in self.varied}

    def model_answer(self) -> ModelAnswer | None:
        """Return what the model says for the student's settings; None where the question isn't compared with it."""
        asked, model = self.pitfall.predict, self.lab.file.model
        if (
            model is None
            or not asked.compared
            or asked.value not in MODELLED
            or self.pitfall.trials
        ):
            return None
        params = trial_params(
            self.lab, self.pitfall.trial, case=self.number, seed=self.seed, changes=self.changes
        )
        predicted = against_model(model, params, {}).model
        if predicted is None or predicted.bandwidth_bps is None:
            return None
        settings = {name: float(params[name]) for name in (model.mss, model.rtt, model.loss)}
        return ModelAnswer(settings, model.constant, predicted.bandwidth_bps)

    def note_begun(self) -> None:
        """Note in the book what is known before anything is predicted: what was changed, or that the fixed run was asked for."""
        if self.stage:
            self.book.add(self.number, "Shown", "the fixed run, asked for with --show-me")
        elif self.changes or self.own is not None:
            self._note_once("Changed", changes_in_words(self.changes, self.own))

    def note_prediction(self, words: str) -> None:
        """Note in the book what was predicted, or that nothing was. Of a run shown fixed nothing is predicted."""
        if not self.stage:
            self._note_once("Prediction", words or NONE)

    def _note_once(self, kind: str, text: str) -> None:
        """Note it, unless a run that was begun for it, and broken off, has noted it already.

        That nothing was predicted is worth one line a case, and none where something was.
        """
        entries = self.book.notes(self.number).entries
        if text == NONE and any(entry.kind == kind for entry in entries):
            return
        since = next(
            (at for at, entry in enumerate(reversed(entries)) if entry.kind == "Run"), None
        )
        pending = entries if since is None else entries[len(entries) - since :]
        if Entry(kind, text) not in pending:
            self.book.add(self.number, kind, text)

    def note_runs(self, results: Sequence[Result]) -> None:
        """Note each run that the book doesn't have yet."""
        noted = {text.split(":")[0] for text in self.book.notes(self.number).of("Run")}
        for result in results:
            if result.run_dir.name not in noted:
                answer = answer_of(self.pitfall.predict, result)
                self.book.add(self.number, "Run", f"{result.run_dir.name}: {answer}")

    def compare(self, predicted: str, results: Sequence[Result]) -> PredictionCompared | None:
        """Return a prediction beside the measured value.

        None where nothing was predicted, for several runs unless the question says how these answer it, and where it
        asks for what isn't measured.
        """
        asked = self.pitfall.predict
        if self.stage or not predicted or not results or not asked.compared:
            return None
        answering = runs_that_answer(asked, results)
        value = number_of(asked, answering)
        one_trial = asked.of_trial is not None
        if len(results) != 1 and (not (asked.is_of_several or one_trial) or value is None):
            return None
        if not answering:
            return None
        quantity = measured_by(asked)
        measured = _in_words(value, quantity, in_percent="%" in predicted)
        if one_trial:
            measured = of_one_trial(asked.value, quantity, answering, in_percent="%" in predicted)
        off = how_far_off(predicted, value, quantity.unit)
        return PredictionCompared(quantity.name, predicted, measured, off)


def open_case(
    lab: Lab,
    number: int,
    own: OwnScripts | None,
    *,
    show_me: bool,
    changes: Mapping[str, Value],
    out: Path,
    seed: int | None,
) -> CaseRun:
    """Return a try at a case, with the seed that is given or the lab book's; a book that isn't there is begun.

    UserError for a number that the lab doesn't have, and for changes of a run that is shown fixed.
    """
    lab.case(number)
    if show_me and changes:
        raise UserError("--show-me runs the fixed settings as they are: leave --set out")
    book = LabBook(out / lab.name, lab)
    is_new = not book.exists
    books_seed = book.open(seed)
    seed = books_seed if seed is None else seed
    stage: StageName | None = "fixed" if show_me else None
    recorded = lab.varied_by(lab.case(number), PAGES_SEED)
    varied = {
        name: value
        for name, value in lab.varied_by(lab.case(number), seed).items()
        if value != recorded.get(name)
    }
    return CaseRun(lab, number, stage, changes, book, own, varied, seed, is_new)


def answer_of(asked: Predict, result: Result) -> str:
    """Return what one run says to a case's question, with its unit: of a family of values all that it has."""
    quantity = of_one_run(asked)
    names = fields.members(asked.value, result.values).values() if "*" in asked.value else [asked.value]  # fmt: skip
    texts = [_in_words(_scaled(quantity, result.value(name)), quantity) for name in names]
    return ", ".join(texts) or NOT_MEASURED


def runs_that_answer(asked: Predict, results: Sequence[Result]) -> list[Result]:
    """Return those of a case's runs that its prediction is compared with: all, unless it is about one of several trials."""
    if asked.of_trial is None:
        return [*results]
    by_trial: dict[int, list[Result]] = {}
    for result in results:
        by_trial.setdefault(result.trial, []).append(result)
    if isinstance(asked.of_trial, int):
        return by_trial.get(asked.of_trial, [])
    means = {trial: number_of(asked, runs) for trial, runs in by_trial.items()}
    mean_by_trial = {trial: mean for trial, mean in means.items() if mean is not None}
    if not mean_by_trial or len(mean_by_trial) < len(by_trial):
        return []
    pick = min if asked.of_trial == "least" else max
    return by_trial[pick(mean_by_trial, key=lambda trial: mean_by_trial[trial])]


def of_one_trial(
    value: str, quantity: Quantity, results: Sequence[Result], *, in_percent: bool = False
) -> str:
    """Return what runs of one trial came to, in words: one value, or of several the mean, the least and the most."""
    trial = f"trial {results[0].trial}"
    values = [_scaled(quantity, result.value(value)) for result in results]
    numbers = [number for number in values if number is not None]
    if len(values) == 1 or len(numbers) < len(values):
        words = {_in_words(number, quantity, in_percent=in_percent): None for number in values}
        return f"{', '.join(words)} ({trial})"
    mean, least, most = (
        _in_words(number, quantity, in_percent=in_percent)
        for number in (fmean(numbers), min(numbers), max(numbers))
    )
    return f"{mean} on average ({least} to {most} in {len(numbers)} runs of {trial})"


def _scaled(quantity: Quantity, value: float | None) -> float | None:
    return value if value is None or quantity.scale == 1 else value * quantity.scale


def _in_words(value: float | None, quantity: Quantity, *, in_percent: bool = False) -> str:
    if value is None:
        return NOT_MEASURED
    if in_percent and quantity.unit == OF_ALL:
        return f"{100 * value:.4g} %"
    return f"{number_text(value)} {quantity.unit}".rstrip()


def change_in_words(
    asked: Quantity, values: dict[int, tuple[list[float], list[float]]], rejudged: int
) -> str:
    """Return the change of a quantity, by trials: what it was before and is now. `rejudged` is how many runs these are, where
    no packet differs from those of others; else 0."""
    where = {trial: f" in trial {trial}:" for trial in values} if len(values) > 1 else {}
    if len(values) > MOST_TRIALS:
        together = [[value for both in values.values() for value in both[n]] for n in (0, 1)]
        where = {0: f" in {len(values)} trials:"}
        values = {0: (together[0], together[1])}
    parts, as_before = [], []
    for trial, (before, now) in values.items():
        first, last = _span(asked, before), _span(asked, now)
        many = f" in {len(now)} runs" if len(now) != len(before) else ""
        as_before.append(first == last and not many)
        change = f"{last}, as before" if as_before[-1] else f"{first} before, {last}{many} now"
        parts.append(f"{where.get(trial, '')} {change}")
    judged = ""
    if rejudged and all(as_before):
        runs = (
            "runs measured the same, but are" if rejudged > 1 else "run measured the same, but is"
        )
        judged = f". The {runs} judged differently"
    return f": {asked.name}{';'.join(parts)}{judged}"


def _span(asked: Quantity, values: Sequence[float]) -> str:
    """Return values in words: one, or the smallest and the largest."""
    unit = "" if asked.unit in asked.name else asked.unit
    ends = dict.fromkeys(number_text(value * asked.scale) for value in (min(values), max(values)))
    return f"{' to '.join(ends)} {unit}".rstrip()


def changes_in_words(changes: Mapping[str, Value], own: OwnScripts | None = None) -> str:
    """Return settings as --set takes them, and a student's own scripts by their digests: as a lab book has them."""
    scripts = own.digests if own else {}
    return ", ".join(
        [
            *(f"{name}={value}" for name, value in changes.items()),
            *(f"own {name} ({digest})" for name, digest in scripts.items()),
        ]
    )


def changes_of(lab: Lab, result: Result) -> dict[str, Value]:
    """Return the settings of a case's run that its student changed, with their values; UNSET for one taken away.

    A page's machine has less memory and samples less often: nobody changed that.
    """
    planned = trial_params(
        lab, result.trial, stage=result.stage, case=result.case, seed=result.seed
    )
    changes = {
        name: result.params.get(name, UNSET)
        for name in {**planned, **result.params}
        if planned.get(name) != result.params.get(name)
    }
    return {
        name: value
        for name, value in changes.items()
        if name not in planned
        or fitted(lab, {**result.params, name: planned[name]}).get(name) != value
    }


def raw_files_of(results: Sequence[Result]) -> list[str]:
    """Return the names of the runs whose raw files these runs have; none where one of them was measured, or doesn't say."""
    try:
        names = [read_object(result.run_dir / PROVENANCE).get("raw_of") for result in results]
    except (OSError, ValueError, TypeError):
        return []
    return [*map(str, names)] if all(names) else []


def read_changes(
    lab: Lab,
    changes: Sequence[str],
    duration: str | None = None,
    *,
    elsewhere: bool = False,
    due: Collection[str] = (),
) -> dict[str, Value]:
    """Return the parameters that KEY=VALUE texts and a duration in seconds set; KEY= alone gives UNSET. What was set
    `elsewhere` may be outside of what the lab can set. `due` are the settings that no list has and that may be named.

    UserError for a text of another form, and for a key or value that the lab doesn't take.
    """
    settings: dict[str, Value] = {}
    for change in changes:
        name, equals, text = change.partition("=")
        if not equals:
            raise UserError(f"--set {change}: expected KEY=VALUE, such as --set rtt_ms=20")
        parameter = lab.file.parameters.get(name)
        if text == UNSET and parameter and parameter.default is None:
            settings[name] = UNSET
        else:
            settings[name] = lab.read_value(
                name, text, f"--set {change}", elsewhere=elsewhere, due=due
            )
    if duration is not None:
        settings["duration_s"] = lab.read_value("duration_s", duration, f"--duration {duration}")
    return settings


def earned_settings(lab: Lab, out: Path, case: int | None) -> frozenset[str]:
    """Return the settings that a case is about, once the lab book in `out` has its cause; none before, nor of no case."""
    if case is None or not LabBook(out / lab.name, lab).knows_cause(case):
        return frozenset()
    return frozenset(lab.case(case).settings)


def set_already(
    lab: Lab,
    changes: Mapping[str, Value],
    trials: Sequence[int],
    case: CaseRun | None = None,
    *,
    pitfall: str | None = None,
    stage: StageName | None = None,
) -> list[str]:
    """Return a line for each change to a value that all these trials have without it.

    Of what a case is about none is said before its cause is known: the values would tell it.
    """
    number = case.number if case else None
    seed = case.seed if case else PAGES_SEED
    before = [
        trial_params(
            lab, n, pitfall=pitfall, stage=case.stage if case else stage, case=number, seed=seed
        )
        for n in trials
    ]
    is_secret = case is not None and not case.book.knows_cause(case.number)
    silent = case.pitfall.settings if case and is_secret else set()
    return [
        f"{name} is {value} already" if value != UNSET else f"{name} is not set already"
        for name, value in changes.items()
        if name not in silent and all(params.get(name, UNSET) == value for params in before)
    ]


@dataclass(frozen=True)
class TrialChoice:
    """Which trials, each with how many seeds, and by what rule odd results are run once more."""

    trials: list[int]
    repeat: int
    again: Again | None


def choose_trials(
    lab: Lab,
    trials: str | None,
    case: CaseRun | None = None,
    *,
    pitfall: str | None = None,
    stage: StageName | None = None,
    repeat: int | None = None,
) -> TrialChoice:
    """Return the trials that were named, those of a case or a pitfall, or all.

    UserError for numbers that the lab doesn't have, and for an unknown pitfall.
    """
    chosen = case.pitfall if case else lab.pitfall(pitfall) if pitfall else None
    if chosen is None:
        return TrialChoice(select_trials(lab, trials or "all"), repeat or 1, None)
    numbers = select_trials(lab, trials or chosen.trials or str(chosen.trial))
    staged = chosen.stage((case.stage if case else stage) or "broken")
    if case and repeat:
        # How often is the student's own choice then, and nothing is run a time more than that.
        return TrialChoice(numbers, repeat, None)
    return TrialChoice(numbers, staged.repeat * (repeat or 1), staged.again)


def choose_live_trial(lab: Lab, trial: str | None, staged: Pitfall | None) -> int:
    """Return the one trial of a live lab: the one that was named, or the staged mistake's. UserError for several."""
    default_trial = staged.trial if staged else min(lab.trials)
    numbers = select_trials(lab, trial or str(default_trial))
    if len(numbers) != 1:
        raise UserError(f"--trial {trial}: one network is one trial's, so give one number")
    return numbers[0]


def live_plan(
    batch: Batch,
    trial: int,
    settings: dict[str, Value],
    *,
    pitfall: str | None = None,
    stage: StageName | None = None,
    case: int | None = None,
) -> Plan:
    """Return the plan of a live lab; a case has the seed of the student's own book, as its runs have."""
    seed = LabBook(batch.out / batch.lab.name, batch.lab).open() if case is not None else 1
    job = batch.job(trial, seed=seed, changes=settings, pitfall=pitfall, stage=stage, case=case)
    return job.plan
