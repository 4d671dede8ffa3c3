/* One path in ns-3, a simulator whose TCP was written independently of Linux': flows of Linux-like Reno from hosts of their
 * own over one router's link, with random loss, a FIFO or RED before it. Prints one line of JSON.
 *
 * What is set is what Linux does: delayed ACKs (two segments, 40 ms), ten segments to begin with, SACK, proportional rate
 * reduction (RFC 6937), a least timeout of 200 ms. --plain=1 leaves all that as ns-3 has it unless told otherwise.
 * Units are in the options' names. Built and called by against_ns3.py.
 */
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <cstdio>

using namespace ns3;

static double g_from_s;
static uint64_t g_halvings, g_drops, g_received, g_samples, g_segments;
static double g_queue_bytes, g_rtt_ms;
static uint64_t g_rtts;
static Ptr<QueueDisc> g_queue;

static bool Counted() { return Simulator::Now().GetSeconds() >= g_from_s; }

static void OnState(TcpSocketState::TcpCongState_t before, TcpSocketState::TcpCongState_t now)
{
    bool reduced = now == TcpSocketState::CA_RECOVERY || now == TcpSocketState::CA_LOSS;
    if (Counted() && reduced && before != TcpSocketState::CA_RECOVERY && before != TcpSocketState::CA_LOSS)
        g_halvings++;
}

static void OnRtt(Time, Time now)
{
    if (Counted()) { g_rtt_ms += now.GetSeconds() * 1e3; g_rtts++; }
}

static void OnTx(Ptr<const Packet> packet, const TcpHeader &, Ptr<const TcpSocketBase>)
{
    if (Counted() && packet->GetSize()) g_segments++;
}

static void OnReceived(Ptr<const Packet> packet, const Address &)
{
    if (Counted()) g_received += packet->GetSize();
}

static void OnDrop(Ptr<const QueueDiscItem>) { if (Counted()) g_drops++; }
static void OnError(Ptr<const Packet>) { if (Counted()) g_drops++; }

static void Sample()
{
    if (Counted()) { g_queue_bytes += g_queue->GetNBytes(); g_samples++; }
    Simulator::Schedule(MilliSeconds(10), &Sample);
}

static void Watch(Ptr<BulkSendApplication> source)
{
    Ptr<Socket> socket = source->GetSocket();
    socket->TraceConnectWithoutContext("CongState", MakeCallback(&OnState));
    socket->TraceConnectWithoutContext("RTT", MakeCallback(&OnRtt));
    socket->TraceConnectWithoutContext("Tx", MakeCallback(&OnTx));
}

