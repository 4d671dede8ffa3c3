"""The checks of what was sent over what: files that are of one run, how many flows, how large their packets,
how long the path.

Each looks at one thing that holds for any honest run, and judges nothing that the run doesn't have.
"""

from __future__ import annotations

import re
from collections import Counter

from measuretwice.checks.registry import Finding, FindingKind, Right, RunUnderTest, check
from measuretwice.measure.transfers import Transfer
from measuretwice.tcp.model import (
    IP_TCP_HEADERS_BYTES,
    IPV4_HEADER_BYTES,
    TIMESTAMP_OPTION_BYTES,
    largest_packet_bytes,
)

TIMESTAMP_STEP_MS = 1.0
# What a test's own few round trips may be off by.
WORD_RATIO = 0.1
LATE_MS = 5.0
# What a packet of any size takes of a link, at most; and how much longer than that some round trips may be.
FULL_PACKET_BITS = 8 * 1538
FULL_RATIO = 1.5
# IPv6 has larger headers than IPv4.
FAMILY_BYTES = 20

# Imported files: are they of one run, and of such a test as the lab's?


@check(
    FindingKind(
        "unfit",
        "Whether each test is one of TCP, from sender to receiver, run to its end.",
        explains=(
            "drops-not-resent",
            "link-rate",
            "length",
            "stalled",
            "ends-apart",
            "round-trip-time",
            "segment-size",
            "receive-window",
        ),
        hints=(
            "One of these files isn't a test such as this lab's. Which file is named?",
            "Look at its first and last lines: protocol, direction, and whether it ran to its end.",
            "Measure that one again, as the lab's script does: TCP, without -R and -u, until iperf3 reports that it is done.",
        ),
    ),
    needs=("unfit",),
)
def unfit(run: RunUnderTest) -> Finding | None:
    problem = run.measured_text("unfit")
    if problem is None:
        return None
    return Finding(
        "unfit",
        problem,
        "a test of TCP from the sender to the receiver, run to its end; and a ping that came back",
        "Nothing can be concluded from such a file, so it isn't used. The other files still count.",
    )


@check(FindingKind("unfit"), needs=())
def one_host(run: RunUnderTest) -> Finding | None:
    """A test whose two ends have the same address, or a loopback one, went over no path."""
    for test in run.host_state.transfers if run.host_state and run.brought else ():
        for own, far in sorted(test.hosts):
            # What somebody put in place of both ("...", "xxx", "REDACTED") says nothing.
            if (
                (own == far and re.fullmatch(r"(?=.*\d)[\da-fA-F.:]+(?:%\S+)?", own))
                or own.startswith("127.")
                or own in ("::1", "localhost")
            ):
                return Finding(
                    "unfit",
                    f"{test.source}: from {own} to {far}: both ends are on one host, or in one network namespace",
                    "a test from one host to another, over the path",
                    "Such data goes over the host's own loopback interface, and over none of the links (or into a tunnel that "
                    "begins there). In Mininet a switch's commands run in the root namespace: name hosts.",
                )  # fmt: skip
    return None


@check(FindingKind("two-runs"), needs=("several_runs", "foreign_logs"))
def of_one_run(run: RunUnderTest) -> Finding | None:
    """The clients' times, and ss's connections against those that iperf3 names."""
    contradiction = run.measured_text("several_runs")
    if foreign := run.measured_text("foreign_logs"):
        return Finding(
            "two-runs", foreign, "the connection that iperf3 names, in the log of ss",
            "What ss reports on another connection, or on another run, tells you nothing about this one.",
        )  # fmt: skip
    if contradiction is None:
        return None
    return Finding(
        "two-runs",
        contradiction,
        "the files of one run",
        "One run's measurements tell you nothing about another. The last run is checked, with the files "
        "that are known to be its own.",
    )


