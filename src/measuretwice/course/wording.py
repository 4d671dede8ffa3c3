"""What a terminal and a page say alike, of values of this package: sentences, and a run's values in a table's row."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from measuretwice.book.prediction import (
    display_unit,
    measured_by,
    number_text,
    quantity_of,
    spreads,
)
from measuretwice.course.case import CaseRun, ModelAnswer, PredictionCompared, of_one_trial
from measuretwice.course.findings import Document, FindingDocument
from measuretwice.course.judging import Question
from measuretwice.course.lab_books import (
    CaseOutcome,
    CaseSolved,
    CaseUnsolved,
    ClaimChanged,
    ExperimentDecides,
    OnlyHidden,
    SolvedByHand,
    TrialsMissing,
)
from measuretwice.lab import Lab, SettingToChange, needed_settings
from measuretwice.lab.schema.cases import Predict
from measuretwice.measure.imported.files import SNAPSHOT
from measuretwice.report.tables import NO_CLAIM
from measuretwice.runs.result import Result, goodput_of

# What a page's field for them begins with (docs/assets/machine/run-panel.mjs).
HOW_MANY = "How many runs"
# What a finding is called before it has a name.
UNNAMED = {
    "error": "something is off",
    "warning": "something may be off",
    "note": "something to look at",
}
# To a diagnosis such as `x`.
IN_WORDS = "In three words or more, please: what is it, and where?"
SAY_MORE = "say in three words or more what it is, and where; nothing was written down"
# Of so many nodes the files are named, and so many files of one reason.
MOST_NODES = 8
# Of so many runs the names are said.
MOST_RUNS = 2
# Of a table of runs: a name, and in a line below it the unit.
HEADINGS = (
    "trial",
    "min RTT\nms",
    "MSS\nB",
    "p\nset",
    "p\nmeasured",
    "goodput\nMbit/s",
    "over",
    "model\nMbit/s",
    "ratio",
)


def dealt_values(case: CaseRun) -> str:
    """Say which values a student's own run has, where the recorded run, which the page is about, has others."""
    if not case.varied:
        return ""
    own = ", ".join(f"{name} {value}" for name, value in case.varied.items())
    recorded = ", ".join(f"{name} {value:.4g}" for name, value in case.recorded_values.items())
    return f"Your own run has {own}; the recorded run on the page has {recorded}."


def model_answer(answer: ModelAnswer) -> str:
    """Say what the model says to a case's question."""
    settings = ", ".join(f"{name} {value:.4g}" for name, value in answer.settings.items())
    return f"With {settings} the model with C = {answer.constant:g} predicts {answer.bandwidth_bps / 1e6:.4g} Mbit/s."


def prediction_compared(compared: PredictionCompared) -> str:
    """Say what was predicted, what was measured, and how far apart they are."""
    name = compared.quantity[0].upper() + compared.quantity[1:]
    predicted = compared.predicted.rstrip(".")
    return f"{name}. You predicted: {predicted}. Measured: {compared.measured}{compared.off}."


def measured_of_case(case: CaseRun, results: Sequence[Result]) -> list[str]:
    """Return what runs say to their case's question, and the values beside it, where a table of runs has none of it."""
    asked = case.pitfall.predict
    if asked.of_trial is not None:
        return [f"{asked.name[0].upper()}{asked.name[1:]}: {_by_trial(asked, results)}."]
    if not (case.pitfall.judgement or asked.is_of_several or asked.beside):
        return []
    if asked.spread_by:
        unit = display_unit(asked.value)[1]
        groups = [
            f"{by} {deviation:.3g} {unit} ({count} values)"
            for by, deviation, count in spreads(asked, results)
        ]
        return [f"Standard deviations: {', '.join(groups)}."] if groups else []
    shown = {
        asked.value: asked.name[0].upper() + asked.name[1:],
        **{value: name[0].upper() + name[1:] for value, name in asked.beside.items()},
    }
    return [f"{name}: {_of_each(value, results)}." for value, name in shown.items()]


def _by_trial(asked: Predict, results: Sequence[Result]) -> str:
    """Return what the runs of each trial came to."""
    quantity = measured_by(asked)
    trials = sorted({result.trial for result in results})
    of_trials = [[result for result in results if result.trial == trial] for trial in trials]
    return ", ".join(of_one_trial(asked.value, quantity, runs) for runs in of_trials)


