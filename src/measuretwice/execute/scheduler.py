"""The scheduler of a cluster, as --jobs names it."""

from __future__ import annotations

from typing import NamedTuple


class Scheduler(NamedTuple):
    """Where a dask scheduler listens. An address of version 6 stands without its brackets."""

    host: str
    port: int

    def url(self, scheme: str = "dask") -> str:
        return f"{scheme}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"
