"""A lab: the facts in its lab.toml, its trials, and what follows from them; and a student's first try of it, once some cases are solved.

The recorded steps of the first try have one order, students have theirs. So a step counts by what it changes: the
settings that differ between its recorded set and the one before. What the solved cases change is
changed, whatever else is still as in the first try.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from measuretwice.base.errors import UserError, shortened
from measuretwice.lab.schema import LabFile
from measuretwice.lab.schema.cases import FirstTry, Pitfall, Recording, Shown, Stage
from measuretwice.lab.schema.parameters import Parameter, Value, refers, suggestions

# More numbers than any lab has trials: a typing error.
MOST_NUMBERS = 100_000


@dataclass(frozen=True)
class Trial:
    """One trial: its number, what it is called, and the parameters that it sets.

    `notes` are the columns of a table of trials that are no parameters.
    """

    number: int
    title: str
    set: dict[str, Value]
    notes: dict[str, str]

    def title_with(self, params: Mapping[str, Value]) -> str:
        """Return the title of a run with these parameters: where it names a value, the run's own."""
        parts = []
        for part in self.title.split(", "):
            name = part.split(" ")[0]
            changed = name in self.set and params[name] != self.set[name]
            parts.append(f"{name} {params[name]}" if changed else part)
        return ", ".join(parts)


