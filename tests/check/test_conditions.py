"""What each node and socket says of itself, what follows from it, and what is said where no cause is known."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import call_lab

from measuretwice.checks import Finding, check_run, run_under_test
from measuretwice.checks.configuration import differences
from measuretwice.execute.batch import reference_host_state
from measuretwice.lab import load_lab
from measuretwice.measure.host_state import (
    HostState,
    Socket,
    ends_of,
    read_host_state,
    sockets_of,
    why_unfit,
)
from measuretwice.runs.folder import raw_folder
from measuretwice.runs.remeasure import Remeasured, remeasure

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "sample-data"
HONEST = [
    "01-mathis/step-7-offloads/trial-07-seed1",
    "02-buffers/each-once/trial-01-seed1",
    "03-scale/edge-once/trial-05-seed1",
    "05-queues/two-arms-once/trial-21-seed1",
]


@pytest.fixture(scope="module")
def mathis() -> Remeasured:
    return remeasure(ROOT, SAMPLES / HONEST[0])


def findings(run: Remeasured, host_state: HostState, **measured: float) -> list[Finding]:
    values = {**run.measured, **measured}
    return check_run(
        run.lab, run_under_test(run.lab, run.plan.params, values, run.plan.trial, host_state)
    )


def with_socket(run: Remeasured, **changes: object) -> HostState:
    """The run's conditions, its flow's socket changed."""
    sockets = [
        replace(one, **changes) if one.bytes_sent > 10**6 else one for one in run.host_state.sockets
    ]
    return replace(run.host_state, sockets=tuple(sockets))


def test_sockets_are_read_from_their_last_line(mathis: Remeasured) -> None:
    control, flow = sorted(mathis.host_state.sockets, key=lambda one: one.bytes_sent)
    assert (flow.node, flow.peer, flow.congestion_control) == ("romeo", "10.10.2.100:5201", "reno")
    assert flow.is_named
    assert control.is_named is False
    assert flow.bytes_sent > 100 * 10**6 > control.bytes_sent
    assert flow.busy_s == pytest.approx(flow.alive_s, rel=0.01)


def test_a_line_that_is_none_of_ss_is_no_socket() -> None:
    assert sockets_of("# t=1.0\nESTAB 0 0\nnothing of that kind at all\n", "romeo") == []


def test_routers_count_what_they_pass(mathis: Remeasured) -> None:
    router = mathis.host_state.nodes["router"]
    out = router.interfaces["eth1"]
    assert out.addresses == ("10.10.2.1",)
    assert [one.kind for one in out.qdiscs] == ["htb", "netem"]
    assert out.drops["netem 1:3"] == out.drops["htb root"] == mathis.measured["qdisc_drops"]
    assert router.sysctls["net.ipv4.ip_forward"] == "1"


@pytest.mark.parametrize("name", HONEST)
def test_honest_runs_are_not_blamed(name: str) -> None:
    run = remeasure(ROOT, SAMPLES / name)
    assert findings(run, run.host_state) == []


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"congestion_control": "cubic"}, "wrong-algorithm"),
        ({"rwnd_limited_ratio": 0.9, "window_max_bytes": 64_000}, "receive-window"),
        ({"busy_s": 100.0}, "application-limited"),
        ({"bytes_sent": 300_000}, "other-traffic"),
        ({"is_named": False}, "two-runs"),
    ],
)
def test_what_a_socket_says_is_a_cause(
    mathis: Remeasured, changes: dict[str, object], cause: str
) -> None:
    found = findings(mathis, with_socket(mathis, **changes))
    assert [one.id for one in found] == [cause]


def test_a_connection_that_iperf3_does_not_name_is_other_traffic(mathis: Remeasured) -> None:
    other = Socket(
        "romeo",
        4,
        "10.10.2.100:80",
        "reno",
        200,
        200,
        0,
        0,
        10**6,
        10**8,
        10**8,
        False,
        seen=(1, 9),
    )
    more = replace(mathis.host_state, sockets=(*mathis.host_state.sockets, other))
    [found] = findings(mathis, more)
    assert found.id == "other-traffic"
    assert "10.10.2.100:80" in found.measured
    # A log that was appended to has connections of earlier runs.
    earlier = replace(other, seen=(10**6, 10**6 + 9))
    assert not findings(mathis, replace(more, sockets=(*mathis.host_state.sockets, earlier)))


def test_a_window_as_large_as_the_setting_allows_is_no_mistake(mathis: Remeasured) -> None:
    most = int(mathis.plan.params["rmem_max_bytes"])
    changed = with_socket(mathis, rwnd_limited_ratio=0.9, window_max_bytes=most // 2)
    assert findings(mathis, changed) == []


def test_packets_that_vanish_in_a_router_are_missed(mathis: Remeasured) -> None:
    router = mathis.host_state.nodes["router"]
    into = router.interfaces["eth0"]
    more = replace(into, received_packets=int(into.received_packets or 0) + 5000)
    node = replace(router, interfaces={**router.interfaces, "eth0": more})
    [found] = findings(
        mathis, replace(mathis.host_state, nodes={**mathis.host_state.nodes, "router": node})
    )
    assert found.id == "lost-between"
    assert "5001 are missing" in found.measured or "5002 are missing" in found.measured


def test_what_is_off_without_a_known_cause_is_said(mathis: Remeasured) -> None:
    """A tenth of the goodput, and every other number as it was."""
    goodput_bps = float(mathis.measured["goodput_bps"] or 0) / 10
    [found] = findings(mathis, mathis.host_state, goodput_bps=goodput_bps, sender_rate_bps=0)
    assert found.id == "unexplained"
    assert "ratio of goodput to the model's is 0.1" in found.measured
    assert "where one mean window per round trip makes" in found.measured
    assert "looked at and right" in found.why


def test_causes_come_with_what_follows_from_them() -> None:
    run = remeasure(ROOT, SAMPLES / "01-mathis/case-05-broken/trial-09-seed1")
    [found] = findings(run, run.host_state)
    assert found.id == "mtu"
    assert any("ratio of goodput to the model's is 0.4" in one for one in found.consequences)
    # A name of the program's is no word of a sentence.
    assert any("MSS is 1460 B, expected at least 4312 B" in one for one in found.consequences)
    # Not before the second hint: what follows says where it comes from.
    run_folder = SAMPLES / "01-mathis/case-05-broken/trial-09-seed1"
    assert "also off, perhaps because of that: " not in call_lab("check", run_folder).stdout
    assert (
        "also off, perhaps because of that: " in call_lab("check", run_folder, "--hint", "2").stdout
    )


def test_a_cut_off_snapshot_is_one_line(tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(SAMPLES / HONEST[0], run)
    with raw_folder(run) as raw:
        shutil.copytree(raw, run / "raw")
    (run / "raw.tar.xz").unlink()
    path = run / "raw/router/link.after.json"
    path.write_text(path.read_text()[:200])
    done = call_lab("check", run)
    assert done.returncode == 2
    assert "router/link.after.json" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.kernel
@pytest.mark.slow
def test_scripts_of_ones_own_are_held_against_the_labs(tmp_path: Path) -> None:
    out = ["--out", str(tmp_path)]
    assert call_lab("edit", "mathis", *out).returncode == 0
    script = tmp_path / "mathis/edit/nodes/router.sh"
    text = script.read_text()
    script.write_text(text.replace('root netem delay "${DELAY_MS}ms"', "root netem delay 6ms"))
    assert script.read_text() != text
    made = call_lab("run", "mathis", "--trial", "7", "--duration", "20", *out)
    assert made.returncode == 0, made.stderr
    [run] = (tmp_path / "mathis").glob("trial-07-*")
    plain = call_lab("check", run)
    assert plain.returncode == 1
    assert "1 setting of the nodes differs" in plain.stdout
    assert "netem" not in plain.stdout
    [document] = json.loads(call_lab("check", run, "--json").stdout)
    [found] = document["findings"]
    assert found["id"] == "configuration"
    assert found["measured"] == "router: eth0 has netem with delay.delay 0.006, not 0.003"
    assert any("smallest round-trip time of 9 ms" in one for one in found["consequences"])


@pytest.mark.kernel
@pytest.mark.slow
@pytest.mark.parametrize("name", HONEST)
def test_the_labs_own_scripts_make_what_was_recorded(name: str) -> None:
    run = remeasure(ROOT, SAMPLES / name)
    meant = reference_host_state(ROOT, run.lab, run.plan.params)
    assert meant is not None
    assert list(differences(run.host_state, meant)) == []


def test_a_radios_queue_may_change_meanwhile() -> None:
    lab = load_lab(ROOT, "variants")
    with raw_folder(SAMPLES / "04-variants/case-06-broken/trial-02-seed1") as raw:
        conditions = read_host_state(raw, lab.file.collect.ss_name)
    assert list(differences(conditions, conditions, steady=False)) == []


def with_ends(run: Remeasured, **changes: object) -> HostState:
    """The run's conditions, what the sender's iperf3 wrote changed."""
    ends = [end if end.is_server else replace(end, **changes) for end in run.host_state.ends]
    assert len(ends) == 2
    return replace(run.host_state, ends=tuple(ends))


def test_both_ends_of_a_test_have_its_cookie_and_its_bytes(mathis: Remeasured) -> None:
    server, client = sorted(mathis.host_state.ends, key=lambda end: not end.is_server)
    assert server.cookie == client.cookie
    assert client.sent_bytes is not None
    other = with_ends(mathis, cookie="that of another run")
    [found] = findings(mathis, other)
    assert (found.id, "cookies differ" in found.measured) == ("two-runs", True)
    [found] = findings(mathis, with_ends(mathis, sent_bytes=client.sent_bytes / 2))
    assert (found.id, "by iperf3's count" in found.measured) == ("two-runs", True)
    twice = replace(mathis.host_state, ends=(*mathis.host_state.ends, client))
    [found] = findings(mathis, twice)
    assert "one and the same test" in found.measured


def test_a_rate_is_bytes_over_time(mathis: Remeasured) -> None:
    client = next(end for end in mathis.host_state.ends if not end.is_server)
    for factor, expected in ((1.01, []), (8, ["bandwidth"]), (1 / 8, ["bandwidth"])):
        sums = tuple(replace(one, rate_bps=one.rate_bps * factor) for one in client.sums)
        assert [one.id for one in findings(mathis, with_ends(mathis, sums=sums))] == expected


def test_a_flow_that_stands_still_is_said_and_a_timeout_is_not(mathis: Remeasured) -> None:
    assert findings(mathis, with_socket(mathis, stalled_s=1.5)) == []
    [found] = findings(mathis, with_socket(mathis, stalled_s=9.0))
    assert (found.id, "9.0 s on end" in found.measured) == ("unexplained", True)


def test_a_stall_is_the_time_in_which_nothing_was_acknowledged() -> None:
    def line(acked: int) -> str:
        return f"ESTAB 0 0 10.0.0.1:5 10.0.0.2:5201 reno cwnd:9 bytes_sent:9999999 bytes_acked:{acked}\n"

    counts = (1, 2, 2, 3, 3, 3, 3, 4)
    text = "".join(f"# t={n}.0\n{line(count)}" for n, count in enumerate(counts))
    [socket] = sockets_of(text, "romeo")
    assert socket.stalled_s == 3.0


def test_senders_that_send_nothing_are_said(mathis: Remeasured) -> None:
    [found] = findings(mathis, with_socket(mathis, bytes_sent=37))
    assert (found.id, "B in all" in found.measured) == ("unexplained", True)


def test_an_interface_and_its_qdisc_count_the_same_bytes(mathis: Remeasured) -> None:
    router = mathis.host_state.nodes["router"]
    out = router.interfaces["eth1"]
    for share, expected in ((0.005, []), (0.02, ["two-runs"])):
        sent = round(int(out.sent_bytes or 0) * (1 + share))
        node = replace(
            router, interfaces={**router.interfaces, "eth1": replace(out, sent_bytes=sent)}
        )
        changed = replace(mathis.host_state, nodes={**mathis.host_state.nodes, "router": node})
        assert [one.id for one in findings(mathis, changed)] == expected
    # As many packets, each larger for the qdisc: a size table of its own (stab, overhead).
    smaller = replace(out, sent_bytes=round(int(out.sent_bytes or 0) * 0.9))
    node = replace(router, interfaces={**router.interfaces, "eth1": smaller})
    changed = replace(mathis.host_state, nodes={**mathis.host_state.nodes, "router": node})
    (finding,) = findings(mathis, changed)
    assert (finding.id, "size table" in finding.why) == ("configuration", True)


def test_samples_of_a_queue_are_of_the_flows_time_and_of_packets() -> None:
    run = remeasure(ROOT, SAMPLES / HONEST[1])
    [span] = run.host_state.queues_sampled
    seconds = span.last_s - span.first_s
    for shift, expected in ((0.02, []), (0.5, ["samples"]), (-0.5, ["samples"])):
        moved = replace(
            span, first_s=span.first_s + shift * seconds, last_s=span.last_s + shift * seconds
        )
        changed = replace(run.host_state, queues_sampled=(moved,))
        assert [one.id for one in findings(run, changed)] == expected
    packets = float(run.measured["queue_mean_packets"] or 0)
    [found] = findings(run, run.host_state, queue_mean_bytes=packets)
    assert (found.id, "1 B for each packet" in found.measured) == ("samples", True)


def test_a_plain_queue_counts_where_it_does_something(mathis: Remeasured) -> None:
    """A pfifo that nobody set is what an interface has; but not below a rate, nor where it drops."""
    meant = mathis.host_state
    romeo = meant.nodes["romeo"]
    [interface] = romeo.interfaces.values()
    [qdisc] = interface.qdiscs
    pfifo = replace(qdisc, kind="pfifo", handle="8001:", root=True)

    def with_queue(drops: int) -> list[str]:
        other = replace(
            interface, qdiscs=(pfifo,), qdiscs_after=(pfifo,), drops={"pfifo root": drops}
        )
        node = replace(romeo, interfaces={interface.name: other})
        found = differences(replace(meant, nodes={**meant.nodes, "romeo": node}), meant)
        return [difference.text for difference in found if difference.matters]

    assert with_queue(0) == []
    assert with_queue(7) == [
        f"romeo: {interface.name} has a queue of pfifo at root, which the lab doesn't set"
    ]


@pytest.mark.parametrize(
    ("parent", "said"), [("1:9", ["router: eth1 has no fq_codel at 1:9"]), ("", [])]
)
def test_a_plain_queue_is_missed_below_a_rate(
    mathis: Remeasured, parent: str, said: list[str]
) -> None:
    """A discipline that the lab sets decides what waits there, whatever an interface has by itself."""
    meant = mathis.host_state
    router = meant.nodes["router"]
    interface = router.interfaces["eth1"]
    qdisc = replace(interface.qdiscs[0], kind="fq_codel", handle="10:", parent=parent, root=False)
    more = replace(interface, qdiscs=(*interface.qdiscs, qdisc))
    node = replace(router, interfaces={**router.interfaces, "eth1": more})
    found = differences(meant, replace(meant, nodes={**meant.nodes, "router": node}))
    assert [difference.text for difference in found if difference.matters] == said


@pytest.mark.parametrize("problem", ["(-R)", "UDP", "(--bidir)"])
def test_a_test_of_another_kind_is_named_and_its_consequences_are_not(
    mathis: Remeasured, problem: str
) -> None:
    """A server that sends makes every number that rests on the client's socket wrong."""
    whys = [
        why_unfit("UDP", None, None),
        why_unfit("TCP", True, None),
        why_unfit("TCP", None, True),
    ]
    [why] = [why for why in whys if why and problem in why]
    ends = [one if one.is_server else replace(one, unfit=why) for one in mathis.host_state.ends]
    found = findings(mathis, replace(mathis.host_state, ends=tuple(ends)), goodput_bps=1e5)
    assert [one.id for one in found] == ["unfit"]
    assert problem in found[0].measured
    assert found[0].consequences


