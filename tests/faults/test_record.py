"""What the page on the checks' proof says rests on a record: is it of the kinds that stand here, and does it hold what is aimed at?"""

import json
from typing import Any

import pytest
from confusion import RECORD, FaultTable, record
from fault_kinds import KNOWN
from kept_kinds import KEPT
from later_kinds import LATER
from review_kinds import REVIEW

RECORDED: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("group", "kinds"),
    [("known", KNOWN), ("kept", KEPT), ("later", LATER), ("review", REVIEW)],
    ids=["known", "kept", "later", "review"],
)
def test_every_kind_stands_in_the_record(group: str, kinds: Any) -> None:
    assert set(RECORDED[group]) == {kind.name for kind in kinds}


def test_there_are_a_thousand_runs_and_as_many_honest_ones_as_of_known_faults() -> None:
    today = ("known", "kept", "later", "review", "honest")
    runs = {group: FaultTable.from_json(RECORDED[group]).sums.total() for group in today}
    assert sum(runs.values()) >= 1000
    assert runs["honest"] >= runs["known"]
    # What judged blind stays as it was, whatever is measured later.
    assert FaultTable.from_json(RECORDED["kept-first"]).sums.total() == 84
    assert FaultTable.from_json(RECORDED["later-first"]).sums["silent"] == 1


def test_kept_kinds_are_others_than_the_known() -> None:
    assert len(KEPT) >= 20
    names = [kind.name for kind in (*KNOWN, *KEPT, *LATER)]
    assert len({*names}) == len(names)
    assert all(kind.says and kind.causes for kind in (*KEPT, *LATER))


def test_nobody_honest_was_blamed_and_no_known_fault_passed_over() -> None:
    for group in ("known", "review", "honest"):
        assert FaultTable.from_json(RECORDED[group]).wrong == 0, group


def test_nine_in_ten_known_faults_got_their_cause() -> None:
    sums = FaultTable.from_json(RECORDED["known"]).sums
    assert sums["right"] >= 0.9 * sums.total()


def test_faults_in_scripts_and_files_of_other_runs_were_never_passed_over() -> None:
    for group, least in (("scripts", 100), ("swaps", 40)):
        sums = FaultTable.from_json(RECORDED[group]).sums
        assert sums.total() >= least, group
        assert sums["silent"] == 0, group
    odd = FaultTable.from_json(RECORDED["odd"])
    assert odd.sums["honest"] >= 500
    assert odd.sums["blamed"] == 0


def test_a_record_keeps_what_it_had(tmp_path: Any) -> None:
    first, second = FaultTable(), FaultTable()
    first.add("a-kind", "silent", [])
    second.add("a-kind", "right", ["mtu", "duration"])
    path = tmp_path / "record.json"
    record(path, {"kept": first}, {"a-kind": "the MTU is off"})
    record(path, {"known": first}, {})
    record(path, {"kept": second}, {})
    recorded = json.loads(path.read_text())
    assert recorded["kept-first"] == {
        "a-kind": {"silent": 1, "raised": {"nothing": 1}, "says": "the MTU is off"}
    }
    assert recorded["kept"] == {"a-kind": {"right": 1, "raised": {"mtu": 1, "duration": 1}}}
    assert FaultTable.from_json(recorded["kept"]).sums == second.sums