@check(
    FindingKind(
        "mptcp",
        "Whether the senders' sockets are parts of one MPTCP connection (tcp-ulp-mptcp in ss).",
        explains=(
            "two-runs", "other-traffic", "path", "flows", "bandwidth", "unexplained", "retransmissions", "link-rate",
        ),
        hints=(
            "ss has more connections to the receiver than iperf3 names. What is at the end of their lines?",
            "tcp-ulp-mptcp marks a socket as a subflow of MPTCP. Add up bytes_acked of all that have the same token.",
            "Multipath TCP has sent over several paths at once. Measure TCP: iperf3 without mptcpize and without --mptcp.",
        ),
    ),
    needs=(),
)  # fmt: skip
def multipath(run: RunUnderTest) -> Finding | None:
    sockets = run.host_state.sockets if run.host_state else ()
    subflows = [socket for socket in sockets if socket.is_multipath]
    if not subflows:
        return None
    acked = ", ".join(
        f"{(socket.bytes_acked or 0) / 1e6:.4g} MB from {socket.last.local_address if socket.last else ''}:{socket.port}"
        for socket in subflows
    )
    return Finding(
        "mptcp",
        f"{len(subflows)} subflow{'s' if len(subflows) > 1 else ''} of MPTCP (ss): {acked} acknowledged",
        "one connection of TCP over one path",
        "What iperf3 counts is the sum of all subflows, and each has a window and a path of its own. The values of one "
        "say nothing about the whole.",
        symptom="the flow went over more than one connection of TCP",
    )


@check(FindingKind("configuration"), needs=("misplaced",))
def misplaced(run: RunUnderTest) -> Finding | None:
    """The bottleneck's qdisc, against the interface by which most bytes left, and its bytes against the test's."""
    place = run.measured_text("misplaced")
    if place is None:
        return None
    return Finding(
        "configuration",
        place,
        "the qdisc that the data passes, looked at before the test and after it",
        "So that qdisc's counts don't describe the data.",
        symptom="the qdisc that the data is meant to pass is elsewhere",
    )


@check(
    FindingKind("other-drops"),
    FindingKind("interface-drops"),
    FindingKind("receive-window"),
    FindingKind("configuration"),
    needs=("by_host",),
)
def by_host(run: RunUnderTest) -> Finding | None:
    """Return what a host's own counters or settings say, of several the first."""
    words = run.measured_text("by_host")
    if words is None:
        return None
    kind, seen, expected, why = words.splitlines()[0].split("\t", 3)
    # By its name each, so that who looks for what a module raises finds it.
    match kind:
        case "other-drops":
            return Finding("other-drops", seen, expected, why)
        case "interface-drops":
            return Finding("interface-drops", seen, expected, why)
        case "receive-window":
            return Finding("receive-window", seen, expected, why, rests_on="rate_mbit")
        case _:
            rests_on = "rate_mbit" if expected.endswith("Mbit/s") else ""
            return Finding("configuration", seen, expected, why, rests_on=rests_on)


@check(FindingKind("wrong-algorithm"), needs=("iperf3_algorithms",))
def algorithms_by_iperf3(run: RunUnderTest) -> Finding | Right | None:
    """The congestion control that iperf3 names, against those that were meant."""
    named = set((run.measured_text("iperf3_algorithms") or "").split())
    if not run.algorithms or not named:
        return None
    if named <= run.algorithms:
        return Right("the algorithm that iperf3 names")
    reached = "" if run.brought else ": the setting did not reach the socket"
    return Finding(
        "wrong-algorithm",
        f"flows of {', '.join(sorted(named - run.algorithms))} (iperf3)",
        ", ".join(sorted(run.algorithms)),
        f"So the measurement is of another algorithm{reached}.",
        symptom="a flow isn't of the kind that was asked for",
        rests_on="congestion_control",
    )


# Any connection


@check(
    FindingKind(
        "flows",
        "How many data connections iperf3 names, or ss on each sender shows, compared with the intended number.",
        hints=(
            "How many connections does iperf3 name at its start?",
            "Compare that with the number you asked for with -P.",
            "Other flows share the path, or some never began, so the sums and means are of another set.",
        ),
    ),
    needs=("flows",),
)
def flows(run: RunUnderTest) -> Finding | Right | None:
    if run.flows_each is not None:
        return _flows_of_each(run, run.flows_each)
    wanted = sum(run.param(name) or 0.0 for name in run.flows_of) or 1.0
    count = run.measured("flows")
    if count is None:
        return None
    if count == wanted:
        return Right("how many flows there are")
    tests = run.host_state.transfers if run.brought and run.host_state else ()
    sources = ", ".join(sorted({test.source for test in tests}))
    if len(tests) > 1:
        by_hosts = {
            test.source: " and ".join(f"{own} to {far}" for own, far in sorted(test.hosts))
            for test in tests
        }
        if len({*by_hosts.values()}) > 1 and all(by_hosts.values()):
            sources = ", ".join(f"{source}: {hosts}" for source, hosts in sorted(by_hosts.items()))
        return Finding(
            "flows", f"{len(tests)} tests ({sources}), with {count:.0f} data connections in all", f"one test with {wanted:.0f}",
            "The files don't show whether they ran at once or one after another. Bring one at a time, unless they were meant to share the path.",
        )  # fmt: skip
    return Finding(
        "flows", f"{count:.0f} data connections", f"{wanted:.0f}",
        "Sums and means are of a different set of flows from the one that was meant.",
    )  # fmt: skip


