"""Runs of one test that claim different seeds: which of them is the original?

A test is known by iperf3's name for it, by all its bytes, or by a raw file that is nearly the same. Two seeds never make that. Of
those who claim it, the original is the one whose folder agrees with itself and whose seed is its student's, or that came out the
same when it was run again. Where several do, nobody can say without running them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass

from measuretwice.grading.contents import OurRun
from measuretwice.grading.likeness import alike_pairs
from measuretwice.grading.recorded import Recorded, RecordedTrace
from measuretwice.grading.remarks import Remark, brief, few
from measuretwice.grading.unpack import shown


@dataclass(frozen=True)
class Claim:
    """A run of the submission in `place` with its claim to a seed. `fits`: nothing is known against it; `proven`: it came
    out the same when it was run again."""

    place: int
    run: OurRun
    fits: bool
    proven: bool = False

    @property
    def key(self) -> tuple[int, str]:
        return self.place, self.run.run


@dataclass(frozen=True)
class Origin:
    """What is known of a run whose test others claim under another seed.

    `others` are these. It `is_original`, or `originals` has those that are; of a recorded run `recorded` is set. Without any of
    these nobody can say. `file` is the raw file that is nearly the same; empty where other evidence spoke.
    """

    others: tuple[Claim, ...]
    file: str
    is_original: bool = False
    originals: tuple[Claim, ...] = ()
    recorded: RecordedTrace | None = None

    @property
    def weight(self) -> int:
        """How much it says against the run: nothing, that nobody can say, that it is somebody else's."""
        if self.is_original:
            return 0
        return 2 if self.originals or self.recorded else 1


def find_origins(claims: Sequence[Claim], recorded: Recorded) -> dict[tuple[int, str], Origin]:
    """Return what is known of each run whose test somebody claims under another seed, by place and name.

    A run may hold files of several tests: then what is said against it counts.
    """
    found: dict[tuple[int, str], Origin] = {}
    disproved: set[tuple[int, str]] = set()
    tests = [
        _Test(file, claims, recorded.traces, places)
        for file, places in _tests(claims, recorded.traces)
    ]
    # What is known for certain first: who is disproved by it is nobody's original.
    for test in sorted(tests, key=lambda test: test.doubt):
        for claim in test.claims if test.is_disputed else ():
            origin = test.origin_of(claim, disproved)
            if claim.key not in found or origin.weight > found[claim.key].weight:
                found[claim.key] = origin
        disproved |= {
            claim.key for claim in test.claims if claim.key in found and found[claim.key].weight > 1
        }
    return found


class _Test:
    """Runs of one test, by one piece of evidence: the class's, and recorded ones."""

    def __init__(
        self,
        file: str,
        claims: Sequence[Claim],
        traces: Sequence[RecordedTrace],
        places: Sequence[int],
    ) -> None:
        self.file = file
        self.claims = [claims[at] for at in places if at < len(claims)]
        self.recorded = [traces[at - len(claims)] for at in places if at >= len(claims)]

    @property
    def is_disputed(self) -> bool:
        """Do they claim different seeds?"""
        seeds = {claim.run.kernel_seed for claim in self.claims}
        return len(seeds | {each.kernel_seed for each in self.recorded}) > 1

    @property
    def doubt(self) -> int:
        """How uncertain it is whose test it is."""
        if self.recorded:
            return 0
        if any(claim.proven for claim in self.claims):
            return 1
        return 1 + len({claim.run.kernel_seed for claim in self.claims if claim.fits})

    def origin_of(self, claim: Claim, disproved: Set[tuple[int, str]]) -> Origin:
        seed = claim.run.kernel_seed
        others = tuple(other for other in self.claims if other.run.kernel_seed != seed)
        if self.recorded:
            is_theirs = any(each.kernel_seed == seed for each in self.recorded)
            return Origin(others, self.file, is_original=is_theirs, recorded=self.recorded[0])
        fitting = [each for each in self.claims if each.proven]
        fitting = fitting or [e for e in self.claims if e.fits and e.key not in disproved]
        if len({each.run.kernel_seed for each in fitting}) != 1:
            return Origin(others, self.file)
        is_original = claim.fits and fitting[0].run.kernel_seed == seed
        return Origin(others, self.file, is_original, tuple(fitting))


def _tests(
    claims: Sequence[Claim], traces: Sequence[RecordedTrace]
) -> Iterator[tuple[str, list[int]]]:
    """Places of runs that are of one test by one piece of evidence: first the claims', then the recorded runs'.

    With it the raw file that says so, or nothing.
    """
    pairs: dict[str, list[tuple[int, int]]] = defaultdict(list)
    first: dict[str, int] = {}
    for at, claim in enumerate(claims):
        for name in (*claim.run.cookies, claim.run.digest):
            pairs[f"\0{name}"].append((first.setdefault(name, at), at))
    everything = [*(claim.run.sketches for claim in claims), *(each.sketches for each in traces)]
    for one, other, name in alike_pairs(everything):
        pairs[name].append((one, other))
    for name, together in pairs.items():
        for members in _joined(together):
            yield "" if name.startswith("\0") else name, members


def _joined(pairs: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Who is together, directly or by others."""
    group: dict[int, list[int]] = {}
    for one, other in pairs:
        a, b = group.setdefault(one, [one]), group.setdefault(other, [other])
        if a is not b:
            a += b
            group |= dict.fromkeys(b, a)
    return [sorted(members) for at, members in group.items() if at == min(members) and members[1:]]


def remark_on(origin: Origin, place: int, run: OurRun, name_of: Callable[[int], str]) -> Remark:
    """Say what follows of it for one of the runs; `name_of` names a submission by its place."""
    if origin.recorded is not None and not origin.is_original:
        same = _shared(run.files, origin.recorded.files, origin.file)
        says = f"{same} in the course's recorded run {origin.recorded.name}, with another seed"
        return Remark("recorded", run.run, says)
    whose = few(list(dict.fromkeys(_name(other, place, name_of) for other in origin.others)))
    if origin.is_original:
        return Remark("original", run.run, f"the original, by its seed; also handed in by {whose}")
    if not origin.originals:
        same = _shared(run.files, origin.others[0].run.files, origin.file)
        says = f"{same} in the submission of {whose}, whose plan says another seed or trial; --again tells whose it is"
        return Remark("copy", run.run, says, is_unsettled=True)
    original = origin.originals[0]
    named = f"{_name(original, place, name_of)}, whose seed {shown(original.run.seed)} is right"
    same = _shared(run.files, original.run.files, origin.file)
    return Remark(
        "copy", run.run, f"{same} in the submission of {named} ({brief(original.run.run)})"
    )


def _name(claim: Claim, place: int, name_of: Callable[[int], str]) -> str:
    return "the same student" if claim.place == place else name_of(claim.place)


def _shared(files: dict[str, str], theirs: dict[str, str], file: str) -> str:
    same = sum(theirs.get(name) == digest for name, digest in files.items())
    nearly = f", {file} nearly so," if file in files and files[file] != theirs.get(file) else ""
    return f"{same} of {len(files)} raw files the same{nearly} as"
