"""The CloudLab profile, run as the portal runs it: its RSpec has what lab.toml has, and no more.

Beside the stand-in for geni-lib stands a test with geni-lib itself, where there is a network.
"""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
import zipfile
from ipaddress import IPv4Interface
from pathlib import Path
from typing import Any

import pytest
from pip_wheel import download

from measuretwice.base.errors import UserError
from measuretwice.lab import Lab, read_lab
from measuretwice.testbeds import TEMPLATES, cloudlab_profile, manifest_logins

ROOT = Path(__file__).parents[2]
STANDIN = Path(__file__).parent / "standin"
RSPEC = "{http://www.geni.net/resources/rspec/3}"
EMULAB = "{http://www.protogeni.net/resources/rspec/ext/emulab/1}"
# What geni-lib 0.9.9.4, the newest on PyPI, needs on Python 3: it was written for 2.7.
PACKAGES = ("geni-lib==0.9.9.4", "lxml==6.1.3", "six==1.17.0")
PATCHES = {
    "geni/portal.py": (r"(?m)^( +)print (.+)$", r"\1print(\2)"),
    "geni/rspec/pg.py": (r"self\.toXMLString\(True\)", "self.toXMLString(True, ucode=True)"),
}


def run_profile(lab: Lab, folder: Path, library: Path, *arguments: str) -> ET.Element:
    profile = folder / "profile.py"
    profile.write_text(cloudlab_profile(lab), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys, runpy; sys.path.insert(0, {str(library)!r}); "
         f"sys.argv = {[str(profile), *arguments]!r}; runpy.run_path({str(profile)!r}, run_name='__main__')"],
        capture_output=True, text=True, check=False, timeout=60, env={"PATH": os.environ["PATH"]},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return ET.fromstring(done.stdout)


def test_it_has_the_labs_nodes_links_and_addresses(truth: Any, tmp_path: Path) -> None:
    rspec = run_profile(truth.lab, tmp_path, STANDIN)
    check_structure(rspec)
    assert attributes(rspec, f"{RSPEC}node", "client_id") == truth.nodes
    assert networks_of(rspec) == truth.networks
    # A cable's two ends are on one network.
    where = {member: name for name, members in networks_of(rspec).items() for member in members}
    for (a, a_address), (b, b_address) in truth.ends:
        assert where[a, str(a_address)] == where[b, str(b_address)]
    routes, forwards = startup_of(rspec)
    truth.check_routes(routes, forwards)


def attributes(element: ET.Element, tag: str, name: str) -> list[str | None]:
    """An attribute of each element with this tag."""
    return [found.get(name) for found in element.iter(tag)]


def check_structure(rspec: ET.Element) -> None:
    """What GENI's version 3 and Emulab's extension ask of a request."""
    assert rspec.tag == f"{RSPEC}rspec"
    assert rspec.get("type") == "request"
    kinds = {f"{RSPEC}{kind}" for kind in ("node", "link", "interface")}
    names = [element.get("client_id") for element in rspec.iter() if element.tag in kinds]
    assert len(names) == len(set(names)), "a client_id stands twice"
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9:-]*", name or "") for name in names)
    interfaces = attributes(rspec, f"{RSPEC}interface", "client_id")
    referred = attributes(rspec, f"{RSPEC}interface_ref", "client_id")
    assert sorted(referred) == sorted(interfaces), "each interface is on one link"
    for link in rspec.iter(f"{RSPEC}link"):
        assert attributes(link, f"{RSPEC}link_type", "name") == ["lan"]
        # Nothing is shaped; nothing asks for a rate.
        assert not list(link.iter(f"{RSPEC}property"))
        for wish in ("best_effort", "link_multiplexing", "vlan_tagging"):
            assert attributes(link, EMULAB + wish, "enabled") == ["true"]
    for node in rspec.iter(f"{RSPEC}node"):
        assert len(list(node.iter(f"{RSPEC}sliver_type"))) == 1
        assert len(list(node.iter(f"{RSPEC}disk_image"))) == 1
        for interface in node.iter(f"{RSPEC}interface"):
            assert interface.get("client_id", "").startswith(f"{node.get('client_id')}:")
            assert len(list(interface)) == 1


def networks_of(rspec: ET.Element) -> dict[str, set[tuple[str, str]]]:
    addresses = {
        interface.get("client_id"): (node.get("client_id"), IPv4Interface(f"{ip.get('address')}/{ip.get('netmask')}"))
        for node in rspec.iter(f"{RSPEC}node")
        for interface in node.iter(f"{RSPEC}interface")
        for ip in interface.iter(f"{RSPEC}ip")
    }  # fmt: skip
    found: dict[str, set[tuple[str, str]]] = {}
    for link in rspec.iter(f"{RSPEC}link"):
        members = [
            addresses[name] for name in attributes(link, f"{RSPEC}interface_ref", "client_id")
        ]
        subnets = {str(address.network) for _, address in members}
        assert len(subnets) == 1
        assert not subnets & found.keys()
        found[subnets.pop()] = {(str(node), str(address)) for node, address in members}
    return found


def startup_of(rspec: ET.Element) -> tuple[dict[str, list[tuple[str, str]]], set[str]]:
    routes: dict[str, list[tuple[str, str]]] = {}
    forwards = set()
    script = (TEMPLATES / "node-setup.sh").read_bytes()
    for node in rspec.iter(f"{RSPEC}node"):
        name = str(node.get("client_id"))
        (service,) = node.iter(f"{RSPEC}execute")
        assert service.get("shell") == "bash"
        command = service.get("command", "")
        found = re.fullmatch(
            r"echo ([A-Za-z0-9+/=]+) \| base64 -d \| sudo bash -s -- ([\w./, ]*) 2>&1 \| sudo tee \S+ >/dev/null",
            command,
        )
        assert found, command
        assert base64.b64decode(found[1]) == script
        words = found[2].split()
        if "forward" in words:
            forwards.add(name)
            words.remove("forward")
        routes[name] = [(subnet, via) for subnet, via in (word.split(",") for word in words)]
    return routes, forwards


