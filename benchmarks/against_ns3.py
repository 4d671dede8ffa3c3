"""The same dumbbell, loss and duration in ns-3, a simulator, beside the virtual kernel.

Optional: needs ns-3's Python wheel (pip install ns3), which nothing else here uses. Without it
this says so and ends.

    make bench ARGS=--quick         is the other benchmark; this one prints one ratio
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
DURATION_S = 60
RTT_MS, MSS_BYTES, LOSS_RATIO, RATE_MBIT = 6, 1460, 0.005730706937, 3000  # trial 7


def simulate() -> float:
    """Run trial 7's path in ns-3 with its Reno; return goodput in bit/s."""
    from ns import ns

    ns.Config.SetDefault("ns3::TcpL4Protocol::SocketType", ns.StringValue("ns3::TcpLinuxReno"))
    ns.Config.SetDefault("ns3::TcpSocket::SegmentSize", ns.UintegerValue(MSS_BYTES))
    ns.Config.SetDefault("ns3::TcpSocket::SndBufSize", ns.UintegerValue(4 << 20))
    ns.Config.SetDefault("ns3::TcpSocket::RcvBufSize", ns.UintegerValue(16 << 20))
    nodes = ns.NodeContainer()
    nodes.Create(3)
    links = ns.PointToPointHelper()
    links.SetDeviceAttribute("DataRate", ns.StringValue(f"{RATE_MBIT}Mbps"))
    stack = ns.InternetStackHelper()
    stack.Install(nodes)
    interfaces = []
    for index, delay_ms in ((0, 0), (1, RTT_MS / 2)):
        links.SetChannelAttribute("Delay", ns.StringValue(f"{delay_ms}ms"))
        pair = ns.NodeContainer()
        pair.Add(nodes.Get(index))
        pair.Add(nodes.Get(index + 1))
        devices = links.Install(pair)
        if index == 1:
            loss = ns.CreateObject[ns.RateErrorModel]()
            loss.SetAttribute("ErrorRate", ns.DoubleValue(LOSS_RATIO))
            loss.SetAttribute("ErrorUnit", ns.StringValue("ERROR_UNIT_PACKET"))
            devices.Get(1).SetAttribute("ReceiveErrorModel", ns.PointerValue(loss))
        addresses = ns.Ipv4AddressHelper()
        addresses.SetBase(ns.Ipv4Address(f"10.10.{index + 1}.0"), ns.Ipv4Mask("255.255.255.0"))
        interfaces.append(addresses.Assign(devices))
    ns.Ipv4GlobalRoutingHelper.PopulateRoutingTables()
    address = ns.InetSocketAddress(interfaces[1].GetAddress(1), 5201).ConvertTo()
    sinks = ns.PacketSinkHelper("ns3::TcpSocketFactory", address).Install(nodes.Get(2))
    source = ns.BulkSendHelper("ns3::TcpSocketFactory", address).Install(nodes.Get(0))
    source.Start(ns.Seconds(0))
    ns.Simulator.Stop(ns.Seconds(DURATION_S))
    ns.Simulator.Run()
    received = sinks.Get(0).GetObject[ns.PacketSink]().GetTotalRx()
    ns.Simulator.Destroy()
    return float(received) * 8 / DURATION_S


def main() -> None:
    if importlib.util.find_spec("ns") is None:
        print("ns-3 is not installed (pip install ns3): nothing to compare")
        return
    started = time.monotonic()
    simulated_bps = simulate()
    simulator_s = time.monotonic() - started
    with tempfile.TemporaryDirectory(prefix="measuretwice-bench-") as out:
        command = [sys.executable, "-m", "measuretwice", "run", "mathis", "--trial", "7", "--json"]
        started = time.monotonic()
        subprocess.run(
            [*command, "--duration", str(DURATION_S), "--out", out],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        kernel_s = time.monotonic() - started
    print(
        f"trial 7 for {DURATION_S} s: ns-3 {simulator_s:.1f} s ({simulated_bps / 1e6:.1f} Mbit/s), "
        f"virtual kernel {kernel_s:.1f} s with start-up and sampling: "
        f"{simulator_s / kernel_s:.1f} times as fast"
    )


if __name__ == "__main__":
    main()
