"""What a machine can judge of a submission by the lab's rubric, and what it leaves to a person.

Pure: a submission's contents in, marks out. A mark is a range. Its lower end is certain: the broken
run is there, measured anew, its finding raised, and nothing is odd about where it comes from; a
prediction came first and has its number. Its upper end is what a person may still give. Whether a
cause is understood, a prediction argued or an answer right, only a person can say; that nothing was
answered, a machine can, and which hints came before a diagnosis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from measuretwice.base.errors import UserError
from measuretwice.book.prediction import Answer
from measuretwice.checks import check_run, run_under_test
from measuretwice.grading.answers import normalize_question
from measuretwice.grading.integrity import Remark, short_name
from measuretwice.grading.rubric import Criterion, Rubric
from measuretwice.grading.submission import (
    CaseNotes,
    Contents,
    RaisedFinding,
    StudentFiles,
    SubmittedRun,
)
from measuretwice.lab import Lab, StageName, read_questions, select_trials, trial_params
from measuretwice.lab.schema.cases import Pitfall
from measuretwice.measure.fields import unit_of

# The rungs of every rubric's ladder that can be judged in part; rubric.toml says what each is worth.
SHOWN, DIAGNOSED, AGAIN = "Shown", "Diagnosed", "Run again"
BY_HAND = "by hand"
ANSWERED = {
    True: f"answered: to be marked {BY_HAND}",
    False: "not answered",
    None: f"no answer in a report that can be read: to be marked {BY_HAND}",
}


@dataclass(frozen=True)
class Mark:
    """One criterion: points that are certain (`low`), that are possible (`high`), and of how many.

    Of a pitfall's ladder: what was seen for each rung, in words; of its prediction: `predicted`. `given`
    is what the lecturer gave, None where nothing yet, with a `remark`.
    """

    question: int
    title: str
    pitfall: str | None
    points: float
    low: float
    high: float
    shown: str = ""
    diagnosed: str = ""
    fixed: str = ""
    again: str = ""
    answer: str = ""
    predicted: str = ""
    case: int | None = None
    given: float | None = None
    remark: str = ""

    @property
    def points_now(self) -> float:
        """The lecturer's mark, or what is certain by machine."""
        return self.low if self.given is None else self.given

    @property
    def is_open(self) -> bool:
        """Return whether something is left to judge."""
        return self.given is None and self.high > self.low


# What no finding means where some files can't be read.
NOTHING_AMONG_READ = "no finding among what could be read"


@dataclass(frozen=True)
class JudgedFiles:
    """A student's own files with the findings that they raise; `problem` says why they can't be judged."""

    folder: str
    trial: int
    pitfall: str | None
    stage: StageName | None
    refused: tuple[str, ...]
    missing: tuple[str, ...]
    is_whole: bool
    digests: dict[str, str]
    cookies: tuple[str, ...]
    lab: str
    findings: tuple[RaisedFinding, ...] = ()
    problem: str | None = None

    @property
    def name(self) -> str:
        return self.folder

    @property
    def in_words(self) -> str:
        """Return why they can't be judged; that no finding says little, where some of them can't be read; else nothing."""
        if self.problem or self.findings or self.is_whole:
            return self.problem or ""
        return NOTHING_AMONG_READ


AnyRun = SubmittedRun | JudgedFiles


def judge_files(lab: Lab, files: StudentFiles) -> JudgedFiles:
    """Check a student's own files as of the trial that their folder's name says."""
    values = asdict(files)
    del values["measured"]
    judged = JudgedFiles(**values, lab=lab.name)
    try:
        if files.trial not in lab.trials:
            raise UserError(f"{lab.name} has no trial {files.trial}")
        params = trial_params(lab, files.trial, pitfall=files.pitfall, stage=files.stage)
        if not files.measured:
            return replace(judged, problem="nothing in it can be checked")
        findings = check_run(lab, run_under_test(lab, params, files.measured, brought=True))
    except UserError as error:
        return replace(judged, problem=str(error))
    except Exception as error:
        return replace(judged, problem=f"can't be checked ({type(error).__name__})")
    return replace(judged, findings=tuple(RaisedFinding.of(finding) for finding in findings))


