"""The cheat sheet: its commands are ./lab's, its words are show's, and it gives no mistake away."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from measuretwice.cli.main import cli
from measuretwice.lab import find_labs, read_lab
from measuretwice.parse.host import ETHTOOL, LINK, NSTAT, SYSCTL
from measuretwice.parse.iperf3 import IPERF3
from measuretwice.parse.ping import PING
from measuretwice.parse.ss_fields import SS
from measuretwice.parse.tc_fields import QDISC
from measuretwice.view import words

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/cheat-sheet.md").read_text(encoding="utf-8")
COMMANDS = [text for text in re.findall(r"`([^`]+)`", PAGE) if text.startswith("./lab ")]
FIELDS = {
    "ping": PING,
    "iperf3": IPERF3 | dict.fromkeys(["received"]),
    "ss": SS,
    "qdisc": QDISC,
    "queue": QDISC,
    "nstat": NSTAT,
    "link": LINK,
    "sysctl": {name.rsplit(".", 1)[-1]: meaning for name, meaning in SYSCTL.items()},
    "ethtool": ETHTOOL | dict.fromkeys(["...-offload"]),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_its_commands_are_understood(command: str) -> None:
    arguments = shlex.split(command)[1:]
    if "WHAT" in arguments:
        arguments.remove("WHAT")
    top = cli.make_context("./lab", list(arguments))
    name, known, rest = cli.resolve_command(top, list(arguments))
    assert name
    assert known
    with click.Context(known):
        known.make_context(name, rest, parent=top)


def test_its_words_and_fields_are_those_of_show() -> None:
    """Each row of the second table: a word of show, and fields that its table of meanings has."""
    rows = [
        row.strip("|").split("|")
        for row in PAGE.split("## What to look at first")[1].splitlines()
        if row.startswith("| ")
    ]
    named = [re.findall(r"`([^`]+)`", row[0]) for row in rows[1:]]
    assert {word for words_ in named for word in words_} <= set(words.BY_NAME)
    word = ""
    for row, first in zip(rows[1:], named, strict=True):
        word = first[0] if first else word
        for field in re.findall(r"`([^`]+)`", row[2]):
            assert field in FIELDS[word], (word, field)


def test_it_names_no_mistake() -> None:
    text = PAGE.lower()
    for folder in find_labs(ROOT).values():
        for pitfall in read_lab(folder).file.pitfalls:
            # An id may be a field's own name, as mtu is.
            assert "-" not in pitfall.id or pitfall.id not in text
            assert pitfall.title.lower() not in text
    for word in ("mistake", "pitfall", "broken", "cause", "because", "wrong"):
        assert word not in text
