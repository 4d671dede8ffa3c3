"""A lab's facts: reading lab.toml and telling its author what is wrong with it.

A lab is a folder `labs/NN-<name>/`. Nothing here knows any lab by name.
"""

from __future__ import annotations

import csv
import io
import re
import tomllib
from ipaddress import IPv4Interface
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from measuretwice.base.errors import UserError

# Every numeric parameter's name ends in one of these, so that no number stands without a unit.
UNITS = {
    "ms": "milliseconds",
    "s": "seconds",
    "bytes": "bytes",
    "packets": "packets",
    "segments": "segments",
    "ratio": "a ratio between 0 and 1",
    "percent": "percent",
    "mbit": "Mbit/s (10^6 bit/s)",
    "count": "a count",
    "flows": "flows",
}
# Names that are their own unit.
COUNTED = frozenset({"flows"})
Value = float | int | str
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
NodeName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class About(_Strict):
    title: str
    minutes: int = Field(gt=0)
    objectives: list[str]
    needs: list[str] = []
    source: str | None = None


class Node(_Strict):
    """A host or router. Nodes that differ by their addresses only may share a `script`: the name of
    a file in nodes/, without its ending. Without one, it is the node's own name."""

    name: NodeName
    script: NodeName | None = None
    routes: list[str] = []
    forward: bool = False


class End(_Strict):
    node: NodeName
    address: str

    @field_validator("address")
    @classmethod
    def _is_interface(cls, text: str) -> str:
        IPv4Interface(text)
        return text


class Link(_Strict):
    a: End
    b: End


class Topology(_Strict):
    art: str
    nodes: list[Node]
    links: list[Link]

    @model_validator(mode="after")
    def _links_join_nodes(self) -> Topology:
        known = {node.name for node in self.nodes}
        for link in self.links:
            for end in (link.a, link.b):
                if end.node not in known:
                    raise ValueError(f"link end {end.node!r} is no node; nodes are {sorted(known)}")
        return self


class Parameter(_Strict):
    """One setting of a lab: a number with a unit in its name, or one of a few words.

    Without a `default` it is not set: the node scripts derive it from the others. Setting it
    apart is how a mistake is staged (a loss in percent that isn't the ratio that was meant).
    `sets`, by choice: the values that other parameters have with it, unless a trial, a stage or
    --set says otherwise.
    """

    default: Value | None = None
    help: str
    min: float | int | None = None
    max: float | int | None = None
    integer: bool = False
    choices: list[str] | None = None
    pattern: str | None = None
    sets: dict[str, dict[Name, Value]] = {}

    @property
    def numeric(self) -> bool:
        return self.choices is None and self.pattern is None

    def read(self, name: str, given: Value) -> Value:
        """Return `given` (text or number) as a value of this parameter, or raise ValueError."""
        if self.choices is not None:
            if given not in self.choices:
                raise ValueError(
                    f"{name}: expected one of {', '.join(self.choices)}, got {given!r}"
                )
            return str(given)
        if self.pattern is not None:
            if not isinstance(given, str) or not re.fullmatch(self.pattern, given):
                raise ValueError(f"{name}: expected a name like {self.default!r}, got {given!r}")
            return given
        unit = unit_of(name)
        try:
            number = float(given)
        except ValueError:
            raise ValueError(f"{name}: expected a number in {unit}, got {given!r}") from None
        low, high = self.min, self.max
        if (
            number != number
            or (low is not None and number < low)
            or (high is not None and number > high)
        ):
            raise ValueError(f"{name}: expected {_range(low, high)} ({unit}), got {given}")
        if number.is_integer():
            return int(number)
        if self.integer:
            raise ValueError(f"{name}: expected a whole number of {unit}, got {given}")
        return number


