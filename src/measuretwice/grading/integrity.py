"""Whose runs are these? Compared with the class's others, the recorded ones, and the seeds that were dealt.

The virtual kernel is deterministic: the same seed and settings make the same bytes, honestly. So the
same bytes prove something only where the seeds were dealt, where two runs claim different seeds, or
where they come from a testbed, whose tests never come out the same twice.

Of runs of one test that claim different seeds, the original is the one whose folder agrees with
itself and whose seed is its student's, or that came out the same when it was run again. Where several
do, nobody can say without running them. A test is known by iperf3's name for it, by all its bytes, or
by a raw file that is nearly the same.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Literal

from measuretwice.grading.answers import normalize_question
from measuretwice.grading.evidence import Recorded, RecordedTrace, alike_groups, few, same_words
from measuretwice.grading.roster import Roster
from measuretwice.grading.submission import Contents, StudentFiles, Submission, SubmittedRun
from measuretwice.lab import Lab, kernel_seed, read_questions
from measuretwice.runs.unpack import printable

Kind = Literal[
    "seed", "contradiction", "copy", "recorded", "again", "edited", "not shown", "words",
    "original", "same seed", "same bytes", "not again", "old",
]  # fmt: skip
# With these it is open whose run it is.
ODD = frozenset(
    {"seed", "contradiction", "copy", "recorded", "again", "edited", "not shown", "words"}
)
# What came of running it again.
AGAIN = frozenset({"same bytes", "again", "not again"})

# A submission's index and its run's name.
RunKey = tuple[int, str]


@dataclass(frozen=True)
class Remark:
    """A line on where a run comes from; of an answer, `run` is its question.

    Where it `is_odd`, whose run it is is open; where it `is_unsettled`, nothing in the folders tells.
    """

    kind: Kind
    run: str
    says: str
    is_unsettled: bool = False

    @property
    def is_odd(self) -> bool:
        return self.kind in ODD


@dataclass(frozen=True)
class Rerun:
    """What came of running a run again, in words; `same` says whether its bytes are, None where it
    could not be run."""

    same: bool | None
    says: str


@dataclass(frozen=True)
class Claim:
    """One row of the table of evidence: a run of the submission with this `index`, and what is known of
    its claim to its seed. `foreign_seed` says whose that is, where it isn't the student's."""

    index: int
    run: SubmittedRun
    foreign_seed: str = ""
    rerun: Rerun | None = None

    @property
    def key(self) -> RunKey:
        return self.index, self.run.run

    @property
    def is_proven(self) -> bool:
        """Return whether it came out the same when it was run again."""
        return bool(self.rerun and self.rerun.same)

    @property
    def is_consistent(self) -> bool:
        """Return whether nothing is known against it."""
        if self.rerun and self.rerun.same is not None:
            return self.rerun.same and not self.foreign_seed
        return self.run.agreement.is_of_one_run and not self.foreign_seed


def find_remarks(
    lab: Lab,
    submissions: Sequence[Submission],
    contents: Sequence[Contents],
    roster: Roster | None,
    recorded: Recorded,
    reruns: Mapping[RunKey, Rerun],
) -> list[list[Remark]]:
    """Return by submission what there is to say of where its runs and words come from."""
    table = _EvidenceTable(submissions, contents, roster, recorded, reruns)
    remarks: list[list[Remark]] = [[] for _ in contents]
    for claim in table.claims:
        remarks[claim.index] += table.remarks_on_run(claim)
    for index, content in enumerate(contents):
        for files in content.brought:
            remarks[index] += table.remarks_on_files(index, files)
    for claim in table.claims:
        if not claim.is_proven and _hides_its_mistake(lab, contents[claim.index], claim.run):
            says = "its plan is the broken run's, and its raw files show nothing of that"
            remarks[claim.index].append(Remark("not shown", claim.run.run, says))
    questions = {
        normalize_question(text): number for number, text in enumerate(read_questions(lab), start=1)
    }
    copied_from = table.copied_from()
    for (index, answer), others in same_words(contents, lab.name, questions).items():
        remarks[index].append(
            remark_on_words(answer, others, copied_from.get(index, set()), table.name)
        )
    return remarks


def _hides_its_mistake(lab: Lab, contents: Contents, run: SubmittedRun) -> bool:
    """Return whether its plan calls a run broken, and its raw files show nothing of the mistake."""
    if run.stage != "broken" or run.pitfall is None:
        return False
    pitfall = lab.pitfall(run.pitfall)
    # A mistake of a set of runs needs all of it to show.
    if pitfall.trials or pitfall.broken.repeat > 1 or pitfall.broken.again:
        return False
    raised = {finding.id for finding in run.findings}
    raised |= {finding.id for finding in contents.together if run.run in finding.runs}
    return pitfall.finding not in raised


class _EvidenceTable:
    """All runs of a class with their claims, and which submissions (by index) hold the same run or test."""

    def __init__(
        self,
        submissions: Sequence[Submission],
        contents: Sequence[Contents],
        roster: Roster | None,
        recorded: Recorded,
        reruns: Mapping[RunKey, Rerun],
    ) -> None:
        self.submissions, self.roster, self.recorded = submissions, roster, recorded
        self.dealt = roster is not None and bool(roster.by_seed)
        self.claims = [
            Claim(index, run, self._foreign_seed(index, run), reruns.get((index, run.run)))
            for index, content in enumerate(contents)
            for run in content.runs
        ]
        self.holders: dict[tuple[str, int] | str, set[int]] = defaultdict(set)
        self.seed_by_kernel_seed: dict[int, int] = {}
        # Code that read other runs right didn't misread one.
        self.right_code: set[str] = set()
        for claim in self.claims:
            run = claim.run
            self.holders[run.digest, run.kernel_seed].add(claim.index)
            for cookie in run.cookies:
                self.holders[cookie].add(claim.index)
            self.seed_by_kernel_seed.setdefault(run.kernel_seed, run.seed)
            if run.agreement.derived_by and not run.agreement.edits:
                self.right_code.add(run.agreement.derived_by)
        for index, content in enumerate(contents):
            for files in content.brought:
                for trace in (*files.digests, *files.cookies):
                    self.holders[trace].add(index)
        self.origins = find_origins(self.claims, recorded)

    def name(self, index: int) -> str:
        return self.submissions[index].name

    def copied_from(self) -> dict[int, set[int]]:
        """Return by submission those whose runs it claims under another seed."""
        sources: dict[int, set[int]] = defaultdict(set)
        for (index, _), origin in self.origins.items():
            if not origin.is_original:
                sources[index] |= {claim.index for claim in origin.originals} - {index}
        return sources

    def remarks_on_run(self, claim: Claim) -> Iterator[Remark]:
        run, rerun = claim.run, claim.rerun
        if claim.foreign_seed:
            yield Remark("seed", run.run, claim.foreign_seed)
        for line in self._contradictions(run):
            yield Remark("contradiction", run.run, line)
        if run.agreement.edits:
            what = f"result.json has other numbers than the raw files ({run.agreement.edits})"
            if run.agreement.same_code or run.agreement.derived_by in self.right_code:
                yield Remark("edited", run.run, what)
            else:
                yield Remark("old", run.run, f"{what}; another version of the kit had read them")
        if rerun:
            kind: Kind = (
                "not again" if rerun.same is None else "same bytes" if rerun.same else "again"
            )
            yield Remark(kind, run.run, rerun.says)
        if says := self._as_recorded(run):
            yield Remark("recorded", run.run, says)
        for other in sorted(self.holders[run.digest, run.kernel_seed] - {claim.index}):
            says = f"the same bytes as in the submission of {self.name(other)}"
            if not self.dealt:
                says = f"{says}: same seed, so the same bytes: that proves nothing"
                yield Remark("same seed", run.run, says)
            elif claim.foreign_seed:
                yield Remark("copy", run.run, says)
            else:
                yield Remark("same seed", run.run, f"{says}, but with this student's own seed")
        origin = self.origins.get(claim.key)
        # Where it claims not another seed than the original's, that is said already.
        if origin and (
            origin.is_original
            or not any(other.run.kernel_seed == run.kernel_seed for other in origin.originals)
        ):
            yield remark_on_origin(origin, claim, self.name)

    def remarks_on_files(self, index: int, files: StudentFiles) -> Iterator[Remark]:
        """A student's own files: of a testbed, no two tests are the same."""
        traces = (*files.digests, *files.cookies)
        others = sorted({other for trace in traces for other in self.holders[trace]} - {index})
        if others:
            whose = few([self.name(other) for other in others])
            says = (
                f"a test in common with the submission of {whose}, and two tests never are the same"
            )
            yield Remark("copy", files.folder, says)
        if any(cookie in self.recorded.tests for cookie in files.cookies):
            says = "a flow of a recorded run of the course, and not a testbed's"
            yield Remark("recorded", files.folder, says)

    def _foreign_seed(self, index: int, run: SubmittedRun) -> str:
        """Return whose seed it is, where it isn't the student's; else ""."""
        student = self.submissions[index].student
        if not self.dealt or student is None or run.seed in student.seeds:
            return ""
        return f"seed {printable(run.seed)} {self._dealt_to(run.seed)}"

    def _dealt_to(self, seed: int) -> str:
        owner = self.roster.owner(seed) if self.roster else None
        return f"was dealt to {owner.name}" if owner else "is none that was dealt"

    def _contradictions(self, run: SubmittedRun) -> Iterator[str]:
        """Yield what in the folder is of another run than the plan."""
        agreement = run.agreement
        for contradiction in agreement.contradictions:
            yield f"contradicts its plan: {contradiction}"
        files_by_seed: dict[int, list[str]] = defaultdict(list)
        for file, seed in agreement.seeds.items():
            files_by_seed[seed].append(file)
        if agreement.kernel_seed is not None:
            claimed_seed = self._seed_of(agreement.kernel_seed, run)
            if claimed_seed is None:
                yield "contradicts its plan: kernel_seed isn't that of the plan's seed"
            else:
                files_by_seed[claimed_seed].append("kernel_seed")
        for seed, files in files_by_seed.items():
            whose = f", which {self._dealt_to(seed)}," if self.dealt else ""
            yield f"has seed {printable(seed)}{whose} in {', '.join(files)}, and another in its plan"

    def _seed_of(self, wanted: int, run: SubmittedRun) -> int | None:
        """Return the seed of this kernel's seed, if it is one of the class's or a dealt one."""
        if wanted in self.seed_by_kernel_seed:
            return self.seed_by_kernel_seed[wanted]
        students = self.roster.students if self.roster else []
        dealt = [student.seed for student in students if student.seed is not None]
        return next(
            (seed for seed in (1, *dealt) if kernel_seed(run.lab, run.trial, seed) == wanted), None
        )

    def _as_recorded(self, run: SubmittedRun) -> str:
        if run.digest in self.recorded.digests:
            says = "same as the recorded run of the course"
            if self.dealt:
                return says
            return f"{says}; anyone who runs it with that seed gets the same, so it may be honest"
        # The same test, but other bytes: somebody has written into the files, or set something else.
        tests = self.recorded.tests
        same = [tests[cookie] for cookie in run.cookies if cookie in tests]
        if same and (self.dealt or (run.trial, run.seed) not in same):
            return "has a flow of a recorded run of the course, in other files or of another seed"
        return ""


