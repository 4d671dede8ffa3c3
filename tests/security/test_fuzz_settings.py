"""TOML that a student or a lecturer edits: settings.toml of `./lab edit`, and nodes.toml of a testbed."""

from __future__ import annotations

import json
import re
import shutil
from functools import cache
from pathlib import Path

import pytest
from hostile import KEYS, LABS, LEAVES, ROOT, Hostile, amounts, explore, files, watched
from hypothesis import strategies as st

from measuretwice.backends.ssh_nodes import NodeList, read_node_list
from measuretwice.base.errors import UserError
from measuretwice.lab import CheckedParams, load_lab
from measuretwice.lab.own_copy import OwnCopy, copy_folder, make_copy, read_copy


@cache
def settings_of(name: str) -> dict[str, bytes]:
    """Every setting of a lab at its default, as somebody has who took each comment away."""
    lab = load_lab(ROOT, name)
    lines = [f"{setting} = {json.dumps(value)}" for setting, value in lab.defaults().items()]
    return {"settings.toml": "\n".join(lines).encode()}


@st.composite
def one_line(draw: st.DrawFn, names: list[str]) -> Hostile:
    """One setting with a value that no lab has."""
    name = draw(st.sampled_from([*names, *(json.dumps(key) for key in KEYS)]))
    value = draw(
        st.sampled_from([*LEAVES, "nan", "-inf", "0x10", "1_000", "1979-05-27", "'''\na'''"])
    )
    return Hostile(f"{name} = {value}\n".encode("utf-8", "surrogatepass"))


@amounts
@pytest.mark.parametrize("name", LABS)
def test_settings_of_a_copy_are_the_labs_or_refused(amount: str, name: str, tmp_path: Path) -> None:
    lab = load_lab(ROOT, name)
    assert make_copy(tmp_path, lab, lab.file.parameters)
    path = copy_folder(tmp_path, lab) / "settings.toml"

    def check(hostile: Hostile) -> None:
        path.write_bytes(hostile.content)
        with watched(tmp_path, UserError):
            copy = read_copy(tmp_path, lab)
            assert isinstance(copy, OwnCopy)
            assert copy.scripts is None
            CheckedParams(lab, copy.settings, "a copy")
            assert copy.changes.isprintable()

    known = [Hostile(b"a = " + b"[" * 5000), Hostile(b"rtt_ms = 1" + b"0" * 400)]
    lines = one_line(list(lab.file.parameters))
    explore(amount, st.one_of(files(settings_of(name)), lines), check, known=known)


@amounts
def test_python_of_a_copy_is_parsed_or_refused(amount: str, tmp_path: Path) -> None:
    """It is parsed, never run, before a kernel runs it."""
    lab = load_lab(ROOT, "mathis")
    assert make_copy(tmp_path, lab, {})
    path = copy_folder(tmp_path, lab) / "nodes" / "own.py"
    script = b"import json\n\n\ndef main(path):\n    with open(path) as file:\n        print(json.load(file)[0])\n"

    def check(hostile: Hostile) -> None:
        path.write_bytes(hostile.content)
        with watched(tmp_path, UserError):
            assert isinstance(read_copy(tmp_path, lab), OwnCopy)

    known = [Hostile(b"(" * 5000), Hostile(b"x = " + b"-" * 200_000 + b"1"), Hostile(b"\0")]
    explore(amount, files({"own.py": script}), check, known=known)


NODES = {
    "nodes.toml": b"""ssh_config = "ssh_config"
sudo = false

[nodes.romeo]
ssh = "ubuntu@192.0.2.7"

[nodes.router]
ssh = "ssh://me@router.example.org:2222"

[nodes.juliet]
ssh = "juliet"
"""
}
DESTINATIONS = (
    "-oProxyCommand=touch x", "--", "a b", "a\\nb", "a;b", "$(id)", "a@-b", "ssh://-x", "user@host", "ssh://[::1]:22", "\\u001b[2J",
    "host -oX", "juliet", "ubuntu@192.0.2.7", "", "é", "a\\u0000", "x" * 300,
)  # fmt: skip


@amounts
def test_a_list_of_nodes_is_read_or_refused(amount: str, tmp_path: Path) -> None:
    names = ["romeo", "router", "juliet"]
    (tmp_path / "ssh_config").write_text("")
    path = tmp_path / "nodes.toml"

    def check(hostile: Hostile) -> None:
        path.write_bytes(hostile.content)
        with watched(tmp_path, UserError):
            found = read_node_list(path, names)
            assert isinstance(found, NodeList)
            for name in names:
                *before, dashes, destination = found.ssh(name)
                assert before[0] == "ssh"
                assert dashes == "--"
                assert re.fullmatch(r"[\w./:@%\[\]+-]+", destination), destination
                assert not destination.startswith("-")

    typed = st.sampled_from(DESTINATIONS).map(
        lambda text: Hostile(NODES["nodes.toml"].replace(b'"juliet"', f'"{text}"'.encode()))
    )
    configured = st.sampled_from([*DESTINATIONS, "~nobody-here/x", "/etc/passwd", ".", ".."]).map(
        lambda text: Hostile(NODES["nodes.toml"].replace(b'"ssh_config"', f'"{text}"'.encode()))
    )
    known = [Hostile(b"a = " + b"[" * 5000)]
    explore(amount, st.one_of(files(NODES), typed, configured), check, few=60, known=known)


def test_a_copy_in_the_way_is_left(tmp_path: Path) -> None:
    """What the tests above write is found by the reader: it is the copy's own file."""
    lab = load_lab(ROOT, "mathis")
    assert make_copy(tmp_path, lab, {})
    (copy_folder(tmp_path, lab) / "settings.toml").write_bytes(b"rtt_ms = 12\n")
    assert dict(read_copy(tmp_path, lab).settings) == {"rtt_ms": 12}
    shutil.rmtree(copy_folder(tmp_path, lab))
