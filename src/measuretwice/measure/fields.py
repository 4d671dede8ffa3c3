"""What every field of a run's files means. The reference page prints these; tests hold them against
the code that writes the files and against recorded runs, so that neither can go its own way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# result.json, outermost. The parts that are tables of their own stand below.
RESULT = {
    "lab": "the lab's name",
    "trial": "the trial's number",
    "title": "what the trial sets, in words",
    "pitfall": "the mistake that was staged; null for the lab's own settings",
    "stage": "`broken` or `fixed`; null without a pitfall",
    "seed": "where the virtual kernel's randomness started from",
    "params": "every parameter of the lab with the value that this run had",
    "measured": "what was measured: the next table but one",
    "flows": "in a lab with many flows: each flow's own values. Not there in other labs",
    "model": "what the model says of this run's parameters; null in a lab without a model",
    "ratio": "goodput over the model's bandwidth; null where the model has no finite value",
    "comparable": "whether the model makes a claim here at all, and enough losses are expected",
    "not_comparable_because": "if not: why, in words",
    "expectations": "each range that `lab.toml` expects, and whether the value lies in it",
    "findings": "what the checker says of the run",
    "derived_by": "digest of the code that made this file: other code derives it anew. Not kept in recorded runs",
}
MODEL = {
    "name": "the model's name",
    "constant": "the constant C that it was computed with",
    "bandwidth_bps": "the goodput that it predicts, from the parameters that were meant",
    "expected_losses": "how many losses it expects in this run's time",
}
EXPECTATION = {
    "label": "what is expected, in words",
    "measured": "which value: a name from `measured`, or `ratio`",
    "value": "that value",
    "low": "the least that is expected; null for no limit",
    "high": "the most",
    "confidence": "for counts: the share of honest runs that lie in the range",
    "ok": "true, false, or null where nothing can be said",
}
FINDING = {
    "id": "its name, as on the [page of checks](checks.md)",
    "severity": "`error`, `warning` or `note`",
    "measured": "what was measured, in words",
    "expected": "what was expected, in words",
    "why": "why that matters",
    "hint": "with `--hint`: one step of the ladder",
    "page": "where this site explains it",
}
# `measured`: where a value comes from, and what it is.
MEASURED = {
    "ping_sent_packets": ("ping", "echo requests sent before the test"),
    "ping_loss_ratio": ("ping", "the share of them without an answer"),
    "ping_rtt_min_ms": ("ping", "the smallest round-trip time"),
    "ping_rtt_mean_ms": ("ping", "the mean round-trip time"),
    "goodput_bps": ("iperf3", "what the receiving program got, over the test's time"),
    "sender_rate_bps": ("iperf3", "what the sending program handed over; a little more"),
    "bytes_received": ("iperf3", "what the receiving program got in all"),
    "duration_s": ("iperf3", "how long the sender really sent"),
    "retransmits": ("iperf3", "segments sent again, as the sender's kernel counts them"),
    "flows": ("iperf3", "data connections"),
    "rtt_min_ms": ("ss", "the smallest `minrtt` of the data connection"),
    "rtt_mean_ms": ("ss", "the mean over all samples of its smoothed `rtt`"),
    "mss_bytes": ("ss", "its `mss` in the last sample"),
    "data_segs_out": ("ss", "segments with data that it sent, those sent again included"),
    "bytes_acked": ("ss", "bytes acknowledged by the last sample"),
    "cwnd_mean_segments": ("ss", "the mean over all samples of `cwnd`"),
    "cwnd_max_segments": ("ss", "the largest `cwnd` in any sample"),
    "data_port": ("ss", "the sender's port of the data connection; null with several"),
    "retrans_total": ("ss", "the second number of `retrans:0/N` in the last sample"),
    "ss_samples": ("ss", "samples taken"),
    "picked_port": ("ss", "the port in the last line that was kept for reading"),
    "picked_connections": ("ss", "how many connections the lines are of that were kept"),
    "captured_packets": ("tcpdump", "data packets that tcpdump printed on the router"),
    "largest_packet_bytes": ("tcpdump", "the largest of them: the IP packet, without Ethernet"),
    "qdisc_sent_packets": ("tc", "packets that the bottleneck's qdisc passed on"),
    "qdisc_sent_bytes": ("tc", "bytes that it passed on, Ethernet headers included"),
    "qdisc_drops": ("tc", "packets that it dropped: by dice, or for lack of room"),
    "qdisc_offered_packets": ("tc", "sent and dropped together: what it was given"),
    "loss_ratio": ("tc", "dropped over offered"),
    "qdisc_limit_packets": ("tc", "its limit"),
    "other_qdisc_drops": ("tc", "what every other interface's root qdisc dropped, on all nodes"),
    "timeouts": ("nstat", "the sender's retransmission timeouts (TcpExtTCPTimeouts)"),
    "spurious_retransmits": ("nstat", "needless ones, by the receiver's word (TcpExtTCPDSACKRecv)"),
    "receiver_ofo_drops": ("nstat", "segments the receiver had no room for (TcpExtTCPOFODrop)"),
    "receiver_prune_calls": ("nstat", "times it had to tidy its queue (TcpExtPruneCalled)"),
    "receiver_acks_out": ("nstat", "segments that the receiver sent: nearly all are ACKs"),
    "softnet_drops": ("/proc/net/softnet_stat", "packets lost between driver and IP, all nodes"),
}
# `measured` of many flows, beside some of the names above: over the time that all flows share.
TOGETHER = {
    "flows": ("ss", "data connections"),
    "duration_s": ("ss", "how long all flows were there together"),
    "goodput_bps": ("ss", "the sum of the flows' goodputs"),
    "jains_index": ("ss", "Jain's fairness index of them: 1 where all have the same"),
    "share_max": ("ss", "the largest flow's share of the sum, 0 to 1"),
    "retransmits": ("ss", "segments sent again, of all flows"),
    "rtt_mean_ms": ("ss", "the mean over the flows of their mean round-trip time"),
    "rtt_min_ms": ("ss", "the smallest round-trip time of any flow"),
    "utilisation": ("tc", "what passed the queue over the link's rate, headers counted; 0 to 1"),
    "queue_mean_bytes": ("tc", "the mean length of the queue"),
    "queue_max_bytes": ("tc", "the longest queue in any sample"),
    "queue_mean_packets": ("tc", "its mean length in packets"),
    "queue_delay_mean_ms": ("tc", "how long the mean queue takes to drain at the link's rate"),
    "queue_drops": ("tc", "packets that the queue dropped"),
    "queue_marks": ("tc", "packets that it marked instead (ECN)"),
    "queue_limit_bytes": ("tc", "the queue's room; null where it counts packets"),
    "mss_bytes": ("ss", "the flows' segment size; null where they differ"),
    "convergence_s": (
        "ss",
        "from the last flow's start until, over ten seconds, each has its fair share to within a fifth; null if never",
    ),
    "buffer_bdp_ratio_min": (
        "tc",
        "the queue's room over the bandwidth-delay product of the longest path",
    ),
    "buffer_bdp_ratio_max": ("tc", "the same of the shortest path"),
    "window_rows": ("your own", "rows in the traces of windows taken from iperf3's text"),
    "window_rows_backwards": ("your own", "how often time goes back in them"),
    "window_rows_ratio": ("your own", "their windows over ss's, the median of the larger half"),
    "length_rows": ("your own", "rows of queue lengths taken from tc's text"),
    "length_rows_unreadable": ("your own", "lines in that file that are no two numbers"),
    "length_rows_mean_packets": ("your own", "their mean"),
    "length_rows_true_packets": ("tc", "the mean by tc's JSON at the same times"),
    "path_rtt_ms": ("ping", "the smallest round-trip time of any flow's idle path"),
    "busy_ping_mean_ms": ("ping", "the mean over the flows of ping's mean while they ran"),
    "busy_ping_max_ms": ("ping", "the longest of these pings"),
    "busy_ping_loss_ratio": ("ping", "the share of them that was lost, of the worst flow"),
    "steady_goodput_bps": (
        "ss",
        "of one sender, from the time that its lab names on: bytes acknowledged, as a rate",
    ),
    "steady_rtt_ms": ("ss", "the mean of its smoothed round-trip time then"),
    "steady_rtt_p95_ms": ("ss", "what 95 % of these don't exceed"),
    "steady_cwnd_segments": ("ss", "its mean window then"),
    "steady_retransmits": ("ss", "segments that it sent again then"),
    "rising_ratio": ("ss", "its rate in the last fifth of that time over that in the first"),
    "rising_steps": ("ss", "how many of the four steps between these fifths go up"),
    "cwnd_over_rate_ms": ("ss", "its mean window over its rate: a time"),
    "tcp_min_rtt_ms": ("ss", "the smallest round-trip time that its TCP saw"),
    "sender_path_rtt_ms": ("ping", "the round-trip time of its idle path"),
    "sender_retransmits": ("ss", "segments that it sent again in all"),
    "lowest_tenth_bps": ("ss", "its least rate in a tenth of a second, after the first second"),
    "table_rows": ("your own", "rows of the table that was made of iperf3's report"),
    "table_interval_s": ("your own", "the time that a row is a mean of"),
    "table_lowest_bps": ("your own", "the least rate in them, after the first second"),
    "table_rows_foreign": ("your own", "rows with a window that ss never had at that time"),
    "rate_rows": ("your own", "rows that an average of rates was taken from"),
    "rate_rows_spanning": ("your own", "how many of these span others"),
    "red_limit_bytes": ("tc", "red's limit, by its own word"),
    "red_max_bytes": ("tc", "red's max"),
    "red_ewma_log": ("tc", "how slowly red's average follows: a power of two"),
    "red_cell_log": ("tc", "red's unit of idle time, Scell_log: a power of two"),
}
# Each entry of `flows`.
FLOW = {
    "node": "the node that started it",
    "file": "its iperf3 file",
    "local_port": "its port at the sender",
    "congestion_control": "its algorithm",
    "start_s": "Unix time of its first sample",
    "end_s": "Unix time of its last sample",
    "goodput_bps": "bytes acknowledged while all flows were there, as a rate",
    "share": "its share of the sum, 0 to 1",
    "iperf3_goodput_bps": "the rate over its own whole life, by iperf3",
    "retransmits": "segments sent again",
    "rtt_min_ms": "the smallest round-trip time",
    "rtt_mean_ms": "the mean of its smoothed round-trip time",
    "cwnd_mean_segments": "the mean window",
    "cwnd_max_segments": "the largest window",
    "mss_bytes": "its segment size",
    "path_rtt_ms": "the path's round-trip time by ping, before it began",
    "decreases": "how often ssthresh changed after the first slow start",
    "kept_ratio": "the median over these of ssthresh over the window before",
    "decrease_window_segments": "the median of that window",
    "to_address": "the receiver's address, by iperf3",
    "busy_ping_mean_ms": "ping's mean beside it",
    "busy_ping_max_ms": "the longest of these pings",
    "busy_ping_loss_ratio": "the share of them that was lost",
}
# `measured` of a crowd of flows: over the time that all share and in which slow start is over.
CROWD = {
    "flows": ("ss", "data connections"),
    "duration_s": ("ss", "how long all flows were there together, after the warm-up"),
    "goodput_bps": ("ss", "the sum of the flows' goodputs in that time"),
    "own_goodput_bps": ("iperf3", "the sum of their rates, each over its own whole life"),
    "jains_index": ("ss", "Jain's fairness index of their goodputs"),
    "rtt_mean_ms": ("ss", "the mean over the flows of their mean round-trip time"),
    "rtt_min_ms": ("ss", "the smallest round-trip time of any flow"),
    "path_rtt_ms": ("ping", "the smallest round-trip time of any idle path"),
    "mss_bytes": ("ss", "the flows' segment size; null where they differ"),
    "segments": ("ss", "segments with data that they sent, those sent again included"),
    "retransmits": ("ss", "segments sent again"),
    "spurious_retransmits": ("nstat", "needless ones in the whole run (TcpExtTCPDSACKRecv)"),
    "halvings": ("events", "how often a connection took a smaller window, by the kernel's word"),
    "retransmits_per_halving": ("ss", "the one over the other"),
    "drops_per_halving": ("tc", "the router's drops over the halvings"),
    "utilisation": ("tc", "what passed the queue over the link's rate, headers counted; 0 to 1"),
    "queue_mean_bytes": ("tc", "the mean length of the queue"),
    "queue_mean_packets": ("tc", "its mean length in packets"),
    "queue_packet_bytes": ("tc", "the largest that the mean packet in the queue was in any sample"),
    "queue_delay_mean_ms": ("tc", "how long the mean queue takes to drain at the link's rate"),
    "queue_drops": ("tc", "packets that the queue dropped"),
    "loss_ratio": ("tc", "these over the segments sent"),
    "rivals_found": ("ss", "flows with the rivals' algorithm"),
    "rival_share": ("ss", "their part of the sum, 0 to 1"),
    "rival_fair_share": ("ss", "their part of the flows, 0 to 1"),
    "rival_multiple": ("ss", "the one over the other: 1 is fair"),
    "c_by_retransmits": ("ss", "C of the Mathis model, by regression over the flows, from their retransmissions"),
    "c_by_halvings": ("events", "the same from their halvings"),
    "c_by_drops": ("tc", "the same from the router's drops, shared by all flows"),
    "own_counted_halvings": ("your own", "halvings that your own counter saw"),
    "own_groups_error_ratio": (
        "your own", "how far a row of groups.txt is from what its algorithm's flows add up to"
    ),
}  # fmt: skip
# Each entry of `flows` of a crowd.
CROWD_FLOW = {
    "node": "the node that started it",
    "local_port": "its port at the sender",
    "congestion_control": "its algorithm, by ss",
    "goodput_bps": "bytes acknowledged in the time that all share, as a rate",
    "own_goodput_bps": "the rate over its own whole life, by iperf3",
    "rtt_mean_ms": "the mean of its smoothed round-trip time",
    "segments": "segments with data that it sent",
    "retransmits": "how many of them were sent again",
    "halvings": "how often its window was made smaller; null where events are missing",
}
PLAN = {
    "lab": "the lab's name",
    "trial": "the trial's number",
    "pitfall": "the mistake to stage, or null",
    "stage": "`broken` or `fixed`, or null",
    "seed": "what you gave as `--seed`",
    "params": "every parameter with its value: the defaults, then the trial's, the stage's and yours",
    "where": "where it runs",
    "kernel": "the kernel's version, and a digest of its source, configuration and patches",
    "scripts": "a digest of each shell script that takes part",
    "tools": "each tool's word for its version",
    "recipe": "the number of this way of measuring",
    "kernel_seed": "the virtual kernel's seed, from lab, trial and seed: both stages of a pitfall have the same",
    "digest": "eight digits that stand for all of the above; the folder's name ends in them",
}
PROVENANCE = {
    "measuretwice": "the kit's version",
    "git_commit": "the checkout's commit",
    "started": "when the run began, in real time",
    "ended": "when it ended",
    "machine": "processor and system",
    "kernel": "all that is known of the virtual kernel's making",
    "virtual_start_ns": "what the virtual clock says at the start of every run",
    "command": "the command that does this run again",
    "plan_digest": "the plan's digest",
}
RECORDED_SET = {
    "set": "the set's name",
    "title": "what it is",
    "step": "whether it is one of the steps from the first try to the result",
    "kernel": "as in `plan.json`, once for all its runs",
    "tools": "the same",
    "scripts": "the same",
    "recorded": "the day",
    "machine": "processor and system",
    "runs": "a line for each run: its `result.json` in short, and `raw_sha256`",
}

# How a name ends says its unit.
UNITS = {
    "_bps": "bit/s",
    "_bytes": "B",
    "bytes_received": "B",
    "bytes_acked": "B",
    "_ns": "ns",
    "_ms": "ms",
    "_s": "s",
    "_packets": "packets",
    "_segments": "segments",
    "_ratio": "0 to 1",
}


@dataclass(frozen=True)
class Field:
    """One field: its name, its unit (nothing for counts and words), its source, its meaning."""

    name: str
    unit: str
    source: str
    meaning: str


def unit_of(name: str) -> str:
    """The unit that a field's name ends in; empty for counts, names and words."""
    return next((unit for end, unit in UNITS.items() if name.endswith(end)), "")


def _table(meanings: Mapping[str, Any]) -> list[Field]:
    return [
        Field(name, unit_of(name), *(said if isinstance(said, tuple) else ("", said)))
        for name, said in meanings.items()
    ]


class FieldWords:
    """In pages: `fields.measured` and its kin, each a list of name, unit, source and meaning."""

    result = _table(RESULT)
    model = _table(MODEL)
    expectation = _table(EXPECTATION)
    finding = _table(FINDING)
    measured = _table(MEASURED)
    together = _table(TOGETHER)
    flow = _table(FLOW)
    crowd = _table(CROWD)
    crowd_flow = _table(CROWD_FLOW)
    plan = _table(PLAN)
    provenance = _table(PROVENANCE)
    recorded_set = _table(RECORDED_SET)
