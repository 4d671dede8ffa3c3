"""How alike are two raw files? A sketch of each, small enough to hold a whole class's against each other.

Two tests of different seeds have some long numbers in common: settings, and what comes before the first loss. Of one test,
nearly all are, also after somebody has written another cookie, port or time into it. So a sketch is of the long numbers of a
file in their order, without its times of day: the smallest of their rows' hashes (Broder, "On the resemblance and containment of
documents", 1997).
"""

from __future__ import annotations

import heapq
import re
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise

from measuretwice.lab import Lab, Value
from measuretwice.parse import ParseError, parse_tc_qdiscs

# With so many losses at random two seeds have little in common; with fewer, all that lies between them.
ENOUGH_LOSSES = 50
# As many as give the share of common rows to some four percent.
SKETCH = 128
# So many numbers that follow each other are taken together: single ones may be of a few that a tool can print.
IN_A_ROW = 3
# With fewer of these a file says too little of its test.
LEAST_ROWS = 40
# Share of rows in common from which on two files are of one test. Of two seeds it was an eighth at most, in every
# case of every lab.
ALIKE = 0.5
_NUMBER = re.compile(rb"[0-9][0-9.]{7,}")
# What tcpdump prints: sequence numbers from 0 on are the same for every seed.
_CAPTURE = re.compile(rb"\A[^\n]* > [^\n]*(?:: tcp|Flags \[|length)")
# Seconds since 1970 with a fraction: the first thing that somebody shifts, and the same for all in virtual time.
_TIME = re.compile(rb"[0-9]{10}\.[0-9]+")

Sketch = tuple[int, ...]


def sketch(content: bytes) -> Sketch | None:
    """Return the sketch of a raw file; None where it has too few long numbers to tell it from others."""
    numbers = [text for text in _NUMBER.findall(content) if not _TIME.fullmatch(text)]
    rows = {
        b" ".join(each) for each in zip(*(numbers[at:] for at in range(IN_A_ROW)), strict=False)
    }
    if len(rows) < LEAST_ROWS:
        return None
    return tuple(heapq.nsmallest(SKETCH, set(map(zlib.crc32, rows))))


def sketches(lab: Lab, params: Mapping[str, Value], raw: Mapping[str, bytes]) -> dict[str, Sketch]:
    """Return the sketches of a run's raw files, by name; none of a run in which the seed decides too little."""
    if not _is_random(lab, params, raw):
        return {}
    found = ((n, sketch(content)) for n, content in raw.items() if not _CAPTURE.search(content))
    return {name: each for name, each in found if each}


def _is_random(lab: Lab, params: Mapping[str, Value], raw: Mapping[str, bytes]) -> bool:
    """Is chance at work in it: hosts that take a random time, or losses at random?"""
    edges = lab.file.topology.edges
    if edges and params.get(edges.processing):
        return True
    for name, content in raw.items():
        if name.endswith("/qdisc.after.json"):
            try:
                qdiscs = parse_tc_qdiscs(content.decode(errors="replace"), name)
            except ParseError:
                continue
            # What a full queue dropped follows from the settings; and of packets that an offload made large, few are lost.
            losses = (
                min(q.drops or 0, (q.loss_ratio or 0) * (q.sent_packets or 0)) for q in qdiscs
            )
            if max(losses, default=0) >= ENOUGH_LOSSES:
                return True
    return False


def likeness(one: Sketch, other: Sketch) -> float:
    """Estimate which share of two files' rows of numbers, 0 to 1, stands in both."""
    a, b = set(one), set(other)
    smallest = heapq.nsmallest(SKETCH, a | b)
    return sum(number in a and number in b for number in smallest) / len(smallest)


def alike_pairs(runs: Sequence[Mapping[str, Sketch]]) -> Iterator[tuple[int, int, str]]:
    """Yield places of two runs that have a file of one test, by its name; each name on its own.

    Of runs with the very same sketch only neighbours are paired: who puts pairs together gets them all.
    """
    by_name: dict[str, dict[Sketch, list[int]]] = defaultdict(lambda: defaultdict(list))
    for place, run in enumerate(runs):
        for name, each in run.items():
            by_name[name][each].append(place)
    for name, by_sketch in by_name.items():
        for places in by_sketch.values():
            for one, other in pairwise(places):
                yield one, other, name
        sets = {each: frozenset(each) for each in by_sketch}
        for a, b in combinations(by_sketch, 2):
            # The number of common hashes is a bound, and quicker to find.
            enough = 2 * len(sets[a] & sets[b]) >= ALIKE * min(len(a), len(b))
            if enough and likeness(a, b) >= ALIKE:
                yield by_sketch[a][0], by_sketch[b][0], name