def test_virtual_machines_if_asked_for(mathis: Any, tmp_path: Path) -> None:
    rspec = run_profile(mathis.lab, tmp_path, STANDIN, "--machines", "vm")
    check_structure(rspec)
    assert set(attributes(rspec, f"{RSPEC}sliver_type", "name")) == {"emulab-xen"}
    assert set(attributes(rspec, f"{EMULAB}xen", "cores")) == {"2"}
    assert set(attributes(rspec, f"{EMULAB}xen", "ram")) == {"8192"}


def test_hardware_if_asked_for(mathis: Any, tmp_path: Path) -> None:
    rspec = run_profile(mathis.lab, tmp_path, STANDIN, "--hardware", "c6525-25g")
    assert attributes(rspec, f"{RSPEC}hardware_type", "name") == ["c6525-25g"] * 3
    assert set(attributes(rspec, f"{RSPEC}sliver_type", "name")) == {"raw"}


def test_the_same_each_time_and_readable_by_old_pythons(truth: Any) -> None:
    text = cloudlab_profile(truth.lab)
    assert text == cloudlab_profile(read_lab(truth.lab.folder))
    assert not re.search(r"\bf[\"']", text), "Python 2.7 has no f-strings"
    assert (TEMPLATES / "node-setup.sh").read_text(encoding="utf-8").isascii()
    # The portal shows the text above 'Instructions:' as what the profile is.
    assert re.search(r"^Instructions:$", text, re.MULTILINE)


@pytest.mark.network
def test_geni_lib_itself_writes_the_same(truth: Any, tmp_path: Path, geni_lib: Path) -> None:
    for arguments in ((), ("--machines", "vm"), ("--hardware", "d430")):
        ours = run_profile(truth.lab, tmp_path, STANDIN, *arguments)
        theirs = run_profile(truth.lab, tmp_path, geni_lib, *arguments)
        check_structure(theirs)
        for kind in ("node", "link"):
            made, expected = (rspec.iter(RSPEC + kind) for rspec in (ours, theirs))
            assert list(map(leaves, made)) == list(map(leaves, expected))


def leaves(element: ET.Element) -> tuple[Any, ...]:
    """An element with all below, in no order; how large a virtual machine's disk is is the library's."""
    attributes = sorted(item for item in element.items() if item[0] not in ("disk", "exclusive"))
    return (element.tag, tuple(attributes), tuple(sorted(map(leaves, element))))


@pytest.fixture(scope="session")
def geni_lib(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """geni-lib from the package registry, fixed in the two places where it needs Python 2."""
    folder = tmp_path_factory.mktemp("geni-lib")
    for wheel in download(folder, *PACKAGES):
        zipfile.ZipFile(wheel).extractall(folder / "lib")
    for name, (pattern, by) in PATCHES.items():
        path = folder / "lib" / name
        text, count = re.subn(pattern, by, path.read_text(encoding="utf-8"))
        assert count, f"{name} needs no patch any more"
        path.write_text(text, encoding="utf-8")
    return folder / "lib"


# --- and back: nodes.toml from the manifest ---


def manifest(logins: dict[str, list[str]], kind: str = "manifest") -> str:
    nodes = ""
    for name, of_node in logins.items():
        services = "".join(f'<login authentication="ssh-keys" {login}/>' for login in of_node)
        nodes += f'<node client_id="{name}"><services>{services}</services></node>'
    return f'<rspec xmlns="http://www.geni.net/resources/rspec/3" type="{kind}">{nodes}</rspec>'


def at(host: str, user: str = "me", port: int = 22) -> str:
    return f'hostname="{host}" port="{port}" username="{user}"'


GOOD = {
    "romeo": [at("pc1.x.us")],
    "router": [at("pc2.x.us", port=25010)],
    "juliet": [at("pc3.x.us")],
}


def test_logins_from_a_manifest(mathis: Any) -> None:
    assert manifest_logins(manifest(GOOD | {"other": []}), mathis.lab) == {
        "romeo": "me@pc1.x.us",
        "router": "ssh://me@pc2.x.us:25010",
        "juliet": "me@pc3.x.us",
    }


def test_several_people(mathis: Any) -> None:
    both = {name: [*logins, at("pc9.x.us", "you")] for name, logins in GOOD.items()}
    with pytest.raises(UserError, match="say who you are with --user, one of me, you"):
        manifest_logins(manifest(both), mathis.lab)
    assert manifest_logins(manifest(both), mathis.lab, "me")["romeo"] == "me@pc1.x.us"
    with pytest.raises(UserError, match="no login for them on romeo"):
        manifest_logins(manifest(both), mathis.lab, "them")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is no XML"),
        ("<html></html>", "is no manifest of GENI's version 3"),
        (manifest(GOOD, "request"), "is no manifest"),
        (manifest(GOOD | {"juliet": []}), "has no login on juliet: is it of the mathis lab"),
        ('<!DOCTYPE a [<!ENTITY b "c">]>' + manifest(GOOD), "has a DOCTYPE"),
    ],
)  # fmt: skip
def test_no_manifest(mathis: Any, text: str, says: str) -> None:
    with pytest.raises(UserError, match=re.escape(says)):
        manifest_logins(text, mathis.lab)
