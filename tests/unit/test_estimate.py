"""How long trials are said to take: learnt from those that this machine has measured."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from measuretwice.backends.backend import VIRTUAL_COST, CostModel
from measuretwice.execute.batch import expected_seconds, learn, likely_seconds, most_seconds
from measuretwice.execute.job import Job
from measuretwice.runs.recorded import read_set

ROOT = Path(__file__).parents[2]


def jobs(count: int, *, real_time: bool = False, cost: CostModel = VIRTUAL_COST) -> list[Job]:
    plan = SimpleNamespace(
        lab="mathis", params={"duration_s": 240, "rtt_ms": 6, "loss_ratio": 0.01}
    )
    job = SimpleNamespace(plan=plan, backend=SimpleNamespace(real_time=real_time, cost=cost))
    return [cast(Job, job)] * count


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEASURETWICE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_second_guess_is_what_the_first_time_took() -> None:
    first = expected_seconds(jobs(10), 2)
    learn(jobs(10), 2, 3 * first)
    assert expected_seconds(jobs(10), 2) == pytest.approx(3 * first)
    assert expected_seconds(jobs(20), 2) == pytest.approx(6 * first)


def test_a_slower_place_takes_longer_and_teaches_the_same_pace() -> None:
    first = expected_seconds(jobs(10), 2)
    assert expected_seconds(jobs(10, cost=CostModel(6 * 0.9, 6)), 2) == pytest.approx(6 * first)
    learn(jobs(10, cost=CostModel(6 * 0.9, 6)), 2, 12 * first)
    assert expected_seconds(jobs(10), 2) == pytest.approx(2 * first)


def test_later_ones_count_more_than_earlier_ones() -> None:
    first = expected_seconds(jobs(10), 2)
    learn(jobs(10), 2, 3 * first)
    learn(jobs(10), 2, first)
    learn(jobs(10), 2, first)
    assert expected_seconds(jobs(10), 2) == pytest.approx(1.5 * first)


def test_short_ones_and_those_in_real_time_teach_nothing(cache: Path) -> None:
    learn(jobs(1), 1, 1.0)
    learn(jobs(1, real_time=True), 1, 250.0)
    learn([], 1, 100.0)
    assert not cache.exists()


@pytest.mark.parametrize("text", ["", "[]", "{", '{"mathis": "fast"}', '{"mathis": -1}'])
def test_a_broken_file_is_as_none(cache: Path, text: str) -> None:
    first = expected_seconds(jobs(10), 2)
    cache.mkdir()
    (cache / "pace.json").write_text(text)
    assert expected_seconds(jobs(10), 2) == first


def test_a_cache_that_cannot_be_written_is_no_failure(cache: Path) -> None:
    cache.write_text("a file where a folder should be")
    learn(jobs(10), 2, 100.0)


def test_the_narrowest_link_decides_what_a_full_path_costs() -> None:
    path = {"duration_s": 10, "rate_mbit": 100}
    behind = {"duration_s": 10, "rate_mbit": 1000, "access_mbit": 100}
    assert likely_seconds(behind) == likely_seconds(path)
    assert likely_seconds({**behind, "access_mbit": None}) > likely_seconds(path)


def test_a_share_taken_for_a_percentage_is_given_its_time() -> None:
    recorded = read_set(ROOT / "sample-data/01-mathis/case-01-broken").runs[0].result
    took = likely_seconds(recorded.params, sent_packets=recorded.value("qdisc_sent_packets"))
    assert took > 2 * likely_seconds(recorded.params)
    assert most_seconds(recorded.params) == pytest.approx(took, rel=0.1)