def _by_mtu(run: RunUnderTest, mss_bytes: float) -> Finding | Right | None:
    """Return what the MSS is by the MTUs of all interfaces, where no setting says it: the smallest of these, less headers
    and the option of timestamps."""
    nodes = run.host_state.nodes.values() if run.host_state else ()
    mtus = [
        int(interface.settings["mtu"])
        for node in nodes
        for interface in node.interfaces.values()
        if interface.settings.get("mtu", "").isdecimal()
    ]
    if not mtus or "tcp-split" in run.meanings:
        return None
    largest_bytes = min(mtus) - IP_TCP_HEADERS_BYTES
    if mss_bytes >= largest_bytes - TIMESTAMP_OPTION_BYTES:
        return Right("the segment size")
    return Finding(
        "segment-size",
        f"segments of {mss_bytes:.0f} B (ss)",
        f"{largest_bytes - TIMESTAMP_OPTION_BYTES} or {largest_bytes} B: an MTU of {min(mtus)} everywhere",
        "Something other than the path's MTU makes segments small: iperf3's -M, a route's advmss, or probing.",
        symptom="segments are smaller than the path allows",
    )


def _flows_of_each(run: RunUnderTest, wanted: int) -> Finding | None:
    """Each sender's data connections, by ss."""
    counts = Counter(socket.node for socket in run.data_sockets())
    for node, count in counts.items():
        if count != wanted:
            return Finding(
                "flows", f"{count} data connections of {node} (ss)", f"{wanted} of each sender",
                "Sums and means are of a different set of flows from the one that was meant.",
            )  # fmt: skip
    return None


@check(
    FindingKind(
        "offload",
        "The largest packet that tcpdump printed on the router, or the mean one in its queue, compared with MSS and headers.",
        explains=("loss-ratio", "loss-percent", "retransmissions", "duration", "queueing"),
    ),
    needs=("largest_packet_bytes", "hundredth_packet_bytes", "mss_bytes", "ip_header_bytes"),
)
def offload(run: RunUnderTest) -> Finding | Right | None:
    largest, mss_bytes = run.measured("largest_packet_bytes"), run.measured("mss_bytes")
    mtu_bytes = run.param("mtu_bytes")
    if largest is None or (mss_bytes is None and mtu_bytes is None):
        return None
    more_bytes = (run.measured("ip_header_bytes") or IPV4_HEADER_BYTES) - IPV4_HEADER_BYTES
    if mss_bytes is None:
        limit, why = mtu_bytes or 0.0, f"an MTU of {mtu_bytes:.0f}"
    else:
        limit = largest_packet_bytes(mss_bytes) + more_bytes
        why = f"MSS {mss_bytes:.0f} and its headers"
    # A few packets are iperf3's control connection's, which has an MSS of its own.
    usual = run.measured("hundredth_packet_bytes")
    if largest <= limit or (usual is not None and usual <= limit):
        return Right("packets' sizes")
    return Finding(
        "offload",
        f"packets of up to {largest:.0f} B {'(tcpdump)' if run.brought else 'on the router'}",
        f"at most {limit:.0f} B: {why}",
        "Several segments travel as one packet. The router loses or keeps them together, so "
        "neither the segment size nor the loss is the one that was set.",
        symptom="the packets printed on the router aren't the trial's",
    )


