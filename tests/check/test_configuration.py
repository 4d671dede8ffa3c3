"""What decides a connection and stood in no snapshot is compared, too; and what two tools say that can't both be true is said."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import ROOT, start_lab

from measuretwice.checks import check_run, run_under_test
from measuretwice.checks.configuration import (
    Difference,
    differences,
    of_another_kernel,
)
from measuretwice.measure.host_state import HostState
from measuretwice.measure.node_state import state_of
from measuretwice.runs.remeasure import Remeasured, remeasure

SAMPLES = ROOT / "sample-data"
STATE = """\
# tc -d qdisc, class, filter
qdisc noqueue 0: dev lo root refcnt 2
qdisc htb 1: dev eth1 root refcnt 2 r2q 10 default 0x3 direct_packets_stat 7 ver 3.17 direct_qlen 1000
qdisc netem 3: dev eth1 parent 1:3 limit 100000 delay 3ms loss 0.5%
class htb 1:3 root leaf 3: prio 0 quantum 60000 rate 3Gbit ceil 3Gbit linklayer ethernet burst 375000b/1 level 0
class fq_codel 8001:1e parent 8001:
filter parent 1: protocol ip pref 49152 u32 chain 0
filter parent 1: protocol ip pref 49152 u32 chain 0 fh 800::800 order 2048
  match 00000000/00000000 at 0