def _range(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f"{low:g} to {high:g}"
    return f"at least {low:g}" if low is not None else f"at most {high:g}"


def refers(value: Value) -> bool:
    """Does a stage's value name another parameter, as in `loss_percent = "=loss_ratio"`?"""
    return isinstance(value, str) and value.startswith("=")


def unit_of(name: str) -> str:
    """Return the unit in a parameter's name, in words; ValueError where it has none."""
    unit = UNITS.get(name.rsplit("_", 1)[-1])
    if unit is None or ("_" not in name and name not in COUNTED):
        raise ValueError(
            f"{name}: a number's name ends in its unit, one of _{', _'.join(UNITS)} (as in rtt_ms)"
        )
    return unit


class Step(_Strict):
    """One phase of one node's script.

    A background step says itself when it is ready. It is waited for when all is measured, or,
    with `stop`, told to end.
    """

    node: NodeName
    phase: Name
    background: bool = False
    stop: bool = False


class Run(_Strict):
    """The steps of a run, in order. `conclude` comes when all is measured: what a person works out
    from the nodes' files.

    `memory` names the parameter with the virtual kernel's memory in bytes, where 512 MB aren't
    enough. With more, TCP may use up to a half of it, and the backlog between drivers and IP holds
    100000 packets instead of 1000.

    `qdiscs` and `algorithms` are the queue disciplines and congestion controls that the kernel must
    have; `=name` stands for what that parameter says. The virtual kernel has them all, others are
    asked before a run.
    """

    prepare: list[Step]
    measure: list[Step]
    conclude: list[Step] = []
    memory: Name | None = None
    qdiscs: list[str] = []
    algorithms: list[str] = []


class NodeFile(_Strict):
    node: NodeName
    file: str


class QdiscAt(_Strict):
    """A qdisc, found by its node, its interface's address and its kind."""

    node: NodeName
    address: str
    kind: str


class FlowFiles(_Strict):
    """Files that every node with a flow has, by the same name; `iperf3` may be a pattern.

    A flow belongs to the node that started it, where its iperf3 client wrote its JSON and ss was
    sampled. Which nodes these are may differ from trial to trial.
    `ping` was taken on the idle path, `ping_busy` beside the flows. `windows`, where a node has it,
    is what a person took from iperf3's text: lines of seconds and KBytes. `rates` are the rows that
    a node's average was taken from: start, end (seconds) and bit/s, a line each.
    """

    iperf3: str
    ss: str
    ping: str | None = None
    ping_busy: str | None = None
    rates: str | None = None
    windows: str | None = None


class QueueAt(_Strict):
    """Samples of a node's queue: `file` has one interface's qdiscs, `kind` is the one meant.

    Without `node`, it is the one that has such a file: which queue fills may differ from trial to
    trial. Without `kind`, the qdisc is the innermost: no other's parent.
    `rate` names the parameter with the link's rate in Mbit/s. `setup` is a file with what
    `tc -s -d qdisc show` said of the same interface before the run. `lengths`, where the node has
    it, is what a person took from tc's text: lines of Unix time and packets.
    """

    node: NodeName | None = None
    file: str
    kind: str | None = None
    rate: Name
    setup: str | None = None
    lengths: str | None = None


class SenderAt(_Strict):
    """One sender that is looked at closely: the flow of `node`.

    `average_from` names the parameter with the time, in seconds from the flow's start, from which
    on it is averaged. `table`, where the node has it, is what a person took from iperf3: lines of
    start, end (s), rate (bit/s), cwnd (bytes) and segments sent again. `queue`, where it has it, is what
    `tc qdisc show` said of the host's own queue. `capture` is what `tcpdump -n -tt` printed, where
    there is one.
    """

    node: NodeName
    average_from: Name
    table: str | None = None
    queue: str | None = None
    capture: str | None = None


class CrowdFiles(_Strict):
    """Files of runs with up to thousands of flows. All but the last have each node with flows.

    `ss` is sampled, `events` are lines of Unix time, port and TCP's congestion state (a number, as
    in include/uapi/linux/tcp.h) whenever that changed. Nothing before `warmup`, a parameter in
    seconds, after the last flow's start is counted. `asked` is the parameter with the number of
    flows, `rival` the one with the algorithm of those that differ.
    `counted`, where there is one: lines of Unix time and port, a halving each, by the person's own
    counter. `summary` and `groups` stand on one node and are a person's own results: lines of a
    name and a number; and of an algorithm, its flows and their sum in bit/s.
    """

    iperf3: str
    ss: str
    events: str
    warmup: Name
    asked: Name
    rival: Name
    ping: str | None = None
    counted: str | None = None
    summary: str | None = None
    groups: str | None = None


class Collect(_Strict):
    """Where a result's numbers come from: of one flow with its sender and its receiver, of a few
    (`flows`), or of a `crowd`."""

    sender: NodeName | None = None
    receiver: NodeName | None = None
    flows: FlowFiles | None = None
    crowd: CrowdFiles | None = None
    queue: QueueAt | None = None
    one_sender: SenderAt | None = None
    ping: NodeFile | None = None
    iperf3: NodeFile | None = None
    ss: NodeFile | None = None
    ss_last: NodeFile | None = None
    capture: NodeFile | None = None
    bottleneck: QdiscAt | None = None


class ModelUse(_Strict):
    """Which model a lab holds its measurement against, and which parameters feed it."""

    name: str
    constant: float
    mss: str
    rtt: str
    loss: str
    max_loss_ratio: float = Field(gt=0, le=1)
    min_expected_losses: float = Field(gt=0)


class Expectation(_Strict):
    """A measured value held against a parameter, a range, or a probability.

    Exactly one of: `param` with `tolerance_ratio` (relative), `param` with `binomial_of`
    (the count whose share the parameter is) and `confidence`, or `min`/`max`.
    """

    label: str
    measured: str
    param: str | None = None
    scale: float = 1.0
    tolerance_ratio: float | None = Field(default=None, ge=0)
    binomial_of: str | None = None
    confidence: float | None = Field(default=None, gt=0, lt=1)
    min: float | int | None = None
    max: float | int | None = None
    only_comparable: bool = False
    trials: list[int] | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Expectation:
        by_param = self.param is not None
        kinds = (
            by_param and self.tolerance_ratio is not None,
            by_param and self.binomial_of is not None and self.confidence is not None,
            not by_param and (self.min is not None or self.max is not None),
        )
        if sum(kinds) != 1:
            raise ValueError(
                "expected param with tolerance_ratio, or param with binomial_of and confidence, "
                "or min and/or max"
            )
        return self


class TrialTable(_Strict):
    file: str


class InlineTrial(_Strict):
    trial: int = Field(gt=0)
    title: str
    set: dict[str, Value] = {}


class Again(_Strict):
    """Run once more what came out odd: whose `measured` value lies outside min..max.

    With the next seed each time, at most `tries` times, and the last try counts: a way to fool
    oneself, staged so that it can be caught.
    """

    measured: str
    min: float | int
    max: float | int
    tries: int = Field(gt=0)


class Stage(_Strict):
    """One stage of a pitfall: the parameters that differ from the trial's own.

    A value `"=name"` stands for what parameter `name` has. Each trial is run `repeat` times, with
    seeds that count up; then, with `again`, what came out odd is run once more.
    """

    set: dict[Name, Value] = {}
    repeat: int = Field(default=1, gt=0)
    again: Again | None = None


class Factors(_Strict):
    """From which to which factor of its value a parameter may be varied."""

    low: float = Field(gt=0, le=1)
    high: float = Field(ge=1)


class Elsewhere(_Strict):
    """A pitfall on another trial than its own, so that not every student has the same numbers.

    `both` is set in both stages, `broken` in that one besides. `make checker-matrix` proves each
    over several seeds.
    """

    trial: int
    broken: dict[Name, Value]
    both: dict[Name, Value] = {}


class Checks(_Strict):
    """What the checker must not say of this lab's runs, because they are meant to be so.

    A path that was made to have a queue, for one, is no sign of a mistake (`queueing`).
    """

    leave_out: list[str] = []


class Pitfall(_Strict):
    """A mistake that can be made for real: in which trial, how, and how it is mended.

    `topic` is what it is about, for those who have not seen it yet: menus and lists say that.
    `title` names the cause.
    `trials`, where given, names more of them than `trial`: the mistake is in the set, and the
    checker must be given all of its runs.
    `finding` is what the checker must raise on `broken` and must not raise on `fixed`;
    `follows` are findings that the same mistake brings along. `hints` lead from where to look,
    by what to compare, to the cause.

    For the instructors' map: `minutes` that its page takes, the pitfalls of this lab that it `needs`
    first, and what it `teaches`: a skill, in words that don't give the cause away.
    `elsewhere` are other trials on which it shows as well; `vary` names parameters whose values
    may be multiplied by anything between two factors, all at once.
    """

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]
    topic: str
    title: str
    trial: int
    trials: str | None = None
    finding: str
    follows: list[str] = []
    broken: Stage
    fixed: Stage
    hints: list[str] = Field(min_length=3, max_length=3)
    minutes: int = Field(default=10, gt=0)
    needs: list[str] = []
    teaches: str | None = None
    elsewhere: list[Elsewhere] = []
    vary: dict[Name, Factors] = {}

    def stage(self, name: Literal["broken", "fixed"]) -> Stage:
        return self.broken if name == "broken" else self.fixed


