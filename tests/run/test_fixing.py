"""Fixing a case changes something that is measured, and not its verdict alone."""

from pathlib import Path

import pytest

from measuretwice.lab import Lab, find_labs, load_lab
from measuretwice.lab.schema.cases import Pitfall
from measuretwice.runs.recorded import read_set
from measuretwice.runs.result import Result

ROOT = Path(__file__).parents[2]
# By less than this, a fixed run is the first one again.
LEAST_CHANGE = 0.01
# Settings that no packet knows of: what a run is judged by.
CLAIMED = {"judged_by"}
# A mistake of several trials may be in what is concluded of them, as one of a judgement is: then nothing in a run is wrong.
ONE_TRIAL = [
    pytest.param(lab, pitfall, id=f"{lab.name}-{lab.case_number(pitfall)}")
    for lab in (load_lab(ROOT, name) for name in find_labs(ROOT))
    for pitfall in lab.file.pitfalls
    if pitfall.trials is None
    and {name for name, _ in pitfall.broken.set.items() ^ pitfall.fixed.set.items()} - CLAIMED
]


def recorded(lab: Lab, pitfall: Pitfall, stage: str) -> Result:
    name = lab.set_name(f"{pitfall.id}-{stage}")
    return read_set(ROOT / "sample-data" / lab.folder.name / name).runs[0].result


def is_other(before: float | str | None, after: float | str | None) -> bool:
    if isinstance(before, int | float) and isinstance(after, int | float):
        return abs(after - before) > LEAST_CHANGE * max(abs(before), abs(after))
    return before != after


@pytest.mark.parametrize(("lab", "pitfall"), ONE_TRIAL)
def test_a_fixed_case_measures_something_else(lab: Lab, pitfall: Pitfall) -> None:
    before, after = (recorded(lab, pitfall, stage).values for stage in ("broken", "fixed"))
    assert [name for name in before if is_other(before[name], after.get(name))]


def test_no_first_try_is_another_cases_run() -> None:
    """Else whoever has solved that one has these very bytes already."""
    for name in find_labs(ROOT):
        lab = load_lab(ROOT, name)
        digests = {
            (pitfall.id, stage): {
                run.raw_sha256
                for run in read_set(
                    ROOT / "sample-data" / lab.folder.name / lab.set_name(f"{pitfall.id}-{stage}")
                ).runs
            }
            for pitfall in lab.file.pitfalls
            for stage in ("broken", "fixed")
        }
        for (first, stage), its in digests.items():
            for (second, _), others in digests.items():
                # What a set of trials is wrong in isn't in any of its runs.
                if stage == "broken" and first != second and not lab.pitfall(first).trials:
                    assert not its & others, (first, second)
