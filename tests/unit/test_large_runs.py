"""What a lab with many nodes and large runs needs of the engine."""

from dataclasses import replace
from pathlib import Path

import pytest

from measuretwice.backends import script as nodes
from measuretwice.base.errors import UserError
from measuretwice.figures import by_setting as plot_regression
from measuretwice.lab import Lab, Plan, Toolchain, Value, load_lab, make_plan
from measuretwice.measure.flows import Flow
from measuretwice.runs.result import Result
from measuretwice.site.macros.browser_run import terminals

ROOT = Path(__file__).parents[2]
LAB = load_lab(ROOT, "scale")


def plan(lab: Lab = LAB, trial: int = 1, **changes: Value) -> Plan:
    toolchain = Toolchain("virtual", "k", tools={}, scripts={})
    return make_plan(lab, trial, seed=1, toolchain=toolchain, changes=changes)


def test_a_choice_sets_others_and_is_overruled_by_what_is_said() -> None:
    core = plan(scale="core")
    assert (core.params["rate_mbit"], core.params["buffer_bytes"]) == (10_000, 375_000_000)
    assert core.params["flows"] == 1000
    assert plan(scale="core", flows=3000).params["flows"] == 3000
    # A trial's own word stands, too: one flow alone.
    assert plan(trial=7, scale="core").params["flows"] == 1
    assert plan().params == {**LAB.defaults(), **LAB.trials[1].set}


def test_memory_follows_the_plan_and_other_labs_have_the_usual() -> None:
    assert nodes.memory_mb(LAB, plan(scale="core")) == 6000
    assert nodes.memory_mb(LAB, plan()) == 512
    other = load_lab(ROOT, "mathis")
    assert nodes.memory_mb(other, plan(other)) == 512


def test_who_reads_how_often_follows_the_plan() -> None:
    assert nodes.reader_interval_us(LAB, plan()) == 100_000
    assert nodes.reader_interval_us(LAB, plan(reader_interval_ms=2.5)) == 2_500
    other = load_lab(ROOT, "mathis")
    assert nodes.reader_interval_us(other, plan(other)) == 10_000


def test_many_hosts_in_one_kernel_share_no_limit_of_tcps_memory() -> None:
    assert nodes.kernel_settings(512) == {
        f"ipv4/{name}": value for name, value in nodes.GUEST_TCP_LIMITS.items()
    }
    large = nodes.kernel_settings(6000, many_hosts=True)
    assert large["ipv4/tcp_mem"] == "960000 1152000 1344000"
    assert large["core/netdev_max_backlog"] == "100000"
    script = nodes.experiment_script(LAB, plan(scale="core"), ROOT, "/out", "/sampler")
    assert "echo '960000 1152000 1344000' >/proc/sys/net/ipv4/tcp_mem" in script


def test_hosts_wait_for_each_packet_or_for_a_batch() -> None:
    def waits(**changes: Value) -> list[str]:
        script = nodes.experiment_script(LAB, plan(**changes), ROOT, "/out", None)
        return [line.split("-C eth0 ")[1] for line in script.splitlines() if "sender-0 ethtool -C" in line]  # fmt: skip

    assert waits() == ["rx-usecs 16"]
    assert waits(processing_us=5000, batch_packets=64) == ["rx-usecs 5000 rx-frames 64"]
    # A batch that nobody waits for is none.
    assert waits(processing_us=0, batch_packets=64) == []
    # Plans from before there were batches keep their digests.
    assert "batch_packets" not in plan().params


def test_nodes_that_share_a_script() -> None:
    script = nodes.experiment_script(LAB, plan(), ROOT, "/out", None)
    assert "[sender-3]=sender" in script
    assert "[router]=router" in script
    # What is worked out at the end comes after the last background step has ended.
    assert script.index("end_background\n") < script.index("step router report")
    tabs = terminals(LAB, "", dict(plan().params), with_others=True)
    assert tabs.count('title="') == 4
    assert 'title="sender-0 to sender-9"' in tabs
    assert tabs.count("| sender-0 to sender-9 |") == tabs.count("`sender.sh ")
    assert "labs/03-scale/nodes/sender.sh measure" in tabs


def test_the_regression_needs_flows_with_losses() -> None:
    figure = next(declared for declared in LAB.file.figures if declared.kind == "regression")
    flow = Flow(
        node="sender-0",
        local_port=40_000,
        congestion_control="reno",
        goodput_bps=8 * 1448 / 0.1 / 0.02 * 1.2,
        own_goodput_bps=None,
        rtt_mean_ms=100.0,
        segments=10_000,
        retransmits=4,
        halvings=1,
    )
    run = Result(
        "scale", 1, "", None, None, 1, {}, {"mss_bytes": 1448},
        flows=(flow, replace(flow, halvings=0)),
    )  # fmt: skip
    drawn, rows = plot_regression.regression(LAB, figure, [run])
    assert "C = 1.20" in drawn.description
    assert [row["by"] for row in rows] == ["retransmits", "retransmits", "halvings"]
    nothing = replace(run, flows=(replace(flow, retransmits=0),))
    with pytest.raises(UserError, match="no flow of these runs has retransmits"):
        plot_regression.regression(LAB, figure, [nothing])
