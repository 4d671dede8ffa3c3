"""What the tools said, as values: iperf3, iperf 2, ss, tc, ping, nstat.

Each parser is a pure function of (text, source); `source` is the file's name, for messages. It
gives frozen dataclasses whose field names end in their units, with None for what the tool didn't
say, or raises `ParseError`, one line that names file and place. Nothing is half-read.
"""

from measuretwice.parse._reading import UNIX_TIME_S, ParseError, TruncatedError
from measuretwice.parse.host import parse_nstat
from measuretwice.parse.iperf2 import (
    Iperf2Connection,
    Iperf2Row,
    parse_iperf2_csv,
    parse_iperf2_text,
)
from measuretwice.parse.iperf3 import (
    Iperf3Connection,
    Iperf3Interval,
    Iperf3Run,
    Iperf3Stream,
    parse_iperf3_json,
)
from measuretwice.parse.iperf3_text import parse_iperf3_server_text, parse_iperf3_text
from measuretwice.parse.ping import PingReply, PingRun
from measuretwice.parse.ping_forms import parse_ping
from measuretwice.parse.ss import SsSample, parse_ss, parse_ss_samples
from measuretwice.parse.ss_fields import SsSocket, SsUser
from measuretwice.parse.tc import (
    QdiscSample,
    parse_qdisc_samples,
    parse_tc_classes,
    parse_tc_qdiscs,
)
from measuretwice.parse.tc_fields import Qdisc, TcClass
from measuretwice.parse.tcpdump import Frames, parse_frames

__all__ = [
    "UNIX_TIME_S",
    "Frames",
    "Iperf2Connection",
    "Iperf2Row",
    "Iperf3Connection",
    "Iperf3Interval",
    "Iperf3Run",
    "Iperf3Stream",
    "ParseError",
    "PingReply",
    "PingRun",
    "Qdisc",
    "QdiscSample",
    "SsSample",
    "SsSocket",
    "SsUser",
    "TcClass",
    "TruncatedError",
    "parse_frames",
    "parse_iperf2_csv",
    "parse_iperf2_text",
    "parse_iperf3_json",
    "parse_iperf3_server_text",
    "parse_iperf3_text",
    "parse_nstat",
    "parse_ping",
    "parse_qdisc_samples",
    "parse_ss",
    "parse_ss_samples",
    "parse_tc_classes",
    "parse_tc_qdiscs",
]
