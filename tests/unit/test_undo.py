"""What a person's `prepare` sets up, `undo` takes away: node scripts with commands that only note their call."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Each notes its call; what it says stands beside it. The interface has to be one that is there.
COMMANDS = {
    "ip": """case "$*" in
      *'route get'*) echo "10.0.0.1 dev lo src 10.10.1.12" ;;
      *'route show exact 10.10.1.0/24'*) [[ -z ${FAKE_ROUTE:-} ]] || echo "$FAKE_ROUTE" ;;
    esac""",
    "sysctl": """[[ $1 != -n ]] || case $2 in
      *mem) printf '4096\\t131072\\t6291456\\n' ;;
      *qdisc) echo pfifo_fast ;;
      *) echo 1 ;;
    esac""",
    "ethtool": """[[ $1 != -k ]] || printf '%s\\n' 'Features for lo:' 'tcp-segmentation-offload: on' \
      '	tx-tcp-segmentation: on' '	tx-tcp-mangleid-segmentation: off' \
      '	tx-tcp6-segmentation: off [fixed]' 'generic-segmentation-offload: on' \
      'generic-receive-offload: off' 'large-receive-offload: off [fixed]'""",
    "tc": '[[ -z ${FAKE_TC_FAILS:-} ]] || { echo "Error: it is gone" >&2; exit 2; }',
    "nsenter": 'shift; "$@"',
}
OFFLOADS_AS_THEY_WERE = "ethtool -K lo tx-tcp-segmentation on tx-tcp-mangleid-segmentation off gso on gro off"  # fmt: skip


class Box:
    def __init__(self, folder: Path) -> None:
        self.folder, self.log, self.undo_file = folder, folder / "log", folder / "undo"
        (folder / "bin").mkdir()
        (folder / "out").mkdir()
        for name, does in COMMANDS.items():
            path = folder / "bin" / name
            path.write_text(f'#!/bin/bash\necho "{name} $*" >>"$BOX/log"\n{does}\n')
            path.chmod(0o755)

    def run(
        self, script: str, phase: str, status: int = 0, **settings: str
    ) -> tuple[list[str], subprocess.CompletedProcess[str]]:
        """What was changed (calls that only ask are left out), and the process."""
        self.log.write_text("")
        done = subprocess.run(
            ["bash", ROOT / "labs" / script, phase],
            capture_output=True, text=True, timeout=60, check=False, cwd=self.folder / "out",
            env={
                "PATH": f"{self.folder / 'bin'}:{os.defpath}", "BOX": str(self.folder),
                "UNDO_FILE": str(self.undo_file), **settings,
            },
        )  # fmt: skip
        assert done.returncode == status, done.stderr
        asks = ("route get", "route show", "sysctl -n", "ethtool -k", "nsenter", "qdisc show")
        calls = self.log.read_text().splitlines()
        return [call for call in calls if not any(ask in call for ask in asks)], done


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


def test_a_later_undo_with_other_settings_undoes_all_the_last_first(box: Box) -> None:
    done, _ = box.run("01-mathis/nodes/juliet.sh", "prepare", MTU_BYTES="4352", ACKNOWLEDGE="every-segment")  # fmt: skip
    assert "ip link set dev lo mtu 4352" in done
    mtu = Path("/sys/class/net/lo/mtu").read_text().strip()
    undone, outcome = box.run(
        "01-mathis/nodes/juliet.sh", "undo", OUT="/elsewhere", MTU_BYTES="9000"
    )
    assert undone == [
        "ip route del 10.10.1.0/24",
        "sysctl -qw net.ipv4.tcp_rmem=4096\t131072\t6291456",
        "sysctl -qw net.ipv4.tcp_timestamps=1",
        OFFLOADS_AS_THEY_WERE,
        f"ip link set dev lo mtu {mtu}",
    ]
    assert outcome.stdout == "undone\n"
    assert not box.undo_file.exists()


def test_nothing_to_undo_is_said(box: Box) -> None:
    undone, outcome = box.run("01-mathis/nodes/router.sh", "undo")
    assert undone == []
    assert outcome.stdout.startswith("nothing to undo")
    box.run("01-mathis/nodes/router.sh", "prepare")
    box.run("01-mathis/nodes/router.sh", "undo")
    undone, outcome = box.run("01-mathis/nodes/router.sh", "undo")
    assert undone == []
    assert outcome.stdout.startswith("nothing to undo")


def test_what_was_set_up_twice_becomes_what_it_was_at_first(box: Box) -> None:
    box.run("02-buffers/nodes/d1.sh", "prepare")
    # The second time tc refuses: of that nothing is noted.
    box.run("02-buffers/nodes/d1.sh", "prepare", status=2, FAKE_TC_FAILS="yes")
    undone, _ = box.run("02-buffers/nodes/d1.sh", "undo")
    assert [call for call in undone if call.startswith("tc")] == ["tc qdisc del dev lo root"]
    assert undone[-1] == OFFLOADS_AS_THEY_WERE


def test_what_resists_is_named_and_the_rest_is_undone(box: Box) -> None:
    box.run("01-mathis/nodes/router.sh", "prepare")
    undone, outcome = box.run("01-mathis/nodes/router.sh", "undo", status=1, FAKE_TC_FAILS="yes")
    assert undone.count("tc qdisc del dev lo root") == 2
    assert OFFLOADS_AS_THEY_WERE in undone
    assert "Error: it is gone" in outcome.stderr
    assert "could not be undone" in outcome.stderr.splitlines()[-1]
    assert "tc qdisc del dev lo root" in outcome.stderr.splitlines()[-1]
    assert not box.undo_file.exists()


def test_a_route_that_was_there_comes_back(box: Box) -> None:
    box.run("01-mathis/nodes/juliet.sh", "prepare", ACKNOWLEDGE="every-segment", FAKE_ROUTE="10.10.1.0/24 via 10.10.2.1 dev lo metric 7 ")  # fmt: skip
    undone, _ = box.run("01-mathis/nodes/juliet.sh", "undo")
    assert undone[0] == "ip route replace 10.10.1.0/24 via 10.10.2.1 dev lo metric 7"


def test_what_belongs_to_the_machine_is_put_back_there(box: Box) -> None:
    box.run("04-variants/nodes/client.sh", "prepare", HOST_QDISC="fq")
    noted = box.undo_file.read_text().splitlines()
    # Whether this namespace sees it depends on who runs the tests.
    assert noted[-3].removeprefix("nsenter --net=/proc/1/ns/net ") == "sysctl -qw net.core.default_qdisc=pfifo_fast"  # fmt: skip
    assert noted[-2:] == ["ip link del card", "tc qdisc del dev lo clsact"]


def test_under_lab_run_nothing_is_noted_and_nothing_asked(box: Box) -> None:
    ready = str(box.folder / "ready")
    for script in ("01-mathis/nodes/juliet.sh", "01-mathis/nodes/router.sh", "03-scale/nodes/sender.sh"):  # fmt: skip
        box.run(script, "prepare", READY_FILE=ready, ACKNOWLEDGE="every-segment")
        calls = box.log.read_text()
        assert "ethtool -K lo tso off gso off gro off lro off" in calls
        assert not any(ask in calls for ask in ("ethtool -k", "sysctl -n", "route show"))
    assert not box.undo_file.exists()
    assert not list((box.folder / "out").iterdir())


@pytest.mark.parametrize(
    ("script", "phases"),
    [
        ("00-calibrate/nodes/romeo.sh", "prepare, validate, measure or undo"),
        ("02-buffers/nodes/g2.sh", "prepare or undo"),
        ("05-queues/nodes/router-1.sh", "prepare, watch or undo"),
    ],
)
@pytest.mark.parametrize("phase", ["", "prepared", "die"])
def test_a_wrong_phase_is_answered_with_those_there_are(
    box: Box, script: str, phases: str, phase: str
) -> None:
    calls, done = box.run(script, phase, status=1)
    assert calls == []
    assert done.stderr == f"{Path(script).name}: say what to do: {phases}\n"
