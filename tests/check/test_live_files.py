"""Live labs' own folders of every lab, with what their terminals left: judged as our own runs are."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from brought_runs import BY_HAND, BY_NAME, BY_SNAPSHOT, ONLY_BROUGHT, ROOT, recorded, router_of

from measuretwice.checks import check_run, run_under_test
from measuretwice.course.findings import check_live, real_time_note
from measuretwice.lab import load_lab
from measuretwice.live.session import FACTS
from measuretwice.runs.folder import ARCHIVE, PLAN, raw_folder
from measuretwice.runs.remeasure import remeasure

# The smallest run of each set: the broken ones' and two more of each lab by day.
QUICK = 2
OTHERS = pytest.mark.nightly("every broken set and two more of each lab, judged in the same way")
SAMPLES = ROOT / "sample-data"


def chosen() -> list[Any]:
    found = []
    for lab in sorted(path.name for path in (ROOT / "labs").glob("0*")):
        runs = sorted(recorded(lab), key=lambda run: (run / ARCHIVE).stat().st_size)
        smallest = list({run.parent: run for run in reversed(runs)}.values())[::-1]
        found += [
            pytest.param(
                run,
                id=str(run.relative_to(SAMPLES)),
                marks=() if number < QUICK or "broken" in run.parent.name else OTHERS,
            )
            for number, run in enumerate(smallest)
        ]
    return found


def live_folder(run: Path, folder: Path) -> Path:
    """The folder of a live lab in which the run's commands were typed: what the tools printed, on their nodes,
    and no snapshots."""
    again = remeasure(ROOT, run)
    folder.mkdir(parents=True)
    shutil.copy(run / PLAN, folder / FACTS)
    with raw_folder(run) as raw:
        for path in sorted(path for path in raw.rglob("*") if path.is_file()):
            by_router = path.parent.name == router_of(again.lab)
            if path.name.startswith(BY_HAND) and (by_router or not path.name.startswith("qdisc.")):
                own = folder / "raw" / path.relative_to(raw)
                own.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, own)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("run", chosen())
def test_what_was_typed_in_a_live_lab_is_judged_as_a_run(run: Path, tmp_path: Path) -> None:
    again = remeasure(ROOT, run)
    case = run_under_test(
        again.lab, again.plan.params, again.measured, again.plan.trial, again.host_state
    )  # fmt: skip
    expected = {finding.id for finding in check_run(again.lab, case)}
    document = check_live(ROOT, live_folder(run, tmp_path / "live-1"), None)
    ids = {finding["id"] for finding in document["findings"]}
    says = [(finding["id"], finding["measured"]) for finding in document["findings"]]
    assert expected - ids <= BY_NAME | BY_SNAPSHOT, says
    assert ids - expected <= ONLY_BROUGHT | ({"retransmissions"} if expected else set()), says
    if not expected:
        assert ids == set(), says
    # What a run's own lab names is there: goodput of one flow, or of each of several.
    assert {name for name in again.measured if name.endswith("goodput_bps")} <= {
        *document["measured"]
    }
    assert not any("Error" in line for line in document["missing"]), document["missing"]


def test_a_busy_machine_is_part_of_what_is_measured() -> None:
    idle, busy = real_time_note(1.2, 2), real_time_note(11.8, 2)
    assert "in real time" in idle
    assert "CPU" not in idle
    assert busy.startswith(idle)
    assert "12 programs wish to run on its 2 CPUs just now" in busy


def test_every_lab_is_among_them() -> None:
    names = {param.values[0].parts[-3] for param in chosen() if not param.marks}
    assert names == {load_lab(ROOT, path.name).folder.name for path in (ROOT / "labs").glob("0*")}
