"""Every format that a person's file may have: which tool prints it, how it is known, how it is read.

A file is known by its content. What a terminal or sudo may put before a document is skipped here, as
no tool prints it. What is brought and isn't read stands in a table at the end, with what to bring in its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from measuretwice.parse import wrapping
from measuretwice.parse._reading import ParseError
from measuretwice.parse.host import (
    Setting,
    parse_driver,
    parse_ifconfig,
    parse_ip_links,
    parse_netstat,
    parse_nstat,
    parse_settings,
)
from measuretwice.parse.iperf2 import Iperf2Connection, parse_iperf2_csv, parse_iperf2_text
from measuretwice.parse.iperf3 import Iperf3Run, parse_iperf3_json
from measuretwice.parse.iperf3_text import parse_abridged, parse_iperf3_server_text
from measuretwice.parse.netperf import BulkTest, parse_flent, parse_flent_summary, parse_netperf
from measuretwice.parse.ping import PingRun
from measuretwice.parse.ping_forms import is_any_ping, parse_ping, ping_tests, whole_ping
from measuretwice.parse.ss import SsSample, as_sampled, parse_ss_samples
from measuretwice.parse.tc import Policer, QdiscSample, parse_policers, parse_qdisc_samples
from measuretwice.parse.tc_fields import Qdisc, TcClass
from measuretwice.parse.tc_log import as_snapshots, classes_of, parse_classes, parse_snapshots
from measuretwice.parse.tcpdump import Frames, is_tcpdump, parse_frames
from measuretwice.parse.wrapping import unwrapped

# Several runs: a server's text has each that it served.
Content = (
    Iperf3Run
    | tuple[Iperf3Run, ...]
    | tuple[Iperf2Connection, ...]
    | tuple[BulkTest, ...]
    | tuple[SsSample, ...]
    | tuple[Qdisc, ...]
    | tuple[TcClass, ...]
    | tuple[Policer, ...]
    | tuple[Setting, ...]
    | dict[str, int]
    | list[dict[str, Any]]
    | tuple[QdiscSample, ...]
    | PingRun
    | Frames
)


@dataclass(frozen=True)
class Format:
    """What one tool prints in one way.

    `recognises` takes a file's text, `parse` the text and the file's name; it raises ParseError. `tidied` makes the
    text of it that the labs' own scripts would have written, where that may differ. `tests` are the texts of the
    tests in it, where a file may have several.
    """

    tool: str
    recognises: Callable[[str], bool]
    parse: Callable[[str, str], Content]
    tidied: Callable[[str, str], str] = lambda text, _: text
    tests: Callable[[str], list[str]] = lambda text: [text]


# How lines begin by which what a logger put before them is told from them. The logs of other tools need their times.
_BEGINNINGS = (
    "Connecting to host ", "Server listening on ", "Accepted connection from ", "Client connecting to ",
    "iperf3: error", "iperf3: interrupt", "PING",
)  # fmt: skip
_MARKS = re.compile(
    r'\{[ \t]*\n[^\n"]*"start"[ \t]*:\s*\{|\{\s*"(?:start"[ \t]*:\s*\{|(?:event|error)"[ \t]*:)|\[ *ID\] |'
    + "|".join(_BEGINNINGS[:-1])
    + r"|(?<![\w-])PING6?[ (]"
)


# Lines of iperf, whichever blanks are in them.
_BRACKETS = re.compile(r"^\W*\[\s*(?:ID|SUM|\d+)\](?:\[\w+-\w+\])?\s+\w", re.M)

_INDENTED = re.compile(
    r"^ +(?=\[ *(?:ID|SUM|\*?\d+)\]|Client connecting|Server listening|TCP window|connect failed)",
    re.M,
)


# What RIOT's terminal puts before each line of a board.
_PYTERM = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (?:- INFO )?# ", re.M)


def plain(text: str) -> str:
    """Return a file's text without what loggers and scripts put around a tool's output."""
    if _BRACKETS.search(text):
        # As web pages and editors have them.
        text = text.replace("\xa0", " ").replace("\t", " ")
        text = _INDENTED.sub("", text)
    text = _PYTERM.sub("", text)
    if "ID]" in text or "start" in text or any(words in text for words in _BEGINNINGS):
        return unwrapped(text, _MARKS)
    return text


def format_of(text: str, source: str) -> Format:
    """Return the format of a file's text; ParseError where it is none of these, with what it is and what to bring instead."""
    for known in FORMATS:
        if known.recognises(text):
            return known
    raise ParseError(source, "file", why_unread(text))


