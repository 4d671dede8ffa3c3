"""Short transfers, each over a connection of its own, as a page of the web needs many.

    python3 pages.py serve PORT BYTES                        give everyone so many, until told to end
    python3 pages.py fetch ADDRESS PORT PAUSE_MS SECONDS     fetch one, pause, fetch the next

Who fetches prints a line for each: when it began (Unix time), and how long it took until its last byte (ms). Pauses
are random, PAUSE_MS on average.
"""

import random
import signal
import socket
import sys
import threading
import time

CHUNK_BYTES = 65536


def serve(port: int, size: int) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("0.0.0.0", port))
        listener.listen()
        while True:
            client, _ = listener.accept()
            threading.Thread(target=give, args=(client, size), daemon=True).start()


def give(client: socket.socket, size: int) -> None:
    with client:
        try:
            client.sendall(bytes(size))
        except OSError:
            # Whoever asked is gone.
            return


def fetch(address: str, port: int, pause_s: float, seconds: float) -> None:
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        began_s, begin_s = time.time(), time.monotonic()
        with socket.create_connection((address, port)) as server:
            while server.recv(CHUNK_BYTES):
                pass
        print(f"{began_s:.6f} {1e3 * (time.monotonic() - begin_s):.3f}", flush=True)
        time.sleep(random.expovariate(1 / pause_s))


def main() -> None:
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]), int(sys.argv[3]))
    else:
        fetch(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]) / 1e3, float(sys.argv[5]))


if __name__ == "__main__":
    main()
