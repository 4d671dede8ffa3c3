"""Names of parameters that may be meant by one that isn't known."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping

from measuretwice.lab.schema.parameters import UNITS, Parameter

# So many names are offered for one that isn't known.
MOST_OFFERED = 5
# Words that stand in too many meanings to ask for one of them.
EMPTY = frozenset(
    "the and for with what how who its all each one first may that between before is are was set unless "
    "number test time data link path tcp iperf3 nothing else idle together".split()
)


def near_settings(parameters: Mapping[str, Parameter], asked: str) -> list[str]:
    """Return names that may be meant by one that isn't known: near in letters, or with one of its words.

    Whoever names a thing knows of it: so those that are unlisted are found, too, where no other is.
    """
    words = {
        word
        for word in re.findall(r"[a-z0-9]+", asked.casefold())
        if len(word) > 2 and word not in EMPTY and word not in UNITS
    }
    close = difflib.get_close_matches(asked.casefold(), parameters, n=2, cutoff=0.75)
    named = [
        name
        for name in parameters
        if any(part.startswith(word) for word in words for part in name.split("_"))
    ]
    meant = [
        name
        for name, parameter in parameters.items()
        if words & {*re.findall(r"[a-z0-9]+", parameter.help.casefold())}
    ]
    found = list(dict.fromkeys([*close, *named] or meant))
    listed = [name for name in found if not parameters[name].unlisted]
    return (listed or found)[:MOST_OFFERED]
