"""The backends, and the choice among them by --on."""

from __future__ import annotations

from measuretwice.backends.backend import Backend
from measuretwice.backends.browser import Browser
from measuretwice.backends.host import EmulatedHost, Host
from measuretwice.backends.ssh import SshNodes
from measuretwice.backends.virtual import Virtual
from measuretwice.base.errors import UserError

# Without --on it is the first.
BACKENDS: tuple[type[Backend], ...] = (Virtual, Host, Browser, SshNodes)

# Those that --on chooses only together with another option.
WITH_EMULATOR: type[Backend] = EmulatedHost
ALL: tuple[type[Backend], ...] = (*BACKENDS, WITH_EMULATOR)

# Those that make the same bytes of the same plan on any machine, by name.
REPEATING = {backend.name: backend for backend in BACKENDS if backend.repeats}


def what_differs(where: str) -> str:
    """Return how runs on a place that a plan names differ from the virtual kernel's; "" where they don't."""
    return next((backend.differs for backend in ALL if backend.name == where), "")


def option_of(where: str) -> str:
    """Return the option that chooses a place that a plan names; "" for an unknown one."""
    return next((backend.option for backend in ALL if backend.name == where), "")


def backend_for(where: str, *, emulate: bool = False) -> type[Backend]:
    """Return the backend that --on `where` means, with --emulate where so asked; UserError where none is."""
    if emulate:
        if not Host.matches(where):
            raise UserError("--emulate is for this machine's own kernel: add --on host")
        return WITH_EMULATOR
    for backend in BACKENDS:
        if backend.matches(where):
            return backend
    *others, last = (backend.accepts for backend in BACKENDS)
    raise UserError(f"--on {where}: expected {', '.join(others)}, or {last}")
