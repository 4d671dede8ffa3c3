"""A class of real runs in which many cheat, graded: nobody gets through, and nobody honest is blamed."""

import json
from typing import Any

import pytest
from cheats import (
    CHEATS,
    HONEST,
    OTHER_KERNEL,
    OTHER_VICTIM,
    OWN_SCRIPTS,
    PLAIN,
    VICTIM,
    cheat,
)
from class_of import Class, make_class
from command_line import call_lab

from measuretwice.grading.integrity import ODD
from measuretwice.grading.rerun import FILE


@pytest.fixture(scope="module")
def cheated(tmp_path_factory: pytest.TempPathFactory) -> Class:
    folder = tmp_path_factory.mktemp("class") / "it"
    made_class = make_class(folder, len(CHEATS) + len(HONEST), 10, fixed={VICTIM, "s1008"})
    cheat(made_class)
    return made_class


def grade(made_class: Class, *options: str) -> dict[str, dict[str, Any]]:
    done = call_lab("grade", made_class.handed, "--deal", made_class.dealt, "--json", *options)
    assert done.returncode == 1, done.stderr
    return {student["student"]: student for student in json.loads(done.stdout)["students"]}


def odd(student: dict[str, Any]) -> list[dict[str, Any]]:
    return [remark for remark in student["remarks"] if remark["kind"] in ODD]


def in_words(students: dict[str, dict[str, Any]]) -> str:
    lines = [
        f"{who}: {r['kind']}: {r['says']} ({r['run'][-60:]})"
        for who, student in students.items()
        for r in student["remarks"]
    ]
    return "\n".join(lines)


@pytest.mark.nightly("each kind of evidence by itself: test_copies.py, test_again.py")
@pytest.mark.kernel
@pytest.mark.slow
def test_every_cheat_is_found_and_nobody_honest_is_blamed(cheated: Class) -> None:
    """First by reading alone; then what is left open is run again; then nothing is run any more."""
    read = grade(cheated)
    print(in_words(read))
    for who, (do, by_reading) in CHEATS.items():
        assert bool(odd(read[who])) == by_reading, do.__name__
    ada = read[VICTIM]
    # Certain points are those of the broken run that shows the mistake.
    assert ada["low"] == 0.375
    assert {r["kind"] for r in ada["remarks"]} == {"original", "same seed", "words"}
    for who in HONEST - {VICTIM, OTHER_VICTIM}:
        assert not odd(read[who]), who
        assert read[who]["low"] == 0.375
    # Whose these are is open: nothing in either folder tells.
    assert {r["kind"] for r in odd(read[OTHER_VICTIM])} == {"copy"}

    again = grade(cheated, "--again", "all")
    print(in_words(again))
    for who, (do, _) in CHEATS.items():
        assert odd(again[who]), do.__name__
        if who not in ("s1004", "s1013"):
            assert again[who]["low"] == 0, do.__name__
    for who in HONEST:
        assert again[who]["low"] == 0.375
        assert {r["kind"] for r in odd(again[who])} <= {"words"}
    assert {r["kind"] for r in again[OTHER_VICTIM]["remarks"]} == {"same bytes", "original"}
    assert {r["kind"] for r in again[PLAIN]["remarks"]} == {"same bytes"}
    assert "not again" in {r["kind"] for r in again[OWN_SCRIPTS]["remarks"]}
    assert {r["kind"] for r in again[OTHER_KERNEL]["remarks"]} == {"not again"}

    results_file = cheated.handed.with_name("submissions-grades") / FILE
    before = results_file.stat().st_mtime_ns
    assert grade(cheated, "--again", "all") == again
    assert results_file.stat().st_mtime_ns == before
