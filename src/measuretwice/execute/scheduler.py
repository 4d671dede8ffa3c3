"""The scheduler of a cluster, as --jobs names it, and the commands that start one well."""

from __future__ import annotations

import ipaddress
from typing import NamedTuple

# dask opens a port for its pages even with --no-dashboard, on all interfaces unless it is told where;
# and TLS does not cover it.
NO_PAGES = "--no-dashboard --dashboard-address 127.0.0.1:0"


class Scheduler(NamedTuple):
    """A dask scheduler's address. One of version 6 stands without its brackets."""

    host: str
    port: int
    tls: bool = False

    def url(self) -> str:
        """Return the address as --jobs takes it."""
        return f"{'dask+tls' if self.tls else 'dask'}://{self._place()}"

    def address(self) -> str:
        """Return the address as dask takes it."""
        return f"{'tls' if self.tls else 'tcp'}://{self._place()}"

    def is_local(self) -> bool:
        """Return whether it is this machine by name: no other one reaches what listens there."""
        return self.host == "localhost" or is_loopback(self.host)

    def safe(self) -> Scheduler:
        """The same, with TLS where other machines reach it."""
        return self if self.is_local() else self._replace(tls=True)

    def start(self) -> str:
        """The command that starts it."""
        protocol = " --protocol tls" if self.tls else ""
        return f".venv/bin/dask scheduler --host {self._host()}{protocol} --port {self.port} {NO_PAGES}"

    def start_worker(self) -> str:
        """The command that starts a worker of it."""
        host = "127.0.0.1" if self.is_local() else "ITS-OWN-ADDRESS"
        return f".venv/bin/dask worker {self.address()} --host {host} {NO_PAGES} --nthreads 1"

    def _host(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host

    def _place(self) -> str:
        return f"{self._host()}:{self.port}"


def is_loopback(host: str) -> bool:
    """Return whether only this machine's own processes reach an address; False for a name."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    # Python before 3.13 does not look into ::ffff:127.0.0.1 itself.
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)
