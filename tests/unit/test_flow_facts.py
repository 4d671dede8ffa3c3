"""What files say of a run besides rates: who received, what was averaged, how red is set."""

import math
from pathlib import Path

import pytest

from measuretwice.lab import load_lab
from measuretwice.measure.flows import received
from measuretwice.measure.queue import marks, red_setup
from measuretwice.measure.student_tables import rate_rows
from measuretwice.parse import ParseError, Qdisc, parse_tc_qdiscs

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "tests" / "data" / "parse" / "tc"


def test_addresses_name_the_receiver() -> None:
    lab = load_lab(ROOT, "queues")
    assert received(lab, ["10.1.3.1", "10.1.3.1"]) == {"host_3_received_flows": 2}
    assert received(lab, ["10.1.3.1", "10.1.1.2", None, "192.0.2.1"]) == {
        "host_2_received_flows": 1,
        "host_3_received_flows": 1,
    }


@pytest.mark.parametrize(
    ("text", "rows", "spanning", "deviation", "of_seconds"),
    [
        ("0 1 5\n1 2 6\n2 3 7\n", 3, 0, 1.0, 1.0),
        # With the total in it the deviation is that of one value more, at the mean.
        ("0 1 5\n1 2 6\n2 3 7\n0 3 6\n", 4, 1, math.sqrt(2 / 3), 1.0),
        # The total of a test that has one second only is that second.
        ("0 1 5\n0 1 5\n", 2, 0, 0.0, 0.0),
    ],
)
def test_rows_that_span_others(
    tmp_path: Path, text: str, rows: int, spanning: int, deviation: float, of_seconds: float
) -> None:
    (tmp_path / "host").mkdir()
    (tmp_path / "host" / "rates.txt").write_text(text)
    assert rate_rows(tmp_path, "rates.txt") == {
        "rate_rows": rows,
        "rate_rows_spanning": spanning,
        "host_rate_rows_mean_bps": 6.0 if rows > 2 else 5.0,
        "host_rate_rows_deviation_bps": pytest.approx(deviation),
        "host_seconds_deviation_bps": pytest.approx(of_seconds),
    }


def test_rows_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "host").mkdir()
    (tmp_path / "host" / "rates.txt").write_text("0 1\n")
    with pytest.raises(ParseError, match=r"host/rates\.txt, line 1: expected start, end and bit/s"):
        rate_rows(tmp_path, "rates.txt")


def test_what_red_was_told(tmp_path: Path) -> None:
    file = tmp_path / "tc.txt"
    file.write_text(
        "qdisc tbf 1: root refcnt 2 rate 20Mbit burst 3200b/1 mpu 0b lat 4s linklayer ethernet \n"
        "qdisc red 10: parent 1:1 limit 400000b min 100000b max 225000b ewma 6 probability 0.01 Scell_log 15\n"
    )
    assert red_setup(file) == {
        "red_limit_bytes": 400000,
        "red_max_bytes": 225000,
        "red_cell_log": 15,
        "red_ewma_log": 6,
    }
    file.write_text("qdisc pfifo_fast 10: parent 1:1 bands 3 priomap 1 2\n")
    assert red_setup(file) == {}


def test_marks_of_every_kind() -> None:
    (red, *_) = (
        qdisc
        for qdisc in parse_tc_qdiscs((CORPUS / "tc-6.1-red-marked.json").read_text(), "tc")
        if qdisc.kind == "red"
    )
    assert marks(red) == red.marked_packets
    assert marks(Qdisc("codel", "1:", None, True, None, stats={"ecn_mark": 7})) == 7
    tins = {"tins": [{"ecn_mark": 2}, {"ecn_mark": 3}, {}]}
    assert marks(Qdisc("cake", "1:", None, True, None, stats=tins)) == 5
    assert marks(Qdisc("pfifo", "1:", None, True, None)) == 0
