"""One trial on a worker of a cluster: an order on standard input, the answer on standard output.

Both are JSON (see cluster.py). The order is refused where this machine would measure something
else than its plan says.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import threading
import time
from pathlib import Path
from typing import Any

from measuretwice.backends.virtual import Virtual, ensure_kernel, memory_folder
from measuretwice.base.errors import UserError
from measuretwice.base.files import take_cpu
from measuretwice.execute.job import Busy, Job, check_writable, finished, run_job
from measuretwice.lab import CheckedParams, Plan, digest_scripts, read_lab
from measuretwice.runs.result import Result, code_digest


class Misfit(UserError):
    """This machine can't run the plan as it stands."""


def main() -> None:
    order = json.load(sys.stdin)
    answer: dict[str, Any]
    try:
        answer = {"result": _run(order).to_json()}
    except UserError as error:
        answer = {
            "error": f"{platform.node()}: {error}",
            "exit_code": error.exit_code,
            "misfit": isinstance(error, Misfit),
        }
    json.dump(answer, sys.stdout)


def _run(order: dict[str, Any]) -> Result:
    root, lab_folder, out = (Path(order[name]) for name in ("root", "lab_folder", "out"))
    if not Path(order["lease"]).exists():
        raise Misfit(f"{out} is not what it is where ./lab run was called")
    if not (lab_folder / "lab.toml").is_file() or order["code"] != code_digest(lab_folder):
        raise Misfit(f"{root} is another version of the checkout")
    lab = read_lab(lab_folder)
    params = CheckedParams(lab, order["plan"]["params"], "the order")
    plan = Plan(**{**order["plan"], "params": params})
    try:
        backend = _fit(plan, root, lab_folder, out)
    except UserError as error:
        raise Misfit(str(error)) from None
    # A variable holds it: it is given back when this process ends.
    cpu = take_cpu()
    threading.Thread(target=_end_with, args=(Path(order["lease"]),), daemon=True).start()
    try:
        return _run_once(Job(plan, lab_folder, root, out, backend, order["wall_limit_s"]))
    finally:
        cpu.close()


def _fit(plan: Plan, root: Path, lab_folder: Path, out: Path) -> Virtual:
    """Return this machine's virtual kernel, built if need be; UserError where plans would differ here."""
    if digest_scripts(read_lab(lab_folder), root / "scripts") != plan.scripts:
        raise UserError(f"the scripts in {root} differ")
    check_writable(out)
    memory_folder()
    kernel = ensure_kernel()
    if kernel.name != plan.kernel:
        raise UserError(f"the virtual kernel is {kernel.name}, not {plan.kernel}")
    return Virtual(kernel)


def _end_with(lease: Path) -> None:
    """End this process, and so its kernel, once nobody waits for the trial."""
    while lease.exists():
        time.sleep(0.5)
    os._exit(1)


def _run_once(job: Job) -> Result:
    """Run it, unless another worker does, or did: one that the scheduler took for dead."""
    until = time.monotonic() + job.wall_limit_s
    while True:
        if done := finished([job]):
            return done[job.folder]
        try:
            return run_job(job)
        except Busy:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


if __name__ == "__main__":
    main()
