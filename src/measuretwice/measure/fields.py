"""The catalogue of measured names: what `measured` in a run's result may hold, and what each value is.

Whatever measures writes only names that stand here, and a check may ask only for these: a name that
is misspelt fails at once instead of never finding anything. Pages print these tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

# None: the raw files don't have it. Words are few: an algorithm, a kind of queue.
Measured = dict[str, float | int | str | None]


def number(measured: Mapping[str, float | int | str | None], name: str) -> float | int | None:
    """Return a measured number; None where the run doesn't have it, or has a word by that name."""
    value = measured.get(name)
    return None if isinstance(value, str) else value


# How a name ends says its unit.
UNITS = {
    # Two that may be above 1.
    "rising_ratio": "",
    "window_rows_ratio": "",
    "_bps": "bit/s",
    "_bytes": "B",
    "bytes_received": "B",
    "bytes_acked": "B",
    "_ns": "ns",
    "_us": "us",
    "_ms": "ms",
    "_s": "s",
    "_packets": "packets",
    "_segments": "segments",
    "_ratio": "0 to 1",
}


def unit_of(name: str) -> str:
    """Return the unit that a field's name ends in; empty for counts, names and words."""
    return next((unit for end, unit in UNITS.items() if name.endswith(end)), "")


# What values are called in a sentence whose names' own words wouldn't do.
CALLED = {
    "ratio": "ratio of goodput to the model's",
    "mss_bytes": "MSS",
    "jains_index": "Jain's index",
    "rtt_min_ms": "smallest round-trip time",
    "ping_rtt_min_ms": "ping's smallest round-trip time",
    "ping_rtt_mean_ms": "ping's mean round-trip time",
    "utilisation": "share of the link in use",
}


def label_of(name: str) -> str:
    """Return what a value is called in a sentence: its name's words without the unit, such as `steady goodput`."""
    words = name
    if name not in CALLED:
        end = next((end for end in UNITS if end.startswith("_") and name.endswith(end)), "")
        words = name.removesuffix(end) + (" ratio" if end == "_ratio" else "")
    return CALLED.get(name, words.replace("_", " ").replace("rtt", "round-trip time"))


def in_unit(name: str, value: float, form: str = ".3g") -> str:
    """Return a value with its unit, rates in Mbit/s; a share has none."""
    if name.endswith("_bps"):
        return f"{value / 1e6:{form}} Mbit/s"
    unit = "" if name.endswith("_ratio") else unit_of(name)
    return f"{value:{form}} {unit}".rstrip()


@dataclass(frozen=True)
class Field:
    """One measured value: its name, where it comes from (a tool, or a person's own work), its meaning.

    A name with a `*` is a family: in its place stands a node's name, or what a person called it.
    """

    name: str
    source: str
    meaning: str

    @property
    def unit(self) -> str:
        """The unit that the name ends in; nothing for counts and words."""
        return unit_of(self.name)


