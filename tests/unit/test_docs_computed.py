"""The words that compute something for pages: ss lines, counters, a fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from measuretwice.base.errors import UserError
from measuretwice.lab import find_labs, read_lab
from measuretwice.site.words.subjects import LabWords

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def words() -> LabWords:
    return LabWords(ROOT, read_lab(find_labs(ROOT)["mathis"]))


def test_lines_of_ss_are_read(words: LabWords) -> None:
    run = words.run("wrong-socket-fixed")
    last = words.sockets("wrong-socket-fixed", "romeo/ss-last.txt")[-1]
    assert last.local_port == run.measured["data_port"]
    assert last.data_segs_out == run.measured["data_segs_out"]


def test_counters_are_what_the_run_added(words: LabWords) -> None:
    run = words.run("receiver-drops-broken")
    grown = words.nstat("receiver-drops-broken", "juliet")
    assert grown["TcpExtTCPOFODrop"] == run.measured["receiver_ofo_drops"] > 0
    assert 0 not in grown.values()
    assert "TcpExtTCPOFODrop" not in words.nstat("receiver-drops-fixed", "juliet")
    with pytest.raises(UserError, match="nobody/nstat"):
        words.nstat("receiver-drops-fixed", "nobody")


def test_the_fit_is_the_figures(words: LabWords) -> None:
    fit = words.fit("step-8-long")
    assert fit.points == sum(run.comparable for run in words.runs("step-8-long"))
    assert fit.low < fit.constant < fit.high
    with pytest.raises(UserError, match="too few trials"):
        words.fit("mtu-fixed")
