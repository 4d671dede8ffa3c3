"""Facts: computed once, kept beside the recorded sets, quoted by pages."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from command_line import call_lab

from measuretwice.base.errors import UserError
from measuretwice.facts import (
    Facts,
    Interval,
    Number,
    Numbers,
    Probability,
    RecordedSets,
    Table,
    by_trial,
    compute,
    computed,
    facts_file,
    judge,
    percent,
    read_facts,
    seconds,
    set_cell,
    stage_cell,
    write_facts,
)
from measuretwice.facts.computed import module_of, to_text
from measuretwice.lab import find_labs, load_lab

ROOT = Path(__file__).parents[2]
WITH_FACTS = sorted(name for name, folder in find_labs(ROOT).items() if module_of(folder))


@pytest.mark.parametrize("name", WITH_FACTS)
def test_the_facts_kept_are_those_of_the_recorded_runs(name: str) -> None:
    lab = load_lab(ROOT, name)
    found = compute(ROOT, lab)
    assert found is not None
    recorded = facts_file(ROOT, lab).read_text(encoding="utf-8")
    assert to_text(found) == recorded, f"./lab record {name} --facts"
    assert to_text(read_facts(ROOT, lab)) == recorded


def test_texts() -> None:
    f = Facts()
    f.wait = Number(83.665, "ms")
    f.packets = Number(1302324.0, digits=0)
    f.apart = Interval(-15.9, -53.7, 21.9, "kbit/s", 2)
    f.chance = Probability(0.00002)
    assert [str(fact) for _, fact in f.items()] == [
        "83.7\u00a0ms", "1\u202f302\u202f324", "-16 (-54 to 22)\u00a0kbit/s", "< 0.001",
    ]  # fmt: skip
    assert f"{f.apart.middle}, {f.apart.ends}" == "-16\u00a0kbit/s, -54 to 22"
    assert str(Probability(0.128)) == "0.13"


def test_several_numbers() -> None:
    shares = Numbers.of([percent(0.794), percent(0.823), percent(0.8301)])
    assert str(shares) == "79.4\u00a0%, 82.3\u00a0% and 83.0\u00a0%"
    assert (shares.ends, str(shares.most), str(shares.n)) == ("79.4 to 83.0", "83.0\u00a0%", "3")
    assert str(Numbers((7.0,))) == "7"
    with pytest.raises(ValueError, match="2 units"):
        Numbers.of([Number(1, "ms"), Number(1)])


@pytest.mark.parametrize(
    ("time_s", "says"),
    [(75, "75\u00a0s"), (119, "119\u00a0s"), (120, "2\u00a0minutes"), (9000, "2.50\u00a0hours")],
)
def test_times_are_shown_as_one_says_them(time_s: float, says: str) -> None:
    assert str(seconds(time_s)) == says


def of_the_long_run(f: Facts) -> None:
    """Of the long run,
    without its first minute."""
    f.halvings = Number(26)
    f.case("mtu").halvings = Number(3)


def test_facts_say_what_they_are_of() -> None:
    f = Facts()
    f.other = Number(1)
    of_the_long_run(f)
    assert f.source("mtu.halvings") == "Of the long run, without its first minute."
    assert to_text(f).count('"Of the long run, without its first minute.": {') == 1
    with pytest.raises(
        UserError, match=r"is it 'halvings' \(Of the long run, without its first minute\)\?"
    ):
        _ = f.halving


def test_a_column_with_words_is_on_the_left() -> None:
    table = Table(("name", "n"), (("red", Number(1)), ("fifo", Number(2))))
    assert str(table) == "| name | n |\n|---|---:|\n| red | 1 |\n| fifo | 2 |"
    few = Table(("speed", "rivals"), (("none", ""), (Number(1), Number(1)), (Number(2), "")))
    assert str(few).splitlines()[1] == "|---:|---:|"
    published = Table(("who", "total", "index"), (("them", "95791", "0.9945062"),))
    assert str(published).splitlines()[1] == "|---|---:|---:|"
    with pytest.raises(ValueError, match="1 cells below 2 headings"):
        Table(("name", "n"), (("red",),))


def test_intervals() -> None:
    apart = Interval.of_difference([3.0, 4.0, 5.0], [1.0, 2.0, 3.0], "ms")
    assert (apart.middle_value, 0 in apart, 2 in apart) == (2, True, True)
    assert Interval.around((1, 3), "ms") == Interval(2, 1, 3, "ms")
    assert Interval.around((1, 3)).both_ends == (1, 3)


def test_runs_by_trial_and_a_cases_two() -> None:
    sets = RecordedSets(ROOT, load_lab(ROOT, "queues"))
    runs = sets.runs("disciplines")
    by_number = by_trial(reversed(runs))
    assert list(by_number) == sorted({run.trial for run in runs})
    assert all(run.trial == trial for trial, of_trial in by_number.items() for run in of_trial)
    assert sum(map(len, by_number.values())) == len(runs)
    both = sets.stages("default-qdisc")
    assert [stage_cell(run) for run in both] == ["broken", "fixed"]
    assert [set_cell(run) for run in both] == [
        sets.set_folder(f"default-qdisc-{stage}").name for stage in ("broken", "fixed")
    ]


def test_wrong_names() -> None:
    f = Facts()
    f.wait = Number(1)
    with pytest.raises(ValueError, match="set twice"):
        f.wait = Number(2)
    with pytest.raises(UserError, match="there is no fact 'weight'"):
        _ = f.weight
    with pytest.raises(UserError, match="is no judgement"):
        f.holds("wait")


@pytest.mark.parametrize(
    ("ends", "limits", "judged"),
    [
        ((1, 2), {"least": 0}, True),
        ((-2, -1), {"least": 0}, False),
        ((-1, 1), {"least": 0}, None),
        ((0.9, 1.1), {"least": 0.8, "most": 1.2}, True),
        ((1.3, 1.4), {"least": 0.8, "most": 1.2}, False),
        ((1.1, 1.4), {"most": 1.2}, None),
        ((3, 1, 2), {"least": 1, "most": 3}, True),
        (Interval(1.5, 1, 2), {"most": 0.5}, False),
    ],
)
def test_judge(
    ends: tuple[float, ...] | Interval, limits: dict[str, float], judged: bool | None
) -> None:
    assert judge(ends, **limits) is judged


def test_a_lab_without_facts(tmp_path: Path) -> None:
    folder = tmp_path / "labs/05-queues"
    shutil.copytree(ROOT / "labs/05-queues", folder, ignore=shutil.ignore_patterns("facts*"))
    lab = load_lab(tmp_path, "queues")
    assert write_facts(tmp_path, lab) is None
    assert list(read_facts(tmp_path, lab)) == []


def test_a_long_module_may_be_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "labs/05-queues"
    shutil.copytree(ROOT / "labs/05-queues", folder, ignore=shutil.ignore_patterns("facts*"))
    (folder / "facts").mkdir()
    (folder / "facts/__init__.py").write_text(
        "from measuretwice.facts import Facts, Number\n\nfrom .cases import wait\n\n\n"
        "def facts(sets):\n    f = Facts()\n    f.wait = Number(wait)\n    return f\n"
    )
    lab = load_lab(tmp_path, "queues")
    monkeypatch.setattr(computed, "CHECKOUT", tmp_path)
    for wait in (7, 88):
        (folder / "facts/cases.py").write_text(f"wait = {wait}\n")
        found = compute(tmp_path, lab)
        assert found is not None
        assert str(found["wait"]) == str(wait)


@pytest.mark.parametrize(
    "text", ["", "[]", '{"a": 7}', '{"of": {"a": 7}}', '{"of": {"a": {"val": 7}}}']
)
def test_damaged_facts_are_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "labs").symlink_to(ROOT / "labs")
    lab = load_lab(tmp_path, "queues")
    path = facts_file(tmp_path, lab)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(
        UserError, match=r"facts\.json: is damaged .*: \./lab record queues --facts"
    ):
        read_facts(tmp_path, lab)


def test_a_program_of_another_folder_is_not_run(tmp_path: Path) -> None:
    folder = tmp_path / "labs/05-queues"
    shutil.copytree(ROOT / "labs/05-queues", folder, ignore=shutil.ignore_patterns("facts*"))
    (folder / "facts.py").write_text(f"open({str(tmp_path / 'run')!r}, 'w')\n")
    lab = load_lab(tmp_path, "queues")
    with pytest.raises(UserError, match="is a program of another folder than the kit's"):
        compute(tmp_path, lab)
    done = call_lab("record", "queues", "--facts", MEASURETWICE_ROOT=str(tmp_path))
    assert done.returncode != 0
    assert "it isn't run" in done.stderr
    assert not (tmp_path / "run").exists()
