"""The report that a student hands in: from runs to one HTML file, and the same as Markdown.

Every string that comes from a run's folder is data: it is cleaned of what a terminal or browser
would obey, and escaped. Both formats show the same tables; `document` is the same as JSON.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from measuretwice.checks.finding import Finding
from measuretwice.checks.sets import check_set
from measuretwice.lab import UNITS, Lab, read_questions
from measuretwice.runs.reread import Excerpt, RunData
from measuretwice.runs.result import Verdict, what_chance_does
from measuretwice.stats.intervals import loss_interval, relative_error_of_ratio

TEMPLATES = Path(__file__).parent / "templates"
NONE = "–"
# 95 % of a normal distribution lie within this many standard errors.
Z_95 = 1.96
MARKS = {True: "ok", False: "OFF", None: NONE}
# What a reader wants first; whatever else was measured stands in the folded table.
KEY_VALUES = {
    "goodput_bps": "goodput",
    "rtt_min_ms": "smallest round-trip time",
    "rtt_mean_ms": "mean round-trip time",
    "ping_rtt_min_ms": "smallest round-trip time, by ping",
    "ping_loss_ratio": "loss, by ping",
    "mss_bytes": "segment size",
    "cwnd_mean_segments": "mean congestion window",
    "qdisc_offered_packets": "packets offered to the bottleneck",
    "qdisc_drops": "packets that it dropped",
    "loss_ratio": "share that it dropped",
    "retransmits": "retransmissions",
    "timeouts": "timeouts",
    "duration_s": "length of the test",
}


@dataclass(frozen=True)
class Table:
    """Cells of text. `numeric` columns stand right; `mark` is the column that holds verdicts.

    `links` are the places in the report that the rows' first cells lead to.
    """

    caption: str
    headings: Sequence[str]
    rows: list[list[str]]
    numeric: frozenset[int] = frozenset()
    mark: int | None = None
    links: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Section:
    """One run's part of the report."""

    id: str
    heading: str
    title: str
    not_compared: str | None
    settings: Table
    validation: Table
    findings: Sequence[Finding]
    values: Table
    all_values: Table
    excerpts: list[Excerpt]
    provenance: Table
    provenance_missing: bool
    digests: Table


@dataclass(frozen=True)
class Question:
    """A lab's question, and what the student has answered so far."""

    text: str
    answer: str = ""


@dataclass(frozen=True)
class Report:
    """All that a report shows; `together` is about the runs as a set, `unusable` are lines on folders that it could not use."""

    title: str
    author: str | None
    made: datetime
    summary: Table
    chance: str | None
    sections: list[Section]
    questions: list[tuple[str, list[Question]]]
    together: list[Finding]
    unusable: list[str]


def make_report(
    runs: list[RunData],
    *,
    title: str | None,
    author: str | None,
    made: datetime,
    unusable: Sequence[str] = (),
    answers: dict[str, str] | None = None,
) -> Report:
    """Return the report on at least one run. `answers` are what `read_answers` returned."""
    runs = sorted(runs, key=_order)
    labs = {run.lab.name: run.lab for run in runs}
    known = answers or {}
    questions = [
        (lab.file.lab.title, [Question(text, known.get(text, "")) for text in read_questions(lab)])
        for lab in labs.values()
    ]
    return Report(
        title=title or "; ".join(lab.file.lab.title for lab in labs.values()),
        author=author,
        made=made,
        summary=_summary(runs),
        chance=what_chance_does([run.result for run in runs]),
        sections=[_section(number, run) for number, run in enumerate(runs, start=1)],
        questions=[(name, asked) for name, asked in questions if asked],
        together=[finding for lab in labs.values() for finding in _together(lab, runs)],
        unusable=list(unusable),
    )


def _together(lab: Lab, runs: list[RunData]) -> list[Finding]:
    """What no single run shows, such as a trial run again only because it looked odd."""
    own = [run.result.member for run in runs if run.lab.name == lab.name]
    return [told.finding for told in check_set(lab, own)]


def _order(run: RunData) -> tuple[str, int, str, str, int, str]:
    plan = run.plan
    return plan.lab, plan.trial, plan.pitfall or "", plan.stage or "", plan.seed, plan.digest


def document(run: RunData) -> dict[str, Any]:
    """Return one run as JSON: what the report says of it, with every measured value."""
    interval = _interval(run)
    return {
        "run": run.name,
        **run.result.to_json(),
        "loss_interval": interval and {"low": interval[0], "high": interval[1], "confidence": 0.95},
        "ratio_error": _ratio_error(run),
        "provenance": run.provenance,
        "raw_sha256": run.digests,
    }


def _interval(run: RunData) -> tuple[float, float] | None:
    """The loss ratio's 95 % interval by Clopper and Pearson."""
    measured = run.result.measured
    drops, offered = measured.get("qdisc_drops"), measured.get("qdisc_offered_packets")
    if drops is None or not offered or not 0 <= drops <= offered:
        return None
    return loss_interval(int(drops), int(offered))


