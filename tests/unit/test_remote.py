"""Connections to nodes, with a stand-in for ssh: what it says is passed on, and silence is noticed."""

from __future__ import annotations

import io
import os
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from measuretwice.backends import ssh_nodes
from measuretwice.backends.ssh import unpack
from measuretwice.backends.ssh_nodes import NodeList, NodeLost, Nodes, clock_problems

Connect = Callable[[str], Nodes]


@pytest.fixture
def connect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Connect:
    """Return nodes a and b, reached by an ssh that is this script; $node is the destination."""

    def with_ssh(script: str) -> Nodes:
        ssh = tmp_path / "ssh"
        # The destination stands before the command, which is last.
        ssh.write_text(f"#!/bin/bash\nnode=${{@: -2:1}} command=${{@: -1}}\n{script}\n")
        ssh.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        return Nodes(NodeList(tmp_path, {"a": "at-a", "b": "at-b"}, None, True))

    return with_ssh


def watch_for(seconds: float, nodes: Nodes) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        nodes.watch()
        time.sleep(0.05)


def test_what_ssh_or_sudo_said_last_is_passed_on(connect: Connect) -> None:
    nodes = connect(
        "[[ $node == at-a ]] && { echo 'Host key verification failed.' >&2; exit 255; }\n"
        "echo 'sudo: a password is required' >&2; exit 1"
    )
    nodes.greet({})
    a, b = nodes._problems
    assert a == "a: Host key verification failed: try ssh at-a by hand"
    assert b.startswith("b: sudo: a password is required: sudo must work there without a password")
    nodes.close()


def test_what_a_login_says_first_is_no_matter(connect: Connect) -> None:
    nodes = connect(
        "echo 'Welcome to the machine'; echo 'a warning of the shell' >&2\n"
        "echo measuretwice\n"
        'while read -r word; do [[ $word != tell ]] || { echo "fact kernel 6.1-$node"; echo told; }\n'
        "[[ $word != end ]] || exit; done"
    )
    nodes.greet({"iperf3": ["iperf3", "--version"]})
    assert nodes._problems == []
    assert nodes.kernel_name == "nodes linux 6.1-at-a, 6.1-at-b"
    nodes.watch()
    nodes.channels["b"].order("end")
    with pytest.raises(NodeLost, match="lost b: the connection ended"):
        watch_for(5, nodes)
    nodes.close()


def test_silence_is_noticed_and_beats_are_not_silence(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh_nodes, "BEAT_S", 0.1)
    monkeypatch.setattr(ssh_nodes, "SILENCE_S", 1.0)
    nodes = connect(
        "echo measuretwice\n"
        "while read -r word; do case $word in tell) echo told ;; .) [[ $node == at-b ]] || echo . ;; esac; done"
    )
    nodes.greet({})
    begun = time.monotonic()
    with pytest.raises(NodeLost, match="lost b: no answer for 1 s"):
        watch_for(10, nodes)
    assert nodes.channels["a"].lost() is None
    nodes.close()
    assert time.monotonic() < begun + 10


def test_a_file_comes_whole_between_answers(connect: Connect) -> None:
    nodes = connect(
        "echo measuretwice\n"
        "while read -r word; do case $word in tell) echo told ;;\n"
        "  fetch) echo 'files 300000'; head -c 300000 /dev/zero; echo after ;; esac; done"
    )
    nodes.greet({})
    channel = nodes.channels["a"]
    channel.order("fetch")
    _, file = channel.answer("files", watch=nodes.watch)
    assert file is not None
    assert file.read() == bytes(300_000)
    assert channel.answer("after", watch=nodes.watch)[0] == "after"
    nodes.close()


def test_clocks_that_are_apart() -> None:
    assert clock_problems({"a": 5.1, "b": 4.9, "c": 5.0}) == []
    (line,) = clock_problems({"a": 0.1, "b": -2.4, "c": 0.0})
    assert line.startswith("b: its clock is 2.4 s behind")


def packed(*entries: tarfile.TarInfo) -> io.BytesIO:
    """An archive of these, each plain file with its name as its text."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for entry in entries:
            text = entry.name.encode() if entry.isreg() else b""
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text))
    archive.seek(0)
    return archive


def entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def test_a_nodes_files_are_unpacked_as_tar_packs_them(tmp_path: Path) -> None:
    unpack(packed(entry(".", tarfile.DIRTYPE), entry("./a"), entry("./b/c")), tmp_path)
    assert (tmp_path / "a").read_text() == "./a"
    assert (tmp_path / "b/c").read_text() == "./b/c"


@pytest.mark.parametrize(
    "wrong",
    [
        entry("../a"),
        entry("/a"),
        entry("b/../../a"),
        entry("a", tarfile.SYMTYPE, "/etc/passwd"),
        entry("a", tarfile.LNKTYPE, "b"),
        entry("a", tarfile.FIFOTYPE),
    ],
    ids=lambda info: f"{info.name} {info.type.decode()}",
)
def test_no_nodes_file_comes_to_lie_elsewhere(tmp_path: Path, wrong: tarfile.TarInfo) -> None:
    folder = tmp_path / "node"
    folder.mkdir()
    with pytest.raises(tarfile.TarError, match="doesn't belong in it"):
        unpack(packed(wrong), folder)
    assert list(tmp_path.rglob("*")) == [folder]