# ip -d link, route, rule
1: lo: <LOOPBACK,UP> mtu 65536 qdisc noqueue state UNKNOWN qlen 1000\\    link/loopback gso_max_size 65536
3: eth1@if2: <UP> mtu 1500 qdisc htb state UP qlen 1000\\    veth numtxqueues 1 gso_max_size 65536 gro_max_size 65536
unicast default via 10.10.1.1 dev eth1 table main proto boot scope global
local 10.10.1.100 dev eth1 table local proto kernel scope host src 10.10.1.100
0:\tfrom all lookup local proto kernel
# settings
/proc/sys/net/core/netdev_budget:300
/sys/module/tcp_cubic/parameters/beta:717
"""


def test_a_state_is_named_by_what_is_set() -> None:
    state = state_of(STATE)
    assert state["tcp_cubic.beta"] == "717"
    assert state["net.core.netdev_budget"] == "300"
    assert state["class htb 1:3"].startswith("root leaf 3: prio 0 quantum 60000 rate 3Gbit")
    assert state["eth1: qlen"] == "1000"
    assert state["eth1: qdisc netem parent 1:3"] == "limit 100000 delay 3ms loss 0.5%"
    assert not [name for name in state if "lo:" in name.split()[0] and "qlen" in name]
    assert not [name for name in state if "fq_codel" in name or "table local" in name]
    assert [name for name in state if name.startswith("filter") and "match 00000000" in name]
    assert "rule 0: from all lookup local proto kernel" in state
    # What the kernel counts or numbers is no setting.
    assert state == state_of(STATE.replace("stat 7", "stat 9").replace("refcnt 2", "refcnt 5"))


def with_state(text: str) -> HostState:
    run = remeasure(ROOT, SAMPLES / "01-mathis/step-7-offloads/trial-07-seed1")
    router = replace(run.host_state.nodes["router"], state=state_of(text))
    return replace(run.host_state, nodes={**run.host_state.nodes, "router": router})


@pytest.mark.parametrize(
    ("before", "after", "words", "matters"),
    [
        ("beta:717", "beta:512", "tcp_cubic.beta is 512, not 717", False),
        ("rate 3Gbit", "rate 28Mbit", "class htb 1:3 is rate 28Mbit, not 3Gbit", True),
        ("qlen 1000\\    veth", "qlen 60\\    veth", "eth1: qlen is 60, not 1000", True),
        ("gso_max_size 65536 gro", "gso_max_size 9000 gro", "eth1: gso_max_size is 9000, not 65536", False),
        ("budget:300", "budget:3", "net.core.netdev_budget is 3, not 300", True),
        ("global\n", "global features ecn\n", "there is a route unicast default via 10.10.1.1 dev eth1 table main proto boot scope global features ecn", True),
    ],
)  # fmt: skip
def test_each_setting_is_compared_and_what_cant_matter_is_a_note(
    before: str, after: str, words: str, matters: bool
) -> None:
    """The flow is Reno's and there are no offloads: neither CUBIC's parameters nor sizes of theirs can matter."""
    assert before in STATE
    reference = with_state(STATE)
    others = list(differences(with_state(STATE.replace(before, after)), reference))
    assert Difference(f"router: {words}", matters) in others
    assert list(differences(reference, reference)) == []
    # Of another kernel the defaults are its own, and nothing is said of them.
    assert list(differences(with_state(STATE.replace(before, after)), of_another_kernel(reference))) == []  # fmt: skip


def test_a_sysctl_that_begins_or_ends_connections_is_a_note() -> None:
    reference = with_state(STATE)
    romeo = reference.nodes["romeo"]

    def changed(name: str) -> list[Difference]:
        node = replace(romeo, sysctls={**romeo.sysctls, name: "7"})
        return list(differences(replace(reference, nodes={**reference.nodes, "romeo": node}), reference))  # fmt: skip

    assert [difference.matters for difference in changed("net.ipv4.tcp_fin_timeout")] == [False]
    assert [difference.matters for difference in changed("net.ipv4.tcp_comp_sack_nr")] == [True]


@pytest.fixture(scope="module")
def queues() -> Remeasured:
    return remeasure(ROOT, SAMPLES / "05-queues/two-arms-once/trial-01-seed1")


def test_what_nobody_asked_tc_is_no_difference(queues: Remeasured) -> None:
    state = queues.host_state
    host = state.nodes["host-1"]
    unasked = {
        name: replace(interface, qdiscs=(), qdiscs_after=None)
        for name, interface in host.interfaces.items()
    }
    assert any(interface.qdiscs for interface in host.interfaces.values())
    brought = replace(state, nodes={**state.nodes, "host-1": replace(host, interfaces=unasked)})
    assert list(differences(brought, state)) == []


def raised(run: Remeasured, host_state: HostState | None = None, **measured: object) -> list[str]:
    values = {**run.measured, **measured}
    under_test = run_under_test(
        run.lab, run.plan.params, values, run.plan.trial, host_state or run.host_state
    )
    return [finding.id for finding in check_run(run.lab, under_test)]


def test_a_ping_waits_in_the_queue_that_it_passes(queues: Remeasured) -> None:
    path_ms, queue_ms = (
        float(queues.measured[name] or 0) for name in ("path_rtt_ms", "queue_delay_mean_ms")
    )
    assert raised(queues) == []
    assert raised(queues, busy_ping_mean_ms=path_ms + 0.8 * queue_ms) == []
    assert raised(queues, busy_ping_mean_ms=path_ms + 0.1) == ["ping-elsewhere"]
    # Other queues let a flow with few packets pass.
    assert "ping-elsewhere" not in raised(
        queues, busy_ping_mean_ms=path_ms + 0.1, queue_kind="fq_codel"
    )


def test_a_ping_is_no_slower_than_tcps_fastest() -> None:
    run = remeasure(ROOT, SAMPLES / "01-mathis/step-7-offloads/trial-07-seed1")
    assert raised(run, ping_rtt_min_ms=6.1) == []
    assert raised(run, ping_rtt_min_ms=40.0) == ["ping-elsewhere"]


def test_a_link_before_which_packets_wait_is_full(queues: Remeasured) -> None:
    assert raised(queues, queue_busy_ratio=1.0, queue_samples=400) == []
    assert raised(queues, queue_busy_ratio=1.0, queue_samples=400, utilisation=0.93) == ["link-rate"]  # fmt: skip
    assert raised(queues, queue_busy_ratio=0.94, queue_samples=400, utilisation=0.93) == []


def test_segments_are_as_large_as_the_path_allows(queues: Remeasured) -> None:
    """Lab 05 has no setting for them: the MTU of all interfaces says how large they are."""
    assert raised(queues, mss_bytes=1460) == []
    assert raised(queues, mss_bytes=1448) == []
    assert raised(queues, mss_bytes=1300) == ["segment-size"]


def test_a_queues_last_sample_is_of_the_counter_in_the_snapshot(queues: Remeasured) -> None:
    [span] = queues.host_state.queues_sampled

    def moved(**changes: int) -> HostState:
        last = tuple(
            replace(qdisc, **{name: (getattr(qdisc, name) or 0) + by for name, by in changes.items()})
            for qdisc in span.last
        )  # fmt: skip
        return replace(queues.host_state, queues_sampled=(replace(span, last=last),))

    assert span.last
    assert raised(queues, moved(sent_bytes=0)) == []
    assert raised(queues, moved(sent_bytes=100_000)) == ["two-runs"]
    assert raised(queues, moved(drops=3)) == ["two-runs"]
    assert raised(queues, moved(drops=-30)) == ["two-runs"]


@pytest.mark.kernel
@pytest.mark.slow
def test_a_run_by_other_scripts_is_compared_with_what_ours_set_up(tmp_path: Path) -> None:
    """Somebody changed a node script in place, in a checkout of their own: one line that matters, one that can't."""
    root = tmp_path / "other"
    for name in ("labs", "scripts"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    script = root / "labs/01-mathis/nodes/juliet.sh"
    lines = script.read_text().split("\n")
    lines.insert(1, "sysctl -qw net.ipv4.tcp_fin_timeout=7 net.ipv4.tcp_comp_sack_nr=0")
    script.write_text("\n".join(lines))
    run = ["run", "mathis", "--trial", "7", "--duration", "20", "--out", str(tmp_path / "out")]
    done = start_lab(*run, cwd=tmp_path, MEASURETWICE_ROOT=str(root))
    assert done.returncode == 0, done.stderr
    for place in (str(root), str(ROOT)):
        done = start_lab("check", str(tmp_path / "out"), "--hint", "3", cwd=tmp_path, MEASURETWICE_ROOT=place)  # fmt: skip
        text = " ".join(done.stdout.split())
        assert done.returncode == 1, done.stderr
        assert "run by scripts that aren't this checkout's (juliet.sh)" in text
        assert "juliet: net.ipv4.tcp_comp_sack_nr is 0, not 44" in text
        assert "without effect on this run: juliet: net.ipv4.tcp_fin_timeout is 7, not 60" in text
