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

# Those that make the same bytes of the same plan on any machine, by name.
REPEATING = {backend.name: backend for backend in BACKENDS if backend.repeats}


def what_differs(where: str) -> str:
    """What is to be known of runs on a place that a plan names, beside the virtual kernel's; often nothing."""
    return next((backend.differs for backend in BACKENDS if backend.name == where), "")


def option_of(where: str) -> str:
    """What a command says of a place that a plan names; nothing of one that it doesn't know."""
    return next((backend.option for backend in BACKENDS if backend.name == where), "")


def backend_for(where: str) -> type[Backend]:
    """Return the backend that --on `where` means; UserError where none is."""
    for backend in BACKENDS:
        if backend.matches(where):
            return backend
    *others, last = (backend.accepts for backend in BACKENDS)
    raise UserError(f"--on {where}: expected {', '.join(others)}, or {last}")