# Runs of one test that claim different seeds


@dataclass(frozen=True)
class Origin:
    """What is known of a run whose test others claim under another seed.

    `others` are these. It `is_original`, or `originals` has those that are; of a recorded run `recorded`
    is set. Without any of these nobody can say. `file` is the raw file that is nearly the same; empty
    where other evidence spoke.
    """

    others: tuple[Claim, ...]
    file: str
    is_original: bool = False
    originals: tuple[Claim, ...] = ()
    recorded: RecordedTrace | None = None

    @property
    def weight(self) -> int:
        """The weight against the run: 0 nothing, 1 nobody can say, 2 it is somebody else's."""
        if self.is_original:
            return 0
        return 2 if self.originals or self.recorded else 1


def find_origins(claims: Sequence[Claim], recorded: Recorded) -> dict[RunKey, Origin]:
    """Return what is known of each run whose test somebody claims under another seed.

    A run may hold files of several tests: then what is said against it counts.
    """
    by_trace: dict[str, set[int]] = defaultdict(set)
    for index, claim in enumerate(claims):
        for trace in (*claim.run.cookies, claim.run.digest):
            by_trace[trace].add(index)
    groups = [("", sorted(indexes)) for indexes in by_trace.values()]
    groups += alike_groups(
        [
            *(claim.run.sketches for claim in claims),
            *(trace.sketches for trace in recorded.traces),
        ]
    )
    tests = [
        _Test(
            file,
            [claims[index] for index in indexes if index < len(claims)],
            [recorded.traces[index - len(claims)] for index in indexes if index >= len(claims)],
        )
        for file, indexes in groups
    ]
    origins: dict[RunKey, Origin] = {}
    disproved: set[RunKey] = set()
    # What is known for certain first: who is disproved by it is nobody's original.
    for test in sorted(filter(_Test.is_disputed, tests), key=_Test.doubt):
        for claim in test.claims:
            origin = test.origin_of(claim, disproved)
            if claim.key not in origins or origin.weight > origins[claim.key].weight:
                origins[claim.key] = origin
        disproved |= {claim.key for claim in test.claims if origins[claim.key].weight > 1}
    return origins