def _ratio_error(run: RunData) -> float | None:
    """How far chance alone takes the ratio, 95 %, from how many drops there were."""
    ratio, drops = run.result.ratio, run.result.measured.get("qdisc_drops")
    if ratio is None or drops is None:
        return None
    error = Z_95 * float(ratio) * relative_error_of_ratio(drops)
    return error if math.isfinite(error) else None


def _summary(runs: list[RunData]) -> Table:
    several = len({run.lab.name for run in runs}) > 1
    headings = [
        "trial", "stage", "seed", "RTT, ms", "MSS, B", "p set", "p measured", "95 % interval of p",
        "goodput, Mbit/s", "model, Mbit/s", "ratio", "findings",
    ]  # fmt: skip
    return Table(
        "One line a run. RTT, MSS, p and goodput are measured; the ratio is goodput over model, "
        "± what chance does to it in 95 % of runs with as many drops.",
        headings,
        [_summary_row(run, several) for run in runs],
        frozenset(range(2, 11)),
        links=[f"run-{number}" for number in range(1, len(runs) + 1)],
    )


def _summary_row(run: RunData, several: bool) -> list[str]:
    plan, result, measured = run.plan, run.result, run.result.measured
    use = run.lab.file.model
    interval, error = _interval(run), _ratio_error(run)
    ratio = number(result.ratio, "{:.2f}" if error is None or error >= 0.01 else "{:.3f}")
    if error is not None:
        ratio += "\u00a0±\u00a0" + (f"{error:.2f}" if error >= 0.01 else f"{error:.3f}")
    if result.ratio is not None and not result.comparable:
        ratio += " (no claim)"
    return [
        f"{plan.lab} {plan.trial}" if several else str(plan.trial),
        _stage(run) or NONE,
        str(plan.seed),
        number(measured.get("rtt_min_ms"), "{:.4g}"),
        number(measured.get("mss_bytes"), "{:.0f}"),
        number(plan.params.get(use.loss if use else "loss_ratio"), "{:.3g}"),
        number(measured.get("loss_ratio"), "{:.3g}"),
        f"{interval[0]:.3g}\u00a0to\u00a0{interval[1]:.3g}" if interval else NONE,
        number(measured.get("goodput_bps"), "{:.4g}", 1e-6),
        number(result.model_bps, "{:.4g}", 1e-6),
        ratio,
        ", ".join(finding.id for finding in result.findings) or "none",
    ]


def _stage(run: RunData) -> str:
    return f"{run.plan.pitfall}, {run.plan.stage}" if run.plan.pitfall else ""


def _section(position: int, run: RunData) -> Section:
    result = run.result
    stage = _stage(run)
    heading = f"Trial {run.plan.trial}" + (f", {stage}" if stage else "")
    measured = result.measured
    key = [[label, *_with_unit(n, measured[n])] for n, label in KEY_VALUES.items() if n in measured]
    model = result.model
    if model:
        name = f"bandwidth by the model ({model.name}, C = {model.constant:g})"
        key.append([name, *_with_unit("bandwidth_bps", model.bandwidth_bps)])
        key.append(["goodput over the model's bandwidth", number(result.ratio, "{:.4g}"), ""])
    return Section(
        id=f"run-{position}",
        heading=f"{heading}, seed {run.plan.seed}",
        title=result.title,
        not_compared=result.not_comparable_because if model else None,
        settings=_settings(run),
        validation=_validation(result.expectations),
        findings=result.findings,
        values=Table("Key values, measured", ["what", "value", "unit"], key, frozenset({1})),
        all_values=Table(
            "All that was measured, by its name in result.json",
            ["name", "value"],
            [[name, number(value, "{:.10g}")] for name, value in measured.items()],
            frozenset({1}),
        ),
        excerpts=run.excerpts,
        provenance=_provenance(run),
        provenance_missing=run.provenance is None,
        digests=Table(
            "SHA-256 of each raw file",
            ["file", "digest"],
            [[name, digest] for name, digest in run.digests.items()],
        ),
    )


def _settings(run: RunData) -> Table:
    lab, own = run.lab, run.lab.trials[run.plan.trial].set
    defaults = lab.defaults()
    rows = []
    for name, value in run.plan.params.items():
        meant = own.get(name, defaults.get(name))
        if value != meant:
            origin = f"CHANGED: {'not set' if meant is None else meant} in the trial"
        else:
            origin = "this trial" if name in own else "the lab"
        unit = UNITS.get(name.rsplit("_", 1)[-1], "") if not isinstance(value, str) else ""
        rows.append([name, str(value), unit, origin])
    # What was changed is what a reader looks for.
    rows.sort(key=lambda row: not row[3].startswith("CHANGED"))
    return Table(
        "Settings: those that differ from the trial's own come first",
        ["setting", "value", "unit", "set by"],
        rows,
        frozenset({1}),
        mark=3,
    )


