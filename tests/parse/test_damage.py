"""Damaged and foreign files: a ParseError in one line or a right answer, never anything else."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hostile import Hostile, amounts, explore, files, watched
from hostile_runs import run_files
from hypothesis import strategies as st
from tool_outputs import DATA, read

from measuretwice.measure.imported import tidy
from measuretwice.parse import (
    Frames,
    Iperf2Connection,
    Iperf3Run,
    ParseError,
    PingRun,
    Qdisc,
    QdiscSample,
    SsSample,
    SsSocket,
    TcClass,
    TruncatedError,
    parse_frames,
    parse_iperf2_csv,
    parse_iperf2_text,
    parse_iperf3_json,
    parse_iperf3_server_text,
    parse_iperf3_text,
    parse_nstat,
    parse_ping,
    parse_qdisc_samples,
    parse_ss,
    parse_ss_samples,
    parse_tc_classes,
    parse_tc_qdiscs,
)
from measuretwice.parse._reading import clean
from measuretwice.parse.formats import format_of
from measuretwice.parse.netperf import BulkTest, parse_flent, parse_netperf
from measuretwice.parse.tcpdump import TcpPacket, parse_tcpdump

Parser = Callable[[str, str], Any]
# Each parser, the type of what it gives (in a tuple, where there are several), and the outputs that it is right for:
# those that no parser above it is for.
PARSERS: list[tuple[Parser, type, str]] = [
    (parse_iperf2_csv, Iperf2Connection, "iperf2/*.csv"),
    (parse_iperf2_text, Iperf2Connection, "iperf2/*.txt"),
    (parse_iperf3_json, Iperf3Run, "iperf3/*.json"),
    (parse_iperf3_server_text, Iperf3Run, "iperf3/*-server-*"),
    (parse_iperf3_text, Iperf3Run, "iperf3/*.txt"),
    (parse_netperf, BulkTest, "netperf/*"),
    (parse_flent, BulkTest, "flent/*"),
    (parse_nstat, int, "nstat/*"),
    (parse_ping, PingRun, "ping/*"),
    (parse_qdisc_samples, QdiscSample, "tc/samples*"),
    (parse_ss_samples, SsSample, "ss/samples*"),
    (parse_ss, SsSocket, "ss/*"),
    (parse_tc_classes, TcClass, "tc/*-class*"),
    (parse_tc_qdiscs, Qdisc, "tc/*"),
]
# Those of captures, of which the outputs aren't in tests/data.
CAPTURES: list[tuple[Parser, type, str]] = [
    (parse_frames, Frames, "frames"),
    (parse_tcpdump, TcpPacket, "tcpdump"),
]
FRAMES = (
    b"12:00:00.000001 52:54:00:00:01:02 > 52:54:00:00:02:01, ethertype IPv4 (0x0800), length 1514: "
    b"10.4.1.2.58422 > 10.4.3.2.5201: Flags [.], seq 1:1449, ack 1, win 502, length 1448\n"
)
PACKET = (
    b"1700000006.884614 IP 10.4.1.2.58422 > 10.4.3.2.5201: Flags [P.], seq 1:38, ack 1, "
    b"win 502, options [nop,nop,TS val 1 ecr 2], length 37\n"
)
# What parsers once raised something else for.
KNOWN: dict[Parser, str] = {
    parse_iperf3_text: re.sub("[0-9.]+ MBytes", "inf MBytes", read("iperf3/iperf3-3.18-bidir.txt")),
    parse_iperf3_server_text: read("iperf3/iperf3-3.12-server-verbose.txt").replace(
        "Mon, 23", "Mon, 99999999999999999999"
    ),
}
OUTPUTS = sorted(DATA.glob("*/*"))
# They are about files that end too early, or hold too much.
WRONG = {
    "busybox-1.35-killed.txt", "ping-20221126-killed.txt", "iperf3-3.9-refused.json",
    "iperf2-2.1.8-killed.txt", "iperf2-2.1.8-refused.txt", "iperf3-3.12-server-killed.txt",
}  # fmt: skip
# iperf 2's rows don't tell a cut after the first second from a test without -i: test_iperf2.py has them.
CUT = [path for path in OUTPUTS if path.parent.name != "iperf2" and path.name not in WRONG]
by_name = pytest.mark.parametrize("parse", [parse for parse, _, _ in PARSERS], ids=lambda p: p.__name__)  # fmt: skip


def parser_of(path: Path) -> Parser:
    """The parser that is right for an output."""
    return next(parse for parse, _, pattern in PARSERS if path.match(pattern))


@cache
def outputs_for(parse: Parser) -> dict[str, bytes]:
    """Outputs that a parser is right for, by name."""
    if parse is parse_frames:
        return {"frames": FRAMES * 3}
    if parse is parse_tcpdump:
        recorded = {name: text for name, text in run_files("mathis").items() if "tcpdump" in name}
        return {**recorded, "capture": PACKET}
    return {path.name: path.read_bytes() for path in OUTPUTS if parser_of(path) is parse}


def attempt(parse: Parser, text: str, name: str) -> Any:
    """The result, or the ParseError, which must name the file on one printable line."""
    try:
        return parse(text, name)
    except ParseError as caught:
        error = caught
    message = str(error)
    assert message.startswith(f"{name}, ")
    assert message.isprintable()
    return error


@pytest.mark.parametrize("path", OUTPUTS, ids=lambda p: p.name)
def test_whole(path: Path) -> None:
    result = attempt(parser_of(path), path.read_text(encoding="utf-8"), path.name)
    assert isinstance(result, ParseError) == (path.name in WRONG)


@pytest.mark.parametrize("path", CUT, ids=lambda p: p.name)
def test_cut_off(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    parse = parser_of(path)
    whole = parse(text, path.name)
    line_ends = [i + 1 for i, c in enumerate(text) if c == "\n"]
    for cut in sorted({*range(0, len(text), 7), *line_ends[:-1]}):
        result = attempt(parse, text[:cut], path.name)
        if isinstance(result, ParseError):
            continue
        rest = text[cut:]
        if parse is parse_iperf3_server_text:
            # Of the tests that it served, the first ones.
            assert result == whole[: len(result)]
        elif isinstance(result, tuple):
            # Text of records, cut between two of them; the last one may lack its second line.
            assert not rest.strip() or text[cut - 1] == "\n"
            assert result[:-1] == whole[: len(result)][:-1]
        elif isinstance(result, dict):
            assert text[cut - 1] == "\n" or not rest.strip()
            assert result.items() <= whole.items()
        elif getattr(result, "error", None):
            # A run that broke off: what there is of it, by whole lines.
            assert text[cut - 1] == "\n"
            assert result.intervals == whole.intervals[: len(result.intervals)]
        else:
            # A run, cut after the last thing that counts.
            assert result == whole


def is_of(found: object, kind: type) -> bool:
    if isinstance(found, dict):
        return all(isinstance(name, str) and type(value) is kind for name, value in found.items())
    if isinstance(found, tuple):
        return all(isinstance(record, kind) for record in found)
    return isinstance(found, kind)


@amounts
@pytest.mark.parametrize(
    ("parse", "kind"),
    [(parse, kind) for parse, kind, _ in PARSERS + CAPTURES],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_parser_reads_or_refuses(amount: str, parse: Parser, kind: type, tmp_path: Path) -> None:
    """Outputs damaged in every way, and text of any characters."""

    def check(example: Hostile | str) -> None:
        texts = [example] if isinstance(example, str) else [
            example.content.decode("utf-8", "replace"), tidy(example.content)
        ]  # fmt: skip
        for text in texts:
            with watched(tmp_path):
                result = attempt(parse, text, "file.txt")
                assert isinstance(result, ParseError) or is_of(result, kind)

    any_text = st.text(alphabet=st.characters(codec=None), max_size=200)
    strategy = st.one_of(files(outputs_for(parse)), any_text)
    explore(amount, strategy, check, few=300, known=[KNOWN[parse]] if parse in KNOWN else [])


@amounts
def test_any_file_is_known_or_refused(amount: str, tmp_path: Path) -> None:
    """As a file is read whose tool nobody named."""
    outputs = {
        name: text
        for parse, _, _ in PARSERS + CAPTURES
        for name, text in outputs_for(parse).items()
    }

    def check(hostile: Hostile) -> None:
        with watched(tmp_path, ParseError):
            text = tidy(hostile.content)
            assert format_of(text, "file.txt").parse(text, "file.txt") is not None

    explore(amount, files(outputs), check, few=40)


@by_name
def test_other_tools_output_is_refused(parse: Parser) -> None:
    for path in OUTPUTS:
        # Classes are read as text where tc gives text, and samples contain what ss prints.
        if parser_of(path) is parse or path.name in WRONG:
            continue
        with pytest.raises(ParseError, match="expected"):
            parse(path.read_text(encoding="utf-8"), path.name)


@by_name
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the file is empty"),
        (" \n\n", "the file is empty"),
        ("\x1f\x8b\x08\x00\x00", "binary data (U+001F)"),
        ("[  5]\n\N{REPLACEMENT CHARACTER}", "binary data (U+FFFD)"),
        (b"\xff\xfe{".decode(errors="surrogateescape"), "binary data (U+DCFF)"),
        ("<!DOCTYPE html>\n", "found '<!DOCTYPE html>'"),
        ("[" * 100000, "expected"),
        ("9" * 5000, "expected"),
    ],
)
def test_not_a_tools_output(parse: Parser, text: str, problem: str) -> None:
    message = str(attempt(parse, text, "x.txt"))
    assert problem in message
    assert "expected" in message
    assert len(message) < 300


def test_the_tool_is_named() -> None:
    with pytest.raises(ParseError) as caught:
        parse_ping(read("ss/ss-6.1-tn.txt"), "ping.txt")
    assert str(caught.value) == "ping.txt, line 1: this is ss output; expected the output of ping"


def test_the_error_is_one_printable_line_and_survives_pickling() -> None:
    error = TruncatedError("a\nb.txt", "line 3", "found \x1b[1m\n'x'; expected y")
    assert str(error) == "a b.txt, line 3: found \ufffd[1m 'x'; expected y"
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.source, again.where) == (TruncatedError, "a\nb.txt", "line 3")
    assert isinstance(error, ValueError)


# --- what every parser asks of a text first: by a quick way for ASCII, and by a slow one ---

CONTROLS = [*range(9), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F]
either_way = pytest.mark.parametrize("beside", ["", "µ"], ids=["ASCII alone", "with another letter"])  # fmt: skip


def refused(text: str) -> bool:
    try:
        clean(text, "a.txt", "anything")
    except ParseError:
        return True
    return False


@either_way
def test_control_characters_are_no_text(beside: str) -> None:
    found = [code for code in range(0x80) if refused(f"{beside}a{chr(code)}b")]
    assert found == CONTROLS


@either_way
def test_no_tool_counts_to_forty_digits(beside: str) -> None:
    digits = "1234567890" * 4
    assert refused(f"{beside}x {digits} y")
    assert not refused(f"{beside}x {digits[1:]} {digits[1:]} y")


def test_bytes_that_are_no_text_and_digits_of_other_scripts() -> None:
    assert refused("a\N{REPLACEMENT CHARACTER}b")
    assert refused("a\udc80b")
    assert refused("\N{ARABIC-INDIC DIGIT ONE}" * 40)
    assert clean("\N{ZERO WIDTH NO-BREAK SPACE}a\r\nb", "a.txt", "anything") == "a\nb"