@dataclass(frozen=True)
class _Test:
    """Runs of one test by one piece of evidence (of a raw file, its name): the class's, and recorded ones."""

    file: str
    claims: list[Claim]
    recorded: list[RecordedTrace]

    def is_disputed(self) -> bool:
        """Return whether they claim different seeds."""
        seeds = {claim.run.kernel_seed for claim in self.claims}
        return len(seeds | {trace.kernel_seed for trace in self.recorded}) > 1

    def doubt(self) -> int:
        """The uncertainty about whose test it is: 0 for none."""
        if self.recorded:
            return 0
        if any(claim.is_proven for claim in self.claims):
            return 1
        return 1 + len({claim.run.kernel_seed for claim in self.claims if claim.is_consistent})

    def origin_of(self, claim: Claim, disproved: Set[RunKey]) -> Origin:
        seed = claim.run.kernel_seed
        others = tuple(other for other in self.claims if other.run.kernel_seed != seed)
        if self.recorded:
            same_seed = any(trace.kernel_seed == seed for trace in self.recorded)
            return Origin(others, self.file, is_original=same_seed, recorded=self.recorded[0])
        originals = [other for other in self.claims if other.is_proven] or [
            other for other in self.claims if other.is_consistent and other.key not in disproved
        ]
        if len({original.run.kernel_seed for original in originals}) != 1:
            return Origin(others, self.file)
        is_original = claim.is_consistent and originals[0].run.kernel_seed == seed
        return Origin(others, self.file, is_original, tuple(originals))


