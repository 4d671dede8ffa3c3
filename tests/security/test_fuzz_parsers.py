"""What tools print, damaged in every way: each parser gives a value of its type, or a ParseError in one line."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hostile import ROOT, Hostile, amounts, explore, files, watched
from hostile_runs import run_files

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
from measuretwice.parse.formats import format_of
from measuretwice.parse.tcpdump import TcpPacket, parse_tcpdump

DATA = ROOT / "tests" / "data" / "parse"
FRAMES = (
    b"12:00:00.000001 52:54:00:00:01:02 > 52:54:00:00:02:01, ethertype IPv4 (0x0800), length 1514: "
    b"10.4.1.2.58422 > 10.4.3.2.5201: Flags [.], seq 1:1449, ack 1, win 502, length 1448\n"
)
# Each parser, the type of what it gives (in a tuple, where there are several), and the files it is made for.
PARSERS: list[tuple[Callable[[str, str], Any], type, str]] = [
    (parse_iperf3_json, Iperf3Run, "iperf3/*.json"),
    (parse_iperf3_text, Iperf3Run, "iperf3/*.txt"),
    (parse_iperf3_server_text, Iperf3Run, "iperf3/*-server-*.txt"),
    (parse_iperf2_csv, Iperf2Connection, "iperf2/*.csv"),
    (parse_iperf2_text, Iperf2Connection, "iperf2/*.txt"),
    (parse_ss, SsSocket, "ss/ss*"),
    (parse_ss_samples, SsSample, "ss/samples*"),
    (parse_tc_qdiscs, Qdisc, "tc/tc*"),
    (parse_tc_classes, TcClass, "tc/*-class*"),
    (parse_qdisc_samples, QdiscSample, "tc/samples*"),
    (parse_ping, PingRun, "ping/*"),
    (parse_nstat, int, "nstat/*"),
    (parse_frames, Frames, "frames"),
    (parse_tcpdump, TcpPacket, "tcpdump"),
]
# What parsers once raised something else for.
KNOWN: dict[Callable[[str, str], Any], bytes] = {
    parse_iperf3_text: re.sub(
        rb"[0-9.]+ MBytes", b"inf MBytes", (DATA / "iperf3" / "iperf3-3.18-bidir.txt").read_bytes()
    ),
    parse_iperf3_server_text: (DATA / "iperf3" / "iperf3-3.12-server-verbose.txt")
    .read_bytes()
    .replace(b"Mon, 23", b"Mon, 99999999999999999999"),
}


@cache
def corpus(pattern: str) -> dict[str, bytes]:
    if pattern == "frames":
        return {pattern: FRAMES * 3}
    if pattern == "tcpdump":
        return {name: text for name, text in run_files("mathis").items() if "tcpdump" in name} | {
            "capture": b"1700000006.884614 IP 10.4.1.2.58422 > 10.4.3.2.5201: Flags [P.], seq 1:38, ack 1, "
            b"win 502, options [nop,nop,TS val 1 ecr 2], length 37\n"
        }
    return {path.name: path.read_bytes() for path in sorted(DATA.glob(pattern))}


def is_of(found: object, kind: type) -> bool:
    if isinstance(found, dict):
        return all(isinstance(name, str) and type(value) is kind for name, value in found.items())
    return isinstance(found, kind) or (
        isinstance(found, tuple) and all(isinstance(each, kind) for each in found)
    )


@amounts
@pytest.mark.parametrize(
    ("parse", "kind", "pattern"), PARSERS, ids=lambda it: getattr(it, "__name__", None)
)
def test_a_parser_reads_or_refuses(
    amount: str, parse: Callable[[str, str], Any], kind: type, pattern: str, tmp_path: Path
) -> None:
    assert corpus(pattern)

    def check(hostile: Hostile) -> None:
        for text in (hostile.content.decode("utf-8", "replace"), tidy(hostile.content)):
            with watched(tmp_path, ParseError):
                assert is_of(parse(text, "file.txt"), kind)

    explore(
        amount,
        files(corpus(pattern)),
        check,
        known=[Hostile(KNOWN[parse])] if parse in KNOWN else [],
    )


@amounts
def test_any_file_is_known_or_refused(amount: str, tmp_path: Path) -> None:
    """As a file is read whose tool nobody named."""
    bases = {name: text for _, _, pattern in PARSERS for name, text in corpus(pattern).items()}

    def check(hostile: Hostile) -> None:
        with watched(tmp_path, ParseError):
            text = tidy(hostile.content)
            assert format_of(text, "file.txt").parse(text, "file.txt") is not None

    explore(amount, files(bases), check, few=40)
