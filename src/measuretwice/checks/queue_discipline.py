"""The checks of runs that are about a queue and its discipline, and about how long packets waited in it."""

from __future__ import annotations

import math
from dataclasses import replace

from measuretwice.checks.registry import (
    Finding,
    FindingKind,
    Right,
    RunUnderTest,
    check,
)

# What limits a rate, so that packets wait; the classful ones have it in their classes.
SHAPERS = frozenset({"tbf", "htb", "hfsc", "cbq", "netem"})
CLASSFUL = frozenset({"htb", "hfsc", "cbq"})
FIFOS = frozenset({"pfifo_fast", "pfifo", "bfifo"})
# How much longer than the sampled queue's mean wait a ping's may be: both directions' queues, and the flows' beginning.
ELSEWHERE_RATIO = 2.0
ELSEWHERE_MS = 20.0
# Of a load that comes and goes pings may meet little; of one that has ended they meet none.
LEAST_BESIDE = 0.05
# Of fewer packets of a stream, or transfers, it is chance whether any began while all samples were taken.
FEW_TIMES = 5
# How much longer a stream's packets waited than pings did, where the two had different queues; what a queue of a few packets makes of it.
APART_RATIO = 3.0
APART_MS = 20.0
APART_LOST = 0.1
# From what share on late packets are heard and seen; how far above the mean the slowest 1 % are, where most packets hardly wait.
HEARD_LATE = 0.01
TAIL_RATIO = 4.0
TAIL_MS = 50.0
# tc's clock: 64 ns a tick, in every kernel since 2009 (/proc/net/psched).
TICKS_PER_US = 15.625
# What tc takes for the link where red isn't told its bandwidth: tc-red(8).
RED_DEFAULT_MBIT = 10


@check(
    FindingKind(
        "default-qdisc",
        "Which qdisc tc prints below the one that sets the link's rate, compared with the intended one.",
        explains=("red-bandwidth", "red-limits"),
    ),
    needs=("queue_kind",),
)
def discipline(run: RunUnderTest) -> Finding | Right | None:
    wanted = run.params.get("discipline")
    kind = run.measured_text("queue_kind") or _kind_by_tc(run, str(wanted))
    if wanted is None or kind is None:
        return None
    if kind == wanted:
        return Right("the queue's discipline") if run.brought else None
    return Finding(
        "default-qdisc",
        f"a queue of the kind {kind} (tc)",
        str(wanted),
        "The queue compared isn't the one that its name promises. If nobody sets a discipline, an "
        "interface gets the system's: the kernel's own is pfifo_fast, systemd's fq_codel. Set "
        "both.",
        symptom="one word that tc prints of the router's queue isn't the trial's",
    )


def _kind_by_tc(run: RunUnderTest, wanted: str) -> str | None:
    """Return which discipline stands below the link's rate, by snapshots that were brought: the wanted one, else the one
    that most bytes passed; of a tbf with none inside its own kind, unless a FIFO is wanted, which it has."""
    printed = run.host_state.qdiscs if run.host_state and run.brought else ()
    shapers = [
        (node, qdisc)
        for node, qdisc in printed
        if qdisc.kind in SHAPERS and (qdisc.rate_bps or qdisc.kind in CLASSFUL)
    ]
    inside = [
        qdisc
        for node, qdisc in printed
        for other_node, shaper in shapers
        if (node, qdisc.dev) == (other_node, shaper.dev)
        and qdisc.kind not in SHAPERS
        and (qdisc.parent or "").partition(":")[0] == shaper.handle.partition(":")[0]
    ]
    if any(qdisc.kind == wanted for qdisc in inside or [qdisc for _, qdisc in printed]):
        return wanted
    if inside:
        return max(inside, key=lambda qdisc: qdisc.sent_bytes or 0).kind
    return "tbf" if shapers and wanted not in FIFOS and shapers[0][1].kind == "tbf" else None


