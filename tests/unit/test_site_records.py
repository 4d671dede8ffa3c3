"""What a page says of the kit's own measurements: each is a fact, and records that can't be read end in one line."""

from pathlib import Path

import pytest
from all_cases import ROOT
from benchmark_modules import load

from measuretwice.base.errors import UserError
from measuretwice.facts import Facts
from measuretwice.site.kit_facts import RECORDS, kit_facts
from measuretwice.site.witnesses import set_ns3, set_selftests, set_stock


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("content", ["", '{"variants": {"rat', "[]", "{}"])
def test_a_record_that_is_broken_is_named(tmp_path: Path, name: str, content: str) -> None:
    assert list(kit_facts(tmp_path)) == []
    record = tmp_path / name
    record.parent.mkdir(parents=True)
    record.write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=record.name):
        kit_facts(tmp_path)


def test_every_kind_of_fault_has_a_row_and_its_runs_add_up() -> None:
    f = kit_facts(ROOT)
    groups = (f.known_faults, f.kept_faults, f.faults_kept_later)
    for group in groups:
        for _, runs, right, blamed, silent, _ in group.rows:
            assert runs.value == right.value + blamed.value + silent.value
    reviewed = f.faults.rows[-1][1].value
    of_kinds = sum(row[1].value for group in groups for row in group.rows)
    assert f.fault_runs.value == of_kinds + reviewed + f.honest_runs.value


def test_a_kernel_without_patches_is_set_beside_ours_lab_by_lab() -> None:
    pairs = load("pairs")
    made = [
        pairs.Pair(
            "mathis", 7, {}, seed, {"goodput_bps": (stock, 10.0), "loss_ratio": (0.01, 0.01)}
        )
        for seed, stock in ((1, 10.9), (2, 11.0), (3, 11.1))
    ] + [pairs.Pair("queues", 1, {}, 4, {"queue_mean_bytes": (5000, 5000)})]
    f = Facts()
    record = {"begun": "2026-11-27", "seconds": 30, "pairs": made, "summary": pairs.summed_up(made)}
    set_stock(f, record)
    assert [str(cell) for cell in f.stock.rows[0]][:4] == ["mathis", "goodput", "3", "1.100"]
    # A lab stands once; a value that one pair had has no interval.
    assert str(f.stock.rows[1][0]) == ""
    assert f.stock.rows[2][4] == ""
    assert f.stock_surely_differ.value == 1
    assert "stock_bbr" not in f


@pytest.mark.parametrize(("stock", "alike"), [((0.3, 0.5, 0.4), True), ((0.29, 0.3, 0.31), False)])
def test_one_bbr_flow_is_told_apart_where_the_clock_makes_a_difference(
    stock: tuple[float, ...], alike: bool
) -> None:
    pairs = load("pairs")
    made = [
        pairs.Pair("scale", 5, {}, seed, {"rival_share": (part, ours)})
        for seed, (part, ours) in enumerate(zip(stock, (0.41, 0.39, 0.4), strict=True), start=1)
    ]
    one = {"seconds": 120, "pairs": [pair.to_json() for pair in made]}
    f = Facts()
    set_stock(f, {"begun": "2026-11-27", "seconds": 30, "pairs": [], "summary": [], "one_bbr": one})
    assert f.stock_bbr_ours.middle_value == pytest.approx(40)
    assert f.clock_takes_nothing_from_bbr is alike


def test_verdicts_of_linux_own_tests_are_counted_by_whose_time_it_is() -> None:
    verdicts = load("verdicts")
    one, other = (verdicts.read_outcome(f"ok 1 a\n{end} 2 b\n", 0) for end in ("ok", "not ok"))
    agreements = {
        "net/x": verdicts.compare([one], [one]),
        "net/y": verdicts.compare([one], [other]),
    }
    differ = {name: found.differ for name, found in agreements.items() if found.differ}
    f = Facts()
    record = {
        "date": "2026-11-27",
        "counts": {"patched": verdicts.total(agreements), "virtual": verdicts.total(agreements)},
        "differ": {"patched": differ, "virtual": {}},
        "tests": agreements,
        "cannot": {},
        "explained": {"net/x": "which has the same verdict, so nobody asks"},
    }
    set_selftests(f, record)
    shown = [str(cell) for cell in f.selftests.rows[0]]
    assert shown == ["in real time", "3", "3", "0", "0", "1", "0", "0"]
    explained = [[str(cell) for cell in row] for row in f.selftests_explained.rows]
    assert explained == [["`net/y`", "real", "not found out yet"]]


@pytest.mark.parametrize(("slowest", "stalls"), [(0.05, True), (0.88, False)])
def test_a_simulator_is_compared_path_by_path(slowest: float, stalls: bool) -> None:
    trials = [
        {"rtt_ms": 6, "ratio": 1.0, "losses": 400},
        {"rtt_ms": 6, "ratio": 1.21, "losses": 900},
        {"rtt_ms": 600, "ratio": 0.8, "losses": 100},
    ]
    row = {"name": "C by halvings", "ns3": 1.2, "virtual": 1.25, "ratio": 0.96}
    compared = {"what": "a FIFO", "runs": {"ns3": 1, "virtual": 1}, "rows": [row]}
    f = Facts()
    record = {
        "ns3": "3.37",
        "comparisons": [{**compared, "trials": trials}, compared, compared],
        "seeds": {"rtt_ms": 451.5, "ratios": [0.9, slowest]},
    }
    set_ns3(f, record)
    shown = [[str(cell) for cell in row] for row in f.ns3_by_path.rows]
    assert shown == [["6", "2", "1.10", "1", "1.21"], ["600", "1", "0.800", "0.800", "0.800"]]
    assert (str(f.ns3_least_losses), f.ns3_chance.value) == ("100", 5)
    assert f.ns3_stalls is stalls
