"""What prepares a node: run with commands that only note how they were called."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from measuretwice.testbeds import TEMPLATES

ROOT = Path(__file__).parents[2]
SCRIPT = TEMPLATES / "node-setup.sh"
# Each notes its call; what it does besides stands beside it.
COMMANDS = {
    "id": "echo ${FAKE_UID:-0}",
    "apt-get": 'if [[ $1 == install ]]; then for p in "$@"; do [[ $p != linux-modules-extra-* ]] || : >"$BOX/extra"; done; exit ${FAKE_APT:-0}; fi',
    "modprobe": 'case " ${FAKE_ABSENT:-} " in *" $2 "*) [[ -n ${FAKE_EXTRA:-} && -e $BOX/extra ]] ;; esac',
    "ip": '[[ ${FAKE_ROUTES:-yes} == yes ]]',
    "sysctl": '[[ $1 != -n ]] || echo reno cubic bbr',
    "iperf3": 'echo "iperf 3.16 (cJSON 1.7.15)"',
    "tc": 'echo "tc utility, iproute2-6.1.0, libbpf 1.3.0"',
    "uname": "echo 6.8.0-49-generic",
    "sleep": ":", "ss": ":", "nstat": ":", "ethtool": ":", "tcpdump": ":", "ping": ":", "python3": ":",
}  # fmt: skip
TOOLS = ("bash", "sort", "awk", "mktemp")


class Box:
    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "log"
        (folder / "bin").mkdir()
        for tool in TOOLS:
            (folder / "bin" / tool).symlink_to(f"/usr/bin/{tool}")
        for name, does in COMMANDS.items():
            self.add(name, does)

    def add(self, name: str, does: str) -> None:
        path = self.folder / "bin" / name
        path.write_text(f'#!/bin/bash\necho "{name} $*" >>"$BOX/log"\n{does}\n')
        path.chmod(0o755)

    def run(self, *arguments: str, **settings: str) -> tuple[int, str, list[str]]:
        """Exit status, last line printed, and what was called."""
        self.log.write_text("")
        done = subprocess.run(
            ["/bin/bash", "-s", "--", *arguments],
            stdin=SCRIPT.open(), capture_output=True, text=True, timeout=60, check=False,
            env={"PATH": str(self.folder / "bin"), "BOX": str(self.folder), **settings},
        )  # fmt: skip
        assert "command not found" not in done.stderr, done.stderr
        return done.returncode, done.stdout.splitlines()[-1], self.log.read_text().splitlines()


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


def test_a_router(box: Box) -> None:
    status, message, calls = box.run("forward", "10.10.20.0/24,10.10.30.2")
    assert (status, message) == (0, "ready: Linux 6.8.0-49-generic, iperf3 3.16, iproute2 6.1.0")
    assert "sysctl -qw net.ipv4.ip_forward=1" in calls
    assert "ip route replace 10.10.20.0/24 via 10.10.30.2" in calls
    assert "sysctl -qw net.ipv4.tcp_allowed_congestion_control=reno cubic bbr" in calls
    assert not [call for call in calls if call.startswith("apt-get")], "all was there"


def test_a_host_does_not_forward(box: Box) -> None:
    status, _, calls = box.run("10.10.2.0/24,10.10.1.1", "10.10.3.0/30,10.10.1.1")
    assert status == 0
    assert not [call for call in calls if "ip_forward" in call]
    assert [call for call in calls if call.startswith("ip ")] == [
        "ip route replace 10.10.2.0/24 via 10.10.1.1",
        "ip route replace 10.10.3.0/30 via 10.10.1.1",
    ]


def test_missing_commands_are_installed(box: Box) -> None:
    (box.folder / "bin/tcpdump").unlink()
    status, _, calls = box.run()
    assert status == 0
    assert calls.index("apt-get update") < calls.index(
        "apt-get install -y --no-install-recommends tcpdump"
    )


def test_missing_modules_are_installed(box: Box) -> None:
    status, message, calls = box.run(FAKE_ABSENT="sch_netem tcp_vegas", FAKE_EXTRA="yes")
    assert status == 0, message
    assert (
        "apt-get install -y --no-install-recommends linux-modules-extra-6.8.0-49-generic" in calls
    )


def test_what_is_missing_is_named(box: Box) -> None:
    status, message, _ = box.run(
        "10.1.0.0/24,10.1.1.1", FAKE_ABSENT="sch_netem tcp_vegas", FAKE_ROUTES="no"
    )
    assert status == 1
    assert message == (
        "not ready: this kernel, 6.8.0-49-generic, has no sch_netem tcp_vegas: labs that use these can't run; "
        "no route to 10.1.0.0/24 via 10.1.1.1: are this node's addresses set?"
    )


def test_a_failing_apt_is_named(box: Box) -> None:
    (box.folder / "bin/tcpdump").unlink()
    status, message, _ = box.run(FAKE_APT="100")
    assert (status, message) == (1, "not ready: can't install tcpdump")


def test_only_as_root(box: Box) -> None:
    status, message, calls = box.run("forward", FAKE_UID="1000")
    assert status == 1
    assert message.startswith("not ready: run this as root: sudo bash ")
    assert calls == ["id -u"]


def test_it_asks_for_every_discipline_and_algorithm_that_labs_use() -> None:
    """Those that our own kernel was given, as far as any lab names them."""
    script = SCRIPT.read_text(encoding="utf-8")
    asked = set(re.findall(r"\b(?:sch|tcp)_\w+", script[script.index("modules=(") :].split(")")[0]))
    config = (ROOT / "scripts/kernel/config").read_text(encoding="utf-8")
    files = ("nodes/*.sh", "lab.toml", "trials.csv")
    paths = [path for name in files for path in ROOT.glob(f"labs/*/{name}")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    names = {"hstcp": "highspeed"}
    used = set()
    for kind, prefix in (("NET_SCH", "sch"), ("TCP_CONG", "tcp")):
        for name in re.findall(rf"^CONFIG_{kind}_(\w+)=y$", config, re.MULTILINE):
            word = names.get(name.lower(), name.lower())
            quoted = rf'"{word}"|\b{word}\b' if prefix == "sch" else rf'["|, ]{word}\b'
            lines = [line for line in text.splitlines() if re.search(quoted, line)]
            if re.search(r"tc qdisc|queue \"|choices|congestion_control", "\n".join(lines)):
                used.add(f"{prefix}_{word}")
    assert {"sch_netem", "sch_htb", "sch_tbf", "sch_red"} <= used
    assert {"tcp_highspeed", "tcp_vegas", "tcp_bbr"} <= used
    # Linux has it since 6.17: a lab can be run without the trials that need it.
    assert used - {"sch_dualpi2"} <= asked


def test_it_asks_for_every_command_that_the_scripts_call() -> None:
    script = SCRIPT.read_text(encoding="utf-8")
    asked = set(re.findall(r"([\w-]+):[\w-]+", script[script.index("commands=(") :].split(")")[0]))
    paths = [*ROOT.glob("labs/*/nodes/*.sh"), ROOT / "scripts/lib.sh", ROOT / "scripts/snapshot.sh"]
    text = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    known = ["iperf3", "ip", "tc", "ss", "nstat", "ethtool", "tcpdump", "ping", "python3", "awk", "nft", "iptables", "tshark", "jq"]  # fmt: skip
    used = {name for name in known if re.search(rf"(?m)^[^#\n]*(?:^|[ (|]){name} ", text)}
    assert used <= asked
    assert {"iperf3", "tc", "ethtool"} <= used
