"""What netperf prints, and the data files of flent, which runs it: of both what they say of a test as a whole.

netperf's classic tests print a banner, headings of several lines and a row of numbers; its omni tests NAME=VALUE (-k) or
two lines of CSV (-o). flent's file is JSON: series over time, and what each tool said at its end (SERIES_META).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from measuretwice.parse._reading import JsonObject, ParseError, clean, cut_off, foreign, load

_EXPECTED = "the output of netperf -t TCP_STREAM"
_EXPECTED_FLENT = "flent's data file (.flent.gz)"
_BANNER = re.compile(
    r"^(?:MIGRATED )?(?P<protocol>\w+) (?P<kind>[A-Za-z/ ]+?) TEST (?:from|to) ", re.M
)
_ROW = re.compile(r"^ *(\d+) +(\d+) +(\d+) +(\d+\.\d+) +(\d+(?:\.\d+)?)(?: +(.*))?$", re.M)
_INTERIM = re.compile(
    r"^Interim result: +(\d+(?:\.\d+)?) +(\S+) over (\d+(?:\.\d+)?) seconds", re.M
)
# With -k, or as environment variables.
_INTERIM_PAIRS = re.compile(
    r"^NETPERF_INTERIM_RESULT\[\d+\]=(\d+(?:\.\d+)?)\nNETPERF_UNITS\[\d+\]=(\S+)\nNETPERF_INTERVAL\[\d+\]=(\d+(?:\.\d+)?)$",
    re.M,
)
_UNIT = re.compile(r"10\^(\d)bits */ ?s|([KMG])Bytes */ ?s")
_PAIR = re.compile(r"^([A-Z][A-Z0-9_]+)=(.*)$", re.M)
_POWER = {"K": 1, "M": 2, "G": 3}
# What it says in place of a result.
_FAILED = re.compile(
    r"^(?:establish[_ ]control|netperf: |netserver: |(?:send|recv)_\w+: ).*|^\w+: .*\b(?:errno|error|failed)\b.*",
    re.M,
)
# With -I: how wide the interval of its repetitions' throughput is, in per cent of their mean, where it is wider than asked.
_MISSED = re.compile(r"^!!! Confidence intervals: Throughput +: +(\d{1,9}(?:\.\d{1,9})?)%", re.M)
# A mean that is known to 5 % is one.
_WIDE_PERCENT = 10.0
# netperf's names in CSV for those of its pairs that are read.
_IN_CSV = {
    "Throughput": "THROUGHPUT",
    "Throughput Units": "THROUGHPUT_UNITS",
    "Elapsed Time (sec)": "ELAPSED_TIME",
    "Protocol": "PROTOCOL",
    "Direction": "DIRECTION",
    "Local Transport Retransmissions": "LOCAL_TRANSPORT_RETRANS",
    "Local Congestion Control Algorithm": "LOCAL_CONG_CONTROL",
    "Transport MSS bytes": "TRANSPORT_MSS",
}
# Larger numbers no test has.
_MOST = 1e15
# What flent computes of other series.
_COMPUTED = re.compile(r"::(?:tcp_|sum|avg)|\b(?:sum|avg|totals)$")
# What flent's summary has of each series in a line.
_SERIES = re.compile(r"^ *(\S(?:[^:\n]|::)*?) *: +(?:[\d.,]+|N/A) ", re.M)
_UDP = "a test of UDP, which has neither window nor recovery"
_REQUESTS = "a test of requests and responses, which transfers nothing in bulk"
_BOTH_WAYS = "a test in both directions at once: each is in the other's way"


@dataclass(frozen=True)
class BulkTest:
    """A test as a whole, of all its flows, where the tool names no connection.

    `rows` are bytes from one second to another; `unfit` says why nothing can be concluded from it. What the tool doesn't
    say is None. `ping_min_ms` is the smallest round-trip time of a ping beside the flows. `is_part` says that only its
    intervals are known, not its result.
    """

    tool: str
    rate_bps: float
    seconds: float
    flows: int = 1
    rows: tuple[tuple[float, float, int], ...] = ()
    retransmits: int | None = None
    congestion_control: str | None = None
    mss_bytes: int | None = None
    own_cpu_percent: float | None = None
    other_cpu_percent: float | None = None
    ping_min_ms: float | None = None
    unfit: str | None = None
    is_part: bool = False


def parse_netperf(text: str, source: str) -> tuple[BulkTest, ...]:
    """Read the tests that netperf printed, in their order.

    ParseError for other text; TruncatedError where a test has no result.
    """
    text = clean(text, source, _EXPECTED)
    if not text.endswith("\n"):
        raise cut_off(source, text.count("\n") + 1, "a whole line at the end")
    begins = [banner.start() for banner in _BANNER.finditer(text)]
    if not begins and "THROUGHPUT=" not in text and (rows := (*_interim(text),)):
        seconds = rows[-1][1]
        rate_bps = 8 * sum(bytes_ for *_, bytes_ in rows) / seconds if seconds else 0.0
        return (BulkTest("netperf", rate_bps, seconds, rows=rows, is_part=True),)
    if not begins and "THROUGHPUT=" not in text:
        # Other tools fail, too.
        if (failed := _FAILED.search(text)) and failed[0].startswith("establish"):
            raise _no_test(failed, source)
        raise foreign(text, source, _EXPECTED)
    bounds = [*(begins or [0]), len(text)]
    lines = text.count("\n")
    return tuple(_test(text[begin:end], source, lines) for begin, end in pairwise(bounds))


def _test(text: str, source: str, lines: int) -> BulkTest:
    banner = _BANNER.match(text)
    pairs = dict(_PAIR.findall(text)) | _of_csv(text)
    if "THROUGHPUT" in pairs:
        return _omni(pairs, text, source)
    if problem := _unfit(banner["protocol"] if banner else "", banner["kind"] if banner else ""):
        return BulkTest("netperf", 0.0, 0.0, unfit=problem)
    row = _ROW.search(text)
    # The heading's; intervals above it have their own.
    units = [*_UNIT.finditer(text[: row.start()])] if row else []
    if row is None and (failed := _FAILED.search(text)):
        raise _no_test(failed, source)
    if row is None or not units:
        raise cut_off(source, lines, "the row with the test's throughput (was it killed?)")
    shares = [float(share) for share in re.findall(r"-?\d+\.\d+", row[6] or "")[:2]]
    # In a container netperf counts processors wrongly.
    is_share = len(shares) == 2 and all(0 <= share <= 100 for share in shares)
    own, other = shares if "Utilization" in text and is_share else (None, None)
    missed = _MISSED.search(text)
    return BulkTest(
        "netperf", float(row[5]) * _factor(units[-1]), float(row[4]), rows=tuple(_interim(text)),
        own_cpu_percent=own, other_cpu_percent=other,
        unfit=f"netperf warns that its repetitions differ: their throughput is known to {missed[1]} % only (-I)"
        if missed and float(missed[1]) > _WIDE_PERCENT else None,
    )  # fmt: skip


def _no_test(failed: re.Match[str], source: str) -> ParseError:
    """Return what netperf says in place of a result."""
    return ParseError(source, "file", f"no test took place; netperf says {failed[0].strip()!r}")


def _factor(unit: re.Match[str]) -> float:
    return 10.0 ** int(unit[1]) if unit[1] else 8 * 1024.0 ** _POWER[unit[2]]


def _unfit(protocol: str, kind: str) -> str | None:
    if protocol.upper().startswith("UDP"):
        return _UDP
    return _REQUESTS if "request" in kind.lower() or kind.upper() in ("RR", "CRR") else None


def _interim(text: str) -> Iterator[tuple[float, float, int]]:
    """Yield the bytes of the intervals (-D), from the test's beginning on."""
    begin_s = 0.0
    for rate, unit_text, seconds in _INTERIM.findall(text) or _INTERIM_PAIRS.findall(text):
        unit = _UNIT.search(unit_text)
        if unit:
            end_s = begin_s + float(seconds)
            yield begin_s, end_s, round(float(rate) * _factor(unit) * float(seconds) / 8)
            begin_s = end_s