def make_marks(
    lab: Lab,
    rubric: Rubric,
    contents: Contents,
    files: Sequence[JudgedFiles],
    remarks: Sequence[Remark],
    problem: str | None,
) -> list[Mark]:
    """Return a mark for each of the rubric's criteria; `problem` says why the submission wasn't read.

    UserError where the rubric's ladder lacks a rung.
    """
    shares = {rung.title: rung.share for rung in rubric.ladder}
    on_ladder = any(criterion.pitfall for criterion in rubric.criteria)
    for rung in (SHOWN, DIAGNOSED, AGAIN):
        if on_ladder and rung not in shares:
            raise UserError(f"{lab.name}: rubric.toml: its ladder has no rung {rung!r}")
    questions = [normalize_question(question) for question in read_questions(lab)]
    unread = bool(
        problem
        or contents.refused
        or contents.unusable
        or contents.unread
        or any(folder.problem for folder in files)
    )
    odd = {remark.run for remark in remarks if remark.is_odd}
    runs: list[AnyRun] = [*contents.runs, *(folder for folder in files if not folder.problem)]
    marks = []
    for criterion in rubric.criteria:
        answer = _answer(contents, questions[criterion.question - 1])
        if criterion.pitfall is None:
            marks.append(_mark_by_hand(criterion, answer))
            continue
        case = _Case.of(lab, lab.pitfall(criterion.pitfall), contents, runs, odd, unread, answer)
        if criterion.prediction:
            marks.append(_mark_of_prediction(lab, criterion, case, contents))
        else:
            marks.append(_mark_of_ladder(lab, criterion, case, shares, rubric.hint_costs))
    return marks


@dataclass(frozen=True)
class _Answer:
    """A question's answer: its `text` (None: the report has no place for it that can be read), whether there
    is one at all (None: nobody can say), and the raw files that it quotes, by run."""

    text: str | None
    given: bool | None
    quotes: dict[str, list[str]]


def _answer(contents: Contents, question: str) -> _Answer:
    text = contents.answers.get(question)
    given: bool | None = None
    # Another document may hold what the report's own place doesn't.
    if text or (text is not None and not contents.written):
        given = bool(text)
    return _Answer(text, given, contents.quotes.get(question, {}))


@dataclass(frozen=True)
class _Case:
    """What a submission has of one case: runs that show the mistake (`broken`), those of them with nothing
    odd (`certain`), runs by a student's own change that show it fixed, or, without these, by --show-me
    (`shown`). `unread`: something in the submission could not be read."""

    pitfall: Pitfall
    broken: list[AnyRun]
    certain: list[AnyRun]
    fixed: list[AnyRun]
    shown: list[AnyRun]
    unread: bool
    answer: _Answer
    notes: CaseNotes | None

    @classmethod
    def of(
        cls,
        lab: Lab,
        pitfall: Pitfall,
        contents: Contents,
        runs: Sequence[AnyRun],
        odd: set[str],
        unread: bool,
        answer: _Answer,
    ) -> _Case:
        in_sets = {
            name
            for finding in contents.together
            if finding.id == pitfall.finding
            for name in finding.runs
        }
        raising: list[AnyRun] = []
        clean: list[AnyRun] = []
        for run in runs:
            alone = any(finding.id == pitfall.finding for finding in run.findings)
            in_set = isinstance(run, SubmittedRun) and run.run in in_sets
            (raising if alone or in_set else clean).append(run)
        broken = [
            run
            for run in raising
            if run.pitfall in (pitfall.id, None) and run.stage in ("broken", None)
        ]
        fixed = _fixed_runs(lab, pitfall, clean, broken)
        own = [run for run in fixed if not _is_shown(run)]
        case = lab.case_number(pitfall)
        return cls(
            pitfall,
            broken,
            [run for run in broken if run.name not in odd],
            own,
            [] if own else fixed,
            unread,
            answer,
            next((n for n in contents.books.get(lab.name, ()) if n.case == case), None),
        )

    @property
    def is_diagnosed(self) -> bool | None:
        """Return whether there is a diagnosis, in the report or the lab book; None: nobody can say."""
        return True if self.notes and self.notes.diagnosis else self.answer.given

    @property
    def is_answered(self) -> bool:
        """Return whether the question that solves the case is answered right, by the lab book and the runs."""
        return self.notes is not None and self.notes.answered

    @property
    def is_answered_by_recorded(self) -> bool:
        """Return whether that is so by the recorded runs alone, which a page judges by where it has none of the student's."""
        by_recorded = self.notes is not None and self.notes.answered_by_recorded
        return by_recorded and not self.is_answered

    @property
    def hints(self) -> int:
        """The number of hints before the diagnosis, by the lab book."""
        return self.notes.hints_before if self.notes else 0

    @property
    def no(self) -> str:
        return "no, or in what is unread" if self.unread else "no"


def _is_shown(run: AnyRun) -> bool:
    """Return whether it is the fixed run that --show-me makes, not a change of the student's own."""
    return isinstance(run, SubmittedRun) and run.case is not None and run.stage == "fixed"


