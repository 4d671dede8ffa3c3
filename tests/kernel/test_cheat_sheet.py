"""What docs/reference/tc.md says of the tools, tried in the virtual kernel: one boot for all claims."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from inside import built_kernel

from measuretwice.backends.virtual import run_inside

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/tc.md").read_text(encoding="utf-8")
pytestmark = pytest.mark.kernel

SCRIPT = r"""
PATH=$PATH:/usr/sbin:/sbin
exec >/run/measuretwice/out.txt 2>&1
ip netns add a; ip netns add b
ip link add va netns a type veth peer name vb netns b
a() { ip netns exec a "$@"; }
b() { ip netns exec b "$@"; }
tc_a() { a tc "$@"; }
a ip addr add 10.0.0.1/24 dev va; a ip link set va up
b ip addr add 10.0.0.2/24 dev vb; b ip link set vb up
few() { a ping -c 3 -i 0.01 -W 1 "$@" 10.0.0.2 | tail -n 2; }
serve() {
  b iperf3 -s -D -1
  for ((i = 0; i < 100; i++)); do [[ -z $(b ss -Hltn 'sport = :5201') ]] || return 0; sleep 0.01; done
}

for limit in 1000 1k 1kb 1KB 1m 1mb 1Mb 1.25Mb 1mbit; do
  echo "== size $limit"; tc_a qdisc add dev va root bfifo limit "$limit"
  tc_a -j qdisc show dev va; tc_a qdisc del dev va root
done
for rate in 1000 1mbit 1mbps 1mibit 1m; do
  echo "== rate $rate"; tc_a qdisc add dev va root tbf rate "$rate" burst 10k limit 100k &&
  tc_a -j qdisc show dev va && tc_a qdisc del dev va root
done
echo "== del"; tc_a qdisc del dev va root
echo "== netem"; tc_a qdisc add dev va root netem loss 0.01; tc_a qdisc show dev va
echo "== add"; tc_a qdisc add dev va root netem delay 1ms
few >/dev/null
echo "== change"; tc_a qdisc change dev va root netem delay 10ms; tc_a -s qdisc show dev va
echo "== replace"; tc_a qdisc replace dev va root netem delay 10ms limit 100MB; tc_a -s qdisc show dev va
echo "== once"; few
b tc qdisc add dev vb root netem delay 10ms
echo "== twice"; few
b tc qdisc del dev vb root; tc_a qdisc del dev va root

echo "== tbf small"; tc_a qdisc add dev va root tbf rate 10mbit burst 1000 limit 100k
few -s 1400; few -s 100; tc_a qdisc del dev va root
echo "== tbf no limit"; tc_a qdisc add dev va root tbf rate 10mbit burst 10k
echo "== tbf no burst"; tc_a qdisc add dev va root tbf rate 10mbit limit 10k
echo "== htb direct"; tc_a qdisc add dev va root handle 1: htb
tc_a class add dev va parent 1: classid 1:3 htb rate 1mbit; few >/dev/null
tc_a qdisc show dev va; tc_a qdisc del dev va root
echo "== htb hexadecimal"; tc_a qdisc add dev va root handle 1: htb default 10; tc_a qdisc show dev va
tc_a class add dev va parent 1: classid 1:10 htb rate 1mbit
tc_a class show dev va; tc_a qdisc del dev va root
echo "== one limit"; tc_a qdisc add dev va root handle 1: htb default 3
tc_a class add dev va parent 1: classid 1:3 htb rate 1mbit burst 1600 cburst 1600 quantum 1600
tc_a qdisc add dev va parent 1:3 netem delay 5ms limit 20
a bash -c 'exec 3>/dev/udp/10.0.0.2/9; for ((i = 0; i < 100; i++)); do printf %1400d 0 >&3; done' 2>/dev/null
tc_a -j -s qdisc show dev va; tc_a qdisc del dev va root
echo "== red"; tc_a qdisc add dev va root red limit 366000 min 100000 max 225000 avpkt 1000 burst 141 probability 0.01
tc_a -s qdisc show dev va; tc_a qdisc del dev va root

echo "== default_qdisc"; sysctl -qw net.core.default_qdisc=pfifo_fast
ip link set ifb0 up; sysctl -qw net.core.default_qdisc=fq_codel; ip link add ifb9 type ifb; ip link set ifb9 up
tc qdisc show dev ifb0; tc qdisc show dev ifb9
echo "== lro"; a ethtool -k va

