"""A study's runs: which there are, which of them the plan has, and which were there before it; and the plan frozen.

STUDY/frozen.json    what the plan was when it was frozen, with its digest, its date and the runs that there were
"""

from __future__ import annotations

import difflib
import hashlib
import math
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from measuretwice.base.errors import UserError, shortened
from measuretwice.base.files import now, read_object, write_json
from measuretwice.course.study import PILOTS, PLAN_FILE, RUNS, Setting, Study, read_text_of
from measuretwice.lab import Lab, Plan, load_lab, select_trials
from measuretwice.runs.folder import PROVENANCE, finished_in, is_finished, runs_in
from measuretwice.runs.recorded import SET_FILE, read_set
from measuretwice.runs.remeasure import RunData, plan_in, read_run
from measuretwice.runs.result import Result

FROZEN_FILE = "frozen.json"
# How much further or nearer than the smallest difference that matters a limit may lie, and nothing is said of it.
LOOSE = 1.2
MOST_NAMED = 5
Place = Literal["pilot", "run", "elsewhere"]


@dataclass(frozen=True)
class FoundRun:
    """A finished run as its folder says it is: nothing of it is measured yet.

    `name` is its path below the study's folder, or as it was given; `setting` is A, B, or empty for a run of neither.
    `started` is the moment at which it began, by its provenance; empty where that isn't known.
    """

    name: str
    place: Place
    setting: str
    trial: int
    seed: int
    plan: str
    started: str = ""


@dataclass(frozen=True)
class Version:
    """The plan as it was frozen once: when, in UTC to the second; the SHA-256 of its text; the runs that there were."""

    frozen: str
    sha256: str
    text: str
    runs: tuple[FoundRun, ...] = ()

    @property
    def moment(self) -> datetime:
        return datetime.fromisoformat(self.frozen)

    @property
    def is_whole(self) -> bool:
        """Return whether the text is still that of the digest."""
        return digest_of_text(self.text) == self.sha256


@dataclass(frozen=True)
class Frozen:
    """The content of frozen.json: every version, the first one first."""

    versions: tuple[Version, ...] = ()


@dataclass(frozen=True)
class LineChange:
    """Lines of a plan that are others in a later text: where they stand in that, what they were, what they are."""

    line: int
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True)
class PlanDifference:
    """What became of a plan since it was first frozen. `steps` are the changes from each version to the next, the last
    of them to the text as it is now; `early` are the runs in the study's folder that were made before the first."""

    versions: tuple[Version, ...]
    changes: tuple[LineChange, ...]
    steps: tuple[tuple[LineChange, ...], ...]
    damaged: tuple[int, ...]
    early: tuple[FoundRun, ...]

    @property
    def is_unchanged(self) -> bool:
        return not self.changes and not any(self.steps) and not self.damaged


def digest_of_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def commands_for(
    study: Study, folder: Path, *, first_seed: int | None = None, per_trial: int | None = None
) -> list[str]:
    """Return the commands that make the plan's runs, or as many others from another seed on."""
    first = study.first_seed if first_seed is None else first_seed
    many = per_trial or study.per_trial
    return [_command(study, setting, folder, first, many) for setting in study.settings]


def _command(study: Study, setting: Setting, folder: Path, first_seed: int, many: int) -> str:
    words = ["./lab", "run", study.lab.name, "--trial", ",".join(map(str, setting.trials))]
    for name, value in setting.changes.items():
        words += ["--set", f"{name}={value}"]
    words += ["--seed", str(first_seed)]
    if many > 1:
        words += ["--repeat", str(many)]
    return shlex.join([*words, "--out", str(folder)])


def found_runs(root: Path, study: Study, folder: Path) -> list[FoundRun]:
    """Return the finished runs in a study's folder: pilots first, then those of the plan's runs."""
    return [
        *_runs_below(root, study, folder / PILOTS, folder, "pilot"),
        *_runs_below(root, study, folder / RUNS, folder, "run"),
    ]


def _runs_below(
    root: Path, study: Study, below: Path, folder: Path, place: Place
) -> Iterator[FoundRun]:
    for run in finished_in(below) if below.is_dir() else ():
        try:
            lab, plan = plan_in(root, run / "plan.json")
        except UserError:
            continue
        yield _found(study, lab, plan, run, str(run.relative_to(folder)), place)


def _found(study: Study, lab: Lab, plan: Plan, run: Path, name: str, place: Place) -> FoundRun:
    setting = study.setting_of(lab.name, plan.trial, plan.params, plan.where)
    letter = setting.letter if setting else ""
    return FoundRun(name, place, letter, plan.trial, plan.seed, plan.digest, _started(run))


