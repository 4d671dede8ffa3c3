"""Whose runs are these? Held against the others', the recorded ones, and the seeds that were dealt.

The virtual kernel is deterministic: the same seed and settings make the same bytes, honestly. So the same bytes prove something
only where the seeds were dealt, where two runs claim different seeds, or where they come from a testbed, whose tests never come
out the same twice. Of two runs that claim different seeds the original is the one whose folder agrees with itself, or that came out
the same when it was run again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from measuretwice.grading.contents import BroughtFiles, Contents, OurRun
from measuretwice.grading.originals import Claim, find_origins, remark_on
from measuretwice.grading.recorded import Recorded
from measuretwice.grading.remarks import Kind, Remade, Remark, few
from measuretwice.grading.roster import Roster, Student
from measuretwice.grading.submissions import Submission
from measuretwice.grading.unpack import shown
from measuretwice.lab import kernel_seed


class WholeClass:
    """Which submissions, by their place, hold the same run, the same test, the same file.

    `contents` are in the submissions' order; `remade` is what came of runs that were run again, by their submission's place and their name.
    """

    def __init__(
        self,
        submissions: Sequence[Submission],
        contents: Sequence[Contents],
        roster: Roster | None,
        recorded: Recorded,
        remade: Mapping[tuple[int, str], Remade],
    ) -> None:
        self.submissions, self.contents, self.roster = submissions, contents, roster
        self.recorded, self.remade = recorded, remade
        self.dealt = roster is not None and bool(roster.by_seed)
        self.same_runs: dict[tuple[str, int], set[int]] = defaultdict(set)
        self.by_cookie: dict[str, set[int]] = defaultdict(set)
        self.by_file: dict[str, set[int]] = defaultdict(set)
        # By kernel's seed, which seeds there are that it may be of.
        self.seeds_by_kernel: dict[int, int] = {}
        for place, content in enumerate(contents):
            for run in content.runs:
                self.same_runs[run.digest, run.kernel_seed].add(place)
                self.seeds_by_kernel.setdefault(run.kernel_seed, run.seed)
                for cookie in run.cookies:
                    self.by_cookie[cookie].add(place)
            for files in content.brought:
                for digest in files.digests:
                    self.by_file[digest].add(place)
                for cookie in files.cookies:
                    self.by_cookie[cookie].add(place)
        # Code that read other runs right didn't misread one.
        self.reads_right = {
            run.agreement.derived_by
            for content in contents
            for run in content.runs
            if run.agreement.derived_by and not run.agreement.edits
        }
        self.origins = find_origins(self._claims(), recorded)

    def _claims(self) -> list[Claim]:
        """Every run of the class with what is known of whether its seed is its own."""
        claims = []
        for place, content in enumerate(self.contents):
            for run in content.runs:
                again = self.remade.get((place, run.run))
                foreign = self._foreign(place, run) is not None
                fits = run.agreement.is_of_one_run and not foreign
                if again and again.same is not None:
                    fits = again.same and not foreign
                claims.append(Claim(place, run, fits, bool(again and again.same)))
        return claims

    def name(self, place: int) -> str:
        return self.submissions[place].name

    def remarks_on(self, place: int) -> list[Remark]:
        """Return what is to be said of where a submission's runs come from."""
        content = self.contents[place]
        of_runs = [remark for run in content.runs for remark in self._of_run(place, run)]
        return of_runs + [
            remark for files in content.brought for remark in self._of_files(place, files)
        ]

    def copied_from(self) -> dict[int, set[int]]:
        """Whose runs does a submission claim under another seed? By places."""
        found: dict[int, set[int]] = defaultdict(set)
        for (place, _), origin in self.origins.items():
            if not origin.is_original:
                found[place] |= {each.place for each in origin.originals} - {place}
        return found

    def _of_run(self, place: int, run: OurRun) -> list[Remark]:
        foreign = self._foreign(place, run) if self.dealt else None
        return [
            *([Remark("seed", run.run, foreign)] if foreign else []),
            *self._contradictions(place, run),
            *self._again(place, run),
            *self._as_recorded(run),
            *self._same_seed(place, run, own=self.dealt and not foreign),
            *self._origin(place, run),
        ]

    def _foreign(self, place: int, run: OurRun) -> str | None:
        """Whose seed it is, where it isn't the student's."""
        student: Student | None = self.submissions[place].student
        if not self.dealt or student is None or run.seed in student.seeds:
            return None
        return f"seed {shown(run.seed)} {self._dealt_to(run.seed)}"

    def _dealt_to(self, seed: int) -> str:
        owner = self.roster.owner(seed) if self.roster else None
        return f"was dealt to {owner.name}" if owner else "is none that was dealt"

    def _contradictions(self, place: int, run: OurRun) -> list[Remark]:
        """What in the folder is of another run than the plan."""
        said = run.agreement
        lines = [f"contradicts its plan: {each}" for each in said.contradictions]
        by_seed: dict[int, list[str]] = defaultdict(list)
        for where, seed in said.seeds.items():
            by_seed[seed].append(where)
        if said.kernel_seed is not None:
            known = self._seed_of(said.kernel_seed, run)
            if known is None:
                lines.append("contradicts its plan: kernel_seed isn't that of the plan's seed")
            else:
                by_seed[known].append("kernel_seed")
        for seed, places in by_seed.items():
            whose = f", which {self._dealt_to(seed)}," if self.dealt else ""
            lines.append(
                f"has seed {shown(seed)}{whose} in {', '.join(places)}, and another in its plan"
            )
        found = [Remark("contradiction", run.run, line) for line in lines]
        if said.edits:
            what = f"result.json has other numbers than the raw files ({said.edits})"
            sure = said.same_code or said.derived_by in self.reads_right
            why = "" if sure else "; another version of the kit had read them"
            found.append(Remark("edited" if sure else "old", run.run, what + why))
        return found

    def _seed_of(self, wanted: int, run: OurRun) -> int | None:
        """Of which seed is it the kernel's, among the class's and the dealt ones?"""
        if wanted in self.seeds_by_kernel:
            return self.seeds_by_kernel[wanted]
        dealt = [student.seed for student in (self.roster.students if self.roster else [])]
        for seed in [1, *(seed for seed in dealt if seed is not None)]:
            if kernel_seed(run.lab, run.trial, seed) == wanted:
                return seed
        return None

    def _again(self, place: int, run: OurRun) -> list[Remark]:
        again = self.remade.get((place, run.run))
        if again is None:
            return []
        kind: Kind = "not again" if again.same is None else "same bytes" if again.same else "again"
        return [Remark(kind, run.run, again.says)]

    def _as_recorded(self, run: OurRun) -> list[Remark]:
        if run.digest in self.recorded.digests:
            why = (
                ""
                if self.dealt
                else "; who runs it with that seed gets the same, so it may be honest"
            )
            return [Remark("recorded", run.run, f"same as the recorded run of the course{why}")]
        # The same test, but other bytes: somebody has written into the files, or set something else.
        cookies = self.recorded.cookies
        same = [cookies[cookie] for cookie in run.cookies if cookie in cookies]
        if same and (self.dealt or (run.trial, run.seed) not in same):
            says = "has a flow of a recorded run of the course, in other files or of another seed"
            return [Remark("recorded", run.run, says)]
        return []

    def _same_seed(self, place: int, run: OurRun, *, own: bool) -> list[Remark]:
        """The very same bytes in another's hand-in, and the same seed claimed for them."""
        found = []
        for other in sorted(self.same_runs[run.digest, run.kernel_seed] - {place}):
            says = f"the same bytes as in the submission of {self.name(other)}"
            if not self.dealt:
                says = f"{says}: same seed, so the same bytes: that proves nothing"
                found.append(Remark("same seed", run.run, says))
            elif own:
                found.append(
                    Remark("same seed", run.run, f"{says}, but with this student's own seed")
                )
            else:
                found.append(Remark("copy", run.run, says))
        return found

    def _origin(self, place: int, run: OurRun) -> list[Remark]:
        """What follows from runs of one test that claim different seeds."""
        origin = self.origins.get((place, run.run))
        if origin is None or not (origin.others or origin.recorded):
            return []
        if (
            any(each.run.kernel_seed == run.kernel_seed for each in origin.originals)
            and not origin.is_original
        ):
            # It doesn't claim another seed, but another's: that is said already.
            return []
        return [remark_on(origin, place, run, self.name)]

    def _of_files(self, place: int, files: BroughtFiles) -> list[Remark]:
        """A student's own files: of a testbed, no two tests are the same."""
        same = {other for digest in files.digests for other in self.by_file[digest]}
        same |= {other for cookie in files.cookies for other in self.by_cookie[cookie]}
        remarks = []
        if whose := few([self.name(other) for other in sorted(same - {place})]):
            says = (
                f"a test in common with the submission of {whose}, and two tests never are the same"
            )
            remarks.append(Remark("copy", files.folder, says))
        if any(cookie in self.recorded.cookies for cookie in files.cookies):
            says = "a flow of a recorded run of the course, and not a testbed's"
            remarks.append(Remark("recorded", files.folder, says))
        return remarks