def _of_each(value: str, results: Sequence[Result]) -> str:
    """One value of each run, with its trial where there are several."""
    scale, unit = display_unit(value)
    values = [result.value(value) for result in results]
    texts = [
        "-"
        if measured is None
        else f"{number_text(measured if scale == 1 else measured * scale)} {unit}".rstrip()
        for measured in values
    ]
    if len(results) > 1:
        texts = [f"{text} (trial {run.trial})" for text, run in zip(texts, results, strict=True)]
    return ", ".join(texts)


def nothing_measured(runs: Sequence[str]) -> str:
    """Say of runs that their raw files are those of `runs`."""
    more = f" and {len(runs) - MOST_RUNS} more" if len(runs) > MOST_RUNS else ""
    return (
        "Nothing was measured again: you changed how files are judged, and no packet differs "
        f"from those of {', '.join(runs[:MOST_RUNS])}{more}."
    )


def finding_lines(
    finding: FindingDocument, hint: int | None, *, brought: bool = False
) -> tuple[str, list[str]]:
    """Return what is said of a finding at that step of help: a heading, and lines; of files that a person `brought` nothing
    of what follows from what.

    Finding the cause is the exercise: before the last hint it has no name, and before the second nothing is
    said that tells it.
    """
    if hint == 3:
        heading = f"{finding['id']} ({finding['severity']})"
    else:
        heading = UNNAMED[finding["severity"]]
    if finding["off"] and (hint or 0) < 2:
        # What follows says where it comes from.
        lines = [finding["off"]]
    else:
        lines = [f"measured: {finding['measured']}", f"expected: {finding['expected']}"]
        also = "also off" if brought else "also off, perhaps because of that"
        lines += [f"{also}: {consequence}" for consequence in finding["consequences"]]
    # The reason often is the cause.
    if hint == 3:
        lines.append(finding["why"])
    if finding["hint"]:
        lines.append(f"hint {hint}: {finding['hint']}")
    if hint == 3 or not finding["page"].startswith("reference/"):
        lines.append(f"page: {finding['page']}")
    return heading, lines


def left_out(document: Document) -> list[str]:
    """Return which files aren't used and why, a line for each reason; first those that were brought in vain."""
    unread = document.get("unread", [])
    by_reason: dict[tuple[bool, str], list[str]] = {}
    for line in document.get("refused", []):
        path, _, why = line.partition(": ")
        by_reason.setdefault((line not in unread, why), []).append(path)
    return [
        f"{_some(paths)}: {why}"
        for (_, why), paths in sorted(by_reason.items(), key=lambda item: item[0][0])
    ]


def _some(paths: list[str]) -> str:
    more = len(paths) - MOST_NODES
    return ", ".join(paths[:MOST_NODES]) + (f" and {more} more" if more > 0 else "")


def recognised_files(document: Document) -> list[str]:
    """Return what each file was taken for: a line a node, and how many files are of snapshots."""
    of_node: dict[str, list[str]] = {}
    snapshots = 0
    for path, words in document.get("used", {}).items():
        node, _, what = words.rpartition("'s ")
        if what in SNAPSHOT:
            snapshots += 1
        else:
            of_node.setdefault(node, []).append(f"{what} ({_below(path, document['run'])})")
    lines = [f"{node or 'taken'}: {', '.join(files)}" for node, files in of_node.items()]
    if (more := len(lines) - MOST_NODES) > 0:
        lines = [*lines[:MOST_NODES], f"{more} more (--json names all)"]
    return lines + ([f"and {snapshots} files of the nodes' snapshots"] if snapshots else [])


def _below(path: str, folder: str) -> str:
    """A path from the folder on that was named."""
    return str(Path(path).relative_to(folder)) if Path(path).is_relative_to(Path(folder)) else path


def outcome_lines(outcome: CaseOutcome, *, in_page: bool = False) -> list[str]:
    """Return what is said of a case whose own runs were checked."""
    match outcome:
        case CaseSolved():
            return _solved(outcome, in_page=in_page)
        case SolvedByHand():
            return [f"Case {outcome.case}: {outcome.entry}."]
        case ClaimChanged():
            return [
                f"Case {outcome.case}: nothing is off any more, but what you changed is a claim, made after "
                "the measurement. Which run would come out differently if you were wrong? Predict it, then make it."
            ]
        case OnlyHidden():
            settings = " and ".join(outcome.settings)
            return [
                f"Case {outcome.case}: nothing is off in this run, but you changed {settings} alone. With that the mistake "
                "doesn't show, and it is still there. What made the numbers wrong?"
            ]
        case ExperimentDecides():
            return [
                f"Case {outcome.case}: this run decides, and nothing is wrong with it. Only its claim is still off. "
                "A claim is a setting too, and changing it measures nothing again."
            ]
        case TrialsMissing():
            trials = ", ".join(map(str, outcome.missing))
            how = (
                "Run that as well."
                if in_page
                else f"Check them together, with ./lab check {outcome.runs}"
            )
            return [
                f"Case {outcome.case}: nothing is off in these runs by themselves, but the case is also about trial "
                f"{trials}. {how}"
            ]


