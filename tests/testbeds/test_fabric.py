"""The FABRIC notebook: run whole against a testbed that is made up, and in Jupyter up to its login.

Whether FABRIC's own library has what the notebook calls is looked up where there is a network.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import shutil
import subprocess
import sys
import zipfile
from concurrent.futures import Future
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from pathlib import Path
from types import ModuleType
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from pip_wheel import download

from measuretwice.backends.ssh_nodes import read_node_list
from measuretwice.lab import Lab, read_lab
from measuretwice.testbeds import TEMPLATES, fabric_notebook

LIBRARY = "fabrictestbed_extensions.fablib.fablib"
PACKAGE = "fabrictestbed-extensions==2.0.9"


def code_of(notebook: str) -> list[str]:
    cells = json.loads(notebook)["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


# --- the notebook as a file ---


def test_it_is_a_valid_notebook_and_the_same_each_time(truth: Any) -> None:
    text = fabric_notebook(truth.lab)
    assert text == fabric_notebook(read_lab(truth.lab.folder))
    nbformat.validate(nbformat.reads(text, as_version=4))
    notebook = json.loads(text)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            compile("".join(cell["source"]), cell["id"], "exec")
            assert cell["outputs"] == []
        else:
            assert "".join(cell["source"]).strip()
    assert not re.search(r"/(root|home|tmp)/", text)


# --- up to the first call to the testbed ---


def test_without_the_library_it_stops_with_one_line(mathis: Any, tmp_path: Path) -> None:
    printed, stopped = in_jupyter(mathis.lab, tmp_path)
    check_plan(printed, mathis)
    assert stopped == [
        "Stopped: FABRIC's library isn't here. Open this notebook in FABRIC's JupyterHub, "
        "or pip install fabrictestbed-extensions."
    ]


def test_without_a_login_it_stops_with_one_line(mathis: Any, tmp_path: Path) -> None:
    package = tmp_path / "fabrictestbed_extensions" / "fablib"
    package.mkdir(parents=True)
    (package / "fablib.py").write_text(
        "class FablibManager:\n    def __init__(self):\n        raise ValueError('no token\\n at all')\n"
    )
    printed, stopped = in_jupyter(mathis.lab, tmp_path)
    check_plan(printed, mathis)
    assert stopped == [
        "Stopped: FABRIC doesn't let you in: no token at all. "
        "Run its Configure and Validate notebook, then this again."
    ]
    assert not (tmp_path / "measuretwice-mathis").exists()


def in_jupyter(lab: Lab, folder: Path) -> tuple[list[str], list[str]]:
    """What the notebook prints before it stops, and the lines that a reader sees then."""
    notebook = nbformat.reads(fabric_notebook(lab), as_version=4)
    client = NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(folder)}})
    with pytest.raises(CellExecutionError):
        client.execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    printed = "".join(output.text for output in outputs if output.output_type == "stream")
    (error,) = [output for output in outputs if output.output_type == "error"]
    return printed.splitlines(), list(error.traceback)


def check_plan(printed: list[str], truth: Any) -> None:
    """What the notebook says it will build is what lab.toml says."""
    networks: dict[str, set[tuple[str, str]]] = {}
    routes: dict[str, list[tuple[str, str]]] = {}
    forwards = set()
    for line in printed:
        head, _, rest = line.partition(": ")
        kind, name, *subnet = head.split()
        if kind == "network":
            length = subnet[0].split("/")[1]
            pairs = [pair.split(" ") for pair in rest.split(", ")]
            assert subnet[0] not in networks
            networks[subnet[0]] = {(node, f"{address}/{length}") for node, address in pairs}
        else:
            assert kind == "node"
            does = [word for word in rest.split(", ") if word]
            if does[:1] == ["forwards"]:
                forwards.add(name)
                does = does[1:]
            routes[name] = [(net, via) for net, via in (route.split(" via ") for route in does)]
    assert list(routes) == truth.nodes
    assert networks == truth.networks
    truth.check_routes(routes, forwards)


# --- the whole of it, on a testbed that is made up ---


class FakeInterface:
    def __init__(self, network: str = "") -> None:
        self.network, self.addresses, self.up = network, set[str](), False

    def ip_link_up(self) -> None:
        self.up = True

    def ip_addr_add(self, addr: IPv4Address, subnet: IPv4Network) -> None:
        assert isinstance(addr, IPv4Address)
        assert isinstance(subnet, IPv4Network)
        assert self.up
        self.addresses.add(str(IPv4Interface(f"{addr}/{subnet.prefixlen}")))

    def get_device_name(self) -> str:
        return "enp7s0"


class FakeComponent:
    def __init__(self) -> None:
        self.interface = FakeInterface()

    def get_interfaces(self) -> list[FakeInterface]:
        return [self.interface]


class FakeNode:
    def __init__(self, name: str, **asked: Any) -> None:
        self.name, self.asked, self.cards = name, asked, list[FakeComponent]()
        self.uploaded: dict[str, bytes] = {}
        self.commands: list[str] = []
        self.says = "Reading package lists...\nready: Linux 6.8, iperf3 3.16, iproute2 6.1.0\n"

    def add_component(self, model: str, name: str) -> FakeComponent:
        assert model == "NIC_Basic"
        self.cards.append(FakeComponent())
        return self.cards[-1]

    def get_interface(self, network_name: str) -> FakeInterface:
        (card,) = [card for card in self.cards if card.interface.network == network_name]
        return card.interface

    def upload_file(self, local: str, remote: str) -> None:
        self.uploaded[remote] = Path(local).read_bytes()

    def execute_thread(self, command: str) -> Future[tuple[str, str]]:
        assert "node-setup.sh" in self.uploaded
        self.commands.append(command)
        done: Future[tuple[str, str]] = Future()
        done.set_result((self.says, ""))
        return done

    def get_management_ip(self) -> str:
        return f"2001:db8::{sum(self.name.encode()):x}"

    def get_username(self) -> str:
        return "ubuntu"

    def get_private_key_file(self) -> str:
        return "~/keys of fabric/slice_key"


class FakeSlice:
    def __init__(self, name: str) -> None:
        self.name, self.nodes, self.submitted = name, dict[str, FakeNode](), False
        self.networks: dict[str, list[FakeInterface]] = {}

    def add_node(self, name: str, **asked: Any) -> FakeNode:
        assert name not in self.nodes
        self.nodes[name] = FakeNode(name, **asked)
        return self.nodes[name]

    def get_node(self, name: str) -> FakeNode:
        assert self.submitted
        return self.nodes[name]

    def add_l2network(self, name: str, interfaces: list[FakeInterface], type: str) -> None:
        assert type == "L2Bridge"
        assert name not in self.networks
        for interface in interfaces:
            assert not interface.network, "a card is on two networks"
            interface.network = name
        self.networks[name] = interfaces

    def submit(self) -> None:
        assert not self.submitted
        self.submitted = True

    def get_state(self) -> str:
        return "StableOK"

    def get_lease_end(self) -> str:
        return "2027-01-01 00:00:00 +0000"


class FakeFablib:
    """All that FABRIC has: one instance, so that a second run finds the slice of the first."""

    def __init__(self) -> None:
        self.slices: dict[str, FakeSlice] = {}
        small, large = ("SALT", 2), ("UTAH", 64)
        self.sites = [{"name": name, "cores_available": cores} for name, cores in (small, large)]

    def get_slice(self, name: str) -> FakeSlice:
        if name not in self.slices or not self.slices[name].submitted:
            raise RuntimeError("no such slice")
        return self.slices[name]

    def new_slice(self, name: str) -> FakeSlice:
        self.slices[name] = FakeSlice(name)
        return self.slices[name]

    def get_random_site(self, filter_function: Any) -> str | None:
        return next((site["name"] for site in self.sites if filter_function(site)), None)  # type: ignore[misc]

    def get_bastion_host(self) -> str:
        return "bastion.fabric-testbed.net"

    def get_bastion_username(self) -> str:
        return "me_0001"

    def get_bastion_key_location(self) -> str:
        return "/keys/bastion_key"

    def delete_slice(self, slice_name: str) -> None:
        del self.slices[slice_name]


@pytest.fixture
def fablib(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeFablib:
    fake, module = FakeFablib(), ModuleType(LIBRARY)
    module.FablibManager = lambda: fake  # type: ignore[attr-defined]
    parts = LIBRARY.split(".")
    for end in range(1, len(parts)):
        monkeypatch.setitem(sys.modules, ".".join(parts[:end]), ModuleType(parts[end - 1]))
    monkeypatch.setitem(sys.modules, LIBRARY, module)
    monkeypatch.chdir(tmp_path)
    return fake


def run_all(lab: Lab, replace: tuple[str, str] = ("", "")) -> None:
    names: dict[str, Any] = {}
    for cell in code_of(fabric_notebook(lab)):
        exec(compile(cell.replace(*replace) if replace[0] else cell, "cell", "exec"), names)


def test_the_slice_is_the_lab(
    truth: Any, fablib: FakeFablib, capsys: pytest.CaptureFixture[str]
) -> None:
    run_all(truth.lab)
    (made,) = fablib.slices.values()
    assert made.submitted
    assert list(made.nodes) == truth.nodes
    assert {node.asked["site"] for node in made.nodes.values()} == {"UTAH"}
    assert {node.asked["image"] for node in made.nodes.values()} == {"default_ubuntu_24"}
    found: dict[str, set[tuple[str, str]]] = {}
    for interfaces in made.networks.values():
        members = {
            (node.name, *card.interface.addresses)
            for node in made.nodes.values()
            for card in node.cards
            if card.interface in interfaces
        }
        assert len(members) == len(interfaces)
        found[str(IPv4Interface(next(iter(members))[1]).network)] = members  # type: ignore[misc]
    assert found == truth.networks
    routes: dict[str, list[tuple[str, str]]] = {}
    forwards = set()
    for node in made.nodes.values():
        assert node.uploaded == {"node-setup.sh": (TEMPLATES / "node-setup.sh").read_bytes()}
        (command,) = node.commands
        words = command.split()
        assert words[:3] == ["sudo", "bash", "node-setup.sh"]
        if "forward" in words:
            forwards.add(node.name)
        routes[node.name] = [(a, b) for a, b in (w.split(",") for w in words[3:] if w != "forward")]
    truth.check_routes(routes, forwards)

    folder = Path(made.name).resolve()
    nodes = read_node_list(folder / "nodes.toml", truth.nodes)
    assert nodes.sudo
    assert nodes.ssh_config == folder / "ssh_config"
    printed = capsys.readouterr().out.splitlines()
    assert f"./lab run {truth.lab.name} --on {folder / 'nodes.toml'}" == printed[-1]
    check_plan(printed[: len(truth.nodes) + len(truth.networks)], truth)


@pytest.mark.skipif(not shutil.which("ssh"), reason="no ssh here")
def test_ssh_goes_over_the_bastion(mathis: Any, fablib: FakeFablib) -> None:
    run_all(mathis.lab)
    folder = Path("measuretwice-mathis").resolve()
    nodes = read_node_list(folder / "nodes.toml", mathis.nodes)
    for node in fablib.slices["measuretwice-mathis"].nodes.values():
        ssh_settings = ssh_says(nodes.ssh(node.name))
        assert ssh_settings["hostname"] == node.get_management_ip()
        assert ssh_settings["user"] == "ubuntu"
        assert ssh_settings["proxyjump"] == "fabric-bastion"
        assert ssh_settings["identityfile"].endswith("/keys of fabric/slice_key")
        assert ssh_settings["userknownhostsfile"] == str(folder / "known_hosts")
    bastion = ssh_says(["ssh", "-F", str(nodes.ssh_config), "fabric-bastion"])
    assert (bastion["hostname"], bastion["user"]) == ("bastion.fabric-testbed.net", "me_0001")
    assert bastion["identityfile"] == "/keys/bastion_key"
    assert bastion.get("proxyjump", "none") == "none"


def ssh_says(command: list[str]) -> dict[str, str]:
    """What the system's ssh makes of a configuration, without connecting."""
    done = subprocess.run(
        [command[0], "-G", *command[1:]], capture_output=True, text=True, check=True
    )
    return {
        key: value for key, _, value in (line.partition(" ") for line in done.stdout.splitlines())
    }


