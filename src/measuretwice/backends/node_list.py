"""nodes.toml: on which machines a lab's nodes are, for `./lab run LAB --on nodes.toml`.

    ssh_config = "ssh_config"     # optional: what ssh is told with -F; else it reads its own files
    sudo = false                  # optional: who logs in is root already. Default: true

    [nodes.romeo]
    ssh = "ubuntu@192.0.2.7"      # as typed after ssh: user@host, ssh://user@host:port, or a Host
                                  # alias of that configuration

Every node of the lab stands in it, and no other. Jump hosts, keys and ports belong into ssh's
configuration. Interfaces aren't named: they are found by the addresses that lab.toml has.
A path is meant from the folder of the file that names it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from measuretwice.base.errors import UserError

# What ssh takes for a destination, and nothing that it would take for an option. An address of
# version 6 stands in brackets only after ssh://.
_DESTINATION = re.compile(
    r"(?:[\w.+-]+@)?[A-Za-z0-9_][\w.:%-]*"
    r"|ssh://(?:[\w.+-]+@)?(?:[A-Za-z0-9_][\w.-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]+)?",
    re.ASCII,
)


class _Node(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    ssh: str


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    ssh_config: Annotated[str, Field(min_length=1)] | None = None
    sudo: bool = True
    nodes: dict[str, _Node]


@dataclass(frozen=True)
class NodeList:
    """A nodes.toml that fits its lab: what ssh calls each node, by the lab's names in their order.

    `ssh_config` is a file that exists, by its absolute path.
    """

    path: Path
    destinations: Mapping[str, str]
    ssh_config: Path | None
    sudo: bool

    def ssh(self, node: str) -> list[str]:
        """Return the command that reaches a node, up to and with its destination.

        What goes before the destination (ssh's options) can be put in after the first word.
        """
        configured = ["-F", str(self.ssh_config)] if self.ssh_config else []
        return ["ssh", *configured, "--", self.destinations[node]]


def read_node_list(path: Path, names: Sequence[str]) -> NodeList:
    """Read a nodes.toml for the lab whose nodes are `names`.

    UserError names the file, the key and what to do.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: can't be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not valid TOML: {error}") from None
    try:
        file = _File.model_validate(data)
    except ValidationError as error:
        raise UserError(f"{path}: {_first_problem(error)}") from None
    missing = [name for name in names if name not in file.nodes]
    unknown = [name for name in file.nodes if name not in names]
    if missing or unknown:
        what = f"it has no [nodes.{missing[0]}]" if missing else f"{unknown[0]!r} is no node"
        raise UserError(f"{path}: nodes: {what} of this lab; its nodes are {', '.join(names)}")
    destinations: dict[str, str] = {}
    for name in names:
        destination = file.nodes[name].ssh
        if not _DESTINATION.fullmatch(destination):
            raise UserError(
                f"{path}: nodes.{name}.ssh: expected what you type after ssh, as user@host or an "
                f"alias; options belong into ssh_config; got {destination!r}"
            )
        for other, used in destinations.items():
            if used == destination:
                raise UserError(
                    f"{path}: nodes.{name}.ssh: {destination} is {other} already; each node is a machine of its own"
                )
        destinations[name] = destination
    return NodeList(path, destinations, _config(path, file.ssh_config), file.sudo)


def node_list_text(destinations: Mapping[str, str], comment: str) -> str:
    """Return a nodes.toml, with a first line that says where it comes from."""
    parts = [f"# {' '.join(comment.split())}\n"]
    parts += [
        f'\n[nodes.{name}]\nssh = "{destination}"\n' for name, destination in destinations.items()
    ]
    return "".join(parts)


def _config(path: Path, named: str | None) -> Path | None:
    if named is None:
        return None
    try:
        config = (path.parent / Path(named).expanduser()).resolve()
    except (RuntimeError, OSError, ValueError):  # ~somebody who isn't here, or no name of a file
        config = path.parent / named
    try:
        found = config.is_file()
    except (OSError, ValueError):  # a name that no file can have
        found = False
    if not found:
        raise UserError(f"{path}: ssh_config: there is no file {str(config)[:200]}")
    return config


def _first_problem(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        fields = _Node.model_fields if key.startswith("nodes.") else _File.model_fields
        return f"{key}: no such key; expected one of {', '.join(fields)}"
    if first["type"] == "missing":
        return f'{key}: this is missing; each node has [nodes.NAME] with ssh = "user@host"'
    return f"{key}: {first['msg'][0].lower()}{first['msg'][1:]}, got {first['input']!r}"
