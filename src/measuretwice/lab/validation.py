"""What lab.toml refers to must be there: nodes, scripts, parameters, trials, recorded sets.

A table by itself is held against its model; here one is held against another, and against the
lab's other files. The first thing that is wrong is raised as a UserError with its key.
"""

from __future__ import annotations

from collections.abc import Iterator

from measuretwice.base.errors import UserError
from measuretwice.lab.first_try import range_of
from measuretwice.lab.lab import Lab
from measuretwice.lab.schema import (
    FigureOf,
    FirstTry,
    Parameter,
    Pitfall,
    Recording,
    is_reserved,
    unit_of,
)
from measuretwice.lab.trials import select_trials


def check_uses(lab: Lab) -> None:
    """Check what `lab`'s file refers to, before its trials are read."""
    for name, parameter in lab.file.parameters.items():
        _check_parameter(lab, name, parameter)
    _check_steps(lab)
    for key, name in _parameters_used(lab):
        if name not in lab.file.parameters:
            known = ", ".join(lab.file.parameters)
            raise lab.problem(key, f"{name!r} is no parameter; parameters are {known}")
    said = {f"checks.means.{meaning}": its for meaning, its in lab.file.checks.means.items()}
    for key, settings in {
        **said,
        "run.too_much_for_browser": lab.file.run.too_much_for_browser,
    }.items():
        for name, words in settings.items():
            for word in words:
                lab.read_set({name: word}, f"{lab.place}: {key}")


def check_trials_uses(lab: Lab) -> None:
    """Check what refers to trials, once these are known: pitfalls, recordings, figures."""
    earlier: list[str] = []
    for pitfall in lab.file.pitfalls:
        _check_pitfall(lab, pitfall, earlier)
        earlier.append(pitfall.id)
    for recording in lab.file.recordings:
        _check_recording(lab, recording)
    for figure in lab.file.figures:
        _check_figure(lab, figure)
    if lab.file.first_try:
        _check_first_try(lab, lab.file.first_try)


def _check_parameter(lab: Lab, name: str, parameter: Parameter) -> None:
    key = f"parameters.{name}"
    if is_reserved(name):
        raise lab.problem(
            key,
            f"node scripts would find it as {name.upper()}, which programs read for themselves; choose another name",
        )
    for choice in parameter.choices or ():
        if not choice.isprintable():
            raise lab.problem(key, f"the choice {choice!r} has a character that can't be printed")
    try:
        if parameter.numeric:
            unit_of(name)
            if parameter.min is None or parameter.max is None:
                raise ValueError("a number needs its bounds, min and max")
        if parameter.default is not None:
            parameter.read(name, parameter.default)
    except ValueError as error:
        raise lab.problem(key, str(error)) from None
    for choice, values in parameter.sets.items():
        if choice not in (parameter.choices or ()):
            raise lab.problem(f"{key}.sets", f"{choice!r} is no choice of it")
        lab.read_set(dict(values), f"{lab.place}: {key}.sets")


def _check_steps(lab: Lab) -> None:
    nodes = {node.name for node in lab.file.topology.nodes}
    run = lab.file.run
    for part, steps in (
        ("prepare", run.prepare),
        ("measure", run.measure),
        ("conclude", run.conclude),
    ):
        for step in steps:
            if step.node not in nodes:
                raise lab.problem(
                    f"run.{part}", f"{step.node!r} is no node; nodes are {sorted(nodes)}"
                )
            if not lab.script(step.node).is_file():
                raise lab.problem(f"run.{part}", f"nodes/{lab.script(step.node).name} is missing")


def _parameters_used(lab: Lab) -> Iterator[tuple[str, str]]:
    """Each parameter's name that another table has, with that table's key."""
    file = lab.file
    if model := file.model:
        yield from (("model", name) for name in (model.mss, model.rtt, model.loss))
    if file.run.memory:
        yield "run.memory", file.run.memory
    if file.run.reader_interval:
        yield "run.reader_interval", file.run.reader_interval
    if edges := file.topology.edges:
        yield from (("topology.edges", name) for name in (edges.speed, edges.processing))
    for act in file.topology.acts:
        yield from (("topology.acts", name) for name in act.parameters)
    if crowd := file.collect.crowd:
        yield from (("collect.crowd", name) for name in (crowd.warmup, crowd.asked, crowd.rival))
    for place, expectation in enumerate(file.expect):
        for name in expectation.held_against:
            yield f"expect[{place}].{'params' if expectation.params else 'param'}", name