def _of_csv(text: str) -> dict[str, str]:
    """The pairs of a heading and a row of CSV, by netperf's other names for them."""
    lines = text.splitlines()
    for heading, row in pairwise(lines):
        if heading.startswith(tuple(_IN_CSV)) or "Throughput," in heading:
            names, values = next(csv.reader([heading])), next(csv.reader([row]))
            return {
                _IN_CSV[name.strip()]: value.strip()
                for name, value in zip(names, values, strict=False)
                if name.strip() in _IN_CSV
            }
    return {}


def _omni(pairs: Mapping[str, str], text: str, source: str) -> BulkTest:
    unit = _UNIT.search(pairs.get("THROUGHPUT_UNITS", "10^6bits/s"))
    protocol, direction = pairs.get("PROTOCOL", "TCP"), pairs.get("DIRECTION", "Send")
    problem = _unfit(protocol, "")
    if unit is None or "|" in direction:
        # Transactions per second.
        problem = problem or _REQUESTS
    try:
        return BulkTest(
            "netperf", float(pairs["THROUGHPUT"]) * (_factor(unit) if unit else 1.0),
            float(pairs.get("ELAPSED_TIME", 0.0)), rows=tuple(_interim(text)),
            retransmits=_whole(pairs.get("LOCAL_TRANSPORT_RETRANS")),
            congestion_control=pairs.get("LOCAL_CONG_CONTROL") or None,
            mss_bytes=_whole(pairs.get("TRANSPORT_MSS")), unfit=problem,
        )  # fmt: skip
    except ValueError:
        raise ParseError(source, "THROUGHPUT", "expected numbers") from None


def _whole(text: str | None) -> int | None:
    """Return a count; None where netperf prints -1, or nothing."""
    return int(text) if text and re.fullmatch(r"\d{1,18}", text) else None


