"""Finding labs and reading them, with one clear line for the author of what can't be read, or refers to nothing.

A lab is a folder `labs/NN-<name>/`. Nothing here knows any lab by name. A table of lab.toml by itself is compared with
its model; then with other tables and the lab's other files: nodes, scripts, parameters, trials and recorded sets must
be there.
"""

from __future__ import annotations

import csv
import io
import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from measuretwice.base.errors import UserError, has_controls
from measuretwice.lab.lab import (
    Lab,
    Trial,
    name_of,
    select_trials,
    short_path,
    supporting_range,
)
from measuretwice.lab.schema import FORMAT_VERSION, LabFile, first_problem
from measuretwice.lab.schema.cases import FirstTry, Pitfall, Recording
from measuretwice.lab.schema.parameters import Parameter, TrialTable, Value, is_reserved, unit_of
from measuretwice.lab.schema.results import Checks, FigureOf, PublishedClaim, Rule
from measuretwice.lab.spoilers import SEALED, unseal

RULES_FILE = "rules.toml"
CLAIMS_FILE = "labs/claims.toml"


def find_labs(root: Path) -> dict[str, Path]:
    """Return each lab's folder by its name, in order of number, from `root`/labs."""
    candidates = (path.parent for path in (root / "labs").glob("[0-9][0-9]-*/lab.toml"))
    # What a lab is called is printed as it is.
    folders = sorted(folder for folder in candidates if folder.name.isprintable())
    return {name_of(folder): folder for folder in folders}


def published_labs(root: Path) -> dict[str, Lab]:
    """Read the labs that pages show: all but drafts, by name."""
    labs = {name: read_lab(folder) for name, folder in find_labs(root).items()}
    return {name: lab for name, lab in labs.items() if not lab.file.lab.draft}


def load_lab(root: Path, name: str) -> Lab:
    """Read one lab by its name (`mathis`) or folder name (`01-mathis`)."""
    labs = find_labs(root)
    folder = labs.get(name) or labs.get(re.sub(r"^[0-9][0-9]-", "", name))
    if folder is None:
        raise UserError(f"there is no lab {name[:60]!r}; there are: {', '.join(labs) or 'none'}")
    return read_lab(folder)


def read_lab(folder: Path) -> Lab:
    """Read the lab in `folder`; UserError says what is wrong with its files.

    It is read once as long as its files stay the same, by time and size.
    """
    for path in folder.rglob("*"):
        # It would be followed on this machine, by what copies the lab's files, and lead anywhere.
        if path.is_symlink():
            raise UserError(f"{short_path(path)}: a link; a lab's files belong in its own folder")
    if (folder / "lab.toml").exists() and not (folder / "lab.toml").is_file():
        raise UserError(f"{short_path(folder / 'lab.toml')}: isn't a plain file")
    files = sorted((path, path.stat()) for path in folder.rglob("*") if path.is_file())
    return _read_lab(folder, tuple((path, at.st_mtime_ns, at.st_size) for path, at in files))


@lru_cache(maxsize=16)
def _read_lab(folder: Path, _: tuple[object, ...]) -> Lab:
    bare = Lab(folder, _read_file(folder / "lab.toml"), trials={})
    _check_uses(bare)
    lab = replace(bare, trials=_read_trials(bare))
    _check_uses_of_trials(lab)
    return lab


def _read_file(path: Path) -> LabFile:
    try:
        text = path.read_text(encoding="utf-8") + unseal(path.with_name(SEALED))
    except OSError as error:
        raise UserError(f"{short_path(path)}: can't be read: {error.strerror}") from None
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{short_path(path)}: not valid TOML: {error}") from None
    for key, text in _texts(document):
        if has_controls(text):
            raise UserError(
                f"{short_path(path)}: {key or 'a key'}: control characters, which a terminal would obey, in {text!r}"
            )
    # First of all: in another format the rest may mean something else.
    if (version := document.get("format_version")) != FORMAT_VERSION:
        got = "no such key" if version is None else f"got {version!r}"
        raise UserError(
            f"{short_path(path)}: format_version: expected {FORMAT_VERSION}, which is what this "
            f"kit reads; {got}"
        )
    try:
        return LabFile.model_validate(document)
    except ValidationError as error:
        raise UserError(f"{short_path(path)}: {first_problem(error)}") from None


