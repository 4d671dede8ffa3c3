"""A few injected faults and honest runs, as `make checker-faults` does it with all kinds, many times."""

import random
from collections import Counter
from pathlib import Path

import pytest
from confusion import verdict
from effects import changed, odd, prove_effects, prove_odd, prove_swaps
from fault_kinds import KNOWN
from script_kinds import BASES, SCRIPTS

from faults import LABS, cheap, faulty_runs, prove
from measuretwice.checks import KINDS
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


def test_kinds_of_node_scripts_have_names_of_their_own_and_right_causes() -> None:
    names = [kind.name for kind in SCRIPTS]
    assert len({name.rsplit(" ", 1)[0] for name in names}) >= 85
    assert len(names) == len(set(names))
    for kind in SCRIPTS:
        assert kind.causes - {"refused"} <= {*KINDS}, kind.name


def test_an_effect_is_what_no_honest_run_has() -> None:
    honest = [
        {"goodput_bps": 9.0e6, "retransmits": 100},
        {"goodput_bps": 9.2e6, "retransmits": 130},
    ]
    assert changed({"goodput_bps": 8.7e6, "retransmits": 160}, honest) == ""
    assert changed({"goodput_bps": 8.3e6, "retransmits": 160}, honest).startswith("goodput_bps")
    assert changed({"goodput_bps": 9.1e6, "retransmits": 300}, honest).startswith("retransmits")
    assert changed({"goodput_bps": None, "retransmits": 100}, honest) == "goodput_bps gone"


@pytest.mark.parametrize("lab", LABS)
def test_odd_settings_are_legal(lab: str) -> None:
    lab_file = load_lab(ROOT, lab)
    for number in range(50):
        trial, changes = odd(lab_file, random.Random(number))
        assert trial in lab_file.trials
        for name, value in changes.items():
            lab_file.read_value(name, value, lab)


@pytest.mark.kernel
@pytest.mark.slow
def test_a_sample_of_faults_is_named_and_of_odd_runs_silent(tmp_path: Path) -> None:
    effects, blamed = prove_effects(tmp_path, 1, 1, ["htb-rate C2", "route-initrwnd C2"], ["C2"])
    print(effects)
    assert (effects.changing, blamed) == (Counter(named=2), [])
    assert prove_odd(3, tmp_path, 2, 1)[1] == []
    swaps = prove_swaps(tmp_path, 1, 1, ["M7"])
    print(swaps)
    assert swaps.changing["named"] >= 8
    assert swaps.changing.total() == swaps.changing["named"]


# A test a setting, so that none runs into the limit of ten minutes on a busy machine.
@pytest.mark.nightly("a sample of each, above")
@pytest.mark.kernel
@pytest.mark.slow
@pytest.mark.parametrize("base", BASES)
def test_no_fault_in_a_script_is_silent(base: str, tmp_path: Path) -> None:
    kinds = [kind.name for kind in SCRIPTS if kind.name.split()[-1] == base]
    assert kinds
    effects, blamed = prove_effects(tmp_path, 1, 1, kinds)
    print(effects)
    assert (effects.changing["silent"], blamed) == (0, [])


@pytest.mark.nightly("a sample of each, above")
@pytest.mark.kernel
@pytest.mark.slow
def test_no_odd_run_is_blamed(tmp_path: Path) -> None:
    assert prove_odd(60, tmp_path, 1, 1)[1] == []


@pytest.mark.nightly("a sample of each, above")
@pytest.mark.kernel
@pytest.mark.slow
def test_no_file_of_another_run_is_silent(tmp_path: Path) -> None:
    assert prove_swaps(tmp_path, 1, 1).changing["silent"] == 0


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
