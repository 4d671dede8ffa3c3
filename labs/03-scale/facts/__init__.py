"""What the recorded runs of this lab say, by name, for its pages (measuretwice.facts)."""

from __future__ import annotations

from measuretwice.facts import Facts, RecordedSets

from .cases import set_cases
from .elsewhere import set_elsewhere
from .halves import set_halves
from .moves import set_moves
from .results import set_results
from .settings import set_settings
from .testbeds import set_testbeds
from .waits import set_waits


def facts(sets: RecordedSets) -> Facts:
    """Return the facts of the pages in docs/modules/03-scale/, and of the essay."""
    f = Facts()
    set_settings(f, sets)
    set_cases(f, sets)
    set_waits(f, sets)
    set_results(f, sets)
    set_elsewhere(f, sets)
    set_testbeds(f, sets)
    set_moves(f, sets)
    set_halves(f, sets)
    return f