def _validation(expectations: Sequence[Verdict]) -> Table:
    rows = []
    for each in expectations:
        low, high = (number(bound, "{:.6g}") for bound in (each.low, each.high))
        if each.low is None or each.high is None:
            span = f"at least {low}" if each.high is None else f"at most {high}"
            span = NONE if each.low is None and each.high is None else span
        else:
            span = low if low == high else f"{low} to {high}"
        value = number(each.value, "{:.6g}")
        rows.append([each.label, each.measured, value, span, MARKS[each.ok]])
    return Table(
        f"Validation: what was measured against what was asked for; {NONE} where nothing can be said",
        ["expectation", "measured", "value", "expected", "verdict"],
        rows,
        frozenset({2, 3}),
        mark=4,
    )


def _provenance(run: RunData) -> Table:
    said, plan = run.provenance or {}, run.plan
    machine = said.get("machine")
    rows = [
        ["run's folder", run.name],
        ["command", _plain(said.get("command"))],
        ["seed", str(plan.seed)],
        ["where", plan.where],
        ["kernel", plan.kernel],
        ["begun", _plain(said.get("started"))],
        ["ended", _plain(said.get("ended"))],
        ["Measure Twice", _plain(said.get("measuretwice"))],
        ["commit", _plain(said.get("git_commit"))],
        ["system", _plain(machine.get("system") if isinstance(machine, dict) else machine)],
        *([tool, version] for tool, version in plan.tools.items()),
        ["digest of the plan", plan.digest],
    ]
    return Table("Where this comes from", ["what", "said by the run's folder"], rows)


def _plain(value: object) -> str:
    if value is None:
        return "not recorded"
    return str(value) if isinstance(value, str | int | float) else json.dumps(value)


def number(value: object, form: str, scale: float = 1.0) -> str:
    """A number in the given form; a dash for what isn't one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return NONE
    return form.format(value * scale)


def _with_unit(name: str, value: object) -> list[str]:
    """A measured value and its unit, read from its name."""
    ending = name.rsplit("_", 1)[-1]
    if ending == "bps":
        return [number(value, "{:.5g}", 1e-6), "Mbit/s"]
    whole = isinstance(value, int)
    unit = {"ratio": "", "bytes": "B"}.get(ending, ending if ending in UNITS else "")
    return [number(value, "{:d}" if whole else "{:.5g}", 1), unit]


# Questions and answers


_ASKED = re.compile(r"^\*\*Question [0-9]+\.\*\* ([^\n]*)\n\nYour answer:\n\n", re.MULTILINE)
_ANSWER_ENDS = re.compile(r"^<!-- end of answer -->$", re.MULTILINE)


def read_answers(text: str) -> dict[str, str]:
    """Return the answers in an earlier report's Markdown, by the question as it stands there."""
    return {asked: answer for asked, answer in read_places(text).items() if answer.strip()}


def read_places(text: str) -> dict[str, str]:
    """Return what stands in each place for an answer, also where that is nothing."""
    places = {}
    for part in _ANSWER_ENDS.split(text)[:-1]:
        if asked := _ASKED.search(part):
            places[asked[1]] = part[asked.end() :].strip("\n")
    return places


# Text


# Control characters, and those that turn the direction of writing: none of them is meant to be read.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff\ud800-\udfff]"
)
_MARKDOWN = re.compile(r"([\\`*\[\]|~$#!])")


def clean(value: object) -> object:
    """Text without what a browser or terminal would obey; markup of our own as it is."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return _UNPRINTABLE.sub("\ufffd", value)


def markdown_text(value: object) -> Markup:
    """One line of text that Markdown shows as it is: in a paragraph, a heading or a cell."""
    if isinstance(value, Markup):
        return value
    text = " ".join(str(clean(str(value))).split())
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return Markup(_MARKDOWN.sub(r"\\\1", text))


def fence(text: str, language: str = "text") -> Markup:
    """A block that Markdown shows verbatim: its fence is longer than any in the text."""
    ticks = "`" * (1 + max([2, *(len(run) for run in re.findall("`+", text))]))
    return Markup(f"{ticks}{language}\n{clean(text)}\n{ticks}")


def _drawing(svg: str) -> Markup:
    """The <svg> element alone: what stands before it in a file has no place in HTML."""
    start = svg.find("<svg")
    return Markup(svg[start:] if start >= 0 else "")


def environment(*folders: Path, **options: Any) -> Environment:
    """The templates' room: what they are given is escaped, and what they lack is an error.

    Templates in `folders` can use the report's.
    """
    return Environment(
        loader=FileSystemLoader([*folders, TEMPLATES]),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        **options,
    )


def render_html(report: Report, figures: Sequence[tuple[str, str]] = ()) -> str:
    """Return the report as one HTML file. `figures` are captions and SVG texts of our own."""
    room = environment(finalize=clean)
    drawings = [(caption, _drawing(svg)) for caption, svg in figures]
    return room.get_template("report.html.j2").render(report=report, figures=drawings)


def render_markdown(report: Report, figures: Sequence[tuple[str, str]] = ()) -> str:
    """Return the same as Markdown. Of `figures` only the captions: drawings are in the HTML."""
    room = environment(finalize=markdown_text)
    room.filters |= {"fence": fence, "verbatim": Markup}
    captions = [caption for caption, _ in figures]
    text = room.get_template("report.md.j2").render(report=report, figures=captions)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"