@check(
    FindingKind(
        "mtu",
        "The MSS that ss prints, compared with the intended one and the MTU of the path.",
    ),
    FindingKind(
        "timestamps", "The MSS that ss prints: is it 12 bytes, a timestamp option, too small?"
    ),
    FindingKind(
        "segment-size",
        "The MSS that ss prints, where neither MTU nor timestamps explain it.",
        hints=(
            "Which MSS does ss print for the connection? Which one did you ask iperf3 for?",
            "Take the MSS, add 40 bytes of headers, and look for that number, or one 12 bytes larger, among the settings of every interface on the path.",
            "Some interface has a smaller MTU than you meant, or TCP carries options that you did not count. Compare `ip link` and `sysctl net.ipv4.tcp_timestamps` on both hosts.",
        ),
    ),
    needs=("mss_bytes",),
)
def segment_size(run: RunUnderTest) -> Finding | Right | None:
    """The observed MSS; which of its two enemies took the bytes."""
    wanted, mss_bytes = run.param("mss_bytes"), run.measured("mss_bytes")
    tests = [
        test for test in (run.host_state.transfers if run.host_state else ()) if test.mss_bytes
    ]
    by_test = tests[0] if run.brought and tests and not run.data_sockets() else None
    if by_test and wanted:
        mss_bytes = _by_word(by_test, wanted)
    if mss_bytes is None:
        return None
    if wanted is None:
        return _by_mtu(run, mss_bytes)
    if mss_bytes == wanted:
        return Right("the segment size")
    found = f"segments of {mss_bytes:.0f} B ({by_test.source if by_test else 'ss'})"
    meant = f"{wanted:.0f} B"
    off = f"a property of the connection is {mss_bytes / wanted:.2g} times what was meant"
    mtu_bytes = run.param("mtu_bytes")
    options = TIMESTAMP_OPTION_BYTES if run.params.get("timestamps") == "on" else 0
    if (
        mtu_bytes is not None
        and mss_bytes == mtu_bytes - IP_TCP_HEADERS_BYTES - options < wanted - options
    ):
        return Finding(
            "mtu", found, meant,
            f"An MTU of {mtu_bytes:.0f} B leaves no more than that. The model was asked about "
            "a different segment size from the one on the wire.",
            symptom=off, rests_on="mss_bytes",
        )  # fmt: skip
    if wanted - mss_bytes == TIMESTAMP_OPTION_BYTES:
        return Finding(
            "timestamps", found, meant,
            "12 bytes of each segment are missing: the size of TCP's timestamp option.",
            symptom=off, rests_on="mss_bytes",
        )  # fmt: skip
    return Finding(
        "segment-size", found, meant, "The model's segment size is not the one on the wire.", rests_on="mss_bytes",
    )  # fmt: skip


def _by_word(test: Transfer, wanted: float) -> float:
    """Return the segment size that a test speaks of; the one that was meant where it may be that. iperf3 names its control
    connection's, and what it asked for (-M) may have options in it."""
    mss_bytes = float(test.mss_bytes or 0)
    if test.asked_mss_bytes and test.asked_mss_bytes < mss_bytes:
        mss_bytes = test.asked_mss_bytes
        return wanted if mss_bytes - TIMESTAMP_OPTION_BYTES <= wanted <= mss_bytes else mss_bytes
    # Windows has no timestamps by itself, and some systems count their bytes as the segment's.
    near = abs(mss_bytes - wanted) <= FAMILY_BYTES and wanted - mss_bytes != TIMESTAMP_OPTION_BYTES
    return wanted if near else mss_bytes


@check(
    FindingKind(
        "rtt-doubling", "The smallest round-trip time: is it twice the one that was meant?"
    ),
    FindingKind(
        "round-trip-time",
        "The smallest round-trip time of TCP, or ping's, compared with the intended one.",
        hints=(
            "Look at the smallest round-trip time that ping and ss print, before the flow is busy.",
            "Compare it with the delays of all netem qdiscs on the way, there and back: `tc qdisc`.",
            "The delays along the path don't add up to the intended round-trip time. One is missing, one is left over from an earlier try, or the path has a delay of its own.",
        ),
    ),
    needs=("rtt_min_ms", "path_rtt_ms", "ping_rtt_min_ms", "ping_resolution_ms"),
)
def round_trip(run: RunUnderTest) -> Finding | Right | None:
    # TCP's own smallest is of the last 300 s (tcp_min_rtt_wlen in ip-sysctl): in a longer run with a
    # queue that never empties it is the queue's. The ping before the run found none.
    known = [run.measured(name) for name in ("rtt_min_ms", "path_rtt_ms", "ping_rtt_min_ms")]
    least_ms = min((ms for ms in known if ms), default=None)
    wanted, step_ms = run.param("rtt_ms"), run.measured("ping_resolution_ms") or 0.0
    if least_ms is None and known[-1] == 0 and wanted and wanted > 2 * step_ms > 0:
        # In whole milliseconds.
        below, why = (
            f"a smallest round-trip time below {step_ms:g} ms (ping)",
            "The path's delay is not the one that was set.",
        )
        return Finding("round-trip-time", below, f"{wanted:g} ms", why)  # fmt: skip
    if wanted and least_ms is None and run.brought:
        return _round_trip_by_test(run, wanted)
    if not wanted or least_ms is None:
        return None
    found, meant = f"a smallest round-trip time of {least_ms:g} ms", f"{wanted:g} ms"
    if 1.9 <= least_ms / wanted <= 2.1:
        return Finding(
            "rtt-doubling", found, meant,
            "Twice what was asked for: the whole delay was set in both directions.",
            symptom="one of the path's properties isn't the trial's",
        )  # fmt: skip
    # Of Windows' ping 40 ms may be anything up to 41; by timestamps TCP's own times have steps of a millisecond.
    if run.params.get("timestamps") == "on":
        step_ms = max(step_ms, TIMESTAMP_STEP_MS)
    if abs(least_ms - wanted) > max(0.02 * wanted, 0.6) + step_ms:
        return Finding(
            "round-trip-time", found, meant, "The path's delay is not the one that was set."
        )
    return Right("the smallest round-trip time")