class Recording(_Strict):
    """A set of runs that sample-data/ holds, besides both stages of each pitfall.

    Each of `trials` is run `repeat` times, with `set` over its own parameters (`"=name"` as in a
    stage). With `losses`, each trial lasts until the model expects that many losses.
    `keep`: the tools' own output of each run, or its numbers and a digest of that output.
    `step`: this set is a panel in the figure that tells how the result came to be, in order.
    """

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
    title: str
    trials: str = "all"
    repeat: int = Field(default=1, gt=0)
    set: dict[Name, Value] = {}
    losses: int | None = Field(default=None, gt=0)
    keep: Literal["raw", "digests"] = "raw"
    step: bool = False


class Panel(_Strict):
    """What a panel of boxes shows: a measured value, or one of each flow, over `unit`.

    Its axis begins at zero, so that a small difference doesn't look large, unless `from_zero` is
    false or it is logarithmic.
    """

    value: str
    label: str
    unit: float = Field(default=1, gt=0)
    of: Literal["run", "flow"] = "run"
    logarithmic: bool = False
    from_zero: bool = True


class FigureOf(_Strict):
    """A figure that `./lab plot` draws of a lab's runs, and the site of the recorded set `of`.

    Kinds: `regression` (each flow's goodput against what the Mathis model with C = 1 gives by its
    losses and by its halvings, a panel each, in it the line through zero), `boxes` (a panel for each of `panels`, in it a box and every run's point for each value
    of the parameter `by`, or of that and `and_by` together), `over-time` (each flow's window, and the queue; a panel a trial), `windows` (one flow's
    window against the other's, a panel a trial), `sequence` (one sender's capture: what it sent and
    what was acknowledged, against time), and `against` (the mean of the measured value
    `y`, over `y_unit`, against the parameter `x`, over `x_unit`, with its interval; a line for each value of the
    parameter `by`). `trials` are those that it is of.
    """

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]
    kind: Literal["over-time", "windows", "against", "boxes", "sequence", "regression"]
    title: str
    of: str
    trials: str = "all"
    x: Name | None = None
    x_unit: float = Field(default=1, gt=0)
    y_unit: float = Field(default=1, gt=0)
    x_label: str = ""
    y: str | None = None
    y_label: str = ""
    by: Name | None = None
    and_by: Name | None = None
    panels: list[Panel] = []

    @model_validator(mode="after")
    def _has_axes(self) -> FigureOf:
        if self.kind == "boxes" and not (self.panels and self.by):
            raise ValueError("a figure of kind boxes needs panels and by")
        if self.kind == "against" and not (self.x and self.y and self.by):
            raise ValueError("a figure of kind against needs x, y and by")
        return self