def question_lines(question: Question) -> list[str]:
    """Return the question that solves a case, and what may be answered."""
    asked = question.judgement
    choices = zip(asked.letters, asked.choices, strict=True)
    lines = [f"Case {question.case}. {asked.ask}"]
    lines += [f"  {letter}: {choice.says}" for letter, choice in choices]
    if asked.number:
        lines.append(f"And a number: {asked.number.ask} ({quantity_of(asked.number).label})")
    return lines


def how_to_answer(question: Question) -> str:
    """Say what to type for a case's diagnosis, or once there is one for the answer to its question."""
    check = f"./lab check {question.pattern}"
    if not question.is_diagnosed:
        return (
            f"Case {question.case}: write down what is off in your own words, with {check} --diagnosis 'WORDS'. "
            "Then comes a question. Its answer solves the case."
        )
    number = " --number NUMBER" if question.judgement.number else ""
    return f"Answer it with {check} --answer LETTER{number}"


def asked_below(question: Question) -> str:
    """Say on a page where a case's question stands."""
    return f"Case {question.case} is solved by an answer: the question comes below, once you have written down your diagnosis."


def answered_lines(question: Question, *, in_page: bool = False) -> list[str]:
    """Return what is said of a case whose question is answered right."""
    lines = [f"Case {question.case} is solved: {question.outcome}."]
    if question.moves_first_try:
        lines.append(_repeats_first_try(question.lab.name, in_page=in_page))
    return lines


def _repeats_first_try(lab: str, *, in_page: bool) -> str:
    """Say how the first try is repeated with what was found: by a command, or on the page that it was made on."""
    how = f"./lab start {lab} repeats your first try with what you found"
    return f"In a terminal, {how}; so does the module's front page." if in_page else f"{how}."


def _solved(outcome: CaseSolved, *, in_page: bool) -> list[str]:
    by = f", by {outcome.run}" if outcome.run else ""
    lines = [f"Case {outcome.case} is solved{by}: {outcome.entry}."]
    if outcome.not_compared:
        lines.append(f"Not compared with the model: {outcome.not_compared}.")
    if outcome.moves_first_try:
        lines.append(_repeats_first_try(outcome.lab, in_page=in_page))
    return lines


def unsolved_lines(case: CaseUnsolved, *, in_page: bool = False) -> list[str]:
    """Return what is said of a case in which something is off still: how a diagnosis is written down, or, once there is one,
    which settings to change."""
    about = f"Case {case.case}"
    if not case.is_known:
        if in_page:
            return [
                f"{about}: write down your diagnosis below, and the page tells you what to change."
            ]
        return [
            f"{about}: do you know what it is? Write it down, and this names what to change: "
            f"./lab check {case.runs} --diagnosis 'in your own words'"
        ]
    begin = (
        "your diagnosis is noted, right or wrong"
        if case.diagnosis
        else "its cause was shown to you"
    )
    if not case.settings:
        command = f": ./lab run {case.lab} --case {case.case} --repeat N"
        how = f": say how many in the field “{HOW_MANY}”, and run it again" if in_page else command
        return [
            f"{about}: {begin}. No setting is to change, but how many runs there are{how}.",
            "Decide how many before you look: runs that are added until an answer comes out prove less.",
        ]
    lines = _what_to_change(f"{about}: {begin}.", case.settings)
    if case.diagnosis and not case.names_cause:
        lines.append(
            "Would that explain what you saw? If not, look once more before you change it."
        )
    return lines if in_page else [*lines, f"  {_change_by(case)}"]


def _what_to_change(begin: str, settings: Sequence[SettingToChange]) -> list[str]:
    """Name the settings of a case: the one that is needed, all of them, or each that is enough."""
    change = needed_settings(settings)
    if len(change) == 1:
        return [f"{begin} The setting is {change[0].says}."]
    are_ways = change[0].need == "one way"
    what = (
        "One of these settings is to change, and each is enough:"
        if are_ways
        else "These settings are to change, all in one run:"
    )
    return [f"{begin} {what}", *(f"  {setting.says}" for setting in change)]


