"""Half of a call: a packet every few milliseconds to the other end, and what comes from there.

    python3 call.py ADDRESS PORT BYTES INTERVAL_MS SECONDS

Prints a line for each packet that came: its number, when it was sent and when it came (Unix times, each by its own
host's clock); and first how many were sent to this end. Both ends are started alike, so they send equally many.
"""

import select
import socket
import struct
import sys
import time

# Both ends must listen before the first packet comes; and the last may wait in a queue for as long.
BEFORE_S = 0.2
AFTER_S = 2.0
# What a packet begins with: its number, and when it was sent.
HEAD = struct.Struct("!Id")


def main() -> None:
    address, port = sys.argv[1], int(sys.argv[2])
    size, interval_s, seconds = int(sys.argv[3]), float(sys.argv[4]) / 1e3, float(sys.argv[5])
    count = max(1, int((seconds - BEFORE_S) / interval_s))
    print("# sent", count)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ours:
        ours.bind(("0.0.0.0", port))
        talk(ours, (address, port), size, interval_s, count)


def talk(
    ours: socket.socket, other: tuple[str, int], size: int, interval_s: float, count: int
) -> None:
    start_s = time.monotonic() + BEFORE_S
    end_s = start_s + count * interval_s + AFTER_S
    number = 0
    while (now_s := time.monotonic()) < end_s:
        due_s = start_s + number * interval_s if number < count else end_s
        if now_s < due_s:
            if select.select([ours], [], [], due_s - now_s)[0]:
                packet, came_s = ours.recv(65535), time.time()
                of, sent_s = HEAD.unpack_from(packet)
                print(of, f"{sent_s:.6f} {came_s:.6f}")
        else:
            ours.sendto(HEAD.pack(number, time.time()).ljust(size, b"\0"), other)
            number += 1


if __name__ == "__main__":
    main()
