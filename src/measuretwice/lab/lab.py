"""A lab: the facts in its lab.toml, its trials, and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.lab.schema import LabFile, Pitfall, Value, refers


@dataclass(frozen=True)
class Trial:
    """One trial: its number, what it is called, and the parameters that it sets.

    `notes` are the columns of a table of trials that are no parameters.
    """

    number: int
    title: str
    set: dict[str, Value]
    notes: dict[str, str]


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
    def place(self) -> str:
        """The path of lab.toml as its reader knows it: from the labs folder on."""
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
        known = ", ".join(pitfall.id for pitfall in self.file.pitfalls) or "none"
        raise UserError(f"--pitfall {wanted}: {self.name} has {known}")

    def varied(self, pitfall: Pitfall) -> dict[str, tuple[float, float]]:
        """Return the lowest and highest value of each parameter that a pitfall may vary."""
        mended = {**self.defaults(), **self.trials[pitfall.trial].set, **pitfall.fixed.set}
        ranges = {}
        for name, by in pitfall.vary.items():
            value = mended.get(name)
            if not isinstance(value, int | float):
                raise self.problem(
                    f"pitfalls: {pitfall.id}: vary", f"{name!r} has no number to vary"
                )
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

    def script_name(self, node_name: str) -> str:
        """Return the name of a node's script, which several nodes may share."""
        for node in self.file.topology.nodes:
            if node.name == node_name and node.script:
                return node.script
        return node_name

    def script(self, node_name: str) -> Path:
        return self.folder / "nodes" / f"{self.script_name(node_name)}.sh"

    def problem(self, key: str, what: str) -> UserError:
        """What is wrong at `key` of lab.toml, to be raised."""
        return UserError(f"{self.place}: {key}: {what}")


def name_of(folder: Path) -> str:
    """A lab's name: its folder's, without the number."""
    return folder.name.split("-", 1)[-1]


def short_path(path: Path) -> str:
    """The path of a lab's file as its reader knows it: from the labs folder on."""
    return "/".join(path.parts[-3:])