def _fixed_runs(
    lab: Lab, pitfall: Pitfall, clean: Sequence[AnyRun], broken: Sequence[AnyRun]
) -> list[AnyRun]:
    """Return those of the `clean` runs, which don't raise the finding, that show the mistake fixed."""
    staged = [run for run in clean if (run.pitfall, run.stage) == (pitfall.id, "fixed")]
    # Where the mistake is in a set of runs, one run alone raises nothing.
    trials = select_trials(lab, pitfall.trials) if pitfall.trials else [pitfall.trial]
    repeat = pitfall.fixed.repeat
    if all(sum(run.trial == trial for run in staged) >= repeat for trial in trials):
        return staged
    if pitfall.trials or repeat > 1:
        return []
    # A student's own change has no stage, nor has a mistake on another trial than its own: its pair
    # is the same trial without the mistake.
    tried = {_trial_and_seed(run) for run in broken}
    return [
        run
        for run in clean
        if run.stage is None and run.pitfall in (pitfall.id, None) and _trial_and_seed(run) in tried
    ]


def _trial_and_seed(run: AnyRun) -> tuple[int, int | None]:
    """Return what two runs to be compared have in common. A testbed's files have no seed."""
    return run.trial, run.seed if isinstance(run, SubmittedRun) else None


# Marks


def _mark_by_hand(criterion: Criterion, answer: _Answer) -> Mark:
    high = 0.0 if answer.given is False else criterion.points
    return Mark(
        criterion.question, criterion.title, None, criterion.points, 0.0, high, answer=ANSWERED[answer.given]
    )  # fmt: skip


def _mark_of_prediction(lab: Lab, criterion: Criterion, case: _Case, contents: Contents) -> Mark:
    """Judge that a prediction is there, came first, and what it has; whether it came true, nobody asks."""
    full = criterion.points
    low, high = 0.0, 0.0
    if not case.broken and not case.unread:
        predicted = "no run of it"
    elif case.notes is not None:
        asked = case.pitfall.predict
        needs_unit = not asked.is_ratio and bool(unit_of(asked.value))
        predicted, certain, possible = _judge_prediction(case.notes, needs_unit=needs_unit)
        low, high = certain * full if case.certain else 0.0, possible * full
    elif case.broken and not any(isinstance(r, SubmittedRun) and r.case for r in case.broken):
        # Before there were any books, or on a testbed.
        predicted = (
            f"{BY_HAND}: a run without a case, which has no lab book: nothing is lost by that"
        )
        high = full
    elif lab.name in contents.books or contents.answers:
        # The book has no word of it, or the report none of a book.
        predicted, high = "no", full if case.unread else 0.0
    else:
        predicted, high = f"{BY_HAND}: no lab book in what was handed in; ask for it", full
    return Mark(
        criterion.question, criterion.title, case.pitfall.id, full, low, high,
        predicted=predicted, case=lab.case_number(case.pitfall),
    )  # fmt: skip


def _judge_prediction(notes: CaseNotes, *, needs_unit: bool) -> tuple[str, float, float]:
    """Return what a prediction has, in words, and which shares of the points are certain and possible."""
    if notes.prediction is None:
        return "no", 0.0, 0.0
    if not notes.first:
        return "no: it comes after the first run", 0.0, 0.0
    has_value = notes.number and (notes.unit or not needs_unit)
    if has_value:
        value = "number and unit" if notes.unit else "number"
    else:
        value = "no unit" if notes.number else "no number"
    words = f"yes ({value}, {'a reason' if notes.reason else 'no reason'})"
    if notes.reason:
        words += f"; if the reason is one: {BY_HAND}"
    return words, 0.5 * has_value, 0.5 * has_value + 0.5 * notes.reason


def _mark_of_ladder(
    lab: Lab,
    criterion: Criterion,
    case: _Case,
    shares: dict[str, float],
    hint_costs: Sequence[float],
) -> Mark:
    pitfall = case.pitfall
    # A mistake in a set of runs is fixed by which runs there are, and no setting shows whose idea it was.
    of_set = bool(pitfall.trials) or pitfall.fixed.repeat > 1
    fixed = case.fixed or (case.shown if of_set else [])
    if not case.broken and case.is_answered_by_recorded and case.is_diagnosed and not case.unread:
        high = shares[DIAGNOSED]
    elif not case.broken:
        high = shares[AGAIN] if case.unread else 0.0
    elif case.is_diagnosed is False:
        high = shares[SHOWN]
    elif not fixed and not case.is_answered and not case.unread:
        high = shares[DIAGNOSED]
    else:
        high = shares[AGAIN]
    if high > shares[SHOWN]:
        high = max(shares[SHOWN], high - hint_costs[case.hints])
    return Mark(
        criterion.question,
        criterion.title,
        pitfall.id,
        criterion.points,
        shares[SHOWN] * criterion.points if case.certain else 0.0,
        round(high * criterion.points, 4),
        shown=_shown_in_words(case),
        diagnosed=_diagnosed_in_words(case, hint_costs),
        fixed=_fixed_in_words(case, of_set),
        again=_again_in_words(case, fixed),
        case=lab.case_number(pitfall),
    )


