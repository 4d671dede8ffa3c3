"""The size of the IP packet in each form that tcpdump has for it; the lines are written here, in its forms."""

from __future__ import annotations

import pytest

from measuretwice.parse import Frames, parse_frames
from measuretwice.parse.formats import format_of

MACS = "52:54:00:00:01:02 > 52:54:00:00:02:01"
FOUR = "10.10.1.100.40968 > 10.10.2.100.5201"
SIX = "fd00:1::100.40968 > fd00:2::100.5201"
# 32 bytes of TCP's header.
DATA = "Flags [.], seq 1:1449, ack 1, win 502, options [nop,nop,TS val 1 ecr 1], length 1448"
VERBOSE = "(tos 0x0, ttl 63, id 7, offset 0, flags [DF], proto TCP (6), length 1500)"


@pytest.mark.parametrize(
    ("form", "text", "size"),
    [
        ("-e", f"1.5 {MACS}, ethertype IPv4 (0x0800), length 1514: {FOUR}: {DATA}", 1500),
        ("-e -q -t", f"{MACS}, IPv4, length 1514: {FOUR}: tcp 1448", 1500),
        ("-e -v", f"1.5 {MACS}, ethertype IPv4 (0x0800), length 1514: {VERBOSE}\n    {FOUR}: {DATA}", 1500),
        ("-v", f"19:46:40.000001 IP {VERBOSE}\n    {FOUR}: {DATA}", 1500),
        ("no option", f"19:46:40.000001 IP {FOUR}: {DATA}", 1500),
        ("no option, of IPv6", f"19:46:40.000001 IP6 {SIX}: {DATA}".replace("1448", "1428"), 1500),
        ("no option, with names", f"1.5 IP romeo.40968 > juliet.targus-getdata1: {DATA}", 1500),
        ("-q", f"1.5 IP {FOUR}: tcp 63712", 63752),
        ("no timestamps", f"1.5 IP {FOUR}: Flags [.], seq 1:1461, ack 1, win 502, length 1460", 1500),
        ("SYN", f"1.5 IP {FOUR}: Flags [S], seq 1, win 64240, options [mss 1460,sackOK,TS val 1 ecr 0,nop,wscale 7], length 0", 60),
        ("SACK", f"1.5 IP {FOUR}: Flags [.], ack 1, win 502, options [nop,nop,TS val 1 ecr 1,nop,nop,sack 2 {{1:2}}{{4:5}}], length 0", 72),
        ("offloads without -e", f"1.5 IP {FOUR}: {DATA}".replace("length 1448", "length 63712"), 63764),
        ("a VLAN", f"1.5 {MACS}, ethertype 802.1Q (0x8100), length 1518: vlan 1000, p 0, ethertype IPv4 (0x0800), {FOUR}: {DATA}", 1500),
        ("a VLAN, -q", f"1.5 {MACS}, 802.1Q, length 1518: vlan 1000, p 0, IPv4, {FOUR}: tcp 1448", 1500),
        ("a VLAN in a VLAN", f"1.5 {MACS}, ethertype 802.1Q-QinQ (0x88a8), length 1522: vlan 7, p 0, ethertype 802.1Q (0x8100), vlan 1000, p 0, ethertype IPv4 (0x0800), {FOUR}: {DATA}", 1500),
        ("MPLS", f"1.5 {MACS}, ethertype MPLS unicast (0x8847), length 1518: MPLS (label 16, exp 0, [S], ttl 63) {FOUR}: {DATA}", 1500),
        ("IPv6", f"1.5 {MACS}, ethertype IPv6 (0x86dd), length 1514: {SIX}: {DATA}".replace("1448", "1428"), 1500),
        ("-i any -e, version 2", f"1.5 eth0  Out ifindex 4 52:54:00:00:01:02 ethertype IPv4 (0x0800), length 1520: {FOUR}: {DATA}", 1500),
        ("-i any -e -q, version 2", f"1.5 eth0  P   ifindex 4 52:54:00:00:01:02 IPv4, length 1520: {FOUR}: tcp 1448", 1500),
        ("-i any -e, version 1", f"1.5  In 52:54:00:00:01:02 ethertype IPv4 (0x0800), length 1516: {FOUR}: {DATA}", 1500),
        ("-i any -e, version 1, out", f"1.5 Out 52:54:00:00:01:02 ethertype IPv4 (0x0800), length 1516: {FOUR}: {DATA}", 1500),
        ("-i any", f"19:46:40.000001 eth0  Out IP {FOUR}: {DATA}", 1500),
        ("-ttt -e", f" 00:00:00.001000 {MACS}, ethertype IPv4 (0x0800), length 1514: {FOUR}: {DATA}", 1500),
        ("-tttt", f"2024-11-15 19:46:40.000001 IP {FOUR}: {DATA}", 1500),
        ("a jumbo", f"1.5 {MACS}, ethertype IPv4 (0x0800), length 9014: {FOUR}: {DATA}".replace("length 1448", "length 8948"), 9000),
        ("in GRE", f"1.5 {MACS}, ethertype IPv4 (0x0800), length 1538: 172.16.0.1 > 172.16.0.2: GREv0, length 1504: IP {FOUR}: {DATA}", 1500),
        ("in IP", f"1.5 IP 172.16.0.1 > 172.16.0.2: IP {FOUR}: {DATA}", 1500),
        ("in VXLAN", f"1.5 {MACS}, ethertype IPv4 (0x0800), length 1564: 172.16.0.1.50000 > 172.16.0.2.4789: VXLAN, flags [I] (0x08), vni 7\n{MACS}, ethertype IPv4 (0x0800), length 1514: {FOUR}: {DATA}", 1500),
        ("a BSD's loopback", f"1.5 AF IPv4 (2), length 1504: {FOUR}: {DATA}", 1500),
        ("cut by -s", f"1.5 {MACS}, ethertype IPv4 (0x0800), length 1514: {FOUR}:  [|tcp]", 1500),
        ("UDP", f"1.5 IP {FOUR}: UDP, length 1460", 1488),
    ],
)  # fmt: skip
def test_the_size_of_a_packet(form: str, text: str, size: int) -> None:
    assert parse_frames(text + "\n", form) == Frames((size,))
    assert format_of(f"tcpdump: verbose output suppressed\n{text}\n", form).tool == "tcpdump"


def test_what_is_no_packet_of_tcp_is_left_out() -> None:
    text = f"""1.5 {MACS}, ethertype ARP (0x0806), length 42: Request who-has 10.10.1.1 tell 10.10.1.100, length 28
1.5 {MACS}, ethertype IPv4 (0x0800), length 9042: 10.10.1.100 > 10.10.2.100: ICMP echo request, id 7, seq 1, length 9008
1.5 {MACS}, ethertype IPv6 (0x86dd), length 70: fe80::1 > ff02::2: ICMP6, router solicitation, length 16
\t0x0000:  4500 0054 0000 4000 4001
"""
    assert parse_frames(text, "a") == Frames((), has_flows=False)