def test_the_direction_of_a_test_is_read_from_its_own_file(tmp_path: Path) -> None:
    for name in ("iperf3-3.18-reverse.json", "iperf3-3.18-bidir.json", "iperf3-3.22-udp.json"):
        folder = tmp_path / name
        folder.mkdir()
        shutil.copy(ROOT / "tests/data/parse/iperf3" / name, folder / "iperf3.json")
        [end] = ends_of([folder])
        assert end.unfit


@pytest.mark.parametrize(
    ("shift_s", "shorter_s", "went_back", "said"),
    [
        (3600, 0, 0, "from 3600"),
        (-3600, 0, 0, "until 3599"),
        (0, 0, 0, None),
        (0, 20, 0, None),
        (0, 150, 0, "until 1"),
        (0, 0, 1, "time goes back"),
    ],
)
def test_samples_are_held_against_the_tests_own_time(
    mathis: Remeasured, shift_s: float, shorter_s: float, went_back: int, said: str | None
) -> None:
    """A sampler that died, a clock of another time zone, a file with two runs in it."""
    [span] = mathis.host_state.flows_sampled
    assert 230 < span.last_s - span.first_s < 250
    other = replace(
        span, first_s=span.first_s + shift_s, last_s=span.last_s + shift_s - shorter_s, went_back=went_back,
    )  # fmt: skip
    found = findings(mathis, replace(mathis.host_state, flows_sampled=(other,)))
    assert [one.id for one in found] == (["samples"] if said else [])
    assert said is None or said in found[0].measured


