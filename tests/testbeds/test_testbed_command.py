"""./lab testbed from outside, and the topologies that no testbed could build."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from command_line import call_lab

from measuretwice.backends.ssh_nodes import read_node_list
from measuretwice.base.errors import UserError
from measuretwice.lab import Lab
from measuretwice.lab.schema import LabFile
from measuretwice.testbeds import Layout, layout_of

ROOT = Path(__file__).parents[2]
MANIFEST = '<rspec xmlns="http://www.geni.net/resources/rspec/3" type="manifest">' + "".join(
    f'<node client_id="{name}"><services><login hostname="{name}.x.us" port="22" username="me"/></services></node>'
    for name in ("romeo", "router", "juliet")
) + "</rspec>"  # fmt: skip


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return call_lab("testbed", *arguments, cwd=folder)


def test_files_are_made_once(tmp_path: Path) -> None:
    for option, name in (("--fabric", "mathis-fabric.ipynb"), ("--cloudlab", "mathis-cloudlab.py")):
        done = command(tmp_path, "mathis", option)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(f"{name}: ")
        shown = command(tmp_path, "01-mathis", option, "--out", "-")
        assert shown.stdout == (tmp_path / name).read_text(encoding="utf-8")
    (tmp_path / name).write_text("mine", encoding="utf-8")
    done = command(tmp_path, "mathis", "--cloudlab")
    assert done.returncode == 2
    problem = "is there already, and differs: delete it, or name another with --out"
    assert done.stderr == f"lab: {name}: {problem}\n"
    assert (tmp_path / name).read_text(encoding="utf-8") == "mine"


def test_nodes_from_a_manifest(tmp_path: Path) -> None:
    (tmp_path / "manifest.xml").write_text(MANIFEST, encoding="utf-8")
    done = command(tmp_path, "mathis", "--manifest", "manifest.xml")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "nodes.toml: ./lab run mathis --on nodes.toml\n"
    nodes = read_node_list(tmp_path / "nodes.toml", ["romeo", "router", "juliet"])
    assert nodes.destinations["juliet"] == "me@juliet.x.us"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["mathis"], "say what to make: one of --fabric, --cloudlab and --manifest FILE"),
        (["mathis", "--fabric", "--cloudlab"], "say what to make: one of"),
        (["mathis", "--fabric", "--user", "me"], "--user names a login of a --manifest"),
        (["verona", "--fabric"], "there is no lab 'verona'"),
        (["mathis", "--manifest", "nowhere.xml"], "nowhere.xml: can't be read: No such file"),
        (["mathis", "--manifest", "."], "can't be read: Is a directory"),
        (["mathis", "--fabric", "--out", "/proc/nowhere/x"], "/proc/nowhere/x: can't be written"),
        (["mathis", "--fabric", "--out", "."], "is there already"),
        ([], "LAB"),
    ],
)
def test_wrong_usage(tmp_path: Path, arguments: list[str], says: str) -> None:
    done = command(tmp_path, *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert says in done.stderr


# --- topologies ---


def layout(links: list[str], **routes: list[str]) -> Layout:
    """Links as 'a 10.0.1.1/24 b 10.0.1.2/24'."""
    words = [link.split() for link in links]
    names = sorted({name for a, _, b, _ in words for name in (a, b)})
    file = LabFile.model_validate(
        {
            "format_version": 1,
            "lab": {"title": "t", "minutes": 1, "objectives": []},
            "topology": {
                "art": "",
                "nodes": [{"name": name, "routes": routes.get(name, [])} for name in names],
                "links": [
                    {"a": {"node": a, "address": x}, "b": {"node": b, "address": y}}
                    for a, x, b, y in words
                ],
            },
            "parameters": {},
            "trials": [],
            "run": {"prepare": [], "measure": []},
            "collect": {},
        }
    )
    return layout_of(Lab(Path("/labs/09-t"), file, trials={}))


def test_cables_that_end_at_one_address_are_one_network() -> None:
    made = layout(
        [
            "a 10.0.1.1/24 r 10.0.1.9/24",
            "c 10.0.2.1/24 r 10.0.2.9/24",
            "b 10.0.1.2/24 r 10.0.1.9/24",
        ],
        r=["10.0.1.1 dev eth0", "10.0.1.2 dev eth2"],
        a=["10.0.0.0/16 via 10.0.1.9"],
        b=["default via 10.0.1.9", "10.0.2.0/24 via 10.0.1.1"],
    )
    members = [[node for node, _ in network.members] for network in made.networks]
    assert sorted(map(sorted, members)) == [["a", "b", "r"], ["c", "r"]]
    routes = {m.name: [(str(r.subnet), str(r.gateway)) for r in m.routes] for m in made.machines}
    # A wider route is narrowed to the lab's networks; the longest prefix wins.
    assert routes == {
        "a": [("10.0.2.0/24", "10.0.1.9")], "b": [("10.0.2.0/24", "10.0.1.1")], "c": [], "r": [],
    }  # fmt: skip
    assert (made.interfaces, made.most_interfaces) == (5, 2)


@pytest.mark.parametrize(
    ("links", "routes", "says"),
    [
        (["a 10.0.1.1/24 b 10.0.2.2/24"], {}, "one link has ends in 10.0.1.0/24 and 10.0.2.0/24"),
        (["a 10.0.1.1/24 b 10.0.1.2/24", "c 10.0.1.3/24 d 10.0.1.4/24"], {}, "are separate networks"),
        (["a 10.0.1.1/24 b 10.0.1.2/24", "b 10.0.1.65/28 c 10.0.1.66/28"], {}, "are separate networks"),
        (["a 10.0.1.1/24 b 10.0.1.2/24"], {"a": ["default dev eth0"]}, "a: no testbed can be told the route 'default dev eth0'"),
        (["a 10.0.1.1/24 b 10.0.1.2/24"], {"a": ["10.0.9.1 dev eth0"]}, "no testbed can be told the route"),
        (["a 10.0.1.1/24 b 10.0.1.2/24", "b 10.0.2.1/24 c 10.0.2.2/24"], {"a": ["default via 10.0.2.1"]}, "a: 10.0.2.1 is no neighbour of it"),
    ],
)  # fmt: skip
def test_no_testbed_could_build_it(
    links: list[str], routes: dict[str, list[str]], says: str
) -> None:
    with pytest.raises(UserError) as caught:
        layout(links, **routes)
    assert says in str(caught.value)
    assert str(caught.value).startswith("labs/09-t/lab.toml: topology: ")
