"""Which format a person's file has: told by its content, whatever stands before it."""

from pathlib import Path

import pytest

from measuretwice.parse import Frames, ParseError
from measuretwice.parse.formats import FORMATS, format_of

CORPUS = Path(__file__).parents[1] / "data" / "parse"
TOOLS = ("iperf2", "iperf3", "ping", "ss", "tc")


def texts(tool: str) -> list[Path]:
    # The labs' own samples of a queue are no format that anybody brings.
    paths = [
        path
        for path in sorted((CORPUS / tool).iterdir())
        if tool == "ss" or "samples" not in path.name
    ]
    assert paths, tool
    return paths


@pytest.mark.parametrize("tool", TOOLS)
def test_each_tools_corpus_is_recognised(tool: str) -> None:
    recognised = 0
    for path in texts(tool):
        try:
            known = format_of(path.read_text(encoding="utf-8", errors="replace"), path.name)
        except ParseError:
            continue
        assert known.tool == tool, path
        recognised += 1
    assert recognised


@pytest.mark.parametrize(
    ("text", "tool", "kind"),
    [
        (
            "We trust you have received the usual lecture\n" + '[{"kind":"red","handle":"1:"}]\n',
            "tc",
            tuple,
        ),
        ("$ tc -s qdisc\nqdisc noqueue 0: dev lo root refcnt 2\n", "tc", tuple),
        (
            "1.0 a > b, length 1514: 10.4.1.2.5 > 10.4.3.2.6: Flags [.], length 1448\n",
            "tcpdump",
            Frames,
        ),
    ],
)
def test_what_stands_before_a_document_is_skipped(text: str, tool: str, kind: type) -> None:
    known = format_of(text, "a file")
    assert known.tool == tool
    assert isinstance(known.parse(text, "a file"), kind)


def test_another_programs_text_is_refused() -> None:
    with pytest.raises(ParseError, match="none of iperf3"):
        format_of("total 12\ndrwxr-xr-x 2 root root 4096 .\n", "listing.txt")


def test_only_text_stands_in_for_iperf3s_json() -> None:
    assert [known.tool for known in FORMATS if known.stands_in] == ["iperf3"]