def test_a_second_run_uses_the_slice_that_is_there(mathis: Any, fablib: FakeFablib) -> None:
    run_all(mathis.lab)
    run_all(mathis.lab)
    (made,) = fablib.slices.values()
    assert [len(node.commands) for node in made.nodes.values()] == [2, 2, 2]
    run_all(mathis.lab, ("DELETE = False", "DELETE = True"))
    assert not fablib.slices


def test_no_site_with_room(mathis: Any, fablib: FakeFablib) -> None:
    fablib.sites.pop()
    with pytest.raises(Exception, match="no site has 6 cores free now"):
        run_all(mathis.lab)
    assert not fablib.slices


def test_a_node_that_is_not_ready_stops_it(
    mathis: Any,
    fablib: FakeFablib,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    usual = FakeNode.execute_thread

    def execute_thread(self: FakeNode, command: str) -> Future[tuple[str, str]]:
        if self.name == "router":
            self.says = "not ready: this kernel has no sch_netem\n"
        return usual(self, command)

    monkeypatch.setattr(FakeNode, "execute_thread", execute_thread)
    with pytest.raises(Exception, match=r"^router not ready: the reason is given above"):
        run_all(mathis.lab)
    assert "router: not ready: this kernel has no sch_netem" in capsys.readouterr().out
    assert not Path("measuretwice-mathis/nodes.toml").exists()


# --- is what it calls there? ---


@pytest.mark.network
def test_fablib_has_what_the_notebook_calls(mathis: Any, tmp_path: Path) -> None:
    (wheel,) = download(tmp_path, PACKAGE)
    modules = re.compile(r"/fablib/(fablib|slice|node|component|interface|config/config)\.py$")
    methods: dict[str, list[ast.FunctionDef]] = {}
    with zipfile.ZipFile(wheel) as archive:
        for name in filter(modules.search, archive.namelist()):
            for node in ast.walk(ast.parse(archive.read(name))):
                if isinstance(node, ast.FunctionDef):
                    methods.setdefault(node.name, []).append(node)
    fakes = (FakeFablib, FakeSlice, FakeNode, FakeComponent, FakeInterface)
    ours = {name for fake in fakes for name, _ in inspect.getmembers(fake, inspect.isfunction)}
    called = set()
    for call in ast.walk(ast.parse("\n".join(code_of(fabric_notebook(mathis.lab))))):
        match call:
            case ast.Call(func=ast.Attribute(attr=name)) if name in ours:
                called.add(name)
                assert any(accepts(method, call) for method in methods[name]), ast.unparse(call)
    # renew is in the text only.
    assert called == {name for name in ours if name[0] != "_"}
    assert "renew" in methods


def accepts(method: ast.FunctionDef, call: ast.Call) -> bool:
    known = [parameter.arg for parameter in (*method.args.args[1:], *method.args.kwonlyargs)]
    named = {keyword.arg for keyword in call.keywords if keyword.arg}
    if any(keyword.arg is None for keyword in call.keywords):  # **size
        named |= {"cores", "ram", "disk"}
    return named <= set(known) and len(call.args) <= len(method.args.args) - 1
