"""When each packet of a flow's first windows came, as a capture of the ACKs that answer them tells."""

from __future__ import annotations

from collections import Counter

from measuretwice.parse.tcpdump import parse_tcpdump

# A flow begins with ten segments (RFC 6928), and in slow start each window is twice the one before.
WINDOWS = (10, 20, 40)


def window_arrivals(acks: str, name: str) -> list[list[int]]:
    """Return of each of the first windows when its packets came, in microseconds from its first. `acks` is what tcpdump
    printed, of a receiver that acknowledges each packet; ParseError, with the file's `name`, where it can't be read."""
    packets = parse_tcpdump(acks, name)
    data = Counter(packet.to_port for packet in packets).most_common(1)[0][0]
    times = [
        packet.time_s
        for packet in packets
        if packet.to_port == data and "S" not in packet.flags and not packet.data_bytes
    ]
    # The first acknowledges iperf3's greeting.
    windows, begin = [], 1
    for size in WINDOWS:
        window = times[begin : begin + size]
        windows.append([round(1e6 * (when - window[0])) for when in window])
        begin += size
    return windows
