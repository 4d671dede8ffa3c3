"""Recorded runs brought as files: as their raw folder, all in one folder, and without any name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Literal

from measuretwice.checks import Finding, check_run, run_under_test
from measuretwice.lab import Lab, load_lab
from measuretwice.measure import imported
from measuretwice.measure.imported import ImportedFiles
from measuretwice.runs.folder import ARCHIVE, raw_folder

ROOT = Path(__file__).parents[2]
Way = Literal["folders", "flat", "nameless"]
WAYS: tuple[Way, ...] = ("folders", "flat", "nameless")
# What somebody has who typed the commands: no snapshots of nodes but the router's qdiscs.
BY_HAND = (
    "iperf3", "ss.txt", "ping", "queue.txt", "qdisc.", "tcpdump.txt", "call.txt", "pages.txt",
)  # fmt: skip
# Files that a person made of the tools' output: without names nobody can know what they are.
BY_NAME = {
    "averages-hide", "default-qdisc", "field-number", "halving-counter", "mislabelled-row",
    "mixed-runs", "probe-apart", "red-bandwidth", "red-limits", "standing-queue", "summary-row",
    "unequal-intervals", "units", "wrong-socket",
}  # fmt: skip
# What stands in counters of nodes that somebody with the tools' output alone doesn't bring.
BY_SNAPSHOT = {"other-drops", "receiver-drops"}
# Tests that failed, or are of another run, stand among those runs' files; ours don't look at them.
ONLY_BROUGHT = {"unfit", "two-runs"}


def recorded(lab: str) -> list[Path]:
    """A lab's recorded runs that have their raw files."""
    return sorted(
        plan.parent
        for plan in ROOT.glob(f"sample-data/{lab}/*/**/plan.json")
        if (plan.parent / ARCHIVE).is_file()
    )


def bring_run(run: Path, way: Way, folder: Path) -> tuple[ImportedFiles, list[Finding]]:
    """Check a recorded run's raw files as somebody's own: as its folder of nodes; with the node in each
    file's name; or only what tools print, named copy-N."""
    plan: dict[str, Any] = json.loads((run / "plan.json").read_text(encoding="utf-8"))
    lab, params = load_lab(ROOT, plan["lab"]), plan["params"]
    with raw_folder(run) as raw:
        given = raw
        if way != "folders":
            given = folder / way
            given.mkdir(parents=True)
            paths = sorted(path for path in raw.rglob("*") if path.is_file())
            for number, path in enumerate(paths):
                if way == "flat":
                    shutil.copy(path, given / f"{path.parent.name}-{path.name}")
                elif path.name.startswith(BY_HAND) and (
                    not path.name.startswith("qdisc.") or path.parent.name == router_of(lab)
                ):
                    shutil.copy(path, given / f"copy-{number}")
        brought = imported.read_files([given], lab, params)
        case = run_under_test(
            lab, params, brought.measured, plan["trial"], brought.host_state, brought=True
        )
        found = check_run(lab, case)
    return brought, found


def router_of(lab: Lab) -> str | None:
    """The node whose counters somebody would look at."""
    place = lab.file.collect.bottleneck or lab.file.collect.queue
    return place.node if place else None