def others_in(text: str, known: Format) -> list[tuple[Format, str]]:
    """Return what a file in which `known` was found holds of other tools' text besides, as of all that a terminal showed.

    Of a file that begins with a document only what stands behind its last one is looked at.
    """
    if known.tool in ("queue", "nstat", "ip"):
        return []
    if text.lstrip()[:1] in "{[":
        text = text[max(text.rfind("\n}\n"), text.rfind("\n]\n")) + 3 :] if "\n}\n" in text else ""
    family = {known.tool, *_FAMILIES.get(known.tool, ())}
    found: list[tuple[Format, str]] = []
    for other in FORMATS:
        if other.tool in family or other.tool not in _PARTS or not other.recognises(text):
            continue
        family.add(other.tool)
        pattern = _PARTS[other.tool]
        part = re.search(pattern, text, re.M | re.S) if pattern else None
        found.append((other, part[0] if part else text))
    return found


# A block of Markdown between two fences.
_FENCED = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n`]*\n(.*?)^ {0,3}\1[ \t]*$", re.M | re.S)


def blocks_of(text: str) -> list[str]:
    """Return the blocks of Markdown between fences that are of some format."""
    blocks = [block[2] for block in _FENCED.finditer(text)]
    return [block for block in blocks if any(known.recognises(block) for known in FORMATS)]


# Tools of which something may stand among others' text, and which part of it they read: None where the parser leaves
# others' lines out by itself.
_PARTS = {
    "tc": None,
    "tc classes": None,
    "tc filters": None,
    "ss": None,
    "tcpdump": None,
    "ping": r"^PING6?[ (].*?^(?:rtt|round-trip) [^\n]*\n",
}
# Tools that look like another, or come with it.
_FAMILIES = {"tc": ("tc classes",)}


def _holds(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.M)
    return lambda text: compiled.search(text) is not None


def _from_first(text: str, marks: str) -> str:
    """The text from the first line on that begins with one of `marks`."""
    match = re.search(rf"^[ \t]*[{re.escape(marks)}]", text, re.M)
    return text[match.start() :] if match else text


def _iperf3_text(text: str, source: str) -> Iperf3Run | tuple[Iperf3Run, ...]:
    if ports := wrapping.mixed_tests(text):
        several = (
            f"{len(ports)} tests at once, line by line in one file (to ports {', '.join(ports)})"
        )
        raise ParseError(source, "file", f"{several}; bring a file of each")
    if wrapping.is_server(text):
        return parse_iperf3_server_text(text, source, abridged=True)
    return parse_abridged(text, source)


def _ss(text: str, source: str) -> tuple[SsSample, ...]:
    return parse_ss_samples(as_sampled(text, source), source, allow_truncated_tail=True)


def _pscheduler(text: str, source: str) -> tuple[()]:
    raise ParseError(
        source,
        "file",
        f"pScheduler's JSON, which has neither iperf3's addresses nor its options; bring {_IPERF3}",
    )


def _queue(text: str, source: str) -> tuple[QdiscSample, ...]:
    return parse_qdisc_samples(text, source, allow_truncated_tail=True)


TC_CLASSES = Format(
    "tc classes",
    _holds(r'"class"\s*:\s*"\w+"|(?:^|[ \t\],])class \w+ [0-9a-f]*:'),
    parse_classes,
    lambda text, _: classes_of(text) or text,
)
TC_FILTERS = Format(
    "tc filters", _holds(r"^[ \t]*(?:action order \d+: +)?police 0x[0-9a-f]+ "), parse_policers
)
NSTAT = Format(
    "nstat",
    _holds(r'^#kernel$|\A\s*\{\s*"kernel"\s*:\s*\{'),
    lambda text, source: parse_nstat(_from_first(text, "#{"), source),
    lambda text, source: json.dumps({"kernel": parse_nstat(_from_first(text, "#{"), source)}),
)
LINKS = Format(
    "ip",
    _holds(r'^ +RX: +bytes +packets +errors|"stats64"\s*:'),
    parse_ip_links,
    lambda text, source: json.dumps(parse_ip_links(text, source)),
)
DRIVER = Format("ethtool -S", _holds(r"^NIC statistics:"), parse_driver)
SETTINGS = Format(
    "settings",
    _holds(
        r"^Features for \S+:|^Settings for \S+:\n(?:.*\n)*?\s+Speed: \d|^net\.(?:core|ipv[46])\.[\w.]+ ?= ?\S"
    ),
    parse_settings,
)
# The first that recognises a text has it.
FORMATS = (
    Format("flent", lambda text: '"x_values"' in text and '"results"' in text, parse_flent),
    Format("iperf3", lambda text: '"throughput-bits"' in text, _pscheduler),
    Format("flent", _holds(r"^Summary of \S+ test run|^Starting Flent "), parse_flent_summary),
    Format(
        "netperf",
        _holds(
            r"^(?:MIGRATED )?\w+ [A-Za-z/ ]+? TEST (?:from|to) |^THROUGHPUT=|^NETPERF_INTERIM_RESULT\["
            r"|^establish[_ ]control\b"
        ),
        parse_netperf,
    ),
    Format("queue", _holds(r"^# t=.*\n\["), _queue),
    Format("ss", _holds(r"^# t=[\d.,]+\n(?!qdisc )"), _ss, as_sampled),
    Format("iperf3", wrapping.is_json, parse_iperf3_json, tests=wrapping.json_tests),
    Format(
        "iperf2",
        _holds(
            r"\A(?:[^\n\d]*,[^\n\d]*\n)?\s*(?:[+-]\d{4}:)?\d{14}[\d.]*,[^,\n]*,\d+,|^time,srcadd"
        ),
        parse_iperf2_csv,
    ),
    Format(
        "iperf2",
        _holds(
            r"^(?:Client connecting to|Server listening on (?:TCP|UDP))|^(?:tcp )?connect failed: "
            r"|^\W*\[ *\*?(?:\d+|SUM)\] +\d+\.\d(?:\d{3})?- *\d+\.\d(?:\d{3})? sec "
        ),
        lambda text, source: parse_iperf2_text(text, source, abridged=True),
    ),
    Format(
        "iperf3",
        _holds(
            r"\[ *ID\]|^iperf3: (?:error|parameter error|interrupt - the client)|^(?:Server listening on \d|Accepted connection from )"
            r"|^\W*\[ *(?:\d+|SUM)\](?:\[[TR]X-[CS]\])? +\d+\.\d\d- *\d+\.\d\d +sec "
        ),
        _iperf3_text,
        tests=wrapping.text_tests,
    ),
    Format(
        "tc",
        _holds(r'"kind"\s*:|(?:^|[ \t\],])qdisc \w+ [0-9a-f]*:'),
        parse_snapshots,
        as_snapshots,
    ),
    TC_CLASSES,
    TC_FILTERS,
    Format("ping", is_any_ping, parse_ping, whole_ping, ping_tests),
    Format("tcpdump", is_tcpdump, parse_frames),
    NSTAT,
    LINKS,
    Format("ss", _holds(r" cwnd:|\bRecv-Q +Send-Q +Local Address:"), _ss, as_sampled),
    Format(
        NSTAT.tool,
        _holds(r"^ +\d+ segments (?:sent out|send out|received)"),
        parse_nstat,
        lambda text, source: json.dumps({"kernel": parse_netstat(text, source)}),
    ),
    Format(
        LINKS.tool,
        _holds(r"\bRX packets[: ]\d+.*\n?\s*(?:RX )?errors[: ]\d+"),
        parse_ip_links,
        lambda text, source: json.dumps(parse_ifconfig(text, source)),
    ),
    DRIVER,
    SETTINGS,
)

# What people bring and isn't read: a row each, asked only where no format fits. The first that fits a text has it.

NO_TOOL = (
    "in no form that is read here. Those are iperf3, iperf 2, netperf, flent's data file, ss -tin, tc -s qdisc, ping, "
    "tcpdump -e, nstat -az and ip -s link, each as the tool itself printed it"
)

_SS = "ss -tin of the sender, again and again while the test runs"
_TC = "tc -s qdisc show, before the test and after it"
_IPERF3 = "iperf3 -J of the client"
_PING = "ping's own output, from the sender to the receiver before the test"
_FRAMES = "tcpdump -n -e -r FILE of the router, as text"
_COUNTERS = "nstat -az, before the test and after it, with the node's name in the file's"
_LINKS = "ip -s link, before the test and after it, with the node's name in the file's"
# By the tool that says what a file was brought for.
_INSTEAD = {"ss": _SS, "tc": _TC, "iperf3": _IPERF3, "ping": _PING, "tcpdump": _FRAMES}
_LOAD = "it shows how busy a host was, but no connection"
_CPU = "iperf3 -J (or -V) of the client, which shows how busy both ends were"
_REQUESTS = "it measures requests and their answers, not a flow that has always something to send"
_NODE = "it in the node's folder, under the name that scripts/snapshot.sh gives it"


class Unread(NamedTuple):
    """A form that isn't read: a pattern of its text, what it is, why it isn't read, what to bring in its place; nothing is
    brought in place of what measures nothing."""

    pattern: str
    what: str
    why: str
    instead: str = ""

    @property
    def words(self) -> str:
        """Return what is said of such a file, in a line."""
        return f"{self.what}: {self.why}" + (f"; bring {self.instead}" if self.instead else "")


_row = Unread
# Beyond so much of a text nobody looks for what it is.
_HEAD = 50_000


# fmt: off
UNREAD = (
    # What looks like another one below.
    _row(r"^[^\n]*\bCPU +%(?:usr|user)\b", "mpstat", _LOAD, _CPU),
    _row(r"^[^\n]*\bUID +PID +%usr", "pidstat", _LOAD, _CPU),
    _row(r"WinMTR [Ss]tatistics", "mtr's report", "it keeps means of each router's answers, rounded, and no reply by itself", _PING),
    _row(r"^ *\d+\?: \[LOCALHOST\]|^ +Resume: pmtu \d", "tracepath", "its few probes are no measurement of the round trip", _PING),
    _row(r"^\s+1 +(?:<?\d+ ms +|\* +){3}\S", "a trace of the path", "its few probes are no measurement of the round trip", _PING),
    # The hosts.
    _row(r"^procs -+memory-+", "vmstat", _LOAD, _CPU),
    _row(r"^top - \d\d:\d\d:\d\d up |^%Cpu\(s\):|^CPU usage: [\d.]+% user", "top", _LOAD, _CPU),
    _row(r"^ *(?:UID +|USER +|F +S +)?PID\b[^\n]*\b(?:COMMAND|CMD)$", "ps", "it is a list of programs"),
    _row(r"^ Performance counter stats for |^# Samples: \S+ +of event |^# Overhead +", "perf", _LOAD, _CPU),
    _row(r"^# tracer: |^Attaching \d+ probes?\.\.\.|^Tracing tcp |^TIME +PID +(?:IP +)?(?:LADDR|SADDR|COMM)", "a trace of the kernel", "its form is whatever its script prints", _SS),
    _row(r"^\[ *\d+\.\d{6}\] |^\[[A-Z][a-z]{2} [A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d \d{4}\] ", "the kernel's log", "it has no measurement"),
    _row(r"^[A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d \S+ (?:kernel|\S+\[\d+\]): ", "the system's log", "it has no measurement"),
    _row(r"^(?:abi|debug|dev|fs|kernel|user|vm)\.[\w.-]+ = ", "sysctl's list", "it doesn't say of which node it is, nor of when", f"{_NODE} (sysctl.txt)"),
    # Links.
    _row(r"^tcp:\n\t\d+ packets? sent|^TCP Statistics for IPv[46]", "netstat -s", "its names and its order differ from system to system", _COUNTERS),
    _row(r"^Kernel Interface table|^Iface +MTU +RX-OK", "netstat -i", "it has packets alone, of a moment that it doesn't say", _LINKS),
    _row(r"^Inter-\| +Receive ", "/proc/net/dev", "it is read as ip -s link prints it only", _LINKS),
    _row(r"^\w+: flags=\w+<[A-Z,]*>.* mtu \d+", "ifconfig", "it has no counters, or rounded ones", _LINKS),
    _row(r"^Windows[ -]IP[ -]|IPv4[^:\n]*(?:\. )+: \d+\.", "Windows' ipconfig", "it has addresses alone"),
    _row(r"^(?:Coalesce|Ring|Channel|Pause) parameters for ", "ethtool -c or -g", "it shows how a card was set, but neither on which node nor when"),
    _row(r"^Settings for \S+:$", "ethtool of a link", "it shows neither its node nor its time", f"{_NODE} (speed_mbit.txt)"),
    _row(r"^[^\n:]*(?::[ \t]*)?\b(?:tcp-segmentation-offload|generic-(?:segmentation|receive)-offload|large-receive-offload|udp-fragmentation-offload|[rt]x-checksumming|scatter-gather|[rt]x-vlan-offload|receive-hashing): o(?:n|ff)\b", "lines of ethtool -k", "without its heading (Features for ...) they don't say of which card they are", "all that ethtool -k INTERFACE prints"),
    _row(r"^[ \t]*(?:[rt]x_\w+|[rt]x_queue_\d+_\w+|\w+_(?:errors|drops|dropped|collisions)): \d+[ \t]*$", "lines of ethtool -S", "without its heading (NIC statistics) and all of its counters they don't say of what they are a part", "all that ethtool -S INTERFACE prints, before the test and after it"),
    _row(r"^driver: \S+\nversion: ", "ethtool -i", "it names a card's driver"),
    _row(r"^Chain \w+ \((?:policy|\d+ references)|^table (?:inet|ip6?|bridge) \w+ \{", "the rules of a firewall", "what they drop isn't in any output that is read"),
    # Rates.
    _row(r"^ *[\d.]+ MB / +[\d.]+ sec = +[\d.]+ [MG]bps", "nuttcp", "it doesn't say by which connection", _IPERF3),
    _row(r"^(?:\[\w+\] )?sockperf(?:: |\[)", "sockperf", "it measures messages or their answers, and shows nothing of the connection", _IPERF3),
    _row(r"^NTTTCP for Linux|^#{5}  Totals:  #{5}|^Thread +Time\(s\) +Throughput\(KB/s\)", "ntttcp", "it doesn't say by which connection", _IPERF3),
    _row(r"^Starting \d+ (?:threads|processes) running profile:", "uperf", _REQUESTS, _IPERF3),
    _row(r"Speedtest by Ookla|^(?:Down|Up)link capacity: |\"(?:download|upload)\" ?: ?(?:\{\"bandwidth\"|[\d.]+)|\"downloadSpeed\" ?:", "a speed test", "its path and its connections aren't those of a lab", _IPERF3),
    _row(r"^ *% Total +% Received|^--\d{4}-\d\d-\d\d \d\d:\d\d:\d\d--  |^\S[^\n]* +\d+% +[\d.,]+ ?[KMG]?B? +[\d.]+[KMG]B/s|^ +[\d,]+ +\d+% +[\d.]+[kMG]B/s|^ *time_(?:total|namelookup): |^\d+ bytes .*copied, ", "a download's progress", "it has the file's rate, disk and programs included, and nothing of its connection", _IPERF3),
    _row(r"^This is ApacheBench|^Running \S+ test @ http|^Requests/sec:", "a meter of HTTP", _REQUESTS, _IPERF3),
    # Packets.
    _row(r'"_index" ?: ?"packets-|^No\. +Time +Source +Destination|^(?:frame|ip|tcp)\.\w+[^\n]*[,;\t](?:frame|ip|tcp)\.|^(?:TCP|IPv4|Ethernet|UDP) Conversations$|^<[pd]+ml |^\| IO Statistics|^Frame \d+: \d+ bytes on wire|^<pdml ', "tshark's or Wireshark's list", "its columns are chosen by whoever writes it", _FRAMES),
    _row(r"^[<>MBP] \S+ \d+ \d+s\.\d+ns", "netsniff-ng", "its form is its own", _FRAMES),
    _row(r"Ostermann's tcptrace", "tcptrace", "it has sums of a capture, and no packet", _FRAMES),
    _row(r"^File name: +\S+\nFile type: ", "capinfos", "it has sums of a capture, and no packet", _FRAMES),
    # Sockets.
    _row(r"^Proto\s+Recv-Q\s+Send-Q\s", "netstat's list of connections", "it has neither windows nor round-trip times", _SS),
    _row(r"^ *Proto +Local Address +Foreign Address", "Windows' netstat", "it has neither windows nor round-trip times", f"{_SS}, or {_IPERF3}"),
    _row(r"^Total: +\d+.*\n(?:.*\n){0,3}?TCP: +\d+ +\(estab", "ss -s", "it counts sockets, and shows nothing about any of them", _SS),
    _row(r"\btcp_probe: |^\S+ \S+:\d+ \S+:\d+ \d+ 0x[0-9a-f]+ 0x[0-9a-f]+ \d+ \d+ \d+", "a trace of the kernel's tcp_probe", "its columns differ from kernel to kernel", _SS),
    _row(r'"(?:snd_|tcpi_snd_)?cwnd"\s*:', "JSON that was made of ss or of tcp_info", "what its values mean only its author knows", "what ss printed itself"),
    _row(r"\A(?=[^\n]*[,;\t])[^\n]*\b(?:s?cwnd|snd_cwnd|ssthresh)\b|\A\d{10}\.\d+,\S*:\d+,\d", "a table that was made of ss", "what its columns mean only its author knows", "what ss printed itself"),
    # Counters.
    _row(r"^ +\d+ segments retransmit", "netstat -s", "without a count of what was sent its counts say little", _COUNTERS),
    _row(r"^ +\d+ (?:times the listen queue |SYNs to LISTEN |fast retransmits|other TCP timeouts|bad segments received|resets? (?:sent|received)|(?:active|passive) connection openings|packets? (?:pruned|collapsed) )|^ +TCP[A-Z]\w+: \d+$", "lines of netstat -s", "without a count of what was sent they say little", _COUNTERS),
    _row(r"^(?:Tcp|TcpExt|Ip|IpExt|Udp)[A-Z]\w+ +\d+ +\d+\.\d$", "lines of nstat", "without all of its counters nobody knows which are missing", _COUNTERS),
    _row(r"^(?:Tcp: RtoAlgorithm|TcpExt: \w+ )", "/proc/net/snmp or /proc/net/netstat", "it is read as nstat prints it only", _COUNTERS),
    _row(r"^\d+: \S+: <[A-Z0-9_,-]*> mtu \d+", "ip link or ip addr without -s", "it has no counters", _LINKS),
    # How a node was set.
    _row(r"^default via \S+ dev |^\d+\.\d+\.\d+\.\d+/\d+ (?:via|dev) ", "ip route", "it doesn't say of which node it is, nor of when", f"{_NODE} (route.txt)"),
    # Qdiscs.
    _row(r"^\W*(?:sudo +)?(?:/\S*/)?tc (?:-\w+ +)*(?:qdisc|class) (?:add|replace|change|del)\b", "the commands that set qdiscs up", "what a command asked for needn't be what the kernel did", _TC),
    _row(r"^\s*\+---\([0-9a-f]+:[0-9a-f]*\) ", "the tree of tc -g", "it has no counters", "tc -s class show, before the test and after it"),
    _row(r"^filter (?:dev \S+ |block |parent |protocol )", "tc's filters", "they say which class a packet is put into, and their counters aren't looked at", _TC),
    _row(r"\bInterface\b.*\bDelay\b.*\bPacket Loss\b", "containerlab's table of tools netem show", "it shows what was asked for, and has no counters", _TC),
    _row(r'"(?:outgoing|incoming)"\s*:\s*\{', "tcshow of tcconfig", "it has no counters, and its words for settings are its own", _TC),
    # Rates.
    _row(r"^\*\*\* Ping: testing ping reachability", "Mininet's pingall", "it shows who reaches whom, and has no times", _PING),
    _row(r"^\*\*\* (?:Iperf|Results|Ping): ", "Mininet's own test", "it keeps one number, and how long and between which ports it measured nowhere", _IPERF3),
    _row(r"^nuttcp-|\d+ %TX \d+ %RX", "nuttcp", "it shows neither the retransmissions nor their connection", _IPERF3),
    _row(r"^(?:tcp|udp)_(?:bw|lat):$", "qperf", "it shows neither the retransmissions nor their connection", _IPERF3),
    _row(r"^Testing (?:down|up)load speed|Speedtest by Ookla|^(?:Down|Up)load: +[\d.]+ Mbit/s", "a speed test", "its path and its connections aren't those of a lab", _IPERF3),
    _row(r"IFACE +rxpck/s|^Linux \d\S* \(.*\) .*\(\d+ CPU\)", "sar", "it has an interface's means, and nothing of any connection", _IPERF3),
    _row(r"^ *Time +\S+.*\n *HH:MM:SS +KB/s|^ +\w+ +\w+ *\n +KB/s in +KB/s out|rx +tx.*\n.*estimated", "a meter of an interface's rate", "it has nothing of any connection", _IPERF3),
    # Packets and paths.
    _row(r'^"?No\."?,"?Time"?,"?Source"?|^ *\d+ +\d+\.\d+ +\S+ (?:→|->) \S+ +\w+ \d+ ', "tshark's or Wireshark's list", "its columns are chosen by whoever writes it", _FRAMES),
    _row(r"^HOST: .*Loss%|^Start: .*\nHOST:|^Mtr_Version,|\"mtr\"\s*:\s*\{|^ +My traceroute ", "mtr's report", "it keeps means of each router's answers, rounded, and no reply by itself", _PING),
    _row(r"^traceroute6? to |^Tracing route |^ *\d+\??: +\S+ +[\d.]+ms", "a trace of the path", "its few probes are no measurement of the round trip", _PING),
    _row(r"^len=\d+ ip=|^(?:SENT|RCVD) \(\d", "hping or nping", "its times have other parts of the way in them", _PING),
    _row(r"^[Cc]onnected to \S+ .*time=|^Probing \S+:\d+/tcp|\bconnects, \d+ ok|^PsPing v|^TCP connect to", "a ping of TCP or HTTP", "its times have the opening of a connection in them", _PING),
    _row(r"^ARPING |^(?:Unicast|Broadcast) reply from ", "arping", "it goes no further than the next node", _PING),
    _row(r"^Success rate is \d+ percent \(\d+/\d+\)", "the ping of a Cisco router", "it doesn't say when, or from where", _PING),
    _row(r"packet\(s\) transmitted\s*$", "the ping of a Huawei router", "its times are whole milliseconds, and its form is its own", _PING),
    _row(r"^.*\d\.\d+\.\d+\.\d+\b.*\b32\b.*:\s*\n(.+\n)\1+", "Windows' ping that was stopped before any answer", "nothing came back in it", "one that was let run to its end (ping -n 25 ADDRESS)"),
    _row(r"^ +SEQ HOST +SIZE TTL TIME", "the ping of a MikroTik router", "its times are in several units", _PING),
    _row(r"^(?:Ping )?Source +(?:Destination +IPV4Address|Address +Latency)", "PowerShell's Test-Connection", "its columns differ from version to version", "what ping.exe printed, in any language"),
    _row(r"^--- (?:ow|tw)ping statistics", "owping or twping", "its times are measured by programs, not by the kernel's answer", _PING),
    _row(r'"(?:xmt|intSum|vSum)"\s*:|"resp"\s*:\s*\{\s*"host"', "fping's JSON", "fping is read as it prints without -J only", "fping --count 25 ADDRESS, as text"),
    _row(r'"packets_transmitted"\s*:', "ping's output made into JSON", "what its fields mean depends on who made them", _PING),
    _row(r"^(?:ping6?|connect): \S|^Ping request could not find host", "an error of ping", "nothing was asked, or nobody answered", _PING),
    _row(r"^\d+ packets? captured$|^tcpdump: (?:verbose output|listening on|data link type)", "what tcpdump prints beside its packets", "no packet is in it", _FRAMES),
    _row(r"^\S+ is (?:alive|unreachable)\b", "a ping that says only who answers", "it has no times", _PING),
    # No output of a tool that measures.
    _row(r"(?i)\A\s*(?:<!doctype html|<html)", "a saved web page", "a tool's output in it is mixed with the page's own marks", "the tool's own output, copied into a text file"),
    _row(r"\A#!|^(?:import \w+$|from \w[\w.]* import )", "a script", "it is what was to be run, not what was printed"),
    _row(r"^Traceback \(most recent call last\):|^(?:-?\w*sh|sudo): (?:line \d+: )?\S+: (?:command )?not found|: command not found$", "a program's error", "it reports that something didn't run", "what the tool prints once it runs"),
    _row(r"\A\s*(?i:usage): ", "a program's help", "it has no measurement"),
    _row(r"^iperf3?: (?:unrecognized|unrecognised|invalid|illegal|unknown|ambiguous) option|^iperf3?: option .*(?:requires|needs) an argument", "iperf that refused one of its options", "it printed its usage and made no test", "a test with options that this version knows (iperf3 --help)"),
    _row(r"^I \(\d+\) iperf: |^iperf> ", "the iperf of an ESP32 (esp-idf)", "it has rates alone, and doesn't say by which connection", "what iperf -s -i 1 printed on the computer at the other end"),
    _row(r"\A(?:iperf[ 3]|Linux \S+ \d|ss utility|tc utility|ip utility|ping from iputils|tcpdump version)", "a program's version", "it has no measurement"),
    _row(r"\A[^\n]*,Ping \(ms\)|\A[^\n]*,TCP (?:up|down)load", "flent's CSV", "it has neither a flow's length nor its retransmissions", "its data file (.flent.gz)"),
    _row(r"\A(?=[^\n]*[A-Za-z])[^\n,;\t]*([,;\t])[^\n]*\1[^\n]*\n(?:[^\n]*\d[^\n]*\1[^\n]*\1[^\n]*\n){2}", "a table", "it doesn't show which tool measured what (./lab audit FILE looks at tables of results)", "what the tool printed itself"),
    _row(r"\A\s*[\[{]\s*[\"{\]}]", "JSON that no tool prints that is read", "what its values mean only its author knows", "what the tool printed itself"),
)
# fmt: on


def why_unread(text: str) -> str:
    """Return which form a text is, why it isn't read, and what to bring in its place; NO_TOOL where nobody knows it."""
    head = text[:_HEAD]
    return next((row.words for row in UNREAD if re.search(row.pattern, head, re.M)), NO_TOOL)


def measures_nothing(why: str) -> bool:
    """Return whether the words of `why_unread` are of a form that says nothing of any flow, so that nothing is lost by it."""
    return any(row.words == why for row in UNREAD if not row.instead)


def instead_of_which(why: str) -> str:
    """Return the tool that the words of `why_unread` ask for; nothing where they ask for none."""
    return next((tool for tool, words in _INSTEAD.items() if words in why), "")