def _round_trip_by_test(run: RunUnderTest, wanted: float) -> Finding | Right | None:
    """Compare what a test says of its connection's round trips: those of a test may wait in a queue, a handshake's doesn't,
    and none is shorter than the path's."""
    for test in run.host_state.transfers if run.host_state else ():
        least_ms, idle_ms = test.least_rtt_ms, test.idle_rtt_ms
        if least_ms is None:
            continue
        slack_ms = WORD_RATIO * wanted + TIMESTAMP_STEP_MS
        wanted_text = f"{wanted:g} ms"
        if least_ms < wanted - slack_ms:
            return Finding(
                "round-trip-time", f"a round-trip time of {least_ms:.4g} ms ({test.source})", wanted_text,
                "No round trip is shorter than the path's, so the delay isn't the one that was set.",
            )  # fmt: skip
        room, rate_mbit = run.param("limit_packets"), run.param("rate_mbit")
        if room and rate_mbit and idle_ms is None:
            # The queue that the settings allow, full all the time.
            most_ms = wanted + room * FULL_PACKET_BITS / (1e3 * rate_mbit)
            if least_ms > FULL_RATIO * most_ms + LATE_MS:
                return Finding(
                    "round-trip-time", f"round-trip times of {least_ms:.4g} ms and more ({test.source})",
                    f"at most {most_ms:.4g} ms: {wanted_text}, and a full queue of {room:.0f} packets at {rate_mbit:g} Mbit/s",
                    "The path is longer than the one that was set, or a longer queue is on it.",
                )  # fmt: skip
        if idle_ms is None or idle_ms <= 1.3 * wanted + LATE_MS:
            return Right("that no round trip is shorter than the path's")
        idle_text = f"a round-trip time of {idle_ms:.4g} ms as it began ({test.source})"
        if 1.9 <= idle_ms / wanted <= 2.1:
            return Finding("rtt-doubling", idle_text, wanted_text, "Twice what was asked for: the whole delay was set in both directions.")  # fmt: skip
        return Finding("round-trip-time", idle_text, wanted_text, "The path's delay is not the one that was set.")  # fmt: skip
    return None


@check(
    FindingKind(
        "wrong-socket",
        "The ports in the kept lines of ss, compared with the port that iperf3 names.",
    ),
    needs=("picked_port", "data_port", "picked_connections"),
)
def socket(run: RunUnderTest) -> Finding | Right | None:
    picked, ours = run.measured("picked_port"), run.measured("data_port")
    connections = run.measured("picked_connections") or 0
    if picked is None or ours is None or (picked == ours and connections == 1):
        return None
    return Finding(
        "wrong-socket",
        f"the kept lines are of {connections:.0f} connection"
        + ("s" if connections != 1 else "")
        + f", the last from port {picked:.0f}",
        f"one connection, from port {ours:.0f}, by iperf3's own account of its data",
        "iperf3 has a second connection, for control. Its numbers tell you nothing about your flow, and "
        "which of the two comes last is luck.",
        symptom="the lines kept from ss don't fit what iperf3 reports",
    )