# Two objects are two labs, whatever their files say: what is kept by lab is kept by object.
@dataclass(frozen=True, eq=False)
class Lab:
    """A lab read from its `folder`, labs/NN-<name>/: the validated lab.toml, and its trials."""

    folder: Path
    file: LabFile
    trials: dict[int, Trial]

    @property
    def name(self) -> str:
        return name_of(self.folder)

    @property
    def path(self) -> Path:
        return self.folder / "lab.toml"

    @property
    def shown_path(self) -> str:
        """The path of lab.toml from the labs folder on, for messages."""
        return short_path(self.path)

    def defaults(self) -> dict[str, Value]:
        """Return the parameters that have a default, with it."""
        return {
            name: parameter.default
            for name, parameter in self.file.parameters.items()
            if parameter.default is not None
        }

    def pitfall(self, wanted: str) -> Pitfall:
        for pitfall in self.file.pitfalls:
            if pitfall.id == wanted:
                return pitfall
        # Their names say what is wrong: who asks for a wrong one is told none of them.
        raise UserError(
            f"--pitfall {wanted}: {self.name} has none of this id; students have --case N"
        )

    def case(self, number: int) -> Pitfall:
        """Return the pitfall that students know by this number, from 1."""
        if 1 <= number <= len(self.file.pitfalls):
            return self.file.pitfalls[number - 1]
        numbers = f"cases 1 to {len(self.file.pitfalls)}" if self.file.pitfalls else "no cases"
        raise UserError(f"--case {number}: {self.name} has {numbers}")

    def case_number(self, pitfall: Pitfall) -> int:
        """Return the number by which students know a pitfall."""
        return 1 + [candidate.id for candidate in self.file.pitfalls].index(pitfall.id)

    def set_name(self, name: str) -> str:
        """Return the folder's name of a recorded set, which names a case by its number.

        Who writes pages may call `mtu-broken` what is `case-05-broken` in sample-data/.
        """
        pitfall, _, stage = name.rpartition("-")
        for number, candidate in enumerate(self.file.pitfalls, start=1):
            if candidate.id == pitfall and stage in ("broken", "fixed"):
                return f"case-{number:02d}-{stage}"
        return name

    def staged(
        self, *, pitfall: str | None, stage: Literal["broken", "fixed"] | None, case: int | None
    ) -> Stage | None:
        """Return what a plan's pitfall and stage, or its case, change; None where it has neither."""
        if case is not None:
            return self.case(case).stage(stage or "broken")
        return self.pitfall(pitfall).stage(stage) if pitfall and stage else None

    def varied(self, pitfall: Pitfall) -> dict[str, tuple[float, float]]:
        """Return the lowest and highest value of each parameter that a pitfall may vary."""
        fixed = {**self.defaults(), **self.trials[pitfall.trial].set, **pitfall.fixed.set}
        ranges = {}
        for name, factors in pitfall.vary.items():
            value = fixed.get(name)
            if not isinstance(value, int | float):
                raise self.problem(
                    f"pitfalls: {pitfall.id}: vary", f"{name!r} has no number to vary"
                )
            ranges[name] = (factors.low * value, factors.high * value)
        return ranges

    def varied_by(self, pitfall: Pitfall, seed: int) -> dict[str, Value]:
        """Return the values that a seed gives to what a pitfall may vary, to four digits.

        Even in the logarithm between lowest and highest. Seed 1 varies nothing: its numbers are the
        pages'. Nor does a mistake of several trials, each of which has values of its own.
        """
        if seed == 1 or pitfall.trials:
            return {}
        values: dict[str, Value] = {}
        for name, (low, high) in self.varied(pitfall).items():
            text = f"{self.name} {pitfall.id} {name} {seed}"
            share = int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48
            value = float(f"{low * (high / low) ** share:.4g}")
            is_whole = self.file.parameters[name].integer
            values[name] = round(value) if is_whole else value
        return values

    def read_value(
        self,
        name: str,
        given: Value,
        where: str,
        *,
        elsewhere: bool = False,
        due: Collection[str] = (),
    ) -> Value:
        """Return a parameter's value from text or number, of another network than the lab's where it was set `elsewhere`;
        UserError names `where`, and settings near an unknown name, of those that no list has the ones that are `due`."""
        parameter = self.file.parameters.get(name)
        if parameter is None:
            unknown = f"{self.name} has no parameter {shortened(repr(name), 80)}"
            raise UserError(f"{where}: {unknown}; {self._alternatives(name, due)}")
        try:
            return parameter.read(name, given, elsewhere=elsewhere)
        except ValueError as error:
            raise UserError(f"{where}: {shortened(error, 300)}") from None

    def _alternatives(self, name: str, due: Collection[str]) -> str:
        """Names near one that isn't known; without any, the listed ones."""
        if near := suggestions(self.file.parameters, name, due):
            return f"near it are {', '.join(near)}" if near[1:] else f"near it is {near[0]}"
        return f"it has {', '.join(self.visible_settings())}"

    def read_set(self, values: dict[str, Value], where: str) -> None:
        """Check the values that a stage sets; UserError names `where`."""
        for name, value in values.items():
            if not refers(value):
                self.read_value(name, value, where)
            elif str(value)[1:] not in self.file.parameters or name not in self.file.parameters:
                names = ", ".join(self.file.parameters)
                raise UserError(
                    f"{where}: {name} = {value!r}: no such parameter; there are {names}"
                )

    def presets(self, params: dict[str, Value]) -> dict[str, Value]:
        """Return what the choices among `params` set of other parameters."""
        return {
            name: value
            for chosen, parameter in self.file.parameters.items()
            for name, value in parameter.sets.get(str(params.get(chosen)), {}).items()
        }

    def script_name(self, node_name: str) -> str:
        """Return the name of a node's script, which several nodes may share."""
        scripts = {node.name: node.script for node in self.file.topology.nodes}
        return scripts.get(node_name) or node_name

    def one_of_each_kind(self) -> list[str]:
        """Return the first node of each kind: of those that share a script."""
        kinds: dict[str, str] = {}
        for node in self.file.topology.nodes:
            kinds.setdefault(self.script_name(node.name), node.name)
        return list(kinds.values())

    def script(self, node_name: str) -> Path:
        return self.folder / "nodes" / f"{self.script_name(node_name)}.sh"

    def lines_that_read(self, name: str) -> str:
        """Return which lines of which node scripts read a setting, in words; empty where none does."""
        word, default = re.compile(rf"\b{name.upper()}\b"), f"{name.upper()}:-"
        places = []
        for path in sorted((self.folder / "nodes").glob("*.sh")):
            lines = enumerate(path.read_text(encoding="utf-8").split("\n"), start=1)
            numbers = [
                str(number)
                for number, line in lines
                if word.search(line) and default not in line and not line.lstrip().startswith("#")
            ]
            if numbers:
                *others, last = numbers
                named = f"lines {', '.join(others)} and {last}" if others else f"line {last}"
                places.append(f"{named} of {path.name}")
        return " and ".join(filter(None, [", ".join(places[:-1]), *places[-1:]]))

    def problem(self, key: str, what: str) -> UserError:
        """Return an error about `key` of lab.toml, to be raised."""
        return UserError(f"{self.shown_path}: {key}: {what}")

    def is_unlisted(self, name: str) -> bool:
        """Return whether no list has this setting before a case that is about it is known."""
        parameter = self.file.parameters.get(name)
        return parameter is not None and parameter.unlisted

    def listed_title(self, title: str) -> str:
        """Return a trial's title without the parts that name a setting which no list has."""
        parts = title.split(", ")
        return ", ".join(part for part in parts if not self.is_unlisted(part.split(" ")[0]))

    def visible_settings(
        self, known_cases: Collection[int] = (), changed: Collection[str] = ()
    ) -> dict[str, Parameter]:
        """Return the settings to list, in their order; `known_cases` are those whose cause the student knows.

        A parameter that is `unlisted` in lab.toml tells a case's cause: it is listed only once a case that is about
        it holds no secret any more, or where the student has `changed` it. It is set like any other.
        """
        cases = enumerate(self.file.pitfalls, start=1)
        due = {*changed}.union(*(case.settings for n, case in cases if n in known_cases))
        return {
            name: parameter
            for name, parameter in self.file.parameters.items()
            if not parameter.unlisted or name in due
        }


def name_of(folder: Path) -> str:
    """Return a lab's name: its folder's, without the number."""
    return folder.name.split("-", 1)[-1]


def short_path(path: Path) -> str:
    """Return the path of a lab's file from the labs folder on, for messages."""
    return "/".join(path.parts[-3:])


