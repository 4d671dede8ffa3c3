"""Hints for findings that no lab stages as a pitfall: where to look, what to compare, the cause."""

from __future__ import annotations

GENERAL_HINTS: dict[str, tuple[str, str, str]] = {
    "segment-size": (
        "Which MSS does ss print for the connection? Which one did you ask iperf3 for?",
        "Take the MSS, add 40 bytes of headers, and look for that number, or one 12 bytes larger, "
        "among the settings of every interface on the path.",
        "Some interface has a smaller MTU than you meant, or TCP carries options that you did not "
        "count: compare `ip link` and `sysctl net.ipv4.tcp_timestamps` on both hosts.",
    ),
    "round-trip-time": (
        "Look at the smallest round-trip time that ping and ss print, before the flow is busy.",
        "Hold it against the delay of every netem qdisc on the way, there and back: `tc qdisc`.",
        "The delays on the way don't add up to the round-trip time that was meant: one is missing, "
        "one is left over from an earlier try, or the path has a delay of its own.",
    ),
    "loss-ratio": (
        "Look at what the router's netem qdisc counted: packets sent and packets dropped.",
        "Which loss is set there? `tc qdisc show` prints it in percent. Is it the p you meant?",
        "The loss that is set is another one, or drops of another kind are counted with it: a full "
        "queue, an older qdisc whose counters were never set back.",
    ),
    "other-drops": (
        "Print the counters of every qdisc on every node, not only the router's: `tc -s qdisc`.",
        "Which of them dropped packets, and how long may its queue be?",
        "A queue that nobody thought of is full: a host's own qdisc, or the way back. Its drops "
        "are not part of p.",
    ),
    "retransmissions": (
        "Hold the sender's retransmissions against every drop that you can find.",
        "nstat on both hosts, the qdiscs' drops, /proc/net/softnet_stat: what is left over?",
        "Something on the way loses packets, or puts them out of order so far that the sender takes "
        "them for lost.",
    ),
    "flows": (
        "How many connections does iperf3 name at its start?",
        "Hold that against the number you asked for with -P.",
        "Other flows share the path, or some never began: the sums and means are of another set.",
    ),
    "link-rate": (
        "Hold the goodput against the rate of the slowest link.",
        "Of each frame, headers are no goodput: what is the most that the link can carry?",
        "Nothing goes faster than the link: the rate is not set where you think, or rates were "
        "added up that belong to different times.",
    ),
    "bandwidth": (
        "Take bytes_acked from the connection's last line in ss, and the length of the test.",
        "Eight times bytes over seconds: is it the rate that iperf3 prints?",
        "One of the two files is of another run, or of another connection.",
    ),
    "path": (
        "Divide cwnd times MSS by the rate: that is a time. Hold it against ping's.",
        "Can a window of data be acknowledged sooner than light and routers allow?",
        "Something between the two hosts ends the connection and opens its own: a proxy, a NAT "
        "that does so. You measured the way to it.",
    ),
}
