"""Which format a person's file has: told by its content, whatever stands before it."""

import pytest
from tool_outputs import DATA, read

from measuretwice.parse import Frames, Iperf3Run, ParseError, PingRun
from measuretwice.parse.formats import format_of


@pytest.mark.parametrize("tool", ["flent", "iperf2", "iperf3", "netperf", "ping", "ss", "tc"])
def test_each_tools_corpus_is_recognised(tool: str) -> None:
    recognised = 0
    for path in sorted((DATA / tool).iterdir()):
        if (tool, path.name) == ("tc", "samples-6.1.txt"):
            continue  # the labs' own samples of a queue are no format that anybody brings
        try:
            known = format_of(path.read_text(encoding="utf-8", errors="replace"), path.name)
        except ParseError:
            continue
        assert known.tool.removesuffix(" classes") == tool, path
        recognised += 1
    assert recognised


@pytest.mark.parametrize(
    ("text", "tool", "kind"),
    [
        ('We trust you\n[{"kind":"red","handle":"1:"}]\n', "tc", tuple),
        ("$ tc -s qdisc\nqdisc noqueue 0: dev lo root refcnt 2\n", "tc", tuple),
        ("1.0 a > b, length 1514: 10.4.1.2.5 > 10.4.3.2.6: Flags [.], length 1448\n", "tcpdump", Frames),
    ],
)  # fmt: skip
def test_what_stands_before_a_document_is_skipped(text: str, tool: str, kind: type) -> None:
    known = format_of(text, "a file")
    assert known.tool == tool
    assert isinstance(known.parse(text, "a file"), kind)


def test_another_programs_text_is_refused() -> None:
    with pytest.raises(ParseError, match="in no form that is read here"):
        format_of("total 12\ndrwxr-xr-x 2 root root 4096 .\n", "listing.txt")


@pytest.mark.parametrize(
    ("file", "tool", "kind"),
    [
        ("iperf3/iperf3-3.22-json-stream.json", "iperf3", Iperf3Run),
        ("iperf3/iperf3-3.12-refused.txt", "iperf3", Iperf3Run),
        ("iperf3/iperf3-3.12-server-several.txt", "iperf3", tuple),
        ("iperf2/iperf2-2.1.8-enhanced.txt", "iperf2", tuple),
        ("iperf2/iperf2-2.1.8-server.txt", "iperf2", tuple),
        ("ping/busybox-1.35-clean.txt", "ping", PingRun),
        ("ping/derived-ping6-freebsd-dup.txt", "ping", PingRun),
        ("ss/ss-6.1-ti-plain.txt", "ss", tuple),
        ("ss/ss-6.1-tn.txt", "ss", tuple),
        ("ss/samples-6.1.txt", "ss", tuple),
        ("tc/samples-6.1.txt", "queue", tuple),
    ],
)
def test_what_people_bring_has_its_own_format(file: str, tool: str, kind: type) -> None:
    text = read(file)
    known = format_of("$ the command that was typed\n" + text if tool == "ping" else text, file)
    assert known.tool == tool
    assert isinstance(known.parse(text, file), kind)
