"""A few injected faults and honest runs, as `make checker-faults` does it with all kinds, many times."""

import random
from collections import Counter
from pathlib import Path

import pytest
from confusion import verdict
from fault_kinds import KNOWN

from faults import LABS, cheap, faulty_runs, prove
from measuretwice.lab import load_lab

ROOT = Path(__file__).parents[2]

FEW = "mtu-one tbf-left-over algorithm-wrong other-flow rate-limited-sender iperf3-cut-off".split()


def test_kinds_have_names_of_their_own() -> None:
    assert len(KNOWN) >= 40
    assert [name for name, count in Counter(kind.name for kind in KNOWN).items() if count > 1] == []


@pytest.mark.parametrize("lab", LABS)
def test_settings_are_drawn_within_the_labs_own_bounds(lab: str) -> None:
    found = load_lab(ROOT, lab)
    for number in range(20):
        trial, changes = cheap(found, random.Random(number))
        assert trial in found.trials
        for name, value in changes.items():
            found.read_value(name, value, lab)


def test_silence_and_blame_are_told_apart() -> None:
    assert verdict({"timestamps"}, []) == "silent"
    assert verdict({"timestamps"}, ["duration"]) == "silent"
    assert verdict({"timestamps"}, ["unexplained"]) == "said"
    assert verdict({"timestamps"}, ["mtu", "timestamps"]) == "right"
    assert verdict({"duration"}, ["duration"]) == "right"
    assert verdict(None, ["duration"]) == "honest"
    assert verdict(None, ["mtu"]) == "blamed"


@pytest.mark.nightly(
    "each check fires and is silent: tests/check; what all faults showed is recorded: test_record.py beside this"
)
@pytest.mark.kernel
@pytest.mark.slow
def test_no_fault_is_silent_and_nobody_honest_is_blamed(tmp_path: Path) -> None:
    kinds = [kind for kind in KNOWN if kind.name in FEW]
    assert len(kinds) == len(FEW)
    table = prove(
        faulty_runs(kinds, times=1, honest=5, keep=tmp_path, seed=1), workers=1, talk=False
    )
    print(table)
    assert (table.sums.total(), table.wrong) == (len(FEW) + 5, 0)