# In words


def remark_on_origin(origin: Origin, claim: Claim, name_of: Callable[[int], str]) -> Remark:
    """Say what follows of its origin for a run; `name_of` names a submission by its index."""

    def name(other: Claim) -> str:
        return "the same student" if other.index == claim.index else name_of(other.index)

    def shared(theirs: Mapping[str, str]) -> str:
        files, file = claim.run.files, origin.file
        same = sum(theirs.get(path) == digest for path, digest in files.items())
        nearly = f", {file} nearly so," if file in files and files[file] != theirs.get(file) else ""
        return f"{same} of {len(files)} raw files the same{nearly} as"

    run = claim.run.run
    if origin.recorded is not None and not origin.is_original:
        says = f"{shared(origin.recorded.files)} in the course's recorded run {origin.recorded.name}, with another seed"
        return Remark("recorded", run, says)
    whose = few(list(dict.fromkeys(name(other) for other in origin.others)))
    if origin.is_original:
        return Remark("original", run, f"the original, by its seed; also handed in by {whose}")
    if not origin.originals:
        says = f"{shared(origin.others[0].run.files)} in the submission of {whose}, whose plan has another seed or trial; --again shows whose it is"
        return Remark("copy", run, says, is_unsettled=True)
    original = origin.originals[0]
    says = f"{shared(original.run.files)} in the submission of {name(original)}, whose seed {printable(original.run.seed)} is right"
    return Remark("copy", run, f"{says} ({short_name(original.run.run)})")


def remark_on_words(
    answer: str, others: Set[int], copied_from: Set[int], name_of: Callable[[int], str]
) -> Remark:
    """Say whose words an answer has; those whose runs were copied wrote first, too."""
    if others <= copied_from:
        whose = few([name_of(other) for other in sorted(others)])
        return Remark(
            "original", answer, f"the original of the words that {whose} handed in as well"
        )
    whose = few([name_of(other) for other in sorted(others - copied_from)])
    says = f"the same words as in the submission of {whose}, and nothing here shows whose they were"
    return Remark("words", answer, says)


def advice(remarks: Sequence[Remark]) -> list[str]:
    """Return a line on what to do about runs that two claim; none where there are none."""
    runs = sum(remark.is_unsettled for remark in remarks)
    if not runs:
        return []
    claimed = f"{runs} runs are claimed" if runs > 1 else "1 run is claimed"
    return [
        f"{claimed} by two seeds, and nothing in the folders tells whose: ./lab grade ... --again all makes them again "
        "and decides"
    ]


def lines_of(remarks: Sequence[Remark]) -> list[str]:
    """Return remarks in words, a line for all runs of which the same is said."""
    by_words: dict[str, list[str]] = defaultdict(list)
    for remark in remarks:
        by_words[remark.says].append(short_name(remark.run))
    return [f"{says}: {few(runs)}" for says, runs in by_words.items()]


def short_name(run: str) -> str:
    """Return a run's name without the folders above it and the plan's digest, which pages have in full."""
    return re.sub(r"(-seed[0-9]+)-[0-9a-f]{8}$", r"\1", run.rsplit("/", 1)[-1])