@check(
    FindingKind(
        "ecn-refused",
        "Whether packets that ECN may mark came to any node, where it is switched on.",
        explains=("wrong-algorithm",),
        hints=(
            "Each kernel counts by ECN's two bits which packets came to it. Look for IpExtInECT0Pkts, IpExtInCEPkts and IpExtInNoECTPkts in nstat.after.json.",
            "Compare net.ipv4.tcp_ecn of both ends of the flows: the one that opens a connection asks for ECN with 1, and the other grants it with 1 or 2.",
            "A connection has ECN only if one end asked for it and the other agreed as it began. One of the two didn't, so queues drop its packets and mark none.",
        ),
    ),
    needs=(),
)
def ecn_refused(run: RunUnderTest) -> Finding | None:
    if run.params.get("ecn") != "on" or run.host_state is None or not run.data_sockets():
        return None
    nodes = run.host_state.nodes.values()
    counts = [node.ecn_packets for node in nodes if node.ecn_packets is not None]
    if len(counts) < 2 or any(counts):
        return None
    return Finding(
        "ecn-refused",
        f"no packet came to any of {len(counts)} nodes that ECN may mark (nstat: IpExtInECT0Pkts)",
        "flows whose ends have agreed on ECN",
        "ECN holds for a connection only if both of its ends agree as it begins. Without it these flows' packets are dropped "
        "where a queue would have marked them.",
        symptom="a counter that grows in such a run, and shows whether a setting has come into force, is 0",
    )


@check(
    FindingKind(
        "no-bottleneck",
        "Whether the queue that is looked at ever had packets in it.",
        explains=("wrong-metric", "queue-elsewhere"),
    ),
    needs=("utilisation", "queue_mean_packets", "queue_drops", "queue_marks"),
)
def no_bottleneck(run: RunUnderTest) -> Finding | None:
    """A discipline can only rule a queue that is there."""
    used, packets = run.measured("utilisation"), run.measured("queue_mean_packets")
    if "discipline" not in run.params or used is None or packets is None:
        return None
    if used > 0.8 or packets > 2 or run.measured("queue_drops"):
        return None
    if run.measured("queue_marks") or run.has_marks():
        return None
    return Finding(
        "no-bottleneck",
        f"{packets:.1f} packets in the queue on average, none dropped or marked, "
        f"{100 * used:.0f} % of its link in use",
        "a link that is full, so that packets wait before it",
        "The queue is somewhere else, and this discipline had nothing to decide. Two disciplines in such "
        "runs are one experiment done twice.",
        symptom="packets waited, and the discipline that you study dropped and marked none",
    )


@check(
    FindingKind(
        "idle-probe",
        "When pings under load were answered, compared with when the flows ran.",
        explains=("no-bottleneck", "ping-elsewhere", "probes", "queue-elsewhere"),
        hints=(
            "ping -D puts a time before each answer. When did the first one come, and when the last?",
            "Compare these times with those of the first and the last sample of ss, or with iperf3's start and its seconds.",
            "The flows hadn't begun, or had ended, while these pings were sent, so they met an idle path. Send them while the flows run.",
        ),
    ),
    needs=("busy_ping_beside_ratio",),
)
def idle_probe(run: RunUnderTest) -> Finding | None:
    """Return a finding where pings under load never met the load."""
    beside = run.measured("busy_ping_beside_ratio")
    if beside is None or beside >= LEAST_BESIDE:
        return None
    return Finding(
        "idle-probe",
        f"{beside:.0%} of the pings' answers came while all flows were there".replace("%", " %"),
        "all of them, or nearly",
        "These pings met an idle path, so they show nothing of the load.",
        symptom="what pings say and what the flows' own round trips say don't belong together",
    )


@check(FindingKind("idle-probe"), needs=())
def idle_stream(run: RunUnderTest) -> Finding | None:
    """Return a finding where a stream or short transfers never met the flows."""
    state = run.host_state
    begin_s, end_s = run.flows_time()
    if state is None or run.brought or not begin_s:
        return None
    streams = [(stream.node, stream.sent_s, LEAST_BESIDE) for stream in state.probes.streams]
    # Few transfers begin while each takes long, so that one is enough.
    others = [
        (node, [row[0] for row in rows], 0.0) for node, rows in state.probes.transfers.items()
    ]
    for node, times_s, least in (*streams, *others):
        what = "short transfers" if least == 0 else "packets of the stream"
        beside = sum(begin_s <= time_s <= end_s for time_s in times_s)
        if len(times_s) < FEW_TIMES or beside >= max(1, least * len(times_s)):
            continue
        return Finding(
            "idle-probe",
            f"{100 * beside / len(times_s):.0f} % of the {what} to {node} were sent while flows were there",
            "all of them, or nearly",
            "They met an idle path, so they show nothing of the load.",
            symptom="what two files say of the same path don't belong together",
        )
    return None


