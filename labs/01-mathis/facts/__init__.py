"""What the recorded runs of this lab say, by name, for its pages (measuretwice.facts)."""

from __future__ import annotations

from measuretwice.facts import Facts, RecordedSets

from .cases_1_to_7 import set_cases_1_to_7
from .cases_8_to_13 import set_cases_8_to_13
from .elsewhere import set_elsewhere
from .results import set_results
from .settings import set_settings
from .studies import set_studies


def facts(sets: RecordedSets) -> Facts:
    """Return the facts of the pages in docs/modules/01-mathis/."""
    f = Facts()
    set_settings(f, sets)
    set_cases_1_to_7(f, sets)
    set_cases_8_to_13(f, sets)
    set_results(f, sets)
    set_elsewhere(f, sets)
    set_studies(f, sets)
    return f
