// The dumbbells S1, S2 and S3 in ns-3, timed: one wired bottleneck, Cubic senders from a cold start, round trip 100 ms.
// Compiled and run by `brakelight bench --with-ns3` where Debian's libns3-dev is installed.
//
// usage: dumbbell MBPS FLOWS fifo|codel PACKETS SECONDS
// prints: delivered data packets, wall seconds of Simulator::Run, Mbit/s at the IP layer

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

static uint64_t g_packets = 0;
static uint64_t g_bytes = 0;

// Full segments only: what else arrives is handshake.
static void Arrived(Ptr<const Packet> packet, Ptr<Ipv4>, uint32_t) {
  if (packet->GetSize() >= 1000) {
    g_packets += 1;
    g_bytes += packet->GetSize();
  }
}

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: dumbbell MBPS FLOWS fifo|codel PACKETS SECONDS\n");
    return 2;
  }
  const std::string rate = std::string(argv[1]) + "Mbps";
  const uint32_t flows = std::stoul(argv[2]);
  const std::string queue = argv[3];
  const std::string packets = std::string(argv[4]) + "p";
  const double seconds = std::stod(argv[5]);

  Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpCubic"));
  Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
  Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
  Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
  Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 26));
  Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 26));
  Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));

  NodeContainer routers(2), senders(flows), receivers(flows);
  InternetStackHelper internet;
  internet.InstallAll();

  // 49 ms on the bottleneck and 0.5 ms on each access link: 100 ms for the round trip.
  PointToPointHelper bottleneck, access;
  bottleneck.SetDeviceAttribute("DataRate", StringValue(rate));
  bottleneck.SetChannelAttribute("Delay", StringValue("49ms"));
  bottleneck.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue(queue == "fifo" ? packets : "1p"));
  access.SetDeviceAttribute("DataRate", StringValue("40Gbps"));
  access.SetChannelAttribute("Delay", StringValue("500us"));

  NetDeviceContainer middle = bottleneck.Install(routers);
  if (queue == "codel") {
    TrafficControlHelper control;
    control.SetRootQueueDisc("ns3::CoDelQueueDisc", "MaxSize", StringValue(packets), "Target",
                             StringValue("5ms"), "Interval", StringValue("100ms"));
    control.Install(middle.Get(0));
  }
  Ipv4AddressHelper addresses;
  addresses.SetBase("10.0.0.0", "255.255.255.0");
  addresses.Assign(middle);
  TrafficControlHelper none;
  if (queue != "codel") none.Uninstall(middle);

  for (uint32_t i = 0; i < flows; i++) {
    NetDeviceContainer left = access.Install(senders.Get(i), routers.Get(0));
    NetDeviceContainer right = access.Install(routers.Get(1), receivers.Get(i));
    addresses.SetBase(("10.1." + std::to_string(i) + ".0").c_str(), "255.255.255.0");
    addresses.Assign(left);
    none.Uninstall(left);
    addresses.SetBase(("10.2." + std::to_string(i) + ".0").c_str(), "255.255.255.0");
    Ipv4InterfaceContainer right_addresses = addresses.Assign(right);
    none.Uninstall(right);

    InetSocketAddress there(right_addresses.GetAddress(1), 5000);
    BulkSendHelper source("ns3::TcpSocketFactory", there);
    source.SetAttribute("MaxBytes", UintegerValue(0));
    source.SetAttribute("SendSize", UintegerValue(1448));
    ApplicationContainer sending = source.Install(senders.Get(i));
    sending.Start(MilliSeconds(i));
    PacketSinkHelper sink("ns3::TcpSocketFactory", there);
    sink.Install(receivers.Get(i)).Start(Seconds(0));
    receivers.Get(i)->GetObject<Ipv4L3Protocol>()->TraceConnectWithoutContext("Rx", MakeCallback(&Arrived));
  }
  Ipv4GlobalRoutingHelper::PopulateRoutingTables();

  Simulator::Stop(Seconds(seconds));
  const auto begin = std::chrono::steady_clock::now();
  Simulator::Run();
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  Simulator::Destroy();
  std::printf("%llu %.4f %.4f\n", static_cast<unsigned long long>(g_packets), wall.count(),
              static_cast<double>(g_bytes) * 8e-6 / seconds);
  return 0;
}
