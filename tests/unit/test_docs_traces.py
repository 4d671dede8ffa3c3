"""What a recorded flow is doing at each moment, in words."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

import pytest

from measuretwice.lab import load_lab
from measuretwice.site.macros.replay_data import SLOW_START, traces_data
from measuretwice.site.macros.table import LabContext

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def said() -> dict[str, list[str]]:
    words = LabContext(ROOT, load_lab(ROOT, "variants"))
    data = traces_data(words, words.runs("signatures"))
    for run in data["runs"]:
        lengths = {len(run[key]) for key in ("time", "cwnd", "queue", "rtt", "doing")}
        assert len(lengths) == 1, run["name"]
    return {
        run["name"]: [data["says"][n] for n in accumulate(run["doing"])] for run in data["runs"]
    }


def share(lines: list[str], words: str) -> float:
    return sum(words in line for line in lines) / len(lines)


@pytest.mark.slow
def test_all_but_bbr_begin_in_slow_start(said: dict[str, list[str]]) -> None:
    for name in ("Reno", "CUBIC", "Vegas"):
        assert said[name][0] == SLOW_START
        assert 0 < share(said[name], "slow start") < 0.1


@pytest.mark.slow
def test_cubic_is_concave_and_convex(said: dict[str, list[str]]) -> None:
    assert share(said["CUBIC"], "concave") > 0.3
    assert share(said["CUBIC"], "convex") > 0.2


def test_vegas_rests_in_its_band(said: dict[str, list[str]]) -> None:
    assert share(said["Vegas"], "leaves it") > 0.9


def test_bbr_probes_for_bandwidth_and_for_its_path(said: dict[str, list[str]]) -> None:
    assert any("Startup" in line for line in said["BBR"][:4])
    assert share(said["BBR"], "at the rate") > 0.5
    assert 0.05 < share(said["BBR"], "1.25 times") < 0.25
    # 200 ms in each ten seconds.
    assert 0.01 < share(said["BBR"], "ProbeRTT") < 0.04