class LabFile(_Strict):
    lab: About
    topology: Topology
    parameters: dict[Name, Parameter]
    trials: TrialTable | list[InlineTrial]
    run: Run
    collect: Collect
    model: ModelUse | None = None
    checks: Checks = Checks()
    expect: list[Expectation] = []
    pitfalls: list[Pitfall] = []
    recordings: list[Recording] = []
    figures: list[FigureOf] = []


class Trial(BaseModel):
    """One trial: its number, what it is called, and the parameters that it sets."""

    model_config = ConfigDict(frozen=True)

    number: int
    title: str
    set: dict[str, Value]
    notes: dict[str, str]


class Lab:
    """A lab read from its folder: `name`, `folder`, the validated `file`, and its trials."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = folder.name.split("-", 1)[-1]
        self.path = folder / "lab.toml"
        self.file = _read_lab_file(self.path)
        self._check_references()
        self.trials = self._read_trials()
        self._read_pitfalls()

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
        known = ", ".join(pitfall.id for pitfall in self.file.pitfalls) or "none"
        raise UserError(f"--pitfall {wanted}: {self.name} has {known}")

    def varied(self, pitfall: Pitfall) -> dict[str, tuple[float, float]]:
        """Return the lowest and highest value of each parameter that a pitfall may vary."""
        own = {**self.defaults(), **self.trials[pitfall.trial].set, **pitfall.fixed.set}
        ranges = {}
        for name, by in pitfall.vary.items():
            value = own.get(name)
            if not isinstance(value, int | float):
                raise self._fail(f"pitfalls: {pitfall.id}: vary", f"{name!r} has no number to vary")
            ranges[name] = (by.low * value, by.high * value)
        return ranges

    def read_value(self, name: str, given: Value, where: str) -> Value:
        """Return a parameter's value from text or number; UserError names `where`."""
        parameter = self.file.parameters.get(name)
        if parameter is None:
            known = ", ".join(self.file.parameters)
            raise UserError(f"{where}: {self.name} has no parameter {name!r}; it has {known}")
        try:
            return parameter.read(name, given)
        except ValueError as error:
            raise UserError(f"{where}: {error}") from None

    def read_set(self, values: dict[str, Value], where: str) -> None:
        """Check the values that a stage sets; UserError names `where`."""
        for name, value in values.items():
            if not refers(value):
                self.read_value(name, value, where)
            elif str(value)[1:] not in self.file.parameters or name not in self.file.parameters:
                known = ", ".join(self.file.parameters)
                raise UserError(
                    f"{where}: {name} = {value!r}: no such parameter; there are {known}"
                )

    def presets(self, params: dict[str, Value]) -> dict[str, Value]:
        """Return what the choices among `params` set of other parameters."""
        return {
            name: value
            for chosen, parameter in self.file.parameters.items()
            for name, value in parameter.sets.get(str(params.get(chosen)), {}).items()
        }

    def script_name(self, node: str) -> str:
        """Return the name of a node's script, which several nodes may share."""
        for one in self.file.topology.nodes:
            if one.name == node and one.script:
                return one.script
        return node

    def script(self, node: str) -> Path:
        return self.folder / "nodes" / f"{self.script_name(node)}.sh"

    def _fail(self, key: str, problem: str) -> UserError:
        return UserError(f"{_short(self.path)}: {key}: {problem}")

    def _check_references(self) -> None:
        file = self.file
        for name, parameter in file.parameters.items():
            try:
                if parameter.numeric:
                    unit_of(name)
                if parameter.default is not None:
                    parameter.read(name, parameter.default)
            except ValueError as error:
                raise self._fail(f"parameters.{name}", str(error)) from None
            for choice, values in parameter.sets.items():
                if choice not in (parameter.choices or ()):
                    raise self._fail(f"parameters.{name}.sets", f"{choice!r} is no choice of it")
                self.read_set(dict(values), f"{_short(self.path)}: parameters.{name}.sets")
        nodes = {node.name for node in file.topology.nodes}
        steps = [("run.prepare", step) for step in file.run.prepare]
        steps += [("run.measure", step) for step in file.run.measure]
        steps += [("run.conclude", step) for step in file.run.conclude]
        for key, step in steps:
            if step.node not in nodes:
                raise self._fail(key, f"{step.node!r} is no node; nodes are {sorted(nodes)}")
            if not self.script(step.node).is_file():
                raise self._fail(key, f"nodes/{self.script(step.node).name} is missing")
        used = (
            [("model", file.model.mss), ("model", file.model.rtt), ("model", file.model.loss)]
            if file.model
            else []
        )
        if file.run.memory:
            used.append(("run.memory", file.run.memory))
        if crowd := file.collect.crowd:
            named = (crowd.warmup, crowd.asked, crowd.rival)
            used += [("collect.crowd", name) for name in named]
        used += [(f"expect[{n}].param", e.param) for n, e in enumerate(file.expect) if e.param]
        for key, name in used:
            if name not in file.parameters:
                raise self._fail(
                    key, f"{name!r} is no parameter; parameters are {', '.join(file.parameters)}"
                )

    def _read_pitfalls(self) -> None:
        """Check what pitfalls refer to, once the trials are known."""
        earlier: list[str] = []
        for pitfall in self.file.pitfalls:
            key = f"pitfalls: {pitfall.id}"
            for need in pitfall.needs:
                if need not in earlier:
                    said = ", ".join(earlier) or "none"
                    raise self._fail(key, f"needs: {need!r} doesn't come before it; {said} do")
            earlier.append(pitfall.id)
            for name, value in self.varied(pitfall).items():
                for end in value:
                    self.read_value(name, end, f"{_short(self.path)}: {key}: vary")
            for other in pitfall.elsewhere:
                where = f"{_short(self.path)}: {key}: elsewhere: trial {other.trial}"
                if other.trial not in self.trials:
                    raise self._fail(key, f"elsewhere: there is no trial {other.trial}")
                self.read_set(other.both | other.broken, where)
            if pitfall.trial not in self.trials:
                raise self._fail(key, f"there is no trial {pitfall.trial}")
            for name, stage in (("broken", pitfall.broken), ("fixed", pitfall.fixed)):
                self.read_set(stage.set, f"{_short(self.path)}: {key}: {name}")
            if pitfall.trials:
                try:
                    select_trials(self, pitfall.trials)
                except UserError as error:
                    raise self._fail(key, str(error).replace("--trial ", "trials ")) from None

        for recording in self.file.recordings:
            key = f"recordings: {recording.id}"
            self.read_set(recording.set, f"{_short(self.path)}: {key}")
            if recording.losses and not self.file.model:
                raise self._fail(key, "losses: this lab has no [model] to expect them from")
            try:
                select_trials(self, recording.trials)
            except UserError as error:
                raise self._fail(key, str(error).replace("--trial ", "trials ")) from None

        known = {recording.id for recording in self.file.recordings}
        for figure in self.file.figures:
            key = f"figures: {figure.id}"
            if figure.of not in known:
                raise self._fail(key, f"of: there is no recording {figure.of!r}")
            for parameter in (figure.x, figure.by):
                if parameter and parameter not in self.file.parameters:
                    raise self._fail(key, f"{parameter!r} is no parameter")
            try:
                select_trials(self, figure.trials)
            except UserError as error:
                raise self._fail(key, str(error).replace("--trial ", "trials ")) from None

    def _read_trials(self) -> dict[int, Trial]:
        if isinstance(self.file.trials, TrialTable):
            rows = self._read_trial_table(self.folder / self.file.trials.file)
        else:
            rows = [
                Trial(number=t.trial, title=t.title, set=dict(t.set), notes={})
                for t in self.file.trials
            ]
        trials: dict[int, Trial] = {}
        for row in rows:
            if row.number in trials:
                raise self._fail("trials", f"trial {row.number} stands twice")
            values = {
                name: self.read_value(
                    name, value, f"{_short(self.path)}: trials: trial {row.number}"
                )
                for name, value in row.set.items()
            }
            trials[row.number] = row.model_copy(update={"set": values})
        return trials

    def _read_trial_table(self, path: Path) -> list[Trial]:
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise self._fail(
                "trials.file", f"{path.name} can't be read: {error.strerror}"
            ) from None
        rows: list[Trial] = []
        for line, row in enumerate(csv.DictReader(io.StringIO(text)), start=2):
            number = row.pop("trial", None) or ""
            if not number.isdigit():
                raise UserError(
                    f"{_short(path)}, line {line}: trial: expected a number, got {number!r}"
                )
            if None in row or None in row.values():
                raise UserError(
                    f"{_short(path)}, line {line}: expected as many columns as the first line has"
                )
            values: dict[str, Value] = {k: v for k, v in row.items() if k in self.file.parameters}
            notes = {k: v for k, v in row.items() if k not in self.file.parameters}
            title = ", ".join(f"{k} {v}" for k, v in values.items())
            rows.append(Trial(number=int(number), title=title, set=values, notes=notes))
        return rows


