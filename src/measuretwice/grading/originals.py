"""Runs of one test that claim different seeds: which of them is the original?

A test is known by iperf3's name for it, by all its bytes, or by a raw file that is nearly the same. Two seeds never make that. Of
those who claim it, the original is the one whose folder agrees with itself and whose seed is its student's, or that came out the
same when it was run again. Where several do, nobody can say without running them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
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
    for file, members in _tests(claims, recorded.traces):
        ours = [claims[at] for at in members if at < len(claims)]
        traces = [recorded.traces[at - len(claims)] for at in members if at >= len(claims)]
        seeds = {claim.run.kernel_seed for claim in ours} | {each.kernel_seed for each in traces}
        for claim in ours if len(seeds) > 1 else []:
            key, origin = (claim.place, claim.run.run), _origin(claim, ours, traces, file)
            if key not in found or origin.weight > found[key].weight:
                found[key] = origin
    return found


def _origin(
    claim: Claim, ours: Sequence[Claim], traces: Sequence[RecordedTrace], file: str
) -> Origin:
    seed = claim.run.kernel_seed
    others = tuple(other for other in ours if other.run.kernel_seed != seed)
    if traces:
        is_theirs = any(each.kernel_seed == seed for each in traces)
        return Origin(others, file, is_original=is_theirs, recorded=traces[0])
    fitting = [each for each in ours if each.proven] or [each for each in ours if each.fits]
    if len({each.run.kernel_seed for each in fitting}) != 1:
        return Origin(others, file)
    is_original = claim.fits and fitting[0].run.kernel_seed == seed
    return Origin(others, file, is_original, tuple(fitting))


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
        return Remark("copy", run.run, says)
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