@check(
    FindingKind(
        "queue-elsewhere",
        "How long pings waited while the flows ran, compared with how long the sampled queue lets a packet wait.",
        hints=(
            "How long was the sampled queue on average, and how long did pings take while the flows ran?",
            "Compare the rate at which that queue sends with the rate of each link behind it, and what it may send at once.",
            "Packets wait in another queue on the path, where nobody manages them. Send a little more slowly than the narrowest link does, and without large bursts, so that they wait in your own queue.",
        ),
    ),
    needs=("busy_ping_mean_ms", "path_rtt_ms", "queue_delay_mean_ms"),
)
def queue_elsewhere(run: RunUnderTest) -> Finding | None:
    """A ping waits in the queues that it passes: hardly longer than in the sampled one, unless there is another."""
    ping_ms, path_ms = run.measured("busy_ping_mean_ms"), run.measured("path_rtt_ms")
    queue_ms = run.measured("queue_delay_mean_ms")
    if ping_ms is None or path_ms is None or queue_ms is None:
        return None
    waited_ms = ping_ms - path_ms
    # The queue of the other direction may be as long as this one.
    if waited_ms <= ELSEWHERE_RATIO * queue_ms + ELSEWHERE_MS:
        return None
    return Finding(
        "queue-elsewhere",
        f"pings waited {waited_ms:.0f} ms (ping), of which the sampled queue explains {queue_ms:.1f} ms (tc)",
        "a wait in the queue whose discipline is studied",
        "Another queue on the path is the longer one. Whatever manages this one has no say in that.",
        symptom=f"pings took {waited_ms:.0f} ms longer while the flows ran, and the router's queue was good for {queue_ms:.0f} ms",
    )


@check(
    FindingKind("red-limits", "red's limit, against its max and a burst together."),
    needs=("red_limit_bytes", "red_max_bytes"),
)
def red_limits(run: RunUnderTest) -> Finding | None:
    limit, most = run.measured("red_limit_bytes"), run.measured("red_max_bytes")
    burst, packet_bytes = run.param("red_burst_packets"), run.param("red_avpkt_bytes")
    if limit is None or most is None or not burst or not packet_bytes:
        return None
    needed = most + burst * packet_bytes
    # tc prints sizes that are whole KiB as such; what is off by less is no other limit.
    if limit >= needed - 1:
        return None
    return Finding(
        "red-limits",
        f"limit {limit:.0f} B",
        f"at least {needed:.0f} B: max {most:.0f} and a burst of {burst:.0f} packets of "
        f"{packet_bytes:.0f} B",
        "The average may pass max only after the queue itself is far above it. Where the limit comes "
        "first, a burst is cut off at the tail, which is what red is there to prevent. A lower max makes room "
        "only together with a smaller burst.",
        symptom="with these settings red can't do what it is there for",
    )


def cell_log(rate_mbit: float, average_packet_bytes: float, ewma_log: float) -> int:
    """Return the Scell_log that tc gives red for a link of this rate: the unit, as a power of two
    ticks, in which it counts idle time (tc_red_eval_idle_damping in iproute2's tc_red.c)."""
    ticks = average_packet_bytes * 8 / rate_mbit * TICKS_PER_US
    longest = 31 * ticks / -math.log(1 - 2**-ewma_log)
    return max(0, math.floor(math.log2(longest / 512)) + 1)


@check(
    FindingKind(
        "red-bandwidth",
        "The unit of idle time that tc gave red, compared with the one for the link's rate.",
        hints=(
            "Compare red's line in tc.txt with the command. Which of its numbers did you never set?",
            "Scell_log grows by one if the link is taken to be half as fast. For which rate is this one?",
            "tc assumes 10 Mbit/s where red isn't told its bandwidth, so give it.",
        ),
    ),
    needs=("red_cell_log", "red_ewma_log"),
)
def red_bandwidth(run: RunUnderTest) -> Finding | None:
    units = _idle_units(run)
    if units is None or not _is_asked_while_idle(run):
        return None
    log, links_log, by_default = units
    like = f", as for a link of {RED_DEFAULT_MBIT} Mbit/s" if log == by_default else ""
    return Finding(
        "red-bandwidth",
        f"Scell_log {log:.0f}{like}",
        f"{links_log}, for {run.params['rate_mbit']} Mbit/s",
        "red was not told its link's rate, and tc takes 10 Mbit/s then. Once the queue has been "
        "empty, red counts how many packets could have gone meanwhile: its average falls too slowly.",
        symptom=f"Scell_log {log:.0f}, where this link needs {links_log}",
    )


def idle_notes(run: RunUnderTest) -> list[str]:
    """Return a line where red's unit of idle time is another link's, and nothing comes of it."""
    units = _idle_units(replace(run, needs=frozenset(("red_cell_log", "red_ewma_log"))))
    if units is None or _is_asked_while_idle(run):
        return []
    log, links_log, _ = units
    return [
        f"Scell_log, the unit in which red counts idle time, is {log:.0f}, and this link needs {links_log}; below tbf red never "
        "learns that it is idle, so nothing comes of it"
    ]


