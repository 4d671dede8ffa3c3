"""Whose runs are these? Held against the others', the recorded ones, and the seeds that were dealt.

The virtual kernel is deterministic: the same seed and settings make the same bytes, honestly. So
the same bytes prove something only where the seeds were dealt, where two runs claim different
seeds, or where they come from a testbed, whose tests never come out the same twice.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from measuretwice.grading.read import cookies
from measuretwice.grading.roster import Roster, Student
from measuretwice.grading.unpack import shown
from measuretwice.lab import Lab
from measuretwice.runs.archive import ARCHIVE, raw_folder
from measuretwice.runs.recorded import SET_FILE, read_set

Run = dict[str, Any]
Kind = Literal["seed", "copy", "recorded", "same seed"]


Seeds = Literal["not dealt", "own", "other's"]


@dataclass(frozen=True)
class Remark:
    """What is odd about where a run comes from. Who made it is open then, unless it `proves_nothing`."""

    kind: Kind
    run: str
    says: str

    @property
    def proves_nothing(self) -> bool:
        return self.kind == "same seed"


def brief(run: str) -> str:
    """A run's name without the folders above it and the plan's digest: the page has it in full."""
    return re.sub(r"(-seed[0-9]+)-[0-9a-f]{8}$", r"\1", run.rsplit("/", 1)[-1])


def lines(found: Sequence[Remark]) -> list[str]:
    """Remarks in words, a line for all runs of which the same is said."""
    by_words: dict[str, list[str]] = defaultdict(list)
    for remark in found:
        by_words[remark.says].append(brief(remark.run))
    return [f"{says}: {_list(runs)}" for says, runs in by_words.items()]


@dataclass(frozen=True)
class Recorded:
    """The course's own runs of a lab: their raw files' digests, and of each test's cookie the
    trial and seed."""

    digests: frozenset[str]
    cookies: dict[str, tuple[int, int]]


def read_recorded(root: Path, lab: Lab) -> Recorded:
    """Read what sample-data/ has of a lab; nothing where it has none."""
    digests: set[str] = set()
    found: dict[str, tuple[int, int]] = {}
    for folder in sorted(path.parent for path in _sample(root, lab).glob(f"*/{SET_FILE}")):
        for recorded in read_set(folder).runs:
            digests.add(recorded.raw_sha256)
            run = recorded.result.place
            if (run / ARCHIVE).is_file():
                with raw_folder(run) as raw:
                    place = recorded.result.trial, recorded.result.seed
                    found |= dict.fromkeys(cookies(raw), place)
    return Recorded(frozenset(digests), found)


def _sample(root: Path, lab: Lab) -> Path:
    return root / "sample-data" / lab.folder.name


def remarks(
    names: list[str],
    documents: list[Run],
    students: list[Student | None],
    roster: Roster | None,
    recorded: Recorded,
) -> list[list[Remark]]:
    """Return for each submission (its name, what was read, whose it is) what is odd about its runs."""
    dealt = roster is not None and bool(roster.by_seed)
    by_digest: dict[str, set[int]] = defaultdict(set)
    by_cookie: dict[str, list[tuple[int, Run]]] = defaultdict(list)
    by_any: dict[str, set[int]] = defaultdict(set)
    by_file: dict[str, set[int]] = defaultdict(set)
    for place, document in enumerate(documents):
        for run in document["runs"]:
            by_digest[run["digest"]].add(place)
            for cookie in run["cookies"]:
                by_cookie[cookie].append((place, run))
                by_any[cookie].add(place)
        for brought in document["brought"]:
            for digest in brought["digests"]:
                by_file[digest].add(place)
            for cookie in brought["cookies"]:
                by_any[cookie].add(place)
    found: list[list[Remark]] = []
    for place, document in enumerate(documents):
        own: list[Remark] = []
        for run in document["runs"]:
            foreign = _foreign(run, students[place], roster) if dealt else None
            if foreign:
                own.append(Remark("seed", run["run"], foreign))
            own += _as_recorded(run, recorded, dealt)
            others = {one for one in by_digest[run["digest"]] if one != place}
            seeds: Seeds = "not dealt" if not dealt else "other's" if foreign else "own"
            own += _as_others(run, place, others, by_cookie, names, seeds)
        for brought in document["brought"]:
            same = {one for digest in brought["digests"] for one in by_file[digest]}
            same |= {one for cookie in brought["cookies"] for one in by_any[cookie]}
            if whose := _list(sorted(names[one] for one in same - {place})):
                said = f"a test in common with the submission of {whose}, and two tests never are the same"
                own.append(Remark("copy", brought["folder"], said))
            if any(cookie in recorded.cookies for cookie in brought["cookies"]):
                said = "a flow of a recorded run of the course, and not a testbed's"
                own.append(Remark("recorded", brought["folder"], said))
        found.append(own)
    return found


def _foreign(run: Run, student: Student | None, roster: Roster | None) -> str | None:
    if student is None or roster is None or run["seed"] in student.seeds:
        return None
    owner = roster.owner(run["seed"])
    whose = f"was dealt to {owner.name}" if owner else "is none that was dealt"
    return f"seed {shown(run['seed'])} {whose}"


def _as_recorded(run: Run, recorded: Recorded, dealt: bool) -> list[Remark]:
    if run["digest"] in recorded.digests:
        why = "" if dealt else "; who runs it with that seed gets the same, so it may be honest"
        return [Remark("recorded", run["run"], f"same as the recorded run of the course{why}")]
    # The same test, but other bytes: somebody has written into the files, or set something else.
    same = [recorded.cookies[cookie] for cookie in run["cookies"] if cookie in recorded.cookies]
    if same and (dealt or (run["trial"], run["seed"]) not in same):
        said = "has a flow of a recorded run of the course, in other files or of another seed"
        return [Remark("recorded", run["run"], said)]
    return []


def _as_others(
    run: Run,
    place: int,
    whole: set[int],
    by_cookie: dict[str, list[tuple[int, Run]]],
    names: list[str],
    seeds: Seeds,
) -> list[Remark]:
    """The same bytes, or one flow of iperf3's, under another's name."""
    told: dict[int, bool] = dict.fromkeys(whole, False)
    for cookie in run["cookies"]:
        for other, theirs in by_cookie[cookie]:
            if other != place:
                differ = (run["trial"], run["seed"]) != (theirs["trial"], theirs["seed"])
                told[other] = told.get(other, False) or differ
    found = []
    for other, differ in sorted(told.items()):
        what = "the same bytes" if other in whole else "a flow in common"
        said = f"{what} as in the submission of {names[other]}"
        if differ:
            found.append(
                Remark("copy", run["run"], f"{said}, whose plan says another seed or trial")
            )
        elif seeds == "not dealt":
            said = f"{said}: same seed, so the same bytes: that proves nothing"
            found.append(Remark("same seed", run["run"], said))
        elif seeds == "own":
            found.append(
                Remark("same seed", run["run"], f"{said}, but with this student's own seed")
            )
        else:
            found.append(Remark("copy", run["run"], said))
    return found


def _list(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
