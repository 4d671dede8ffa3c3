"""After `undo` by hand, each node of each lab is what it was before `prepare`: in the virtual kernel."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from measuretwice.backends.script import INSIDE_ROOT, INSIDE_RUN, build_commands
from measuretwice.backends.virtual import ensure_kernel, run_inside
from measuretwice.lab import find_labs, load_lab

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.kernel, pytest.mark.slow]
# What makes a lab's scripts set up all that they can.
SETTINGS = {
    "calibrate": {"MTU_BYTES": "4352", "TIMESTAMPS": "off"},
    "mathis": {"MTU_BYTES": "4352", "TIMESTAMPS": "off", "ACKNOWLEDGE": "every-segment"},
    "buffers": {},
    "scale": {"DETOUR_PERCENT": "1", "DETOUR_MS": "2"},
    "variants": {
        "HOP": "radio", "RELAY": "on", "HOST_QDISC": "fq", "CHOOSE_BY": "settings",
        "CONGESTION_CONTROL": "vegas",
    },
    "queues": {"ACCESS_MBIT": "90", "ECN": "on"},
    "latency": {"DISCIPLINE": "dualpi2", "ECN": "on"},
}  # fmt: skip
# The order of routes is no setting.
STATE = """
state() {
  local node interface
  cat /proc/sys/net/core/default_qdisc
  for node in "${nodes[@]}"; do
    echo "--- $node"
    ip netns exec "$node" bash -c '
      for interface in /sys/class/net/*; do
        interface=${interface##*/}
        echo "$interface $(<"/sys/class/net/$interface/mtu")"
        ethtool -k "$interface"
      done
      tc qdisc; ip -4 route show table all | sort; ip -4 rule
      for key in /proc/sys/net/ipv4/tcp_* /proc/sys/net/core/*; do
        [[ ! -r $key || ! -f $key ]] || echo "$key $(<"$key")"
      done' 2>/dev/null
  done
}
"""


OTHERS = pytest.mark.nightly("what the labs' scripts share to undo by: mathis, buffers, variants")
DAILY = ("mathis", "buffers", "variants")
LABS = [
    pytest.param(name, marks=[] if name in DAILY else OTHERS) for name in sorted(find_labs(ROOT))
]


@pytest.mark.parametrize("name", LABS)
def test_a_node_is_what_it_was(tmp_path: Path, name: str) -> None:
    lab = load_lab(ROOT, name)
    nodes = lab.file.topology.node_names
    settings = " ".join(f"{key}={shlex.quote(value)}" for key, value in SETTINGS[name].items())
    lines = [
        "set -euo pipefail",
        *build_commands(lab.file.topology),
        f"nodes=({' '.join(nodes)})",
        f"declare -A script=({' '.join(f'[{node}]={lab.script_name(node)}' for node in nodes)})",
        f"lab={INSIDE_ROOT}/labs/{lab.folder.name}/nodes",
        STATE,
        f"mkdir {INSIDE_RUN}/out",
        f"cd {INSIDE_RUN}/out",
        # Until every link is up.
        "sleep 2",
        "state >../before",
        'for node in "${nodes[@]}"; do',
        f'  {settings} ip netns exec "$node" bash "$lab/${{script[$node]}}.sh" prepare',
        "done",
        "state >../between",
        "cat /run/measuretwice-undo-* >../noted",
        # Elsewhere, and with none of the settings.
        "cd /",
        'for node in "${nodes[@]}"; do',
        '  ip netns exec "$node" bash "$lab/${script[$node]}.sh" undo',
        f"done >{INSIDE_RUN}/said",
        f"state >{INSIDE_RUN}/after",
        f"compgen -G '/run/measuretwice-undo-*' && exit 1; : >{INSIDE_RUN}/ended",
    ]
    (tmp_path / "experiment.sh").write_text("\n".join(lines) + "\n")
    run_inside(ensure_kernel(), ROOT, tmp_path, 1, 120)
    console = (tmp_path / "console.txt").read_text()
    assert (tmp_path / "ended").exists(), console
    before, between, after = ((tmp_path / name).read_text().splitlines() for name in ("before", "between", "after"))  # fmt: skip
    changed = sorted(set(between) - set(before))
    assert len(changed) >= len(nodes), changed
    assert after == before
    assert (tmp_path / "said").read_text().split() == ["undone"] * len(nodes)
    # Who needs no file for it among the raw ones, leaves none there.
    assert not list((tmp_path / "out").glob("*undo*"))