def _idle_units(run: RunUnderTest) -> tuple[float, int, int] | None:
    """Return red's Scell_log, that of the link's rate, and that of tc's default; None where the first two are one, or one
    isn't known."""
    log, ewma = run.measured("red_cell_log"), run.measured("red_ewma_log")
    rate_mbit, packet_bytes = run.param("rate_mbit"), run.param("red_avpkt_bytes")
    if log is None or ewma is None or not rate_mbit or not packet_bytes:
        return None
    links_log = cell_log(rate_mbit, packet_bytes, ewma)
    return (
        None
        if log == links_log
        else (log, links_log, cell_log(RED_DEFAULT_MBIT, packet_bytes, ewma))
    )


def _is_asked_while_idle(run: RunUnderTest) -> bool:
    """Return whether red is asked for packets when it has none. tbf, if it stands above, looks first and doesn't ask
    (tbf_dequeue in Linux's sch_tbf.c), as it does in the kit's own runs; of other files that isn't known."""
    printed = run.host_state.qdiscs if run.host_state else ()
    shapers = {
        (node, qdisc.dev, qdisc.handle.partition(":")[0])
        for node, qdisc in printed
        if qdisc.kind == "tbf"
    }
    reds = [
        (node, qdisc.dev, (qdisc.parent or "").partition(":")[0])
        for node, qdisc in printed
        if qdisc.kind == "red"
    ]
    return any(red not in shapers for red in reds) if reds else run.brought


@check(
    FindingKind(
        "wrong-metric",
        "The share of the link in use, where throughput is to tell disciplines apart.",
    ),
    needs=("utilisation", "queue_delay_mean_ms"),
)
def wrong_metric(run: RunUnderTest) -> Finding | None:
    used = run.measured("utilisation")
    if run.params.get("judged_by") != "throughput" or used is None or used < 0.9:
        return None
    delay_ms = run.measured("queue_delay_mean_ms")
    also = f", and {delay_ms:.3g} ms of queue before it" if delay_ms is not None else ""
    return Finding(
        "wrong-metric",
        f"{100 * used:.1f} % of the link in use{also}",
        "a measure in which disciplines can differ: delay under load, drops, marks",
        "A full link is full under any discipline: its senders' sum is the link's rate, and their "
        "mean a half of it. A discipline changes how long packets wait.",
        symptom="what was compared leaves the question open",
    )


@check(
    FindingKind(
        "probe-apart",
        "How long pings waited beside the flows, compared with a stream's own packets, where pings are to speak for it.",
        hints=(
            "Which files say how long packets took while the flows ran? Read each receiver's own, packet by packet.",
            "Compare ping's median, less the idle path's round trip, with how much longer than its fastest packet half of the stream's took; and compare their losses.",
            "The pings didn't wait where the stream's packets did. Under fair queueing each flow has a queue of its own: a ping's stays empty, and a stream that sends more than its share fills its own. Judge by the stream's packets.",
        ),
    ),
    needs=(
        "busy_ping_p50_ms",
        "busy_ping_loss_ratio",
        "path_rtt_ms",
        "*_delay_p50_ms",
        "*_lost_ratio",
    ),
)
def probe_apart(run: RunUnderTest) -> Finding | None:
    """A probe speaks for those that wait in the same queue as it does."""
    ping_ms, path_ms = run.measured("busy_ping_p50_ms"), run.measured("path_rtt_ms")
    if run.params.get("judged_by") != "ping" or ping_ms is None or path_ms is None:
        return None
    waited_ms, lost = max(ping_ms - path_ms, 0.0), run.measured("busy_ping_loss_ratio") or 0.0
    losses = run.measured_group("*_lost_ratio")
    for node, stream_ms in run.measured_group("*_delay_p50_ms").items():
        stream_lost = losses.get(node) or 0.0
        apart = stream_ms is not None and stream_ms > APART_RATIO * waited_ms + APART_MS
        if not apart and stream_lost <= lost + APART_LOST:
            continue
        took = "" if stream_ms is None else f"half waited {stream_ms:.0f} ms or longer, and "
        return Finding(
            "probe-apart",
            f"of the stream's packets to {node.replace('_', '-')}, {took}{100 * stream_lost:.3g} % were lost; half of the pings waited "
            f"{waited_ms:.3g} ms at most, and {100 * lost:.3g} % were lost",
            "a probe that waits as the stream does",
            "The pings didn't wait in the queue in which the stream's packets did, so they say nothing of it. What an "
            "application gets is seen in its own packets.",
            symptom="ping and another file of this run say different things of the same path",
        )
    return None


