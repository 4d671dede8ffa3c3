"""nodes.toml: what is read, and what is refused in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from measuretwice.backends.ssh_nodes import node_list_text, read_node_list
from measuretwice.base.errors import UserError

NAMES = ["romeo", "router", "juliet"]
GOOD = {"romeo": "ubuntu@192.0.2.7", "router": "ssh://me@pc1.example.org:25010", "juliet": "juliet"}


def write(folder: Path, text: str) -> Path:
    path = folder / "nodes.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, node_list_text(GOOD, "from a\ntest"))
    nodes = read_node_list(path, NAMES)
    assert nodes.destinations == GOOD
    assert nodes.sudo
    assert nodes.ssh_config is None
    assert nodes.ssh("romeo") == ["ssh", "--", "ubuntu@192.0.2.7"]


def test_the_order_is_the_labs(tmp_path: Path) -> None:
    path = write(tmp_path, node_list_text(GOOD, "x"))
    assert list(read_node_list(path, NAMES[::-1]).destinations) == NAMES[::-1]


def test_ssh_config_is_found_beside_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ssh_config").touch()
    path = write(tmp_path, 'ssh_config = "ssh_config"\nsudo = false\n' + node_list_text(GOOD, "x"))
    monkeypatch.chdir("/")
    nodes = read_node_list(path, NAMES)
    assert not nodes.sudo
    assert nodes.ssh("juliet") == ["ssh", "-F", str(tmp_path / "ssh_config"), "--", "juliet"]


def test_ssh_config_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config").touch()
    monkeypatch.setenv("HOME", str(home))
    path = write(tmp_path, 'ssh_config = "~/config"\n' + node_list_text(GOOD, "x"))
    assert read_node_list(path, NAMES).ssh_config == home / "config"


@pytest.mark.parametrize(
    "destination",
    [
        "2001:db8::7",
        "ubuntu@2001:db8::7",
        "ubuntu@fe80::1%eth0",
        "ssh://ubuntu@[2001:db8::7]:22",
        "pc-1.x.org",
        "a.b@c",
    ],
)
def test_destinations_that_ssh_knows(tmp_path: Path, destination: str) -> None:
    path = write(tmp_path, node_list_text(GOOD | {"romeo": destination}, "x"))
    assert read_node_list(path, NAMES).destinations["romeo"] == destination


@pytest.mark.parametrize(
    "destination",
    [
        "",
        "-oProxyCommand=touch /tmp/x",
        "-lroot",
        "me@-oProxyCommand=x",
        "a b",
        "host;reboot",
        "$(x)",
        "host\\n",
        "ssh://h:x",
    ],
)
def test_what_ssh_would_take_for_something_else(tmp_path: Path, destination: str) -> None:
    path = write(tmp_path, node_list_text(GOOD | {"romeo": destination}, "x"))
    with pytest.raises(UserError, match=r"nodes\.romeo\.ssh: expected what you type after ssh"):
        read_node_list(path, NAMES)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nodes = [", "not valid TOML"),
        ("", "nodes: this is missing"),
        ("[nodes]", "it has no [nodes.romeo] of this lab; its nodes are romeo, router, juliet"),
        ('[nodes.romeo]\nssh = "a"\n[nodes.router]\nssh = "b"', "it has no [nodes.juliet]"),
        (node_list_text(GOOD | {"tybalt": "t"}, "x"), "'tybalt' is no node of this lab"),
        (node_list_text(GOOD | {"juliet": GOOD["romeo"]}, "x"), "is romeo already"),
        ("[nodes.romeo]\nssh = 7", "nodes.romeo.ssh: "),
        ("[nodes.romeo]", "nodes.romeo.ssh: this is missing"),
        ('[nodes.romeo]\nssh = "a"\nport = 22', "nodes.romeo.port: no such key; expected one of ssh"),
        ('user = "me"\n[nodes]', "user: no such key; expected one of ssh_config, sudo, nodes"),
        ('sudo = "yes"\n[nodes]', "sudo: "),
        ('ssh_config = "nowhere"\n' + node_list_text(GOOD, "x"), "ssh_config: there is no file"),
        ('ssh_config = "~nobodyhere/x"\n' + node_list_text(GOOD, "x"), "ssh_config: there is no file"),
        ('ssh_config = "."\n' + node_list_text(GOOD, "x"), "ssh_config: there is no file"),
    ],
)  # fmt: skip
def test_refused_in_words(tmp_path: Path, text: str, says: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(UserError) as caught:
        read_node_list(path, NAMES)
    assert str(caught.value).startswith(f"{path}: ")
    assert says in str(caught.value)
    assert caught.value.exit_code == 2


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="can't be read: No such file"):
        read_node_list(tmp_path / "nodes.toml", NAMES)
    with pytest.raises(UserError, match="can't be read: Is a directory"):
        read_node_list(tmp_path, NAMES)
    (tmp_path / "latin").write_bytes(b'a = "\xe9"')
    with pytest.raises(UserError, match="not valid TOML"):
        read_node_list(tmp_path / "latin", NAMES)
