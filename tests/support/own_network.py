"""A network that only the processes put into it have: a port that is open to all there is open to nobody."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

# Of RFC 5737's, which no machine has; here two are this network's own.
ADDRESSES = ("192.0.2.10", "192.0.2.11")
BEGIN = "ip link set lo up; for a in {}; do ip address add $a/32 dev lo; done; echo ready; exec cat"


class Network(NamedTuple):
    """`inside` is put before a command. Without one, it is the machine's network, without ADDRESSES."""

    inside: list[str]

    def here(self, text: str) -> str:
        """The text, with 127.0.0.1 for those addresses that this network lacks."""
        for address in ADDRESSES if not self.inside else ():
            text = text.replace(address, "127.0.0.1")
        return text


@contextmanager
def own_network() -> Iterator[Network | None]:
    """A network of its own; nothing where this user may make none, as in many a container."""
    holder = subprocess.Popen(
        ["unshare", "--user", "--map-root-user", "--net", "sh", "-ec", BEGIN.format(" ".join(ADDRESSES))],
        env={**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )  # fmt: skip
    try:
        assert holder.stdout
        if holder.stdout.readline() == "ready\n":
            enter = "nsenter --user --net --preserve-credentials".split()
            yield Network([*enter, f"--target={holder.pid}", "--"])
        else:
            yield None
    finally:
        holder.kill()
        holder.communicate()
