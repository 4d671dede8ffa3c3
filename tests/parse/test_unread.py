"""What people bring and isn't read: each form is called by its name, and something else is asked for."""

from __future__ import annotations

import pytest
from tool_outputs import DATA

from measuretwice.parse import ParseError
from measuretwice.parse.formats import NO_TOOL, format_of, measures_nothing, why_unread

FORMS = [
    ("netstat's list", "Proto Recv-Q Send-Q Local Address           Foreign Address         State\ntcp 0 0 10.0.0.1:5 10.0.0.2:6 ESTABLISHED\n"),
    ("Windows' netstat", "Active Connections\n\n  Proto  Local Address          Foreign Address        State\n"),
    ("JSON that was made of ss", "[{\"time\": 0.1, \"cwnd\": 10, \"rtt\": 40.2}]\n"),
    ("ss -s", "Total: 170\nTCP:   12 (estab 3, closed 2, orphaned 0, timewait 2)\n"),
    ("a table that was made of ss", "time,cwnd,ssthresh,rtt\n0.1,10,7,40.2\n"),
    ("netstat -s", "Tcp:\n    5 active connection openings\n    228 segments retransmitted\n"),
    ("/proc/net/snmp", "Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens\nTcp: 1 200 120000 -1 5\n"),
    ("ifconfig", "eth0: flags=4163<UP,BROADCAST>  mtu 1500\n        RX packets 8  bytes 648 (648.0 B)\n"),
    ("ip link or ip addr without -s", "2: eth0: <BROADCAST,UP> mtu 1500 qdisc htb state UP mode DEFAULT\n    link/ether 02:00:00:00:00:01\n"),
    ("ip route", "default via 10.0.0.1 dev eth0\n10.0.0.0/24 dev eth0 scope link\n"),
    ("the commands that set qdiscs up", "sudo tc qdisc add dev eth0 root netem delay 20ms\n"),
    ("containerlab's table", "| Interface | Delay | Jitter | Packet Loss | Rate (Kbit) |\n"),
    ("tcshow of tcconfig", "{\"eth0\": {\"outgoing\": {}, \"incoming\": {}}}\n"),
    ("Mininet's own test", "*** Iperf: testing TCP bandwidth between h1 and h2\n*** Results: ['9.5 Mbits/sec', '9.8 Mbits/sec']\n"),
    ("Mininet's pingall", "mininet> pingall\n*** Ping: testing ping reachability\nh1 -> h2 X \nh2 -> h1 h3 \nh3 -> h1 h2 \n*** Results: 16% dropped (5/6 received)\n"),
    ("fping's JSON", "{\"resp\": {\"host\": \"10.10.2.100\", \"seq\": 0, \"size\": 64, \"rtt\": 40.3}}\n"),
    ("fping's JSON", "{\"summary\": {\"host\": \"10.10.2.100\", \"xmt\": 20, \"rcv\": 20, \"loss\": 0, \"rttMin\": 40.1, \"rttAvg\": 40.2, \"rttMax\": 40.9}}\n"),
    ("nuttcp", " 1118.0625 MB /  10.01 sec =  936.9 Mbps 10 %TX 20 %RX 0 retrans\n"),
    ("sar", "12:00:01 AM     IFACE   rxpck/s   txpck/s\n"),
    ("tshark's or Wireshark's list", "    1   0.000000 10.10.1.100 \u2192 10.10.2.100 TCP 74 40968 \u2192 5201 [SYN]\n"),
    ("a trace of the path", "traceroute to 10.10.2.100 (10.10.2.100), 30 hops max, 60 byte packets\n"),
    ("hping or nping", "len=46 ip=10.10.2.100 ttl=63 DF id=0 sport=80 flags=SA seq=0 win=64240 rtt=40.1 ms\n"),
    ("mtr's report", "Start: 2026-11-20T10:00:00+0000\nHOST: romeo             Loss%   Snt   Last   Avg  Best  Wrst StDev\n  1.|-- 10.10.1.1          0.0%   100    0.3   0.4   0.2   1.1   0.1\n  2.|-- 10.10.2.100        0.0%   100   40.2  40.3  40.1  42.0   0.2\n"),
    ("mtr's report", "Mtr_Version,Start_Time,Status,Host,Hop,Ip,Loss%,Snt, ,Last,Avg,Best,Wrst,StDev,\nMTR.0.95,1764000000,OK,10.10.2.100,1,10.10.1.1,0.00,100,0,0.31,0.40,0.21,1.10,0.10\n"),
    ("mtr's report", "                             My traceroute  [v0.95]\nromeo (10.10.1.100) -> 10.10.2.100      2026-11-20T10:00:00+0000\nKeys:  Help   Display mode   Restart statistics   Order of fields   quit\n Host              Loss%   Snt   Last   Avg  Best  Wrst StDev\n"),
    ("mtr's report", "{\n    \"report\": {\n        \"mtr\": {\n            \"src\": \"romeo\",\n            \"dst\": \"10.10.2.100\",\n            \"tests\": 10\n        },\n        \"hubs\": [{\"count\": 1, \"host\": \"10.10.1.1\", \"Loss%\": 0.0, \"Snt\": 10, \"Last\": 0.3, \"Avg\": 0.4, \"Best\": 0.2, \"Wrst\": 1.1, \"StDev\": 0.1}]\n    }\n}\n"),
    ("mtr's report", "WinMTR Statistics   -   0\n|------------------------------------------------------------------------------------------|\n|                                      WinMTR statistics                                   |\n|                       Host              -   %  | Sent | Recv | Best | Avrg | Wrst | Last |\n"),
    ("tracepath", " 1?: [LOCALHOST]                      pmtu 1500\n 1:  10.10.1.1                                             0.238ms \n 1:  10.10.1.1                                             0.125ms \n 2:  10.10.2.100                                          40.220ms reached\n     Resume: pmtu 1500 hops 2 back 2 \n"),
    ("a trace of the path", "traceroute to 10.10.2.100 (10.10.2.100), 30 hops max, 60 byte packets\n 1  10.10.1.1 (10.10.1.1)  0.238 ms  0.2 ms  0.1 ms\n"),
    ("a trace of the path", "\nTracing route to 10.10.2.100 over a maximum of 30 hops\n\n  1    <1 ms    <1 ms    <1 ms  10.10.1.1\n  2    40 ms    40 ms    41 ms  10.10.2.100\n\nTrace complete.\n"),
    ("a trace of the path", "\nRoutenverfolgung zu 10.10.2.100 \u00fcber maximal 30 Hops\n\n  1    <1 ms    <1 ms    <1 ms  10.10.1.1 \n  2    40 ms    40 ms    41 ms  10.10.2.100 \n\nAblaufverfolgung beendet.\n"),
    ("netstat -s", "IcmpMsg:\n    InType0: 5\nTcp:\n    5 active connection openings\n    228 segments retransmitted\n"),
    ("netstat -s", "tcp:\n\t158 packets sent\n\t\t88 data packets (20302 bytes)\n\t\t0 data packets (0 bytes) retransmitted\n"),
    ("netstat -s", "IPv4 Statistics\n\n  Packets Received                   = 8472\n  Received Header Errors             = 0\n\nTCP Statistics for IPv4\n\n  Active Opens                        = 31\n  Segments Retransmitted              = 2\n"),
    ("netstat -i", "Kernel Interface table\nIface      MTU    RX-OK RX-ERR RX-DRP RX-OVR    TX-OK TX-ERR TX-DRP TX-OVR Flg\neth1      1500     1000      0      0 0          1100      0      0      0 BMRU\n"),
    ("/proc/net/dev", "Inter-|   Receive                                                |  Transmit\n face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0\n"),
    ("ifconfig", "en0: flags=8863<UP,BROADCAST,SMART,RUNNING,SIMPLEX,MULTICAST> mtu 1500\n\toptions=400<CHANNEL_IO>\n\tether f0:18:98:00:00:01\n\tinet 10.10.1.100 netmask 0xffffff00 broadcast 10.10.1.255\n"),
    ("Windows' ipconfig", "\nWindows IP Configuration\n\n\nEthernet adapter Ethernet:\n\n   Connection-specific DNS Suffix  . :\n   IPv4 Address. . . . . . . . . . . : 10.10.1.100\n   Subnet Mask . . . . . . . . . . . : 255.255.255.0\n"),
    ("ethtool -i", "driver: virtio_net\nversion: 1.0.0\nfirmware-version: \nexpansion-rom-version: \nbus-info: 0000:00:03.0\n"),
    ("ethtool -c or -g", "Coalesce parameters for eth1:\nAdaptive RX: off  TX: off\nrx-usecs: 3\n"),
    ("ethtool -c or -g", "Ring parameters for eth1:\nPre-set maximums:\nRX:\t\t4096\n"),
    ("vmstat", "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----\n r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n 1  0      0 812345  12345 543210    0    0     1     2  100  200  3  2 95  0  0\n"),
    ("mpstat", "Linux 6.1.0-13-amd64 (romeo) \t11/20/2026 \t_x86_64_\t(2 CPU)\n\n10:00:01 AM  CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle\n10:00:02 AM  all    1.00    0.00    2.00    0.00    0.00    0.50    0.00    0.00    0.00   96.50\n"),
    ("sar", "Linux 6.1.0-13-amd64 (romeo) \t11/20/2026 \t_x86_64_\t(2 CPU)\n\n10:00:01 AM     IFACE   rxpck/s   txpck/s    rxkB/s    txkB/s\n10:00:02 AM      eth1   8000.00   4000.00  11000.00    250.00\n"),
    ("top", "top - 10:00:01 up 2 days,  3:04,  1 user,  load average: 0.52, 0.58, 0.59\nTasks: 212 total,   1 running, 211 sleeping,   0 stopped,   0 zombie\n%Cpu(s):  1.0 us,  0.5 sy,  0.0 ni, 98.5 id,  0.0 wa,  0.0 hi,  0.0 si,  0.0 st\n"),
    ("pidstat", "Linux 6.1.0-13-amd64 (romeo) \t11/20/2026 \t_x86_64_\t(2 CPU)\n\n10:00:01 AM   UID       PID    %usr %system  %guest   %wait    %CPU   CPU  Command\n10:00:02 AM     0      1234    1.00   30.00    0.00    0.00   31.00     1  iperf3\n"),
    ("ps", "  PID TTY          TIME CMD\n 1234 pts/0    00:00:00 bash\n"),
    ("ps", "USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND\nroot           1  0.0  0.1 167748 11520 ?        Ss   Nov18   0:02 /sbin/init\n"),
    ("perf", "\n Performance counter stats for 'iperf3 -c 10.10.2.100':\n\n          1,234.56 msec task-clock                #    0.123 CPUs utilized\n"),
    ("perf", "# To display the perf.data header info, please use --header/--header-only options.\n#\n# Samples: 4K of event 'cycles'\n# Overhead  Command  Shared Object      Symbol\n"),
    ("a trace of the kernel", "Attaching 3 probes...\nTracing tcp retransmits. Hit Ctrl-C to end.\nTIME     PID               LADDR:LPORT           RADDR:RPORT  STATE\n10:00:01 0          10.10.1.100:40968    10.10.2.100:5201   ESTABLISHED\n"),
    ("a trace of the kernel", "TIME     PID    IP LADDR:LPORT          T> RADDR:RPORT          STATE\n10:00:01 0      4  10.10.1.100:40968    R> 10.10.2.100:5201     ESTABLISHED\n"),
    ("a trace of the kernel", "Attaching 1 probe...\n@rtt[10.10.2.100]: \n[32, 64)              12 |@@@@@@@@        |\n"),
    ("a trace of the kernel", "# tracer: nop\n#\n# entries-in-buffer/entries-written: 12/12   #P:2\n#\n#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n      iperf3-1234    [001] ..s1.  1234.567890: tcp_probe: family=AF_INET src=10.10.1.100:40968 dest=10.10.2.100:5201 mark=0x0 data_len=1448 snd_nxt=0x1 snd_una=0x1 snd_cwnd=10 ssthresh=2147483647 snd_wnd=64256 srtt=40123 rcv_wnd=64256\n"),
    ("the kernel's log", "[    0.000000] Linux version 6.1.0-13-amd64 (debian-kernel@lists.debian.org)\n[   12.345678] e1000 0000:00:03.0 eth1: renamed from eth0\n[  100.000001] TCP: request_sock_TCP: Possible SYN flooding on port 5201.\n"),
    ("the kernel's log", "[Fri Nov 20 10:00:00 2026] e1000: eth1 NIC Link is Up 1000 Mbps Full Duplex\n"),
    ("the system's log", "Nov 20 10:00:00 romeo kernel: [  12.345678] e1000: eth1 NIC Link is Up\nNov 20 10:00:01 romeo systemd[1]: Started ssh.service.\n"),
    ("sysctl's list", "abi.vsyscall32 = 1\ndebug.exception-trace = 1\nkernel.acct = 4\t2\t30\n"),
    ("nuttcp", "nuttcp-t: v8.2.2: socket\n 1118.0625 MB /  10.01 sec =  936.9 Mbps 10 %TX 20 %RX 0 retrans 0.31 msRTT\n"),
    ("nuttcp", "  111.0625 MB /   1.00 sec =  931.6449 Mbps     0 retrans\n  112.2500 MB /   1.00 sec =  941.6283 Mbps     0 retrans\n"),
    ("qperf", "tcp_bw:\n    bw  =  1.1 GB/sec\ntcp_lat:\n    latency  =  12.3 us\n"),
    ("sockperf", "sockperf: == version #3.10-0 ==\nsockperf[CLIENT] send on:sockperf: using recvfrom() to block on socket(s)\nsockperf: Summary: Latency is 24.571 usec\n"),
    ("ntttcp", "NTTTCP for Linux 1.4.0\n---------------------------------------------------------\n10:00:00 INFO: 17 threads created\n10:01:00 INFO: #####  Totals:  #####\n10:01:00 INFO:   throughput     :84.04Gbps\n"),
    ("ntttcp", "Copyright Version 5.40\nNetwork activity progressing...\n\n\nThread  Time(s) Throughput(KB/s) Avg B / Compl\n======  ======= ================ =============\n     0   60.011         4866.000    131072.000\n\n\n#####  Totals:  #####\n"),
    ("uperf", "Starting 1 threads running profile:iperf ...   0.00 seconds\nTxn1          0 /   1.00(s) =            0           1op/s\nTotal     64.33GB /  30.31(s) =    18.23Gb/s      278123op/s\n"),
    ("a speed test", "Retrieving speedtest.net configuration...\nTesting from X (192.0.2.1)...\nTesting download speed................\nDownload: 93.41 Mbit/s\nUpload: 92.20 Mbit/s\n"),
    ("a speed test", "\n   Speedtest by Ookla\n\n      Server: X - Y (id: 1234)\n    Download:    93.41 Mbps (data used: 42.1 MB)\n"),
    ("a speed test", "{\"type\":\"result\",\"timestamp\":\"2026-11-20T10:00:00Z\",\"ping\":{\"jitter\":0.1,\"latency\":8.1},\"download\":{\"bandwidth\":11676250,\"bytes\":42123456,\"elapsed\":3600},\"upload\":{\"bandwidth\":11525000,\"bytes\":41000000,\"elapsed\":3600}}\n"),
    ("a speed test", "{\"download\": 93410000.1, \"upload\": 92200000.2, \"ping\": 8.1, \"server\": {\"url\": \"http://x/upload.php\", \"lat\": \"1\", \"sponsor\": \"X\"}, \"timestamp\": \"2026-11-20T10:00:00Z\", \"bytes_sent\": 1, \"bytes_received\": 2}\n"),
    ("a speed test", "[{\"timestamp\":\"2026-11-20T10:00:00.0Z\",\"server\":{\"name\":\"X\",\"url\":\"https://x\"},\"client\":{\"ip\":\"192.0.2.1\"},\"bytes_sent\":1,\"bytes_received\":2,\"ping\":8,\"jitter\":0.2,\"upload\":92.2,\"download\":93.41,\"share\":\"\"}]\n"),
    ("a speed test", "==== SUMMARY ====\nUplink capacity: 24.750 Mbps\nDownlink capacity: 98.500 Mbps\nResponsiveness: High (321 RPM)\n"),
    ("a speed test", "{\n  \"downloadSpeed\": 93,\n  \"downloaded\": 110,\n  \"latency\": 8,\n  \"bufferBloat\": 22,\n  \"userLocation\": \"X, Y\"\n}\n"),
    ("a download's progress", "  % Total    % Received % Xferd  Average Speed   Time    Time     Time  Current\n                                 Dload  Upload   Total   Spent    Left  Speed\n100 1000M  100 1000M    0     0  11.2M      0  0:01:29  0:01:29 --:--:-- 11.2M\n"),
    ("a download's progress", "--2026-11-20 10:00:00--  http://10.10.2.100/1G.bin\nConnecting to 10.10.2.100:80... connected.\nHTTP request sent, awaiting response... 200 OK\nLength: 1073741824 (1.0G) [application/octet-stream]\n"),
    ("a download's progress", "1G.bin                    100% 1024MB  11.2MB/s   01:31    \n"),
    ("a download's progress", "sending incremental file list\n1G.bin\n  1,073,741,824 100%   11.20MB/s    0:01:31 (xfr#1, to-chk=0/1)\n"),
    ("a download's progress", "      time_namelookup:  0.000010s\n         time_connect:  0.040120s\n   time_starttransfer:  0.080540s\n                      ----------\n           time_total:  91.400000s\n"),
    ("a download's progress", "1+0 records in\n1+0 records out\n1073741824 bytes (1.1 GB, 1.0 GiB) copied, 91.4 s, 11.7 MB/s\n"),
    ("a meter of HTTP", "This is ApacheBench, Version 2.3 <$Revision: 1903618 $>\nRequests per second:    1234.50 [#/sec] (mean)\n"),
    ("a meter of HTTP", "Running 10s test @ http://10.10.2.100/\n  2 threads and 10 connections\n  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency    40.20ms    1.10ms\nRequests/sec:    248.10\n"),
    ("tshark's or Wireshark's list", "\"No.\",\"Time\",\"Source\",\"Destination\",\"Protocol\",\"Length\",\"Info\"\n\"1\",\"0.000000\",\"10.10.1.100\",\"10.10.2.100\",\"TCP\",\"74\",\"40968  >  5201 [SYN] Seq=0 Win=64240 Len=0\"\n"),
    ("tshark's or Wireshark's list", "[\n  {\n    \"_index\": \"packets-2026-11-20\",\n    \"_type\": \"doc\",\n    \"_score\": null,\n    \"_source\": {\n      \"layers\": {\n        \"frame\": {\"frame.time_epoch\": \"1764000000.0\", \"frame.len\": \"74\"}\n      }\n    }\n  }\n]\n"),
    ("tshark's or Wireshark's list", "{\"index\":{\"_index\":\"packets-2026-11-20\",\"_type\":\"doc\"}}\n{\"timestamp\":\"1764000000000\",\"layers\":{\"frame\":{\"frame_frame_len\":\"74\"}}}\n"),
    ("tshark's or Wireshark's list", "No.     Time           Source                Destination           Protocol Length Info\n      1 0.000000       10.10.1.100           10.10.2.100           TCP      74     40968 > 5201 [SYN] Seq=0\n"),
    ("tshark's or Wireshark's list", "frame.time_relative,ip.src,ip.dst,tcp.analysis.bytes_in_flight,frame.len\n0.000000,10.10.1.100,10.10.2.100,,74\n"),
    ("tshark's or Wireshark's list", "================================================================================\nTCP Conversations\nFilter:<No Filter>\n                                                           |       <-      | |       ->      | |     Total     |    Relative    |   Duration   |\n"),
    ("tshark's or Wireshark's list", "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<pdml version=\"0\" creator=\"wireshark/4.0.6\" time=\"Fri Nov 20 10:00:00 2026\">\n<packet>\n"),
    ("tshark's or Wireshark's list", "================================\n| IO Statistics                |\n| Duration: 10.0 secs          |\n| Interval: 1.0 secs           |\n"),
    ("tshark's or Wireshark's list", "Frame 1: 74 bytes on wire (592 bits), 74 bytes captured (592 bits)\nEthernet II, Src: 02:00:00:00:00:01, Dst: 02:00:00:00:00:02\n"),
    ("netsniff-ng", "> eth1 74 1764000000s.123456789ns #1 \n [ Eth MAC (02:00:00:00:00:01 => 02:00:00:00:00:02), Proto (0x0800, IPv4) ]\n [ IPv4 Addr (10.10.1.100 => 10.10.2.100), Proto (6), TTL (64)\n"),
    ("tcptrace", "1 arg remaining, starting with 'eth2.pcap'\nOstermann's tcptrace -- version 6.6.7 -- Thu Nov  4, 2004\n\n70000 packets seen, 70000 TCP packets traced\nTCP connection info:\n"),
    ("capinfos", "File name:           eth2.pcap\nFile type:           Wireshark/tcpdump/... - pcap\nFile encapsulation:  Ethernet\nNumber of packets:   70 k\n"),
    ("the rules of a firewall", "Chain FORWARD (policy ACCEPT 0 packets, 0 bytes)\n pkts bytes target     prot opt in     out     source               destination\n"),
    ("JSON that no tool prints", "{\"throughput\": 93.4, \"loss\": 0.001, \"rtt\": 40}\n"),
    ("iperf that refused one of its options", "iperf3: unrecognized option '--json-stream'\n\nUsage: iperf3 [-s|-c host] [options]\n"),
    ("iperf that refused one of its options", "iperf3: option requires an argument -- 't'\n\nUsage: iperf3 [-s|-c host] [options]\n"),
    ("the iperf of an ESP32", "iperf> iperf -c 10.10.2.100 -t 3\nI (4597) iperf: mode=tcp-client\n   0-   3 sec       18.70 Mbits/sec\n"),
    ("flent's CSV", "tcp_1up,TCP upload,Ping (ms) ICMP\n0.00,,30.19\n0.20,14.4,30.19\n"),
    ("a table", "time_s,mbit_s,resent\n1,94.2,0\n2,94.0,0\n"),
    ("a table", "size;rate;rtt\n10;94,2;40\n20;94,1;41\n"),
    ("a saved web page", "<!DOCTYPE html>\n<html><head><title>x</title></head><body><pre>iperf</pre></body></html>\n"),
    ("a script", "#!/bin/bash\nset -e\nip netns exec romeo ls\n"),
    ("a script", "from mininet.net import Mininet\nfrom mininet.link import TCLink\n\ndef run():\n    net = Mininet(link=TCLink)\n"),
    ("a program's error", "bash: iperf3: command not found\n"),
    ("a program's error", "Traceback (most recent call last):\n  File \"run.py\", line 3, in <module>\nModuleNotFoundError: No module named 'mininet'\n"),
    ("a program's help", "Usage: iperf3 [-s|-c host] [options]\n       iperf3 [-h|--help] [-v|--version]\n\nServer or Client:\n  -p, --port      #         server port to listen on/connect to\n"),
    ("a program's version", "iperf 3.12 (cJSON 1.7.15)\nLinux romeo 6.1.0-13-amd64 #1 SMP PREEMPT_DYNAMIC Debian 6.1.55-1 x86_64\n"),
]  # fmt: skip
# Forms that say nothing of any flow: nothing is asked for in their place.
MEASURES_NOTHING = {
    "ps", "the kernel's log", "the system's log", "Windows' ipconfig", "ethtool -c or -g", "ethtool -i", "the rules of a firewall", "a script",
    "a program's help", "a program's version",
}  # fmt: skip


@pytest.mark.parametrize(("what", "text"), FORMS)
def test_a_form_that_is_not_read_is_named_and_something_asked_for(what: str, text: str) -> None:
    with pytest.raises(ParseError) as refused:
        format_of(text, "a.txt")
    problem = refused.value.problem
    assert problem.startswith(what)
    assert ("; bring " in problem) is (what not in MEASURES_NOTHING)
    assert measures_nothing(problem) is (what in MEASURES_NOTHING)


def test_of_a_text_that_nobody_knows_nothing_is_claimed() -> None:
    assert why_unread("total 12\ndrwxr-xr-x 2 root root 4096 .\n") == NO_TOOL


def test_what_tools_print_is_no_form_that_is_not_read() -> None:
    """Everything in the corpus is of a format, and so never gets here."""
    for path in sorted(DATA.glob("nstat/*")):
        assert format_of(path.read_text(), path.name).tool == "nstat"
