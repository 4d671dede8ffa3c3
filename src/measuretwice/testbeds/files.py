"""What a testbed is given for a lab: a FABRIC notebook, a CloudLab profile; and what it gives back.

Both are made from lab.toml, so that they can't differ from it. Nothing here reaches a testbed.
"""

from __future__ import annotations

import json
import pprint
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from measuretwice.base.errors import UserError
from measuretwice.lab import Lab
from measuretwice.testbeds.layout import CORES, DISK_GB, MEMORY_GB, Layout, layout_of

TEMPLATES = Path(__file__).parent / "templates"
# A manifest's elements: GENI's RSpec, version 3.
_RSPEC = "{http://www.geni.net/resources/rspec/3}"


def fabric_notebook(lab: Lab) -> str:
    """Return a Jupyter notebook that builds the lab's topology with FABRIC's library, as JSON."""
    cells = []
    for number, part in enumerate(_render(lab, "fabric.py.j2").split("# %%")[1:], 1):
        head, _, body = part.partition("\n")
        cell: dict[str, Any] = {"cell_type": "code", "id": f"cell-{number}", "metadata": {}}
        if head.strip() == "[markdown]":
            cell["cell_type"] = "markdown"
            body = re.sub(r"^# ?", "", body, flags=re.MULTILINE)
        else:
            cell |= {"execution_count": None, "outputs": []}
        cells.append(cell | {"source": body.strip("\n").splitlines(keepends=True)})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return (
        json.dumps(
            {
                "cells": cells,
                "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
                "nbformat": 4,
                "nbformat_minor": 5,
            },
            ensure_ascii=False,
            indent=1,
            sort_keys=True,
        )
        + "\n"
    )


def cloudlab_profile(lab: Lab) -> str:
    """Return a profile for CloudLab's portal: a geni-lib script, good for Python 2.7 and 3."""
    return _render(lab, "cloudlab.py.j2")


def manifest_logins(text: str, lab: Lab, user: str | None = None) -> dict[str, str]:
    """Return how ssh reaches each of the lab's nodes, from the manifest of a CloudLab experiment.

    `user` chooses among several people's logins. UserError says what is wrong with the manifest.
    """
    if "<!DOCTYPE" in text:
        raise UserError("the manifest has a DOCTYPE, which none from a testbed has")
    try:
        root = ET.fromstring(text)
    except ET.ParseError as error:
        raise UserError(f"the manifest is no XML: {error}") from None
    if root.tag != f"{_RSPEC}rspec" or root.get("type") != "manifest":
        raise UserError(
            "this is no manifest of GENI's version 3: save the text of the tab Manifest"
        )
    logins = _logins_in(root)
    found = {}
    for node in lab.file.topology.nodes:
        fitting = [where for name, where in logins.get(node.name, []) if user in (None, name)]
        if not fitting:
            whose = f" for {user}" if user else ""
            raise UserError(
                f"the manifest has no login{whose} on {node.name}: is it of the {lab.name} lab, and all up?"
            )
        if len(set(fitting)) > 1:
            people = sorted({name for name, _ in logins[node.name]})
            raise UserError(
                f"several people can log in: say who you are with --user, one of {', '.join(people)}"
            )
        found[node.name] = fitting[0]
    return found


def _logins_in(manifest: ET.Element) -> dict[str, list[tuple[str, str]]]:
    """Each node's logins in a manifest: whose each is, and where ssh finds it."""
    logins: dict[str, list[tuple[str, str]]] = {}
    for element in manifest.iter(f"{_RSPEC}node"):
        for login in element.iter(f"{_RSPEC}login"):
            name, host = login.get("username", ""), login.get("hostname", "")
            port = login.get("port", "22")
            where = f"{name}@{host}" if port == "22" else f"ssh://{name}@{host}:{port}"
            logins.setdefault(element.get("client_id", ""), []).append((name, where))
    return logins


def _render(lab: Lab, template: str) -> str:
    layout = layout_of(lab)
    room = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        autoescape=False,
        keep_trailing_newline=True,
    )
    setup = (TEMPLATES / "node-setup.sh").read_text(encoding="utf-8")
    return room.get_template(template).render(
        lab=lab.name,
        folder=lab.folder.name,
        # Within a docstring, and in a comment.
        title=" ".join(lab.file.lab.title.replace("\\", "").replace('"', "'").split()),
        machines=len(layout.machines),
        networks=len(layout.networks),
        most_interfaces=layout.most_interfaces,
        plan=pprint.pformat(_plan(layout), width=98, sort_dicts=False),
        setup=_literal(setup),
        cores=CORES,
        memory_gb=MEMORY_GB,
        disk_gb=DISK_GB,
    )


def _plan(layout: Layout) -> dict[str, Any]:
    """The layout in numbers and text only: what the files that we make say."""
    return {
        "nodes": [
            {
                "name": machine.name,
                "forward": machine.forward,
                "routes": [(str(route.subnet), str(route.gateway)) for route in machine.routes],
            }
            for machine in layout.machines
        ],
        "networks": [
            {
                "name": network.name,
                "subnet": str(network.subnet),
                "netmask": str(network.subnet.netmask),
                "members": [(node, str(address.ip)) for node, address in network.members],
            }
            for network in layout.networks
        ],
    }


def _literal(text: str) -> str:
    """Text that can be read where it stands, as a Python literal between three quotes."""
    if "'''" in text or text.endswith("'"):
        raise ValueError("this text ends its own literal")
    return "r'''" + text + "'''"