@check(
    FindingKind(
        "mean-hides",
        "The slowest 1 % of packets, and the share that is late, compared with the mean, where the mean is to speak for all.",
        hints=(
            "Sort the delays of this run's packets. How long did the middle one take, and how long the slowest 1 %?",
            "Compare mean, median and the 99th percentile. How many packets took about as long as the mean?",
            "Most packets met a short queue and some a long one, and the mean is near to neither. Report the share that came too late, or a percentile.",
        ),
    ),
    needs=(
        "busy_ping_mean_ms", "busy_ping_p99_ms", "path_rtt_ms", "*_delay_mean_ms", "*_delay_p99_ms", "*_late_ratio",
    ),
)  # fmt: skip
def mean_hides(run: RunUnderTest) -> Finding | None:
    """Whoever uses a network notices the packets that wait longest."""
    if run.params.get("judged_by") != "mean":
        return None
    means, slowest = run.measured_group("*_delay_mean_ms"), run.measured_group("*_delay_p99_ms")
    late = run.measured_group("*_late_ratio")
    # Of those with a deadline the latest first; pings have none.
    waits = [
        (f"the stream's packets to {node.replace('_', '-')}", means[node], slowest.get(node), late.get(node))
        for node in sorted(means, key=lambda node: -(late.get(node) or 0))
    ]  # fmt: skip
    path_ms, mean_ping_ms = run.measured("path_rtt_ms"), run.measured("busy_ping_mean_ms")
    slow_ping_ms = run.measured("busy_ping_p99_ms")
    if path_ms is not None and mean_ping_ms is not None and slow_ping_ms is not None:
        waits.append(("the pings", mean_ping_ms - path_ms, slow_ping_ms - path_ms, None))
    for whose, mean_ms, slow_ms, late_ratio in waits:
        if mean_ms is None or slow_ms is None or slow_ms < max(TAIL_RATIO * mean_ms, TAIL_MS):
            continue
        if late_ratio is not None and late_ratio < HEARD_LATE:
            continue
        also = (
            "" if late_ratio is None else f", and {100 * late_ratio:.3g} % came too late or never"
        )
        return Finding(
            "mean-hides",
            f"{whose} waited {mean_ms:.3g} ms on average, but the slowest 1 % of them {slow_ms:.3g} ms and longer{also}",
            "a measure of the tail: the share that is late, or a percentile",
            "Most packets hardly waited, some waited long, and the mean is near to neither. Those that waited longest are the ones that are noticed.",
            symptom="hardly any packet of this run took as long as the figure that stands for all of them",
        )
    return None


@check(
    FindingKind("summary-row", "Whether one of the rows that were averaged spans the others."),
    needs=("rate_rows", "rate_rows_spanning"),
)
def summary_row(run: RunUnderTest) -> Finding | None:
    rows, spanning = run.measured("rate_rows"), run.measured("rate_rows_spanning")
    if not rows or not spanning:
        return None
    return Finding(
        "summary-row",
        f"{rows:.0f} rows averaged, {spanning:.0f} of them over the whole test",
        f"{rows - spanning:.0f}: one for each second",
        "The last row is the test's total, no second of its own. In the mean it counts everything "
        "twice, and it makes the spread look smaller and the sample larger.",
        symptom="the senders' figure from their rates doesn't follow from the test's seconds",
    )


@check(
    FindingKind(
        "copied-cell",
        "The addresses in iperf3's own files, and whether two trials agree in every value.",
    ),
    needs=("copied_flows", "*_received_flows"),
)
def copied_cell(run: RunUnderTest) -> Finding | None:
    """Return a finding where the addresses in the files are another receiver's, or one file is another's copy."""
    if copied := run.measured("copied_flows"):
        return Finding(
            "copied-cell",
            f"{copied:.0f} of the flows are in two files",
            "each flow in one file",
            "The same measurement under two names: one cell of the table holds another's numbers.",
        )
    wanted = run.params.get("receiver")
    receivers = [node for node, count in run.measured_group("*_received_flows").items() if count]
    if wanted is None or not receivers or receivers == [str(wanted).replace("-", "_")]:
        return None
    who = ", ".join(node.replace("_", "-") for node in receivers)
    return Finding(
        "copied-cell",
        f"flows to {who}, by the addresses in iperf3's own files",
        f"flows to {wanted}",
        "This cell of the table holds another cell's measurement, so that pair is there twice, and this "
        "one not at all.",
        symptom="one thing that iperf3 wrote doesn't fit the trial",
    )