def _texts(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    """All texts of a document, each with the key that it stands at; a key is a text of its table's."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from _texts(part, f"{key}.{number}")
    elif isinstance(value, dict):
        for name, part in value.items():
            yield key, name
            yield from _texts(part, f"{key}.{name}" if key else name)


def _read_trials(lab: Lab) -> dict[int, Trial]:
    """Return the trials that `lab`'s file has, or the table that it names, by number."""
    listed = lab.file.trials
    if isinstance(listed, TrialTable):
        rows = _read_table(lab, lab.folder / listed.file)
    else:
        rows = [Trial(trial.trial, trial.title, dict(trial.set), {}) for trial in listed]
    trials: dict[int, Trial] = {}
    for row in rows:
        if row.number in trials:
            raise lab.problem("trials", f"trial {row.number} stands twice")
        where = f"{lab.shown_path}: trials: trial {row.number}"
        values = {name: lab.read_value(name, value, where) for name, value in row.set.items()}
        trials[row.number] = replace(row, set=values)
    return trials


def _read_table(lab: Lab, path: Path) -> list[Trial]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise lab.problem("trials.file", f"{path.name} can't be read: {error.strerror}") from None
    for line, written in enumerate(text.split("\n"), start=1):
        if has_controls(written):
            raise UserError(
                f"{short_path(path)}, line {line}: control characters, which a terminal would obey, in {written!r}"
            )
    rows: list[Trial] = []
    for line, row in enumerate(csv.DictReader(io.StringIO(text)), start=2):
        number = row.pop("trial", None) or ""
        if not number.isdigit():
            raise UserError(
                f"{short_path(path)}, line {line}: expected a number as trial, got {number!r}"
            )
        if None in row or None in row.values():
            raise UserError(
                f"{short_path(path)}, line {line}: expected as many columns as the first line has"
            )
        values: dict[str, Value] = {k: v for k, v in row.items() if k in lab.file.parameters}
        notes = {k: v for k, v in row.items() if k not in lab.file.parameters}
        title = ", ".join(f"{k} {v}" for k, v in values.items())
        rows.append(Trial(number=int(number), title=title, set=values, notes=notes))
    return rows


def _check_uses(lab: Lab) -> None:
    """Check what `lab`'s file refers to, before its trials are read."""
    for name, parameter in lab.file.parameters.items():
        _check_parameter(lab, name, parameter)
    _check_steps(lab)
    for key, name in _parameters_used(lab):
        if name not in lab.file.parameters:
            names = ", ".join(lab.file.parameters)
            raise lab.problem(key, f"{name!r} is no parameter; parameters are {names}")
    words_of = {f"checks.means.{meaning}": of for meaning, of in lab.file.checks.means.items()}
    words_of["run.too_much_for_browser"] = lab.file.run.too_much_for_browser
    for key, parameters in words_of.items():
        for name, words in parameters.items():
            for word in words:
                lab.read_set({name: word}, f"{lab.shown_path}: {key}")


def _check_uses_of_trials(lab: Lab) -> None:
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
        lab.read_set(dict(values), f"{lab.shown_path}: {key}.sets")


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
        yield from (("topology.edges", name) for name in edges.parameters)
    if emulated := file.topology.emulated:
        yield from (("topology.emulated", name) for name in emulated.parameters)
    for act in file.topology.acts:
        yield from (("topology.acts", name) for name in act.parameters)
    if crowd := file.collect.crowd:
        yield from (("collect.crowd", name) for name in (crowd.warmup, crowd.asked, crowd.rival))
    if (few := file.collect.flows) and few.delays and few.delays.deadline:
        yield "collect.flows.delays", few.delays.deadline
    if file.checks.flows_of != Checks().flows_of:
        yield from (("checks.flows_of", name) for name in file.checks.flows_of)
    for index, expectation in enumerate(file.expect):
        for name in (*expectation.wanted_parameters, *expectation.as_trial, *expectation.coarser):
            yield f"expect[{index}].{'params' if expectation.params else 'param'}", name


def _check_pitfall(lab: Lab, pitfall: Pitfall, earlier: list[str]) -> None:
    key = f"pitfalls: {pitfall.id}"
    for need in pitfall.needs:
        if need not in earlier:
            others = ", ".join(earlier) or "none"
            raise lab.problem(key, f"needs: {need!r} doesn't come before it; {others} do")
    if pitfall.trial not in lab.trials:
        raise lab.problem(key, f"there is no trial {pitfall.trial}")
    for place in pitfall.place:
        try:
            lab.file.topology.nodes_at(place)
        except ValueError as error:
            raise lab.problem(key, f"place: {error}") from None
    if pitfall.settled_by and pitfall.settled_by not in lab.file.parameters:
        raise lab.problem(key, f"settled_by: {pitfall.settled_by!r} is no parameter")
    for name in pitfall.hides:
        if name not in lab.file.parameters:
            raise lab.problem(key, f"hides: {name!r} is no parameter")
    number = pitfall.judgement.number if pitfall.judgement else None
    for part, asked in (("predict", pitfall.predict), ("judgement.number", number)):
        for name in asked.parameters if asked else ():
            if name not in lab.file.parameters:
                raise lab.problem(key, f"{part}: {name!r} is no parameter")
    for name, value in lab.varied(pitfall).items():
        for end in value:
            lab.read_value(name, end, f"{lab.shown_path}: {key}: vary")
    for other in pitfall.elsewhere:
        if other.trial not in lab.trials:
            raise lab.problem(key, f"elsewhere: there is no trial {other.trial}")
        where = f"{lab.shown_path}: {key}: elsewhere: trial {other.trial}"
        lab.read_set(other.both | other.broken, where)
    for stage, values in (("broken", pitfall.broken.set), ("fixed", pitfall.fixed.set)):
        lab.read_set(values, f"{lab.shown_path}: {key}: {stage}")
    if pitfall.trials:
        _check_selection(lab, key, pitfall.trials)
    answering = pitfall.predict.of_trial
    if answering is not None and not pitfall.trials:
        raise lab.problem(key, "predict: of_trial: this pitfall has one trial")
    if isinstance(answering, int) and answering not in select_trials(lab, pitfall.trials or ""):
        raise lab.problem(key, f"predict: of_trial: {answering} is none of its trials")


def _check_recording(lab: Lab, recording: Recording) -> None:
    key = f"recordings: {recording.id}"
    lab.read_set(recording.set, f"{lab.shown_path}: {key}")
    if recording.losses and not lab.file.model:
        raise lab.problem(key, "losses: this lab has no [model] to expect them from")
    if recording.case and recording.case > len(lab.file.pitfalls):
        raise lab.problem(key, f"case: {lab.name} has no case {recording.case}")
    if recording.case and (recording.trials != "all" or recording.losses):
        raise lab.problem(key, "case: its own trials are run; leave trials and losses out")
    _check_selection(lab, key, recording.trials)


def _check_figure(lab: Lab, figure: FigureOf) -> None:
    key = f"figures: {figure.id}"
    recording_ids = {recording.id for recording in lab.file.recordings}
    for name in figure.sets:
        if name not in recording_ids:
            raise lab.problem(key, f"of: there is no recording {name!r}")
    for parameter in figure.parameters():
        if parameter not in lab.file.parameters:
            raise lab.problem(key, f"{parameter!r} is no parameter")
    lab.read_set(figure.settings, f"{lab.shown_path}: {key}: settings")
    _check_selection(lab, key, figure.trials)


def _check_first_try(lab: Lab, first_try: FirstTry) -> None:
    recording_ids = {recording.id for recording in lab.file.recordings}
    for index, step in enumerate(first_try.steps):
        key = f"first_try.steps.{index}"
        if step.of not in recording_ids:
            raise lab.problem(key, f"of: there is no recording {step.of!r}")
        if bool(step.after) != bool(index):
            raise lab.problem(
                key, "after: the first step is after no pitfall, each later one is after some"
            )
        for name in step.after:
            if name not in (pitfall.id for pitfall in lab.file.pitfalls):
                raise lab.problem(key, f"after: there is no pitfall {name!r}")
        shown = step.shown or first_try.shown
        if shown.by and shown.by not in lab.file.parameters:
            raise lab.problem(key, f"shown.by: {shown.by!r} is no parameter")
        if not (shown.most or shown.alike_ratio) and supporting_range(lab, shown) == (None, None):
            raise lab.problem(key, f"shown: no range, and no [[expect]] of {shown.value!r} has one")


def read_rules(lab: Lab) -> dict[str, Rule]:
    """Return by which rule each judgement on the lab's page is made, from its rules.toml; none without that file.

    UserError where it can't be read, or holds anything but rules.
    """
    path = lab.folder / RULES_FILE
    if not path.is_file():
        return {}
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        return TypeAdapter(dict[str, Rule]).validate_python(document)
    except ValidationError as error:
        raise UserError(f"{path}: {first_problem(error)}") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: {error}") from None


def read_claims(root: Path) -> list[PublishedClaim]:
    """Return the published claims that a study may take up, in the order of their file; UserError where it can't be read.

    A kit without the file has none.
    """
    path = root / CLAIMS_FILE
    if not path.exists():
        return []
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        return TypeAdapter(dict[str, list[PublishedClaim]]).validate_python(document)["claims"]
    except ValidationError as error:
        raise UserError(f"{path}: {first_problem(error)}") from None
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"{path}: {error}") from None


def _check_selection(lab: Lab, key: str, trials: str) -> None:
    """Check a selection under `trials` in lab.toml, written as for --trial; UserError names the key."""
    try:
        select_trials(lab, trials)
    except UserError as error:
        raise lab.problem(key, str(error).replace("--trial ", "trials ")) from None