def select_trials(lab: Lab, text: str) -> list[int]:
    """Read `all`, `7` or `1-12,20` as trial numbers of `lab`, in order, each once."""
    if text == "all":
        return sorted(lab.trials)
    chosen: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]+)\s*(?:-\s*([0-9]+)\s*)?", part)
        if match is None:
            raise UserError(f"--trial {text}: expected numbers such as 7, 1-12,20, or all")
        first = int(match[1])
        last = int(match[2] or first)
        if last < first:
            raise UserError(f"--trial {text}: {part.strip()} runs backwards; write {last}-{first}")
        if last - first > MOST_NUMBERS:
            raise UserError(f"--trial {text}: {lab.name} has trials {_spans(lab.trials)}")
        chosen.update(range(first, last + 1))
    unknown = sorted(chosen - set(lab.trials))
    if unknown:
        raise UserError(
            f"--trial {text}: {lab.name} has no trial {unknown[0]}; it has {_spans(lab.trials)}"
        )
    return sorted(chosen)


def _spans(numbers: Iterable[int]) -> str:
    """Return trial numbers as a person writes them: 1-60, or 1-4,7."""
    ranges: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)


@dataclass(frozen=True)
class TryPlan:
    """One state of the first try: its trials, each so many times, their settings, what is counted.

    `cases` are the numbers of the solved cases that it rests on, `losses` how many each trial lasts
    for, where that is how long. `last` says that no step is left.
    """

    cases: tuple[int, ...]
    trials: tuple[int, ...]
    repeat: int
    changes: Mapping[str, Value]
    losses: int | None
    shown: Shown
    last: bool


def first_try_of(lab: Lab) -> FirstTry:
    """Return the lab's [first_try]; UserError where it has none."""
    if lab.file.first_try is None:
        raise UserError(
            f"{lab.name} has no first try of its own; ./lab run {lab.name} runs its trials"
        )
    return lab.file.first_try


def recorded_steps(lab: Lab) -> list[Recording]:
    """Return the recordings of the steps, in order."""
    by_id = {recording.id: recording for recording in lab.file.recordings}
    return [by_id[step.of] for step in first_try_of(lab).steps]


def step_cases(lab: Lab, recording: str) -> tuple[int, ...]:
    """Return the cases that must be solved for the step with this recorded set; none for the first."""
    steps = lab.file.first_try.steps if lab.file.first_try else []
    names = next((step.after for step in steps if step.of == recording), [])
    return tuple(sorted(lab.case_number(lab.pitfall(name)) for name in names))


def after_cases(cases: Sequence[int]) -> str:
    """Return a name for a state of the first try that tells no cause: `first try`, `after cases 1 and 4`."""
    return f"after {_in_words(cases)}" if cases else "first try"


def _in_words(cases: Sequence[int]) -> str:
    *others, last = map(str, cases)
    return f"cases {', '.join(others)} and {last}" if others else f"case {last}"


def first_try_cases(lab: Lab) -> set[int]:
    """Return the cases that a step waits for."""
    steps = lab.file.first_try.steps if lab.file.first_try else []
    return {number for step in steps for number in step_cases(lab, step.of)}


def movers_of_first_try(lab: Lab, solved: Collection[int] = ()) -> str:
    """Return which of the cases that aren't solved the first try waits for, in words: `cases 1 and 2`; empty where none is
    left."""
    left = sorted(first_try_cases(lab) - set(solved))
    return _in_words(left) if left else ""


def plan_try(lab: Lab, solved: Collection[int]) -> TryPlan:
    """Return the first try as it stands once these cases are solved."""
    first_try = first_try_of(lab)
    recordings = recorded_steps(lab)
    start, shown = recordings[0], first_try.shown
    changes = dict(start.set)
    trials, repeat, losses = start.trials, start.repeat, start.losses
    reached: set[int] = set()
    is_last = True
    for step, before, after in zip(first_try.steps[1:], recordings, recordings[1:], strict=False):
        cases = step_cases(lab, step.of)
        if not set(cases) <= set(solved):
            is_last = False
            continue
        reached |= set(cases)
        for name in before.set.keys() | after.set.keys():
            if name not in after.set:
                changes.pop(name, None)
            elif before.set.get(name) != after.set[name]:
                changes[name] = after.set[name]
        if after.trials != before.trials:
            trials = after.trials
        if step.repeat or after.repeat != before.repeat:
            repeat = step.repeat or after.repeat
        if after.losses != before.losses:
            losses = after.losses
        shown = step.shown or shown
    numbers = tuple(select_trials(lab, trials))
    return TryPlan(tuple(sorted(reached)), numbers, repeat, changes, losses, shown, is_last)


def supporting_range(lab: Lab, shown: Shown) -> tuple[float | None, float | None]:
    """Return the range in which a value supports the claim: its own, or what the lab expects."""
    if shown.min is not None or shown.max is not None:
        return shown.min, shown.max
    for expectation in lab.file.expect:
        if expectation.measured == shown.value and not expectation.wanted_parameters:
            return expectation.min, expectation.max
    return None, None