def _short(path: Path) -> str:
    """A path as its reader knows it: from the labs folder on."""
    return "/".join(path.parts[-3:])


def _read_lab_file(path: Path) -> LabFile:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{_short(path)}: can't be read: {error.strerror}") from None
    try:
        data: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{_short(path)}: not valid TOML: {error}") from None
    try:
        return LabFile.model_validate(data)
    except ValidationError as error:
        raise UserError(f"{_short(path)}: {_first_problem(error)}") from None


def _first_problem(error: ValidationError) -> str:
    """The first of pydantic's findings as 'key: what was expected'."""
    # A union reports each branch's complaint; the deepest is about what was written.
    first = max(error.errors(include_url=False), key=lambda e: len(e["loc"]))
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        model: type[BaseModel] | None = _model_at(first["loc"][:-1])
        expected = f"; expected one of {', '.join(model.model_fields)}" if model else ""
        return f"{key}: no such key{expected}"
    if first["type"] == "missing":
        return f"{key}: this key is missing"
    message = first["msg"].removeprefix("Value error, ")
    return f"{key}: {message[0].lower()}{message[1:]}, got {first['input']!r}"


def _model_at(loc: tuple[str | int, ...]) -> type[BaseModel] | None:
    """The model class that a place in lab.toml is read into, as far as it can be told."""
    by_key: dict[str, type[BaseModel]] = {
        "lab": About, "topology": Topology, "nodes": Node, "links": Link, "a": End, "b": End,
        "parameters": Parameter, "run": Run, "prepare": Step, "measure": Step,
        "collect": Collect, "ping": NodeFile, "iperf3": NodeFile, "ss": NodeFile, "ss_last": NodeFile, "flows": FlowFiles, "crowd": CrowdFiles, "conclude": Step, "queue": QueueAt, "one_sender": SenderAt, "pitfalls": Pitfall,
        "broken": Stage, "fixed": Stage, "again": Again, "elsewhere": Elsewhere, "vary": Factors,
        "capture": NodeFile, "bottleneck": QdiscAt, "model": ModelUse, "checks": Checks, "expect": Expectation, "recordings": Recording,
        "figures": FigureOf, "panels": Panel,
    }  # fmt: skip
    if not loc:
        return LabFile
    known = [by_key[str(part)] for part in loc if str(part) in by_key]
    return known[-1] if known else None