def _shown_in_words(case: _Case) -> str:
    if case.certain:
        return f"yes, {short_name(case.certain[0].name)}"
    return f"open: {short_name(case.broken[0].name)} is odd" if case.broken else case.no


def _fixed_in_words(case: _Case, of_set: bool) -> str:
    if case.is_answered and case.notes and not case.fixed:
        tries = len(case.notes.answers)
        return f"yes, answered right: {case.notes.answers[-1]}" + (
            f" (answer {tries})" if tries > 1 else ""
        )
    if case.is_answered_by_recorded and case.notes and not case.fixed:
        [*_, last] = [text for text in case.notes.answers if Answer.read(text).by_recorded]
        return f"in part, answered right, but not by own runs: {last}; {BY_HAND}"
    if case.pitfall.judgement and case.notes and case.notes.answers and not case.fixed:
        return f"no: answered {case.notes.answers[-1]}, which isn't right by these runs"
    if case.fixed:
        return f"yes, {short_name(case.fixed[0].name)}"
    if case.shown:
        what = f"yes, shown: {BY_HAND}" if of_set else "no: shown, not the student's own change"
        return f"{what} ({short_name(case.shown[0].name)})"
    return case.no


def _diagnosed_in_words(case: _Case, hint_costs: Sequence[float]) -> str:
    """Say what the lab book and the answer have. If it is right, a person must say."""
    pitfall, answer, notes = case.pitfall, case.answer, case.notes
    hints = ""
    if notes:
        hints = f" after hint {notes.hints_before}" if notes.hints_before else ", before any hint"
    if case.is_diagnosed is False:
        return f"no: not answered{hints}"
    diagnosis = (notes and notes.diagnosis) or ""
    facts = [f"{'' if diagnosis else 'not '}in the lab book{hints}"] if notes else []
    if cost := hint_costs[case.hints]:
        facts.append(f"{cost:.0%} off")
    if not answer.text and not diagnosis:
        return "; ".join([f"{BY_HAND}: no report", *facts])
    text = f"{answer.text or ''} {diagnosis}".casefold()
    facts.append(f"{len(text.split())} words")
    if pitfall.id in text or pitfall.finding in text:
        facts.append("names the finding")
    files = sorted({file for run in case.broken for file in answer.quotes.get(run.name, ())})
    if files:
        facts.append(f"quotes {', '.join(file.removeprefix('raw/') for file in files[:3])}")
    else:
        facts.append("quotes no line of the broken run")
    return f"yes, answered ({'; '.join(facts)}); if it is right: {BY_HAND}"


def _again_in_words(case: _Case, fixed: Sequence[AnyRun]) -> str:
    """Say whether the two can be compared: the same trial and seed, and only the mistake's settings differ."""
    pitfall, broken = case.pitfall, case.broken
    if case.is_answered and broken and not fixed:
        return "yes, by the student's own runs: the question asks for no other"
    if not fixed or not broken:
        return "no"
    differences = [
        _other_settings(pitfall, before, after)
        for before in broken
        for after in fixed
        if _trial_and_seed(before) == _trial_and_seed(after)
    ]
    if not differences:
        return f"in part: with another seed; {BY_HAND}"
    if fewest := min(differences, key=len):
        return f"in part: {', '.join(fewest[:4])} differ as well; {BY_HAND}"
    return f"yes, only the mistake's settings differ; a second prediction: {BY_HAND}"


def _other_settings(pitfall: Pitfall, before: AnyRun, after: AnyRun) -> list[str]:
    """Return the settings that differ between two runs besides those that the mistake is about."""
    # Of a mistake without a stage, what differs is the mistake.
    if not before.pitfall:
        return []
    a, b = (run.params if isinstance(run, SubmittedRun) else {} for run in (before, after))
    mistake = pitfall.broken.set.keys() | pitfall.fixed.set.keys()
    return [n for n in sorted((a.keys() | b.keys()) - mistake) if a.get(n) != b.get(n)]
