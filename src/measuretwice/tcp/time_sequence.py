"""A connection's packets against time: what was sent first, what again, and what was acknowledged.

Pure functions on a capture from the sender's side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from measuretwice.parse.tcpdump import TcpPacket


@dataclass(frozen=True)
class TimeSequence:
    """Times count in seconds from the first data packet, sequence numbers in bytes.

    `sent` and `again` are (time, first byte, end); `again` repeats bytes that were sent before.
    `acked` are (time, bytes acknowledged), each higher than the one before.
    """

    sent: list[tuple[float, int, int]]
    again: list[tuple[float, int, int]]
    acked: list[tuple[float, int]]


def data_connection(packets: Sequence[TcpPacket]) -> tuple[str, int]:
    """The address and port from which most bytes came; ValueError where there are none."""
    sent: Counter[tuple[str, int]] = Counter()
    for packet in packets:
        sent[packet.from_address, packet.from_port] += packet.data_bytes
    if not sent or not max(sent.values()):
        raise ValueError("no data in this capture")
    return sent.most_common(1)[0][0]


def time_sequence(packets: Sequence[TcpPacket]) -> TimeSequence:
    """The time-sequence record of the connection with most data."""
    sender = data_connection(packets)
    result = TimeSequence([], [], [])
    start_s: float | None = None
    highest = acked = 0
    for packet in packets:
        if (packet.from_address, packet.from_port) == sender:
            if packet.seq_first is None or packet.seq_last is None:
                continue
            start_s = packet.time_s if start_s is None else start_s
            time_s = round(packet.time_s - start_s, 6)
            # A SYN's number is absolute, so it is none of these: it has no data.
            kind = result.again if packet.seq_first < highest else result.sent
            kind.append((time_s, packet.seq_first, packet.seq_last))
            highest = max(highest, packet.seq_last)
            continue
        ours = (packet.to_address, packet.to_port) == sender and start_s is not None
        if ours and packet.ack is not None and acked < packet.ack <= highest:
            acked = packet.ack
            result.acked.append((round(packet.time_s - (start_s or 0), 6), acked))
    return result