int main(int argc, char **argv)
{
    double rtt_ms = 20, loss_ratio = 0, rate_mbit = 100, duration_s = 60, warmup_s = 0, spread_s = 0;
    double red_min = 0, red_max = 0, red_probability = 0.02;
    uint32_t mss_bytes = 1460, flows = 1, seed = 1, buffer_bytes = 1000000000, send_buffer_bytes = 32 << 20;
    bool plain = false, timestamps = false;
    std::string queue = "fifo", algorithm = "LinuxReno";
    CommandLine cmd;
    cmd.AddValue("rtt_ms", "round-trip time of the idle path", rtt_ms);
    cmd.AddValue("loss_ratio", "random loss of data packets", loss_ratio);
    cmd.AddValue("rate_mbit", "rate of the router's link", rate_mbit);
    cmd.AddValue("duration_s", "length of the test", duration_s);
    cmd.AddValue("warmup_s", "nothing is counted before", warmup_s);
    cmd.AddValue("spread_s", "flows begin within this", spread_s);
    cmd.AddValue("mss_bytes", "segment size", mss_bytes);
    cmd.AddValue("flows", "how many", flows);
    cmd.AddValue("seed", "ns-3's run number", seed);
    cmd.AddValue("buffer_bytes", "the queue's room", buffer_bytes);
    cmd.AddValue("send_buffer_bytes", "the senders' buffers", send_buffer_bytes);
    cmd.AddValue("queue", "fifo or red", queue);
    cmd.AddValue("red_min_bytes", "RED's min", red_min);
    cmd.AddValue("red_max_bytes", "RED's max", red_max);
    cmd.AddValue("red_probability_ratio", "RED's largest probability", red_probability);
    cmd.AddValue("algorithm", "LinuxReno, Cubic or Bbr", algorithm);
    cmd.AddValue("timestamps", "TCP's timestamps", timestamps);
    cmd.AddValue("plain", "leave ns-3's own defaults", plain);
    cmd.Parse(argc, argv);

    RngSeedManager::SetRun(seed);
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::Tcp" + algorithm));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(mss_bytes));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(send_buffer_bytes));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(32 << 20));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(timestamps));
    if (!plain) {
        Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
        Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(40)));
        Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
        Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
        Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
        Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", StringValue("ns3::TcpPrrRecovery"));
    }

    NodeContainer senders, middle;
    senders.Create(flows);
    middle.Create(2); /* router, receiver */
    InternetStackHelper stack;
    stack.Install(senders);
    stack.Install(middle);
    TrafficControlHelper none;
    Ipv4AddressHelper addresses("10.1.0.0", "255.255.255.252");
    PointToPointHelper cable;
    cable.SetDeviceAttribute("DataRate", StringValue("10Gbps"));
    /* Else IP cuts a segment of 4312 bytes into three packets, and loses it three times as often. */
    cable.SetDeviceAttribute("Mtu", UintegerValue(9000));
    cable.SetChannelAttribute("Delay", StringValue("0ms"));
    cable.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1000000p"));
    for (uint32_t n = 0; n < flows; n++) {
        NetDeviceContainer pair = cable.Install(senders.Get(n), middle.Get(0));
        addresses.Assign(pair);
        addresses.NewNetwork();
    }
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(rate_mbit * 1e6))));
    link.SetDeviceAttribute("Mtu", UintegerValue(9000));
    link.SetChannelAttribute("Delay", TimeValue(Seconds(rtt_ms / 2e3)));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1p"));
    NetDeviceContainer narrow = link.Install(middle.Get(0), middle.Get(1));
    TrafficControlHelper control;
    if (queue == "red") {
        double mean = mss_bytes + 54;
        control.SetRootQueueDisc("ns3::RedQueueDisc", "MaxSize", QueueSizeValue(QueueSize(BYTES, buffer_bytes)),
                                 "MinTh", DoubleValue(red_min), "MaxTh", DoubleValue(red_max),
                                 "MeanPktSize", UintegerValue(uint32_t(mean)), "LInterm", DoubleValue(1 / red_probability),
                                 "LinkBandwidth", DataRateValue(DataRate(uint64_t(rate_mbit * 1e6))),
                                 "LinkDelay", TimeValue(Seconds(rtt_ms / 2e3)));
    } else
        control.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", QueueSizeValue(QueueSize(BYTES, buffer_bytes)));
    g_queue = control.Install(narrow.Get(0)).Get(0);
    g_queue->TraceConnectWithoutContext("Drop", MakeCallback(&OnDrop));
    if (loss_ratio > 0) {
        Ptr<RateErrorModel> loss = CreateObject<RateErrorModel>();
        loss->SetAttribute("ErrorRate", DoubleValue(loss_ratio));
        loss->SetAttribute("ErrorUnit", EnumValue(RateErrorModel::ERROR_UNIT_PACKET));
        narrow.Get(1)->SetAttribute("ReceiveErrorModel", PointerValue(loss));
        narrow.Get(1)->TraceConnectWithoutContext("PhyRxDrop", MakeCallback(&OnError));
    }
    addresses.SetBase("10.2.0.0", "255.255.255.252");
    Ipv4InterfaceContainer ends = addresses.Assign(narrow);
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    Ptr<UniformRandomVariable> chance = CreateObject<UniformRandomVariable>();
    g_from_s = warmup_s + spread_s;
    for (uint32_t n = 0; n < flows; n++) {
        InetSocketAddress address(ends.GetAddress(1), 5201 + n);
        ApplicationContainer sink = PacketSinkHelper("ns3::TcpSocketFactory", address).Install(middle.Get(1));
        sink.Get(0)->TraceConnectWithoutContext("Rx", MakeCallback(&OnReceived));
        ApplicationContainer source = BulkSendHelper("ns3::TcpSocketFactory", address).Install(senders.Get(n));
        double start_s = spread_s * chance->GetValue();
        source.Start(Seconds(start_s));
        Simulator::Schedule(Seconds(start_s + 1e-6), &Watch, DynamicCast<BulkSendApplication>(source.Get(0)));
    }
    Simulator::Schedule(MilliSeconds(10), &Sample);
    Simulator::Stop(Seconds(duration_s + spread_s));
    Simulator::Run();
    double counted_s = duration_s + spread_s - g_from_s;
    std::printf("{\"goodput_bps\": %.0f, \"halvings\": %llu, \"drops\": %llu, \"segments\": %llu, \"rtt_mean_ms\": %.4f, "
                "\"queue_mean_bytes\": %.0f, \"counted_s\": %.3f}\n",
                8 * g_received / counted_s, (unsigned long long)g_halvings, (unsigned long long)g_drops,
                (unsigned long long)g_segments, g_rtts ? g_rtt_ms / g_rtts : 0.0,
                g_samples ? g_queue_bytes / g_samples : 0.0, counted_s);
    Simulator::Destroy();
    return 0;
}
