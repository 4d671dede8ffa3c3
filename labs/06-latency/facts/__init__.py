"""What the recorded runs of this lab say, by name, for its pages (measuretwice.facts)."""

from __future__ import annotations

from measuretwice.facts import Facts, RecordedSets

from .cases import set_cases
from .readings import set_readings
from .results import set_results
from .settings import set_settings


def facts(sets: RecordedSets) -> Facts:
    """Return the facts of the pages in docs/modules/06-latency/."""
    f = Facts()
    set_settings(f, sets)
    set_cases(f, sets)
    set_results(f, sets)
    set_readings(f, sets)
    return f