def parse_flent_summary(text: str, source: str) -> tuple[BulkTest, ...]:
    """Refuse what flent prints on the screen: ParseError, which says of which tests it is, and what to bring."""
    parts = re.split(r"^Summary of (\S+) test run", text, flags=re.M)
    tests = [
        f"{name}{_contents(_SERIES.findall(lines))}"
        for name, lines in zip(parts[1::2], parts[2::2], strict=True)
    ]
    several = f"{len(tests)} summaries on the screen" if len(tests) > 1 else "summary on the screen"
    which = f" ({'; '.join(tests)})" if tests else ""
    raise ParseError(
        source, "file", f"flent's {several}{which}, which has neither a flow's length nor its retransmissions; bring its data "
        "file (.flent.gz), or iperf3 -J of the client"
    )  # fmt: skip


def _contents(names: Sequence[str]) -> str:
    """Say how many flows of TCP a test has in each direction, by its series' names; nothing where it has none by itself."""
    counts = {
        way: sum(name.startswith(f"TCP {way}") and not _COMPUTED.search(name) for name in names)
        for way in ("download", "upload")
    }
    words = [f"{count} TCP {way}{'s' * (count > 1)}" for way, count in counts.items() if count]
    if not words:
        words = [
            f"TCP {way}s" for way in counts if any(name.startswith(f"TCP {way}") for name in names)
        ]
    at_once = " at once" if len(words) > 1 or sum(counts.values()) > 1 else ""
    return f": {' and '.join(words)}{at_once}" if words else ""


def _unlike(metadata: JsonObject, results: JsonObject, flows: list[str]) -> str:
    """Say of a data file of both directions which of flent's tests it is, what it holds, and what of it is empty."""
    empty = [name for name in flows if not _values(results, name)]
    none = f"; no value was measured of {', '.join(empty)}" if empty else ""
    return f"flent's test {metadata.text('NAME') or 'of no name'}{_contents(flows)}: {_BOTH_WAYS}{none}"


def parse_flent(text: str, source: str) -> tuple[BulkTest, ...]:
    """Read flent's data file: its flows of TCP together, and the smallest time of a ping beside them.

    ParseError for other JSON, and for a file without a flow of TCP.
    """
    text = clean(text, source, _EXPECTED_FLENT)
    if not text.lstrip().startswith("{"):
        raise foreign(text, source, _EXPECTED_FLENT)
    document = JsonObject.of(load(text, source, _EXPECTED_FLENT), "$", source)
    results, metadata = document.need_child("results"), document.need_child("metadata")
    ends = metadata.child("SERIES_META") or JsonObject({}, "$.metadata.SERIES_META", source)
    flows = [
        name for name in results.data if name.startswith("TCP ") and not _COMPUTED.search(name)
    ]
    if not flows:
        raise ParseError(source, "$.results", "no series is of TCP; expected flows of TCP")
    whole = [ends.child(name) or JsonObject({}, f"$.{name}", source) for name in flows]
    means = [
        meta.number("MEAN_VALUE") or _mean(results, name)
        for name, meta in zip(flows, whole, strict=True)
    ]
    resent = [_whole(str(meta.data.get("TCP_RETRANSMIT"))) for meta in whole]
    algorithms = {meta.text("CONG_CONTROL") for meta in whole}
    sizes = {meta.integer("TCP_MSS") for meta in whole}
    pings = [
        value
        for name in results.data
        if name.startswith("Ping (ms)") and not _COMPUTED.search(name)
        for value in _values(results, name)
    ]
    seconds = [meta.number("ELAPSED_TIME") or metadata.number("LENGTH") or 0.0 for meta in whole]
    both = {"upload", "download"} <= {
        word for name in flows for word in name.split("::")[0].split()
    }
    return (
        BulkTest(
            "flent", 1e6 * sum(means), max(seconds), len(flows),
            retransmits=None if None in resent else sum(filter(None, resent)),
            congestion_control=algorithms.pop() if len(algorithms) == 1 else None,
            mss_bytes=sizes.pop() if len(sizes) == 1 else None,
            ping_min_ms=min(pings, default=None),
            unfit=_unlike(metadata, results, flows) if both else None if any(means) else _nothing(metadata, results, flows),
        ),
    )  # fmt: skip


def _nothing(metadata: JsonObject, results: JsonObject, flows: list[str]) -> str | None:
    """Say that no rate was measured, and what flent says of it; nothing where 0 was measured."""
    if any(_values(results, name) for name in flows):
        return None
    failed = metadata.data.get("FAILED_RUNNERS")
    words = [text for part in (failed if isinstance(failed, list) else []) for text in _texts(part)]
    why = f"; flent reports that its runner failed: {': '.join(words)[:200]}" if words else ""
    return f"no value was measured of {', '.join(flows)}{why}"


def _texts(value: object) -> list[str]:
    if isinstance(value, list):
        return [text for inner in value for text in _texts(inner)]
    return [value] if isinstance(value, str) else []


def _values(results: JsonObject, name: str) -> list[float]:
    series = results.data.get(name)
    values = series if isinstance(series, list) else []
    return [value for value in values if isinstance(value, (int, float)) and abs(value) < _MOST]


def _mean(results: JsonObject, name: str) -> float:
    values = _values(results, name)
    return sum(values) / len(values) if values else 0.0
