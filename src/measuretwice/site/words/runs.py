"""Recorded runs: their parameters, what was measured, where they come from, what follows from them."""

from __future__ import annotations

import json
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.runs.result import Result
from measuretwice.site.words.numbers import seconds
from measuretwice.site.words.registry import word
from measuretwice.site.words.subjects import LabWords


@word('recorded("long")')
def recorded(words: LabWords, name: str) -> bool:
    """Whether a set is recorded."""
    return words.sets.is_recorded(name)


@word('runs("long")')
def runs(words: LabWords, name: str) -> list[Result]:
    """All runs of a recorded set: of each `.params`, `.measured`, `.model`, `.ratio`,
    `.comparable`."""
    return words.results_of(name)


@word('run("mtu-broken")')
def run(words: LabWords, name: str, trial: int | None = None, seed: int | None = None) -> Result:
    """The run of a recorded set: `.params`, `.measured`, `.model`, `.ratio`, `.comparable`;
    `trial=`, `seed=` where it has several."""
    return words.sets.run(name, trial, seed)


@word('provenance("mtu-broken")')
def provenance(
    words: LabWords, name: str, trial: int | None = None, seed: int | None = None
) -> dict[str, Any]:
    """The run's `provenance.json`, and `.real_s`: how long it took by the clock on the wall."""
    found = run(words, name, trial, seed)
    file = found.run_dir / "provenance.json"
    document = dict(json.loads(file.read_text(encoding="utf-8")))
    return document | {"real_s": words.sets.real_s(found)}


@word('took("mtu-broken")')
def took(words: LabWords, name: str) -> str:
    """How long the runs of a recorded set took together, by the clock on the wall."""
    return seconds(sum(map(words.sets.real_s, runs(words, name))))


@word("steps", fact=True)
def steps(words: LabWords) -> list[str]:
    """The recorded sets that lead from the first try to the result, in order."""
    wanted = (recording.id for recording in words.lab.file.recordings if recording.step)
    return [name for name in wanted if recorded(words, name)]


@word("own.expected_ratio", fact=True, rare=True)
def expected_ratio(words: LabWords) -> tuple[float, float]:
    """The range in which lab.toml expects goodput over the model's bandwidth."""
    for expectation in words.lab.file.expect:
        low, high = expectation.min, expectation.max
        if expectation.measured == "ratio" and low is not None and high is not None:
            return low, high
    raise UserError(f"{words.lab.name}: lab.toml expects no range of the ratio")
