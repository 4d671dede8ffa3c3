"""ip -s link as text and JSON."""

from __future__ import annotations

import json

import pytest

from measuretwice.parse import ParseError
from measuretwice.parse.formats import format_of
from measuretwice.parse.host import parse_ip_links

TEXT = """1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN mode DEFAULT group default qlen 1000
    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00
    RX: bytes  packets  errors  dropped overrun mcast
    100        1        0       0       0       0
    TX: bytes  packets  errors  dropped carrier collsns
    100        1        0       0       0       0
2: eth2@if3: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc htb state UP mode DEFAULT group default qlen 60
    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff
    RX:  bytes packets errors dropped  missed   mcast
       7524000  114000      1       2       0       0
    TX:  bytes packets errors dropped carrier collsns
     345042114  227901      3       4       0       0
"""


def test_text_has_what_json_has() -> None:
    _, eth2 = parse_ip_links(TEXT, "a")
    assert eth2["ifname"] == "eth2"
    assert "UP" in eth2["flags"]
    assert (eth2["mtu"], eth2["qdisc"], eth2["operstate"], eth2["txqlen"]) == (
        1500,
        "htb",
        "UP",
        60,
    )
    assert eth2["stats64"]["rx"] == {"bytes": 7524000, "packets": 114000, "errors": 1, "dropped": 2}
    assert eth2["stats64"]["tx"] == {
        "bytes": 345042114,
        "packets": 227901,
        "errors": 3,
        "dropped": 4,
    }
    known = format_of(TEXT, "a")
    assert known.tool == "ip"
    assert json.loads(known.tidied(TEXT, "a")) == parse_ip_links(TEXT, "a")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (TEXT[: TEXT.rindex("    TX")], "no counters of both ways"),
        (TEXT.replace("   3       4", "   3       x"), "expected an interface's counters"),
        ('[{"ifname": "eth0"}]', "without its counters"),
        ('[{"ifname": "eth0"', "cut off or no JSON"),
    ],
)
def test_what_has_no_counters_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ParseError, match=problem):
        parse_ip_links(text, "a")