def _check_pitfall(lab: Lab, pitfall: Pitfall, earlier: list[str]) -> None:
    key = f"pitfalls: {pitfall.id}"
    for need in pitfall.needs:
        if need not in earlier:
            known = ", ".join(earlier) or "none"
            raise lab.problem(key, f"needs: {need!r} doesn't come before it; {known} do")
    if pitfall.trial not in lab.trials:
        raise lab.problem(key, f"there is no trial {pitfall.trial}")
    for place in pitfall.place:
        try:
            lab.file.topology.nodes_at(place)
        except ValueError as error:
            raise lab.problem(key, f"place: {error}") from None
    if pitfall.settled_by and pitfall.settled_by not in lab.file.parameters:
        raise lab.problem(key, f"settled_by: {pitfall.settled_by!r} is no parameter")
    for name, value in lab.varied(pitfall).items():
        for end in value:
            lab.read_value(name, end, f"{lab.place}: {key}: vary")
    for other in pitfall.elsewhere:
        if other.trial not in lab.trials:
            raise lab.problem(key, f"elsewhere: there is no trial {other.trial}")
        where = f"{lab.place}: {key}: elsewhere: trial {other.trial}"
        lab.read_set(other.both | other.broken, where)
    for stage, values in (("broken", pitfall.broken.set), ("fixed", pitfall.fixed.set)):
        lab.read_set(values, f"{lab.place}: {key}: {stage}")
    if pitfall.trials:
        _check_selection(lab, key, pitfall.trials)


def _check_recording(lab: Lab, recording: Recording) -> None:
    key = f"recordings: {recording.id}"
    lab.read_set(recording.set, f"{lab.place}: {key}")
    if recording.losses and not lab.file.model:
        raise lab.problem(key, "losses: this lab has no [model] to expect them from")
    _check_selection(lab, key, recording.trials)


def _check_figure(lab: Lab, figure: FigureOf) -> None:
    key = f"figures: {figure.id}"
    known = {recording.id for recording in lab.file.recordings}
    for name in figure.sets:
        if name not in known:
            raise lab.problem(key, f"of: there is no recording {name!r}")
    for parameter in figure.parameters():
        if parameter not in lab.file.parameters:
            raise lab.problem(key, f"{parameter!r} is no parameter")
    lab.read_set(figure.settings, f"{lab.place}: {key}: settings")
    _check_selection(lab, key, figure.trials)


def _check_first_try(lab: Lab, about: FirstTry) -> None:
    known = {recording.id for recording in lab.file.recordings}
    for place, step in enumerate(about.steps):
        key = f"first_try.steps.{place}"
        if step.of not in known:
            raise lab.problem(key, f"of: there is no recording {step.of!r}")
        if bool(step.after) != bool(place):
            raise lab.problem(
                key, "after: the first step is after no pitfall, each later one is after some"
            )
        for name in step.after:
            if name not in (pitfall.id for pitfall in lab.file.pitfalls):
                raise lab.problem(key, f"after: there is no pitfall {name!r}")
        shown = step.shown or about.shown
        if shown.by and shown.by not in lab.file.parameters:
            raise lab.problem(key, f"shown.by: {shown.by!r} is no parameter")
        if not (shown.most or shown.alike_ratio) and range_of(lab, shown) == (None, None):
            raise lab.problem(key, f"shown: no range, and no [[expect]] of {shown.value!r} has one")


def _check_selection(lab: Lab, key: str, trials: str) -> None:
    """What is written as --trial on the command line stands under `trials` in lab.toml."""
    try:
        select_trials(lab, trials)
    except UserError as error:
        raise lab.problem(key, str(error).replace("--trial ", "trials ")) from None