# A run with one flow.
ONE_FLOW = (
    Field("ping_sent_packets", "ping", "echo requests sent before the test"),
    Field("ping_loss_ratio", "ping", "the share of them without an answer"),
    Field("ping_rtt_min_ms", "ping", "the smallest round-trip time"),
    Field("ping_rtt_mean_ms", "ping", "the mean round-trip time"),
    Field("goodput_bps", "iperf3", "what the receiving program got, over the test's time"),
    Field("sender_rate_bps", "iperf3", "what the sender handed over: a little more than goodput"),
    Field("bytes_received", "iperf3", "what the receiving program got in all"),
    Field("duration_s", "iperf3", "how long the sender really sent"),
    Field("retransmits", "iperf3", "segments retransmitted, as the sender's kernel counts them"),
    Field("flows", "iperf3", "data connections"),
    Field(
        "congestion_control",
        "netperf",
        "the sender's algorithm, where netperf, flent or iperf 2 gives it",
    ),
    Field("rtt_min_ms", "ss", "the smallest `minrtt` of the data connection"),
    Field("rtt_mean_ms", "ss", "the mean over all samples of its smoothed `rtt`"),
    Field("mss_bytes", "ss", "its `mss` in the last sample"),
    Field("data_segs_out", "ss", "segments with data that it sent, including retransmissions"),
    Field("bytes_acked", "ss", "bytes acknowledged by the last sample"),
    Field("cwnd_mean_segments", "ss", "the mean over all samples of `cwnd`"),
    Field("cwnd_max_segments", "ss", "the largest `cwnd` in any sample"),
    Field("data_port", "ss", "the sender's port of the data connection; null with several"),
    Field("retrans_total", "ss", "the second number of `retrans:0/N` in the last sample"),
    Field("ss_samples", "ss", "samples taken"),
    Field("picked_port", "ss", "the port in the last line that was kept for reading"),
    Field("picked_connections", "ss", "how many connections the kept lines are from"),
    Field("captured_packets", "tcpdump", "data packets that tcpdump printed on the router"),
    Field(
        "largest_packet_bytes",
        "tcpdump",
        "the largest of them: the IP packet, without Ethernet",
    ),
    Field(
        "hundredth_packet_bytes",
        "tcpdump",
        "the size that one in a hundred of them has at least; null for fewer than a hundred",
    ),
    Field("qdisc_sent_packets", "tc", "packets that the bottleneck's qdisc passed on"),
    Field("qdisc_sent_bytes", "tc", "bytes that it passed on, including Ethernet headers"),
    Field("qdisc_drops", "tc", "packets that it dropped, at random or for lack of room"),
    Field("qdisc_offered_packets", "tc", "sent and dropped together: what it was given"),
    Field("loss_ratio", "tc", "dropped over offered"),
    Field("qdisc_limit_packets", "tc", "that qdisc's limit"),
    Field(
        "other_qdisc_drops",
        "tc",
        "what every other interface's root qdisc dropped, on all nodes",
    ),
    Field("timeouts", "nstat", "the sender's retransmission timeouts (TcpExtTCPTimeouts)"),
    Field(
        "spurious_retransmits",
        "nstat",
        "needless ones, as the receiver reports them (TcpExtTCPDSACKRecv)",
    ),
    Field(
        "receiver_ofo_drops",
        "nstat",
        "segments the receiver had no room for (TcpExtTCPOFODrop)",
    ),
    Field(
        "receiver_prune_calls", "nstat", "how often it had to tidy its queue (TcpExtPruneCalled)"
    ),
    Field("receiver_acks_out", "nstat", "segments that the receiver sent: nearly all are ACKs"),
    Field(
        "softnet_drops",
        "/proc/net/softnet_stat",
        "packets lost between driver and IP, all nodes",
    ),
)
# Several flows, beside some of the names above: over the time that all flows share.
FEW_FLOWS = (
    Field("flows", "ss", "data connections"),
    Field("duration_s", "ss", "how long all flows were there together"),
    Field(
        "goodput_bps",
        "ss",
        "the sum of the flows' goodputs, by their ACKs: it may exceed what the link carries, by a round trip's bytes at most",
    ),
    Field(
        "jains_index", "ss", "Jain's fairness index of these goodputs: 1 where all have the same"
    ),
    Field("share_max", "ss", "the largest flow's share of the sum, 0 to 1"),
    Field("retransmits", "ss", "segments retransmitted, of all flows"),
    Field("rtt_mean_ms", "ss", "the mean over the flows of their mean round-trip time"),
    Field("rtt_min_ms", "ss", "the smallest round-trip time of any flow"),
    Field(
        "utilisation",
        "tc",
        "what passed the queue over the link's rate, headers counted; 0 to 1",
    ),
    Field("queue_kind", "tc", "the queue discipline of the samples, in a word"),
    Field("queue_mean_bytes", "tc", "the mean length of the queue"),
    Field("queue_max_bytes", "tc", "the longest queue in any sample"),
    Field("queue_mean_packets", "tc", "its mean length in packets"),
    Field("queue_busy_ratio", "tc", "the share of samples in which packets waited"),
    Field("queue_samples", "tc", "how many samples of the queue there are"),
    Field("queue_delay_mean_ms", "tc", "how long the mean queue takes to drain at the link's rate"),
    Field(
        "queue_drops",
        "tc",
        "packets that the queue dropped from the first sample to the last; its counter at the end may have a few more",
    ),
    Field("queue_marks", "tc", "packets that it marked instead (ECN)"),
    Field("queue_limit_bytes", "tc", "the queue's room; null where it counts packets"),
    Field("mss_bytes", "ss", "the flows' segment size; null where they differ"),
    Field(
        "convergence_s",
        "ss",
        "from the last flow's start until, over ten seconds, each has its fair share to within a fifth; null if never",
    ),
    Field(
        "sustained_convergence_s",
        "ss",
        "the same, until the shares are so at nine in ten of all later moments, with at least 30 s left; null if never",
    ),
    Field(
        "buffer_bdp_ratio_min",
        "tc",
        "the queue's room over the bandwidth-delay product of the longest path",
    ),
    Field("buffer_bdp_ratio_max", "tc", "the same for the shortest path"),
    Field("window_rows", "your own", "rows in the traces of windows taken from iperf3's text"),
    Field("window_rows_backwards", "your own", "how often time goes back in them"),
    Field(
        "window_rows_ratio",
        "your own",
        "their windows over ss's, the median of the larger half",
    ),
    Field("length_rows", "your own", "rows of queue lengths taken from tc's text"),
    Field("length_rows_unreadable", "your own", "lines in that file that aren't two numbers"),
    Field("length_rows_mean_packets", "your own", "the mean of these lengths"),
    Field("length_rows_true_packets", "tc", "the mean by tc's JSON at the same times"),
    Field("path_rtt_ms", "ping", "the smallest round-trip time of any flow's idle path"),
    Field("busy_ping_mean_ms", "ping", "the mean over the nodes of ping's mean while flows ran"),
    Field("busy_ping_max_ms", "ping", "the longest of these pings"),
    Field("busy_ping_loss_ratio", "ping", "the share of them that was lost, at the worst node"),
    Field("busy_ping_p50_ms", "ping", "what half of all their answers didn't exceed"),
    Field("busy_ping_p99_ms", "ping", "what 99 % of them didn't exceed"),
    Field(
        "busy_ping_beside_ratio",
        "ping",
        "the share of their answers that came while all flows were there",
    ),
    Field("congestion_control", "iperf3", "the algorithm of one sender, in a word"),
    Field("host_queue_kind", "tc", "the queue discipline of its own card, in a word"),
    Field(
        "steady_goodput_bps",
        "ss",
        "one sender's bytes acknowledged, as a rate, counted from the moment that its lab names",
    ),
    Field("steady_rtt_ms", "ss", "the mean of its smoothed round-trip time then"),
    Field("steady_rtt_p95_ms", "ss", "what 95 % of those round-trip times don't exceed"),
    Field("steady_cwnd_segments", "ss", "its mean window then"),
    Field("steady_retransmits", "ss", "segments that it retransmitted then"),
    Field("rising_ratio", "ss", "its rate in the last fifth of that time over that in the first"),
    Field("rising_steps", "ss", "how many of the four steps between these fifths go up"),
    Field("cwnd_over_rate_ms", "ss", "its mean window over its rate: a time"),
    Field("tcp_min_rtt_ms", "ss", "the smallest round-trip time that its TCP saw"),
    Field("sender_path_rtt_ms", "ping", "the round-trip time of its idle path"),
    Field("sender_retransmits", "ss", "segments that it retransmitted in all"),
    Field(
        "lowest_tenth_bps",
        "ss",
        "its least rate in a tenth of a second, after the first second",
    ),
    Field("table_rows", "your own", "rows of the table that was made of iperf3's report"),
    Field("table_interval_s", "your own", "the time that a row is a mean of"),
    Field("table_lowest_bps", "your own", "the least rate in these rows, after the first second"),
    Field("table_rows_foreign", "your own", "rows with a window that ss never had at that time"),
    Field("rate_rows", "your own", "rows that an average of rates was taken from"),
    Field("rate_rows_spanning", "your own", "how many of these span others"),
    Field("red_limit_bytes", "tc", "red's limit, as it reports it"),
    Field("red_max_bytes", "tc", "red's max"),
    Field("red_ewma_log", "tc", "how slowly red's average follows: a power of two"),
    Field("red_cell_log", "tc", "red's unit of idle time, Scell_log: a power of two"),
)
# Up to thousands of flows: over the time that all share and in which slow start is over.
MANY_FLOWS = (
    Field("flows", "ss", "data connections"),
    Field("duration_s", "ss", "how long all flows were there together, after the warm-up"),
    Field("goodput_bps", "ss", "the sum of the flows' goodputs in that time, counted from ACKs"),
    Field("own_goodput_bps", "iperf3", "the sum of their rates, each over its own whole life"),
    Field("jains_index", "ss", "Jain's fairness index of their goodputs"),
    Field("rtt_mean_ms", "ss", "the mean over the flows of their mean round-trip time"),
    Field("rtt_min_ms", "ss", "the smallest round-trip time of any flow"),
    Field("path_rtt_ms", "ping", "the smallest round-trip time of any idle path"),
    Field("mss_bytes", "ss", "the flows' segment size; null where they differ"),
    Field("segments", "ss", "segments with data that they sent, including retransmissions"),
    Field("retransmits", "ss", "segments retransmitted"),
    Field("spurious_retransmits", "nstat", "needless ones in the whole run (TcpExtTCPDSACKRecv)"),
    Field(
        "halvings",
        "events",
        "how often a connection took a smaller window, as the kernel reports it",
    ),
    Field("retransmits_per_halving", "ss", "retransmits over halvings"),
    Field("drops_per_halving", "tc", "the router's drops over the halvings"),
    Field("all_queue_drops", "tc", "the router's drops from the start, including slow start"),
    Field("all_halvings", "events", "the halvings, counted from the start"),
    Field("all_drops_per_halving", "tc", "all_queue_drops over all_halvings"),
    Field(
        "utilisation",
        "tc",
        "what passed the queue over the link's rate, headers counted; 0 to 1",
    ),
    Field("queue_mean_bytes", "tc", "the mean length of the queue"),
    Field("queue_mean_packets", "tc", "its mean length in packets"),
    Field("queue_busy_ratio", "tc", "the share of samples in which packets waited"),
    Field("queue_samples", "tc", "how many samples of the queue there are"),
    Field(
        "queue_packet_bytes",
        "tc",
        "the largest mean size of the packets in the queue, over all samples",
    ),
    Field("queue_delay_mean_ms", "tc", "how long the mean queue takes to drain at the link's rate"),
    Field(
        "queue_drops",
        "tc",
        "packets that the queue dropped from the first sample to the last; its counter at the end may have a few more",
    ),
    Field("loss_ratio", "tc", "queue_drops over the segments sent"),
    Field("rivals_found", "ss", "flows with the rivals' algorithm"),
    Field("rival_share", "ss", "their share of the goodput, 0 to 1"),
    Field("rival_fair_share", "ss", "their share of the flows, 0 to 1"),
    Field("rival_multiple", "ss", "rival_share over rival_fair_share: 1 is fair"),
    Field(
        "c_by_retransmits",
        "ss",
        "C of the Mathis model, by regression over the flows, from their retransmissions",
    ),
    Field("c_by_halvings", "events", "the same from their halvings"),
    Field("c_by_drops", "tc", "the same from the router's drops, shared by all flows"),
    Field("own_counted_halvings", "your own", "halvings that your own counter saw"),
    Field(
        "own_groups_error_ratio",
        "your own",
        "how far a row of groups.txt is from what its algorithm's flows add up to",
    ),
    Field("own_rival_share", "your own", "the rivals' part of what groups.txt adds up to, 0 to 1"),
)
# Only runs with an emulator in the place of a link have these: of all packets in both directions, pings included.
EMULATED = (
    Field(
        "emulator_late_mean_us",
        "emulator",
        "how much later than due the emulator sent a packet on, the mean",
    ),
    Field("emulator_late_p99_us", "emulator", "what 99 % of these don't exceed"),
    Field("emulator_late_max_us", "emulator", "the latest packet of all"),
    Field("emulator_packets", "emulator", "how many packets that covers"),
    Field(
        "emulator_lost_packets",
        "emulator",
        "packets that it lost itself, unasked: it had no room for them, or they were too large",
    ),
)
# What a person's summary.txt says of many flows, each line by its name there; others may stand in it.
SUMMARY = (
    Field("own_flows", "your own", "how many flows the index was taken with"),
    Field("own_jain", "your own", "Jain's fairness index"),
    Field("own_sum_bps", "your own", "the sum of the flows' goodputs"),
    Field("own_rtt_ms", "your own", "the round-trip time that went into the model"),
    Field("own_c_by_halvings", "your own", "C of the Mathis model, from halvings"),
)
# Only files that a person brings can have these.
IMPORTED = (
    Field("copied_flows", "iperf2", "flows that are in two of the files"),
    Field("unfit", "", "which tests among the files can't be checked, and why"),
    Field("several_runs", "iperf3", "which runs the files are from, if several"),
    Field("foreign_logs", "ss", "which logs lack the connection that iperf3 names"),
    Field("ip_header_bytes", "iperf3", "IP's header, where it isn't IPv4's"),
    Field("ping_resolution_ms", "ping", "the step between its times, where that is 0.1 ms or more"),
    Field("misplaced", "tc", "where the bottleneck's qdisc is, if not where the data leaves"),
    Field(
        "by_host",
        "",
        "what a host's own counters or settings say: a line each of kind, found, expected and why",
    ),
    Field("iperf3_algorithms", "iperf3", "the senders' algorithms, by iperf3's report"),
)
# Of a few flows, one on each node, each one's own values with its node's name in front.
OF_NODE = (
    "goodput_bps",
    "share",
    "retransmits",
    "rtt_mean_ms",
    "cwnd_mean_segments",
    "mss_bytes",
    "path_rtt_ms",
    "decreases",
    "kept_ratio",
    "decrease_window_segments",
)
FAMILIES = (
    *(
        Field(f"*_{name}", "ss", f"{name} of the flow on one node, or of its flows together")
        for name in OF_NODE
    ),
    Field(
        "*_received_flows", "iperf3", "how many flows a node received, by iperf3's own addresses"
    ),
    Field(
        "*_delay_mean_ms",
        "stream",
        "how much longer than the fastest packets took to a node, on average",
    ),
    Field("*_delay_p50_ms", "stream", "what half of these delays don't exceed"),
    Field("*_delay_p99_ms", "stream", "what 99 % of them don't exceed"),
    Field("*_lost_ratio", "stream", "which share of the packets sent to it never came"),
    Field("*_late_ratio", "stream", "which share came after the deadline, or never"),
    Field("*_transfers", "transfers", "how many short transfers a node made"),
    Field("*_transfer_p50_ms", "transfers", "how long half of them took at most"),
    Field("*_transfer_p95_ms", "transfers", "how long 95 % of them took at most"),
    Field("*_rate_rows_mean_bps", "your own", "the mean of the rates that a node's rows have"),
    Field("*_rate_rows_deviation_bps", "your own", "their standard deviation"),
    Field("*_seconds_deviation_bps", "your own", "the same of those rows that span no others"),
    Field("own_*", "your own", "a line of summary.txt"),
)