def find_labs(root: Path) -> dict[str, Path]:
    """Return each lab's folder by its name, in order of number, from `root`/labs."""
    folders = sorted(path.parent for path in (root / "labs").glob("[0-9][0-9]-*/lab.toml"))
    return {folder.name.split("-", 1)[1]: folder for folder in folders}


def load_lab(root: Path, name: str) -> Lab:
    """Read one lab by its name (`mathis`) or folder name (`01-mathis`)."""
    labs = find_labs(root)
    folder = labs.get(name) or labs.get(re.sub(r"^[0-9][0-9]-", "", name))
    if folder is None:
        raise UserError(f"there is no lab {name!r}; there are: {', '.join(labs) or 'none'}")
    return Lab(folder)


SelectionText = Literal["all"] | str


def select_trials(lab: Lab, text: SelectionText) -> list[int]:
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
        if last - first > 100_000:
            raise UserError(f"--trial {text}: {lab.name} has trials {_spans(lab.trials)}")
        chosen.update(range(first, last + 1))
    unknown = sorted(chosen - set(lab.trials))
    if unknown:
        raise UserError(
            f"--trial {text}: {lab.name} has no trial {unknown[0]}; it has {_spans(lab.trials)}"
        )
    return sorted(chosen)


def _spans(numbers: dict[int, Trial]) -> str:
    """Trial numbers for a person: 1-60, or 1-4,7."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)
