"""Fields of a tool's line say what they are: in the words of ./lab show, by hand, pointer and keyboard."""

import html
import re
from pathlib import Path
from typing import Any

import pytest
from all_cases import LABS

from measuretwice.base.errors import UserError
from measuretwice.parse import ss_fields
from measuretwice.site.macros import LabContext
from measuretwice.site.macros.explained import explained, marks_of

ROOT = Path(__file__).parents[2]
TOOLS = ("ss", "tc", "iperf3", "ping", "nstat", "tcpdump")
SS = (
    "ESTAB 0 245280 10.10.1.100:60694 10.10.2.100:5201 reno wscale:9,7 rto:277 rtt:76.262/0.1 mss:1460 "
    "cwnd:64 send 9801998bps lastsnd:2 pacing_rate 11762280bps app_limited busy:30019ms retrans:0/120 minrtt:20"
)


def named(tool: str, text: str) -> dict[str, str]:
    """Each field's name, and what of the text is marked as it."""
    lines = text.split("\n")
    return {
        name: line[mark.start : mark.end]
        for line, marks in zip(lines, marks_of(tool, text), strict=True)
        for mark in marks
        for name, _ in mark.meanings
    }


def test_fields_of_ss_are_found_where_they_stand() -> None:
    found = named("ss", SS)
    assert found["state"] == "ESTAB"
    assert found["Send-Q"] == "245280"
    assert found["algorithm"] == "reno"
    assert found["rtt"] == found["rttvar"] == "rtt:76.262/0.1"
    assert found["retrans total"] == "retrans:0/120"
    assert found["send"] == "send 9801998bps"
    assert found["pacing_rate"] == "pacing_rate 11762280bps"
    assert found["app_limited"] == "app_limited"
    assert "5201" not in "".join(found.values())


def test_fields_of_the_other_tools() -> None:
    tc = '{\n  "kind": "netem",\n  "options": {\n    "limit": 1000,\n    "delay": {\n      "delay": 0.01\n    }\n  },\n  "drops": 3\n}'
    assert named("tc", tc) == {
        "limit": '"limit": 1000',
        "delay.delay": '"delay": 0.01',
        "drops": '"drops": 3',
    }
    ping = "64 bytes from 10.0.0.1: icmp_seq=1 ttl=63 time=20.0 ms\nrtt min/avg/max/mdev = 1.0/2.0/3.0/0.5 ms, pipe 3"
    assert named("ping", ping)["time of one"] == "time=20.0 ms"
    assert named("ping", ping)["mdev"] == "0.5"
    dump = "02:00:00:00:02:01 > 02:00:00:00:02:02, IPv4, length 1514: 10.10.1.100.4242 > 10.10.2.100.5201: tcp 1460"
    assert named("tcpdump", dump)["length"] == "1514"
    assert named("tcpdump", dump)["from"] == "10.10.1.100.4242"
    assert named("nstat", '  "TcpOutSegs": 12,') == {"TcpOutSegs": '"TcpOutSegs": 12'}
    with pytest.raises(UserError, match="there is no tool 'dig'"):
        marks_of("dig", "")


def test_every_tools_page_explains_its_lines_in_the_words_of_lab_show() -> None:
    known = {html.escape(meaning.text, quote=False) for meaning in ss_fields.SS.values()}
    calibrate = LabContext(ROOT, next(lab for lab in LABS if lab.name == "calibrate"))
    block = explained(calibrate, "ss", "readings", "romeo/ss.txt", trial=2, grep=" reno ", last=1)
    rows = re.findall(r"</b> (?:<i>[^<]+</i>: )?(.*?)</span>", block)
    assert len(rows) > 30
    assert set(rows) <= known
    facts = (ROOT / "labs/00-calibrate/facts.py").read_text(encoding="utf-8")
    for tool in TOOLS:
        assert re.search(rf'explained"?[=:] ?"{tool}"', facts), tool


@pytest.fixture
def page(browser: Any, tmp_path: Path) -> Any:
    calibrate = LabContext(ROOT, next(lab for lab in LABS if lab.name == "calibrate"))
    block = explained(calibrate, "ss", "readings", "romeo/ss.txt", trial=2, grep=" reno ", last=1)
    assets = (ROOT / "docs/assets").as_uri()
    file = tmp_path / "page.html"
    file.write_text(
        f'<meta charset="utf-8"><link rel="stylesheet" href="{assets}/extra.css"><div class="md-typeset">{block}</div>'
        f'<script src="{assets}/site.js"></script>',
        encoding="utf-8",
    )
    opened = browser.new_page(viewport={"width": 360, "height": 800})
    opened.goto(file.as_uri())
    yield opened
    opened.close()


def shown(page: Any) -> str:
    seen = page.locator(".meaning:visible").all_inner_texts()
    assert len(seen) <= 1
    return "".join(seen)


@pytest.mark.slow
def test_a_field_says_what_it_is_to_keyboard_and_pointer(page: Any) -> None:
    assert shown(page) == ""
    page.keyboard.press("Tab")
    assert "state of the connection" in shown(page)
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    assert shown(page).startswith("rto ms: retransmission timeout")
    # One stop of Tab for all: the next is the list.
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    page.hover(".field:has-text('minrtt')")
    assert shown(page).startswith("minrtt ms: smallest")
    page.click(".field:has-text('cwnd')")
    page.mouse.move(0, 0)
    assert "congestion window" in shown(page)
    page.keyboard.press("Escape")
    assert shown(page) == ""
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