def _started(run: Path) -> str:
    """Return when a run began, by its provenance, which proves nothing; empty where that says no moment."""
    try:
        given = read_object(run / PROVENANCE).get("started")
        moment = datetime.fromisoformat(str(given))
    except (OSError, ValueError, TypeError):
        return ""
    return moment.replace(tzinfo=moment.tzinfo or UTC).isoformat()


def runs_elsewhere(root: Path, study: Study) -> tuple[int, int]:
    """Return how many runs of the plan's settings lie in the checkout's runs/, and how many are recorded in sample-data/:
    whoever plans may have seen them."""
    own = sum(
        bool(run.setting)
        for run in _runs_below(
            root, study, root / "runs" / study.lab.name, root / "runs", "elsewhere"
        )
    )
    recorded = 0
    for path in sorted((root / "sample-data" / study.lab.folder.name).glob(f"[!.]*/{SET_FILE}")):
        results = [run.result for run in read_set(path.parent).runs]
        recorded += sum(bool(setting_of_result(study, result)) for result in results)
    return own, recorded


def setting_of_result(study: Study, result: Result) -> Setting | None:
    return study.setting_of(result.lab, result.trial, result.params)


def read_frozen(folder: Path) -> Frozen:
    """Return what a study's frozen.json holds, nothing where there is none. UserError where it is damaged."""
    path = folder / FROZEN_FILE
    if not path.exists() and not path.is_symlink():
        return Frozen()
    try:
        frozen = TypeAdapter(Frozen).validate_json(read_text_of(path, "what freeze wrote"))
        for version in frozen.versions:
            if version.moment.tzinfo is None:
                raise ValueError("a date without its zone")
    except ValueError:
        raise UserError(
            f"{path}: is damaged; take it from your archive or from version control, it can't be made again"
        ) from None
    return frozen


def freeze(root: Path, study: Study, folder: Path) -> Version | None:
    """Add the plan, as it is, to frozen.json; None where the last version has this text already. UserError where pilots have
    its seeds: what was looked at would be the data, too."""
    frozen = read_frozen(folder)
    if frozen.versions and frozen.versions[-1].text == study.text:
        return None
    runs = tuple(found_runs(root, study, folder))
    if same := _same_seeds(study, runs):
        raise UserError(f"{folder / PLAN_FILE}: not frozen, because {same}")
    moment = now().replace(microsecond=0).isoformat()
    version = Version(moment, digest_of_text(study.text), study.text, runs)
    content = asdict(replace(frozen, versions=(*frozen.versions, version)))
    try:
        write_json(folder / FROZEN_FILE, content)
    except OSError as error:
        raise UserError(f"{folder / FROZEN_FILE}: can't be written ({error.strerror})") from None
    return version


def same_seeds_lines(root: Path, study: Study, folder: Path) -> list[str]:
    """A line where pilots have seeds of the plan, as those that were made after it was frozen may have."""
    same = _same_seeds(study, found_runs(root, study, folder))
    return [f"{same[0].upper()}{same[1:]}."] if same else []


def _same_seeds(study: Study, runs: Sequence[FoundRun]) -> str:
    """Say which of the plan's seeds pilots have: a run with the same settings and seed is the same run again."""
    seeds = {run.seed for run in runs if run.place == "pilot" and run.setting}
    same = sorted(seeds.intersection(study.seeds))
    if not same:
        return ""
    named = ", ".join(map(str, same[:MOST_NAMED])) + ", ..." * bool(same[MOST_NAMED:])
    return (
        f"pilots have seeds of the plan ({named}), and a run with the same seed comes out the same, so these pilots would be "
        f"the data, too; choose another first_seed, such as {max(100, *seeds) + 1}"
    )


def is_early(run: FoundRun, first: Version) -> bool:
    """Return whether a run was made before a version: by its own date, or because it was there."""
    if any(run.plan == earlier.plan for earlier in first.runs):
        return True
    return bool(run.started) and datetime.fromisoformat(run.started) < first.moment