def _change_by(case: CaseUnsolved) -> str:
    """Return what to type, on a node of a live lab or for another run."""
    change = needed_settings(case.settings)
    first, single = change[0], len(change) == 1
    name = first.name if single else "NAME"
    value = "" if single and first.is_taken_away else "VALUE"
    if not single and first.need != "one way" and not case.is_live:
        # What one run changes, the next one doesn't remember.
        together = " ".join(
            f"--set {setting.name}={'' if setting.is_taken_away else 'VALUE'}" for setting in change
        )
        return f"./lab run {case.lab} --case {case.case} {together}"
    if case.is_live:
        return f"on a node, before the script's command: {name.upper()}={value}; or type the command itself"
    return f"./lab run {case.lab} --case {case.case} --set {name}={value}"


def outcomes_in_page(outcomes: Sequence[CaseOutcome]) -> str:
    """Return all that a page says of several cases' outcomes, as one text."""
    return "\n".join(line for outcome in outcomes for line in outcome_lines(outcome, in_page=True))


def row_of(lab: Lab, result: Result) -> list[str]:
    """Return a result's values in words, one for each of HEADINGS."""
    goodput = goodput_of(lab, result)
    return [
        str(result.trial),
        _number(result.value("rtt_min_ms"), "{:.4g}"),
        _number(result.value("mss_bytes"), "{:.0f}"),
        _number(result.number("loss_ratio"), "{:.3g}"),
        _number(result.value("loss_ratio"), "{:.3g}"),
        _number(goodput.bps, "{:.4g}", 1e-6),
        goodput.time or "-",
        _number(result.model_bps, "{:.4g}", 1e-6),
        _number(result.ratio, "{:.2f}") + _without_claim(result),
    ]


def _without_claim(result: Result) -> str:
    """Return the remark beside a case's ratio where the model says nothing of such a run, once the case is shown
    fixed.

    Before that, whether the model holds may be the question. Runs of no case have a verdict.
    """
    if result.ratio is None or result.comparable or not result.case:
        return ""
    return NO_CLAIM if result.stage == "fixed" else ""


def verdict(result: Result) -> str:
    """The expectations in a word or two: what was off, or whether the model has a say."""
    wrong = [e.measured for e in result.expectations if e.ok is False]
    if wrong:
        return f"off: {', '.join(wrong)}"
    return "ok" if result.comparable else "ok, no model"


def _number(value: float | None, form: str, scale: float = 1.0) -> str:
    return "-" if value is None else form.format(value * scale)


def expectation_rows(result: Result) -> list[tuple[str, str]]:
    """Return each expectation of a trial in words, and a mark: as expected, off, or nothing can be said."""
    rows = []
    for e in result.expectations:
        mark = {True: "ok ", False: "OFF", None: " - "}[e.ok]
        low, high = (_number(bound, "{:.6g}") for bound in (e.low, e.high))
        span = low if low == high else f"{low} to {high}"
        rows.append(
            (mark, f"{e.label}: {e.measured} {_number(e.value, '{:.6g}')}, expected {span}")
        )
    return rows


def in_brief(lab: Lab, result: Result) -> str:
    """A finished trial in some words."""
    goodput = _number(goodput_of(lab, result).bps, "{:.4g} Mbit/s", 1e-6)
    ratio = f", {result.ratio:.2f} of the model" if result.ratio is not None else ""
    return goodput + ratio


def lateness(results: Sequence[Result]) -> str:
    """Say how late packets were of the run whose emulator was the latest; "" where there was none."""
    late = [
        (mean_us, result.value("emulator_late_p99_us"), result.value("emulator_late_max_us"))
        for result in results
        if (mean_us := result.value("emulator_late_mean_us")) is not None
    ]
    if not late:
        return ""
    mean_us, p99_us, most_us = max(late)
    of = "" if len(late) == 1 else f" in the worst of {len(late)} runs"
    return (
        f"Packets left the emulator {mean_us / 1000:.3g} ms late on average{of}, 99 % of them at most {(p99_us or 0) / 1000:.3g} ms, "
        f"the latest {(most_us or 0) / 1000:.3g} ms. ./lab check reports when that is too late."
    )