def test_who_ends_a_connection_nearer_also_offers_the_window() -> None:
    """A gateway that ends TCP keeps what it can't pass on, and its window holds the sender up."""
    run = remeasure(ROOT, SAMPLES / "04-variants/case-02-broken/trial-07-seed1")
    found = findings(run, with_socket(run, rwnd_limited_ratio=0.5, window_max_bytes=64_000))
    assert [one.id for one in found] == ["terminated-tcp"]


def test_a_qdisc_and_its_interface_count_the_same_packets(mathis: Remeasured) -> None:
    """What tc printed of another run of the same settings differs by chance alone: by less than a hundredth."""
    router = mathis.host_state.nodes["router"]
    out = router.interfaces["eth1"]
    assert out.qdiscs_after
    assert out.sent_packets
    for count, found in ((40, []), (out.sent_packets // 500, ["two-runs"])):
        after = [
            replace(one, sent_packets=one.sent_packets + count) if one.root else one
            for one in out.qdiscs_after
            if one.sent_packets is not None
        ]
        other = replace(out, qdiscs_after=tuple(after))
        node = replace(router, interfaces={**router.interfaces, "eth1": other})
        nodes = {**mathis.host_state.nodes, "router": node}
        assert [
            one.id for one in findings(mathis, replace(mathis.host_state, nodes=nodes))
        ] == found


@pytest.mark.parametrize(("late_s", "off"), [(0, False), (3, False), (60, True)])
def test_a_sender_that_begins_late_is_said(late_s: float, off: bool) -> None:
    run = remeasure(ROOT, SAMPLES / HONEST[1])
    ends = [
        replace(one, begin_s=(one.begin_s or 0) + late_s, end_s=(one.end_s or 0) + late_s)
        if one.node == "s2"
        else one
        for one in run.host_state.ends
    ]
    spans = [
        replace(one, first_s=one.first_s + late_s, last_s=one.last_s + late_s)
        if one.node == "s2"
        else one
        for one in run.host_state.flows_sampled
    ]
    changed = replace(
        run.host_state, ends=tuple(ends), flows_sampled=tuple(spans), queues_sampled=()
    )
    found = findings(run, changed)
    assert [one.id for one in found] == (["unexplained"] if off else [])
    assert not off or "s2's test began 59 s after" in found[0].measured


@pytest.mark.parametrize(("stalled_s", "off"), [(1.5, False), (3.2, True)])
def test_an_outage_is_told_from_losses_in_a_row(
    mathis: Remeasured, stalled_s: float, off: bool
) -> None:
    found = findings(mathis, with_socket(mathis, stalled_s=stalled_s))
    assert [one.id for one in found] == (["unexplained"] if off else [])


def test_an_emulator_that_is_late(mathis: Remeasured) -> None:
    """Twice the mean beside 5 % of the round trip, one packet in a hundred beside a quarter of it; and its own losses."""

    def late(mean_us: float, p99_us: float, lost_packets: int = 0) -> list[Finding]:
        values = {
            "rtt_min_ms": 6.0,
            "emulator_late_mean_us": mean_us,
            "emulator_late_p99_us": p99_us,
            "emulator_late_max_us": 20_000,
            "emulator_lost_packets": lost_packets,
        }
        every = findings(mathis, mathis.host_state, **values)
        return [finding for finding in every if finding.id == "late-packets"]

    assert late(149, 1499) == []
    (mean,) = late(151, 1499)
    assert "0.151 ms late on average" in mean.measured
    assert len(late(149, 1501)) == 1
    (lost,) = late(10, 20, 1)
    assert "lost by the emulator itself: 1" in lost.measured
    assert not [f for f in findings(mathis, mathis.host_state) if f.id == "late-packets"]
