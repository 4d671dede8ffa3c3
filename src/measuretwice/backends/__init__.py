"""The backends, and the choice among them by --on."""

from __future__ import annotations

from measuretwice.backends.backend import Backend
from measuretwice.backends.browser import Browser
from measuretwice.backends.host import Host
from measuretwice.backends.ssh import SshNodes
from measuretwice.backends.virtual import Virtual
from measuretwice.base.errors import UserError

# Without --on it is the first.
BACKENDS: tuple[type[Backend], ...] = (Virtual, Host, Browser, SshNodes)

# Those that make the same bytes of the same plan on any machine, by name.
REPEATING = {backend.name: backend for backend in BACKENDS if backend.repeats}


def what_differs(where: str) -> str:
    """Return how runs on a place that a plan names differ from the virtual kernel's; "" where they don't."""
    return next((backend.differs for backend in BACKENDS if backend.name == where), "")


def option_of(where: str) -> str:
    """Return the option that chooses a place that a plan names; "" for an unknown one."""
    return next((backend.option for backend in BACKENDS if backend.name == where), "")


def backend_for(where: str) -> type[Backend]:
    """Return the backend that --on `where` means; UserError where none is."""
    for backend in BACKENDS:
        if backend.matches(where):
            return backend
    *others, last = (backend.accepts for backend in BACKENDS)
    raise UserError(f"--on {where}: expected {', '.join(others)}, or {last}")
