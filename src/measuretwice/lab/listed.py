"""Which of a lab's settings are listed: those of the experiment; those that tell a case's cause in their time.

A parameter that is `unlisted` in lab.toml is set like any other. Where settings are listed it stands only once
a case that is about it holds no secret any more, or where the student has set it.
"""

from __future__ import annotations

from collections.abc import Collection

from measuretwice.lab.lab import Lab
from measuretwice.lab.schema import Parameter, Pitfall


def settings_of(pitfall: Pitfall) -> set[str]:
    """Return the parameters that a case is about: those of both stages, and the one that decides."""
    decides = {pitfall.settled_by} if pitfall.settled_by else set()
    return {*pitfall.broken.set, *pitfall.fixed.set, *decides}


def listed_settings(
    lab: Lab, known_cases: Collection[int] = (), changed: Collection[str] = ()
) -> dict[str, Parameter]:
    """Return the settings to list, in their order: `known_cases` are those whose cause the student knows."""
    cases = enumerate(lab.file.pitfalls, start=1)
    due = {*changed}.union(*(settings_of(case) for n, case in cases if n in known_cases))
    return {
        name: parameter
        for name, parameter in lab.file.parameters.items()
        if not parameter.unlisted or name in due
    }