def difference_of(root: Path, study: Study | None, folder: Path) -> PlanDifference:
    """Return what became of a plan since it was first frozen; UserError where it wasn't. `study` is the plan as it is now,
    if that can be read, by which runs are found."""
    frozen = read_frozen(folder)
    if not frozen.versions:
        raise UserError(f"{folder}: isn't frozen yet; ./lab plan freeze {folder} does it")
    now_text = read_text_of(folder / PLAN_FILE, "a study's plan")
    texts = [*(version.text for version in frozen.versions), now_text]
    steps = tuple(line_changes(before, after) for before, after in pairwise(texts))
    damaged = tuple(
        number for number, version in enumerate(frozen.versions, 1) if not version.is_whole
    )
    runs = found_runs(root, study, folder) if study else []
    early = tuple(run for run in runs if is_early(run, frozen.versions[0]))
    return PlanDifference(frozen.versions, line_changes(texts[0], now_text), steps, damaged, early)


def line_changes(before: str, after: str) -> tuple[LineChange, ...]:
    """Return the lines that differ between two texts."""
    old, new = before.splitlines(), after.splitlines()
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return tuple(
        LineChange(b_from + 1, tuple(old[a_from:a_to]), tuple(new[b_from:b_to]))
        for kind, a_from, a_to, b_from, b_to in matcher.get_opcodes()
        if kind != "equal"
    )


# In words


def that_matters(study: Study) -> str:
    """Return the smallest difference with its unit; of a ratio it is a factor, which has none."""
    if study.rule.compare == "ratio":
        return f"a factor of {study.matters:g}"
    return f"{study.matters:g} {study.quantity.unit}".rstrip()


def limits_lines(study: Study) -> list[str]:
    """A line where the rule's limits don't fit the smallest difference that matters. A mean with one limit is compared
    with a number that only the claim has, so nothing can be said of it."""
    rule = study.rule
    is_ratio = rule.compare == "ratio"
    given = [limit for limit in (rule.above, rule.below) if limit is not None]
    scaled = math.log if is_ratio else float
    matters, limits = scaled(study.matters), [scaled(limit) for limit in given]
    room = (limits[-1] - limits[0]) / 2
    around = f"a factor of {math.exp(room):.4g}" if is_ratio else f"{room:.4g}"
    if len(limits) == 1:
        if rule.compare == "mean" or abs(limits[0]) <= LOOSE * matters:
            return []
        return [
            f"The limit {given[0]:g} is further from {1 if is_ratio else 0}, where A and B are the same, than the smallest difference "
            "that matters. That is right if the claim names such a number. If not, change the limit, or what matters."
        ]
    if room * LOOSE < matters:
        return [
            f"But your limits are only {around} from the middle between them, so a difference that is too small to matter would "
            "already refute the claim. Change the limits, or what matters."
        ]
    if room > matters * LOOSE:
        return [
            f"But your limits are {around} from the middle between them, so the claim would hold in spite of a difference that "
            "matters. That is right if the claim itself names so wide a range. If not, change the limits, or what matters."
        ]
    return []


def existing_lines(root: Path, study: Study, version: Version, first: Version) -> list[str]:
    """Lines on the data that exist when a version is frozen; the analysis leaves out what was there before the `first`."""
    runs = version.runs
    pilots = [run for run in runs if run.place == "pilot"]
    early = [run for run in runs if run.place == "run" and is_early(run, first)]
    own, recorded = runs_elsewhere(root, study)
    lines = [f"Pilots: {_by_setting(pilots)}." if pilots else "Pilots: none."]
    if early:
        lines.append(
            f"Made before the plan, in {RUNS}/: {_by_setting(early)}. The analysis leaves them out."
        )
        if any(run.setting and run.seed in study.seeds for run in early):
            lines.append(
                "The plan has their seeds, and a run with the same seed would come out the same. Choose another first_seed, "
                "and freeze again."
            )
    if own or recorded:
        lines.append(
            f"With the same settings there are {own} in the checkout's runs/ and "
            f"{recorded} recorded in sample-data/. State whether you have seen their values."
        )
    return lines


def _by_setting(runs: Sequence[FoundRun]) -> str:
    counts = Counter(run.setting for run in runs)
    words = [f"{counts[letter]} of {letter}" for letter in ("A", "B") if counts[letter]]
    return ", ".join(words + [f"{counts['']} of neither setting"] * bool(counts[""]))


