"""Which backends there are, and which of them --on means."""

from __future__ import annotations

from measuretwice.backends.backend import Backend
from measuretwice.backends.browser import Browser
from measuretwice.backends.host import Host
from measuretwice.backends.ssh import SshNodes
from measuretwice.backends.virtual import Virtual
from measuretwice.base.errors import UserError

# Who says nothing means the first.
BACKENDS: tuple[type[Backend], ...] = (Virtual, Host, Browser, SshNodes)


def backend_for(where: str) -> type[Backend]:
    """Return the backend that --on `where` means; UserError where none is."""
    for backend in BACKENDS:
        if backend.is_meant(where):
            return backend
    *others, last = (backend.accepts for backend in BACKENDS)
    raise UserError(f"--on {where}: expected {', '.join(others)}, or {last}")