# Each entry of `flows` in a run with several.
FLOW = (
    Field("node", "", "the node that started it"),
    Field("file", "", "its iperf3 file"),
    Field("local_port", "", "its port at the sender"),
    Field("congestion_control", "", "its algorithm"),
    Field("start_s", "", "Unix time of its first sample"),
    Field("end_s", "", "Unix time of its last sample"),
    Field("goodput_bps", "", "bytes acknowledged while all flows were there, as a rate"),
    Field("share", "", "its share of the sum, 0 to 1"),
    Field("iperf3_goodput_bps", "", "the rate over its own whole life, by iperf3"),
    Field("retransmits", "", "segments retransmitted"),
    Field("rtt_min_ms", "", "the smallest round-trip time"),
    Field("rtt_mean_ms", "", "the mean of its smoothed round-trip time"),
    Field("cwnd_mean_segments", "", "the mean window"),
    Field("cwnd_max_segments", "", "the largest window"),
    Field("mss_bytes", "", "its segment size"),
    Field("path_rtt_ms", "", "the path's round-trip time by ping, before it began"),
    Field("decreases", "", "how often ssthresh changed after the first slow start"),
    Field("kept_ratio", "", "ssthresh over the window before, in the median of these"),
    Field("decrease_window_segments", "", "the median of that window"),
    Field("to_address", "", "the receiver's address, by iperf3"),
    Field("busy_ping_mean_ms", "", "ping's mean during the flow"),
    Field("busy_ping_max_ms", "", "the longest of these pings"),
    Field("busy_ping_loss_ratio", "", "the share of them that was lost"),
)
# Each entry of `flows` in a run with many.
FLOW_OF_MANY = (
    Field("node", "", "the node that started it"),
    Field("local_port", "", "its port at the sender"),
    Field("congestion_control", "", "its algorithm, by ss"),
    Field("goodput_bps", "", "bytes acknowledged in the time that all share, as a rate"),
    Field("own_goodput_bps", "", "the rate over its own whole life, by iperf3"),
    Field("rtt_mean_ms", "", "the mean of its smoothed round-trip time"),
    Field("segments", "", "segments with data that it sent"),
    Field("retransmits", "", "how many of them were retransmitted"),
    Field("halvings", "", "how often its window was made smaller; null where events are missing"),
)
CATALOGUE = {
    field.name: field
    for field in (*FAMILIES, *IMPORTED, *EMULATED, *SUMMARY, *MANY_FLOWS, *FEW_FLOWS, *ONE_FLOW)
}


