"""What people bring and isn't read: each form is called by its name, and something else is asked for."""

from __future__ import annotations

import pytest
from tool_outputs import DATA

from measuretwice.parse import ParseError
from measuretwice.parse.formats import NO_TOOL, format_of, why_unread

FORMS = {
    "netstat's list": "Proto Recv-Q Send-Q Local Address           Foreign Address         State\ntcp 0 0 10.0.0.1:5 10.0.0.2:6 ESTABLISHED\n",
    "Windows' netstat": "Active Connections\n\n  Proto  Local Address          Foreign Address        State\n",
    "JSON that was made of ss": '[{"time": 0.1, "cwnd": 10, "rtt": 40.2}]\n',
    "ss -s": "Total: 170\nTCP:   12 (estab 3, closed 2, orphaned 0, timewait 2)\n",
    "a table that was made of ss": "time,cwnd,ssthresh,rtt\n0.1,10,7,40.2\n",
    "netstat -s": "Tcp:\n    5 active connection openings\n    228 segments retransmitted\n",
    "/proc/net/snmp": "Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens\nTcp: 1 200 120000 -1 5\n",
    "ifconfig": "eth0: flags=4163<UP,BROADCAST>  mtu 1500\n        RX packets 8  bytes 648 (648.0 B)\n",
    "ethtool -S": "NIC statistics:\n     rx_packets: 5\n",
    "ip link or ip addr without -s": "2: eth0: <BROADCAST,UP> mtu 1500 qdisc htb state UP mode DEFAULT\n    link/ether 02:00:00:00:00:01\n",
    "ethtool -k": "Features for eth2:\ntcp-segmentation-offload: on\n",
    "sysctl's list": "net.ipv4.tcp_sack = 1\n",
    "ip route": "default via 10.0.0.1 dev eth0\n10.0.0.0/24 dev eth0 scope link\n",
    "the commands that set qdiscs up": "sudo tc qdisc add dev eth0 root netem delay 20ms\n",
    "containerlab's table": "| Interface | Delay | Jitter | Packet Loss | Rate (Kbit) |\n",
    "tcshow of tcconfig": '{"eth0": {"outgoing": {}, "incoming": {}}}\n',
    "Mininet's own test": "*** Iperf: testing TCP bandwidth between h1 and h2\n*** Results: ['9.5 Mbits/sec', '9.8 Mbits/sec']\n",
    "nuttcp": " 1118.0625 MB /  10.01 sec =  936.9 Mbps 10 %TX 20 %RX 0 retrans\n",
    "sar": "12:00:01 AM     IFACE   rxpck/s   txpck/s\n",
    "tshark's or Wireshark's list": "    1   0.000000 10.10.1.100 \u2192 10.10.2.100 TCP 74 40968 \u2192 5201 [SYN]\n",
    "a trace of the path": "traceroute to 10.10.2.100 (10.10.2.100), 30 hops max, 60 byte packets\n",
    "hping or nping": "len=46 ip=10.10.2.100 ttl=63 DF id=0 sport=80 flags=SA seq=0 win=64240 rtt=40.1 ms\n",
}  # fmt: skip


@pytest.mark.parametrize("what", FORMS)
def test_a_form_that_is_not_read_is_named_and_something_asked_for(what: str) -> None:
    with pytest.raises(ParseError) as refused:
        format_of(FORMS[what], "a.txt")
    assert refused.value.problem.startswith(what)
    assert "; bring " in refused.value.problem


def test_of_a_text_that_nobody_knows_nothing_is_claimed() -> None:
    assert why_unread("total 12\ndrwxr-xr-x 2 root root 4096 .\n") == NO_TOOL


def test_what_tools_print_is_no_form_that_is_not_read() -> None:
    """Everything in the corpus is of a format, and so never gets here."""
    for path in sorted(DATA.glob("nstat/*")):
        assert format_of(path.read_text(), path.name).tool == "nstat"
