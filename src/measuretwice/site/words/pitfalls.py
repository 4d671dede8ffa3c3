"""Pitfalls, the mistakes that a lab stages: their facts, their commands, their hints."""

from __future__ import annotations

import shlex
from decimal import Decimal

from measuretwice.lab import Value
from measuretwice.lab.schema.cases import Pitfall
from measuretwice.lab.schema.parameters import refers
from measuretwice.site.words.blocks import Block, hints_of_case
from measuretwice.site.words.lab_facts import trial
from measuretwice.site.words.registry import word
from measuretwice.site.words.subjects import LabWords


@word("pitfalls", fact=True)
def pitfalls(words: LabWords) -> list[Pitfall]:
    """The lab's mistakes, in order, each with its facts."""
    return words.lab.file.pitfalls


@word('pitfall("mtu")')
def pitfall(words: LabWords, wanted: str) -> Pitfall:
    """A mistake's facts, as lab.toml has them: `.id`, `.title`, `.symptom`, `.trial`, `.minutes`,
    `.hints` and more."""
    return words.lab.pitfall(wanted)


@word('stage_set("mtu", "broken")')
def stage_set(words: LabWords, name: str, stage: str) -> dict[str, Value]:
    """What a stage of a mistake changes in its trial; `=name` in lab.toml stands for that
    parameter, and is its value here."""
    staged = pitfall(words, name)
    params = trial(words, staged.trial)
    changes = staged.broken.set if stage == "broken" else staged.fixed.set
    return {
        key: params[str(value)[1:]] if str(value).startswith("=") else value
        for key, value in changes.items()
    }


@word('command("mtu", "broken")')
def command(words: LabWords, name: str, stage: str) -> str:
    """The command that runs a stage of a mistake, by its case's number."""
    return f"./lab run {words.lab.name} {case_options(words, name, stage)}"


def case_options(words: LabWords, name: str, stage: str) -> str:
    """Return the options of `./lab run` that run a stage of a mistake without naming it."""
    number = words.lab.case_number(pitfall(words, name))
    return f"--case {number}" + (" --show-me" if stage == "fixed" else "")


@word("settings(7, {...})")
def settings(words: LabWords, number: int, values: dict[str, Value]) -> list[str]:
    """Values over a trial's own as `--set` takes them: `loss_percent=0.006`, without exponents."""
    params = {**trial(words, number), **values}
    meant = {key: params[str(v)[1:]] if refers(v) else v for key, v in values.items()}
    return [
        f"{key}={value}" if isinstance(value, str) else f"{key}={Decimal(repr(value)):f}"
        for key, value in meant.items()
    ]


@word('elsewhere_command("mtu", 0, "broken")')
def elsewhere_command(words: LabWords, name: str, number: int, stage: str) -> str:
    """The command of a mistake's stage on the first (0) or next of its other trials."""
    other = pitfall(words, name).elsewhere[number]
    values = other.both | (other.broken if stage == "broken" else {})
    changes = "".join(
        f" --set {shlex.quote(each)}" for each in settings(words, other.trial, values)
    )
    return f"./lab run {words.lab.name} --trial {other.trial}{changes}"


@word('varied("mtu")')
def varied(words: LabWords, name: str) -> dict[str, tuple[float, float]]:
    """Which parameters of a mistake may be varied, from which to which value."""
    return words.lab.varied(pitfall(words, name))


@word('hints("mtu")')
def hints(words: LabWords, name: str) -> Block:
    """A mistake's three hints, each folded. The search leaves them out: it would tell the cause."""
    staged = pitfall(words, name)
    return hints_of_case(f"{words.lab.name} {words.lab.case_number(staged)}", staged.hints)