def difference_lines(difference: PlanDifference) -> list[str]:
    first = difference.versions[0]
    lines = []
    if difference.changes:
        lines += [
            f"Changed since it was frozen, {when_frozen(first)}:",
            *_change_lines(difference.changes),
        ]
    else:
        lines.append(f"The same as it was frozen, {when_frozen(first)}. SHA-256 {first.sha256}")
    if len(difference.versions) > 1:
        for number, (version, step) in enumerate(
            zip(difference.versions[1:], difference.steps, strict=False), 2
        ):
            lines += [
                f"Frozen again as version {number}, {when_frozen(version)}:",
                *_change_lines(step),
            ]
        if difference.steps[-1]:
            lines += ["Changed since, and not frozen:", *_change_lines(difference.steps[-1])]
    lines += [
        f"Version {number} in frozen.json isn't the text of its digest: somebody has edited it."
        for number in difference.damaged
    ]
    for place, name in (("pilot", PILOTS), ("run", RUNS)):
        if runs := [run for run in difference.early if run.place == place]:
            lines.append(f"In {name}/, made before the plan was frozen: {_by_setting(runs)}")
            lines += [f"  {run.name}" for run in runs]
    if not difference.early:
        lines.append("No run in the study's folder was made before the plan was frozen.")
    return lines


def _change_lines(changes: Sequence[LineChange]) -> list[str]:
    lines = []
    for change in changes:
        lines.append(f"  line {change.line}")
        lines += [f"    - {line}" for line in change.before]
        lines += [f"    + {line}" for line in change.after]
    return lines


def when_frozen(version: Version) -> str:
    return f"{version.moment:%Y-%m-%d %H:%M:%S} UTC"


# Measured anew


@dataclass(frozen=True)
class MeasuredRun:
    """A run with what its raw files say by today's code, how many findings it raises, and their digests together; of a
    recorded set what that says."""

    listed: FoundRun
    result: Result
    findings: int = 0
    digest: str = ""


@dataclass
class MeasuredRuns:
    """Runs that were measured anew, and a line for each folder that can't be."""

    runs: list[MeasuredRun] = field(default_factory=list)
    unusable: list[str] = field(default_factory=list)


def read_pilot(root: Path, given: str) -> list[Result]:
    """Return the results that a pilot's name means: a run's folder, a folder of runs, a recorded set; with `:1-5` behind it
    those of these trials. UserError where there are none."""
    path, trials = Path(given), ""
    if not path.exists() and ":" in given:
        name, _, trials = given.rpartition(":")
        path = Path(name)
    if not path.is_dir():
        raise UserError(f"{path}: there is no such folder; a pilot is a folder of runs")
    if (path / SET_FILE).is_file():
        results = [run.result for run in read_set(path).runs]
    else:
        results = [
            read_run(root, run, run.name).result for run in runs_in(path) if is_finished(run)
        ]
    if trials and results:
        wanted = _numbers(root, results[0].lab, trials)
        results = [result for result in results if result.trial in wanted]
    if not results:
        raise UserError(f"{shortened(given, 200)}: has no finished run; ./lab run makes one")
    return results


def _numbers(root: Path, lab: str, trials: str) -> list[int]:
    try:
        return select_trials(load_lab(root, lab), trials)
    except UserError as error:
        raise UserError(f":{trials}: {str(error).removeprefix('--trial ')}") from None


def measured_runs(
    root: Path, study: Study, folder: Path, places: Sequence[Path] = ()
) -> MeasuredRuns:
    """Measure the study's runs anew from their raw files: those in its folder, or in other `places`."""
    read = MeasuredRuns()
    for place in places or [folder / RUNS]:
        if (place / SET_FILE).is_file():
            read.runs += _recorded(study, place)
            continue
        if not place.is_dir():
            read.unusable.append(f"{place}: there is no such folder; ./lab run makes it")
            continue
        for run in finished_in(place):
            name = str(run.relative_to(folder)) if run.is_relative_to(folder) else str(run)
            try:
                data = read_run(root, run, name)
            except UserError as error:
                read.unusable.append(str(error))
                continue
            listed = _found(study, data.lab, data.plan, run, name, "run")
            findings = len(data.result.findings)
            read.runs.append(MeasuredRun(listed, data.result, findings, digest_of_run(data)))
    return read


def digest_of_run(data: RunData) -> str:
    """Return one SHA-256 for all raw files of a run."""
    together = "".join(f"{value}  {key}\n" for key, value in sorted(data.digests.items()))
    return digest_of_text(together)


def _recorded(study: Study, place: Path) -> list[MeasuredRun]:
    """The runs of a recorded set, which has most of them without their raw files. They are older than any plan."""
    recorded = read_set(place)
    runs = []
    for run in recorded.runs:
        setting = setting_of_result(study, run.result)
        listed = FoundRun(
            str(place / run.name),
            "run",
            setting.letter if setting else "",
            run.result.trial,
            run.result.seed,
            run.run.rpartition("-")[2],
            f"{recorded.recorded}T00:00:00+00:00",
        )
        runs.append(MeasuredRun(listed, run.result, 0, run.raw_sha256))
    return runs
