"""A relay that ends TCP: it answers in the server's name, and speaks to the server itself.

    python3 relay.py PORT SERVER

So the client's TCP has the gateway for its other end, as behind a virtual machine's shared network, a
VPN, many mobile networks and 'accelerators'. Linux only: IP_TRANSPARENT lets a socket answer for
an address that is not this machine's (ip(7)); it takes root, and a route that brings the
packets here.
"""

import signal
import socket
import sys
import threading

CHUNK_BYTES = 65536
# A relay has a buffer of its own; what it holds, the sender takes for delivered.
BUFFER_BYTES = 262144


def relay(client: socket.socket, address: tuple[str, int]) -> None:
    """Carry bytes both ways until both sides have ended."""
    server = socket.create_connection(address)
    back = threading.Thread(target=carry, args=(server, client), daemon=True)
    back.start()
    carry(client, server)
    back.join()
    client.close()
    server.close()


def carry(source: socket.socket, target: socket.socket) -> None:
    try:
        while chunk := source.recv(CHUNK_BYTES):
            target.sendall(chunk)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        # One side is gone: tell the other.
        for one in (source, target):
            one.close()


def main() -> None:
    port, server = int(sys.argv[1]), sys.argv[2]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_IP, getattr(socket, "IP_TRANSPARENT", 19), 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        listener.bind(("0.0.0.0", port))
        listener.listen()
        while True:
            client, _ = listener.accept()
            threading.Thread(target=relay, args=(client, (server, port)), daemon=True).start()


if __name__ == "__main__":
    main()
