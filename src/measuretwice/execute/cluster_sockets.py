"""Where a process of dask's listens, asked of its own sockets.

This file's text is run inside schedulers, workers and nannies (see cluster_ports.py). They don't know this
package, and may have another version of Python: so it stands alone.
"""

from __future__ import annotations

import importlib
import socket
from typing import Any


def listening() -> list[tuple[str, str, str, int, bool]]:
    """Return of each socket that this process listens on: whose it is, the machine, the address, the
    port, and whether who connects must show a certificate of the cluster's.

    Whose: "scheduler", "worker" or "nanny", with "'s dashboard" for its pages, or with "'s process" for
    what isn't dask's own.
    """
    owners = _owners()
    kind = next(iter(owners.values()))[0][0].partition("'")[0]
    unknown = [(f"{kind}'s process", False)]
    found = []
    process = importlib.import_module("psutil").Process()
    for each in process.net_connections(kind="tcp"):
        if each.status == "LISTEN":
            # Two may have one port, at two addresses: it counts as one with TLS where both have it.
            mine = owners.get(each.laddr.port, unknown)
            tls = all(with_tls for _, with_tls in mine)
            found.append((mine[0][0], socket.gethostname(), each.laddr.ip, each.laddr.port, tls))
    return found


def _owners() -> dict[int, list[tuple[str, bool]]]:
    """Return of each port who has opened it, and whether with TLS."""
    distributed: Any = importlib.import_module("distributed")
    owners: dict[int, list[tuple[str, bool]]] = {}
    for kind in ("Scheduler", "Worker", "Nanny"):
        for server in getattr(distributed, kind)._instances:
            for listener in server.listeners:
                scheme, _, place = listener.listen_address.partition("://")
                port = place.rpartition(":")[2]
                if port.isdigit():
                    owners.setdefault(int(port), []).append((kind.lower(), scheme == "tls"))
            pages = getattr(server, "http_server", None)
            for opened in pages._sockets.values() if pages else ():
                port = opened.getsockname()[1]
                owners.setdefault(port, []).append((f"{kind.lower()}'s dashboard", False))
    return owners