# One host without timestamps is enough; the MTU bounds the segment, and iperf3 doesn't say so.
a sysctl -qw net.ipv4.tcp_timestamps=1; b sysctl -qw net.ipv4.tcp_timestamps=0
serve
a iperf3 -c 10.0.0.2 -t 1 -M 9000 -w 1M -J >/run/measuretwice/iperf3.json &
sleep 0.5; echo "== mss"; a ss -tinOH; wait
echo "== iperf3"; grep -E 'tcp_mss"|sndbuf_actual|sock_bufsize' /run/measuretwice/iperf3.json
sleep 0.5; echo "== metrics"; a ip tcp_metrics show
"""


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each part of the script printed."""
    folder = tmp_path_factory.mktemp("tools")
    (folder / "experiment.sh").write_text(SCRIPT)
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cpus)})
    try:
        run_inside(built_kernel(), ROOT, folder, 1, 60)
    finally:
        os.sched_setaffinity(0, cpus)
    parts = re.split(r"^== (.*)\n", (folder / "out.txt").read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def on_page(*words: str) -> None:
    """These words stand on the page: what is tried here is what it says."""
    for text in words:
        assert text in PAGE, text


@pytest.mark.parametrize(
    ("written", "parsed"),
    [
        ("1000", 1000), ("1k", 1024), ("1kb", 1024), ("1KB", 1024), ("1m", 1_048_576),
        ("1mb", 1_048_576), ("1Mb", 1_048_576), ("1.25Mb", 1_310_720), ("1mbit", 131_072),
    ],
)  # fmt: skip
def test_sizes(outputs: dict[str, str], written: str, parsed: int) -> None:
    on_page(f"`{written}`", f"{parsed:_} B".replace("_", " ") if parsed > 9999 else f"{parsed} B")
    assert json.loads(outputs[f"size {written}"])[0]["options"]["limit"] == parsed


@pytest.mark.parametrize(
    ("written", "bytes_a_second"),
    [("1000", 125), ("1mbit", 125_000), ("1mbps", 1_000_000), ("1mibit", 131_072)],
)
def test_rates(outputs: dict[str, str], written: str, bytes_a_second: int) -> None:
    on_page(f"`{written}`")
    assert json.loads(outputs[f"rate {written}"])[0]["options"]["rate"] == bytes_a_second


@pytest.mark.parametrize(
    ("part", "pattern", "words"),
    [
        ("rate 1m", 'illegal value for "rate"', ["| `1m` | refused |"]),
        ("netem", r"limit 1000 .*loss 0\.01%", ["`loss 0.01` is 0.01&nbsp;%", "the limit is 1000"]),
        ("add", "^(Error: Exclusivity flag on, cannot modify.)", []),
        ("del", "^(Error: Cannot delete qdisc with handle of zero.)", []),
        ("change", r"delay 10ms\n Sent [1-9]", ["keep the counters"]),
        ("replace", r"limit 104857600 delay 10ms\n Sent [1-9]", ["104 857 600 packets"]),
        ("once", r"= 10\.0", []),
        ("twice", r"= 20\.0", ["all interfaces through which the ping and its answer leave"]),
        ("tbf small", r" 0 received(?s:.*) 3 received", ["tbf drops every packet that is larger"]),
        ("tbf no limit", '"limit" or "latency" is required', ["tbf needs `burst`"]),
        ("tbf no burst", '"burst" parameter is mandatory', ["tbf needs `burst`"]),
        ("htb direct", r"direct_packets_stat [1-9]", ["`direct_packets_stat`"]),
        ("htb hexadecimal", r"default 0x10(?s:.*)class htb 1:10 ", ["shows it as `0x10`"]),
        ("red", "(RED: set bandwidth to 10Mbit)(?s:.*)marked 0 early 0 pdrop 0 other 0", []),
        ("default_qdisc", "qdisc pfifo_fast(?s:.*)qdisc fq_codel", ["keeps it"]),
        ("lro", r"large-receive-offload: off \[fixed\]", ["`off [fixed]`"]),
        ("mss", r"mss:1460 ", ["turning them off at one is enough", "even if the MTU allows less"]),
        ("iperf3", r'"tcp_mss":\s*9000', ["(`tcp_mss`)"]),
        ("iperf3", r'"sock_bufsize":\s*1048576(?s:.*)"sndbuf_actual":\s*2097152', ["doubles it"]),
        ("metrics", r"10\.0\.0\.2 .*rtt ", ["`ip tcp_metrics show`"]),
    ],
)
def test_claims(outputs: dict[str, str], part: str, pattern: str, words: list[str]) -> None:
    found = re.search(pattern, outputs[part], re.MULTILINE)
    assert found, outputs[part]
    on_page(*words, *(group for group in found.groups()))


def test_delay_and_rate_share_one_limit(outputs: dict[str, str]) -> None:
    """100 packets at once: some 20 wait in netem, for delay or for the rate; the rest is dropped."""
    on_page("It waits in netem's queue")
    (netem,) = [q for q in json.loads(outputs["one limit"]) if q["kind"] == "netem"]
    assert 70 <= netem["drops"] <= 80