def fields_of(names: Iterable[str]) -> dict[str, Field]:
    """Return the fields that one run's measured `names` are. `goodput_bps` of several flows is another value than of
    one: of the three kinds of runs it is the one that has most of the names."""
    given = set(names)
    kind = max(
        (ONE_FLOW, FEW_FLOWS, MANY_FLOWS),
        key=lambda fields: len(given.intersection(field.name for field in fields)),
    )
    catalogue = CATALOGUE | {field.name: field for field in kind}
    return {name: catalogue[name] for name in given if name in catalogue}


def known(name: str) -> bool:
    """Return whether a value of this name may be measured: by itself, or as one of a family."""
    return name in CATALOGUE or any(fnmatchcase(name, field.name) for field in FAMILIES)


def members(family: str, names: Iterable[str]) -> dict[str, str]:
    """Return those of `names` that belong to a family, by what stands in place of its `*`."""
    start, end = family.split("*")
    # queue_delay_mean_ms is a value by itself, and no node's.
    return {
        name[len(start) : len(name) - len(end)]: name
        for name in names
        if fnmatchcase(name, family) and (start or name not in CATALOGUE)
    }


def kind_of(name: str) -> str:
    """Return a measured name as the catalogue has it: of one node's value the family's, as `*_share`."""
    if name in CATALOGUE:
        return name
    of_node = (field.name for field in FAMILIES if field.name.startswith("*"))
    return next((family for family in of_node if fnmatchcase(name, family)), name)


def require(names: Iterable[str], where: str) -> None:
    """Raise KeyError for the first of `names` that isn't in the catalogue; `where` asks for it."""
    for name in names:
        if not known(name):
            raise KeyError(f"{where}: nothing measures {name!r}; see measure/fields.py")
