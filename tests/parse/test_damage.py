"""Damaged and foreign files: a ParseError or a right answer, never anything else."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from measuretwice.parse import (
    ParseError,
    TruncatedError,
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

Parser = Callable[[str, str], Any]
DATA = Path(__file__).parents[1] / "data" / "parse"
PARSERS: list[Parser] = [
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
]


def parser_of(path: Path) -> Parser:
    """The parser that is right for a corpus."""
    if path.parent.name == "iperf2":
        return parse_iperf2_csv if path.suffix == ".csv" else parse_iperf2_text
    if "-server-" in path.name:
        return parse_iperf3_server_text
    if path.parent.name == "iperf3":
        return parse_iperf3_json if path.suffix == ".json" else parse_iperf3_text
    if path.parent.name == "tc" and path.name.startswith("samples"):
        return parse_qdisc_samples
    if path.parent.name == "tc":
        return parse_tc_classes if "-class" in path.name else parse_tc_qdiscs
    if path.name.startswith("samples"):
        return parse_ss_samples
    return {"ss": parse_ss, "ping": parse_ping, "nstat": parse_nstat}[path.parent.name]


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


CORPORA = sorted(p for p in DATA.glob("*/*"))
# They are about files that end too early, or hold too much.
# iperf 2's rows don't tell a cut after the first second from a test without -i: test_iperf2.py has them.
CUT = [p for p in CORPORA if p.parent.name != "iperf2"]
WRONG = {
    "busybox-1.35-killed.txt",
    "ping-20221126-killed.txt",
    "iperf3-3.9-refused.json",
    "iperf2-2.1.8-killed.txt",
    "iperf2-2.1.8-refused.txt",
    "iperf3-3.12-server-killed.txt",
}


@pytest.mark.parametrize("path", CORPORA, ids=lambda p: p.name)
def test_whole(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if path.name in WRONG:
        with pytest.raises(ParseError):
            parser_of(path)(text, path.name)
    else:
        parser_of(path)(text, path.name)


@pytest.mark.parametrize("path", [p for p in CUT if p.name not in WRONG], ids=lambda p: p.name)
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


@pytest.mark.parametrize("path", CORPORA, ids=lambda p: p.name)
def test_scrambled(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    chance = random.Random(path.name)
    for _ in range(60):
        characters = list(text)
        for _ in range(chance.randint(1, 4)):
            where = chance.randrange(len(characters))
            choice = chance.randrange(3)
            if choice == 0:
                characters[where] = chance.choice('0-9eE.,:()[]{}"%\\ \n\tKx\x00é')
            elif choice == 1:
                del characters[where : where + chance.randint(1, 40)]
            else:
                characters[where:where] = characters[where : where + chance.randint(1, 40)]
            characters = characters or ["\n"]
        attempt(parser_of(path), "".join(characters), path.name)


@pytest.mark.parametrize("parse", PARSERS, ids=lambda p: p.__name__)
@settings(derandomize=True, deadline=None, max_examples=150)
@given(text=st.text(alphabet=st.characters(codec=None), max_size=200))
def test_any_text(parse: Parser, text: str) -> None:
    attempt(parse, text, "any")


@pytest.mark.parametrize("parse", PARSERS, ids=lambda p: p.__name__)
def test_other_tools_output_is_refused(parse: Parser) -> None:
    for path in CORPORA:
        # Classes are read as text where tc gives text, and samples contain what ss prints.
        if parser_of(path) is parse or path.name in WRONG:
            continue
        with pytest.raises(ParseError) as caught:
            parse(path.read_text(encoding="utf-8"), path.name)
        assert "expected" in str(caught.value)


@pytest.mark.parametrize("parse", PARSERS, ids=lambda p: p.__name__)
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
    with pytest.raises(ParseError) as caught:
        parse(text, "x.txt")
    message = str(caught.value)
    assert message.startswith("x.txt, ")
    assert problem in message
    assert "expected" in message
    assert len(message) < 300


def test_the_tool_is_named() -> None:
    text = (DATA / "ss" / "ss-6.1-tn.txt").read_text(encoding="utf-8")
    with pytest.raises(ParseError) as caught:
        parse_ping(text, "ping.txt")
    assert str(caught.value) == ("ping.txt, line 1: this is ss output; expected the output of ping")


def test_the_error_is_one_printable_line_and_survives_pickling() -> None:
    error = TruncatedError("a\nb.txt", "line 3", "found \x1b[1m\n'x'; expected y")
    assert str(error) == "a b.txt, line 3: found \ufffd[1m 'x'; expected y"
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.source, again.where) == (TruncatedError, "a\nb.txt", "line 3")
    assert isinstance(error, ValueError)
