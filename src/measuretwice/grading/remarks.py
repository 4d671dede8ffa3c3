"""What there is to say of where a run comes from, and how it is said."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "seed", "contradiction", "copy", "recorded", "again", "edited", "not shown", "words",
    "original", "same seed", "same bytes", "not again", "old",
]  # fmt: skip
# Of the others, nothing follows for whose run it is.
ODD = frozenset(
    {"seed", "contradiction", "copy", "recorded", "again", "edited", "not shown", "words"}
)
# What came of running it again.
AGAIN = frozenset({"same bytes", "again", "not again"})
MAX_NAMES = 3


@dataclass(frozen=True)
class Remark:
    """What is to be said of where a run comes from; of an answer, `run` is its question.

    Where it `is_odd`, who made the run is open; where it `is_unsettled`, nothing in the folders tells.
    """

    kind: Kind
    run: str
    says: str
    is_unsettled: bool = False

    @property
    def is_odd(self) -> bool:
        return self.kind in ODD


@dataclass(frozen=True)
class Remade:
    """What came of a run that was run again: the same bytes, or which files differ; `same` is None where it
    could not be run again. In words."""

    same: bool | None
    says: str


def advice(remarks: Sequence[Remark]) -> list[str]:
    """What to do about runs that two claim, in a line; none where there are none."""
    runs = sum(remark.is_unsettled for remark in remarks)
    if not runs:
        return []
    many = f"{runs} runs are claimed" if runs > 1 else "1 run is claimed"
    return [
        f"{many} by two seeds, and nothing in the folders tells whose: ./lab grade ... --again all makes them again "
        "and decides"
    ]


def brief(run: str) -> str:
    """A run's name without the folders above it and the plan's digest: the page has it in full."""
    return re.sub(r"(-seed[0-9]+)-[0-9a-f]{8}$", r"\1", run.rsplit("/", 1)[-1])


def lines(remarks: Sequence[Remark]) -> list[str]:
    """Remarks in words, a line for all runs of which the same is said."""
    by_words: dict[str, list[str]] = defaultdict(list)
    for remark in remarks:
        by_words[remark.says].append(brief(remark.run))
    return [f"{says}: {few(runs)}" for says, runs in by_words.items()]


def few(names: Sequence[str]) -> str:
    """Some names, and how many more there are."""
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more
