"""Tables of published results: rows that can't be true are found, and no others."""

import csv
import io
import os
from pathlib import Path

import pytest

from measuretwice.parse import ParseError
from measuretwice.tcp.headers import payload_limit
from measuretwice.tcp.published_tables import (
    Number,
    Row,
    constants,
    missing_shares,
    problems_of,
    read_rows,
)

ROOT = Path(__file__).parents[2]
# The sources' own files stay outside the kit: it has no right to pass them on.
REFERENCE = Path(
    os.environ.get("MEASURETWICE_REFERENCE_DATA", ROOT.parent / "shared" / "reference-data")
)
needs_reference = pytest.mark.skipif(
    not REFERENCE.is_dir(), reason="MEASURETWICE_REFERENCE_DATA names no folder"
)


def row(total: str, squares: str, flows: int, jain: str, link: float | None = None) -> Row:
    return Row("reno", flows, Number.of(total), Number.of(squares), Number.of(jain), link)


def kinds(one: Row) -> list[str]:
    return [problem.kind for problem in problems_of(one)]


def test_a_number_holds_what_its_last_digit_leaves_open() -> None:
    assert Number.of("95.75") == Number(95.75, 95.745, 95.755)
    rough = Number.of("1.02E+11")
    assert (rough.low, rough.high) == (1.015e11, 1.025e11)
    for text in ("", "ten", "9,5"):
        with pytest.raises(ValueError, match="not a number"):
            Number.of(text)


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (row("20", "200", 2, "1.0"), []),
        (row("20", "250", 2, "0.8"), []),
        # A rounded sum leaves room: 19.5 to 20.5.
        (row("20", "200", 2, "0.97"), []),
        (row("20", "200", 2, "0.90"), ["index"]),
        (row("20.00", "200.0", 2, "0.97"), ["index"]),
        # More than 1 can't be: the sum or the squares are wrong, whatever the index says.
        (row("22.00", "200.0", 2, "1.000"), ["index"]),
        (row("20.00", "200.0", 2, "1.000", link=19.0), ["link"]),
        (row("20.00", "200.0", 2, "1.000", link=20.0), []),
    ],
)
def test_rows(one: Row, said: list[str]) -> None:
    assert kinds(one) == said


def test_flows_that_were_asked_for() -> None:
    assert kinds(Row("bbr", 500, Number.of("5.96"), asked=1000)) == ["flows"]
    assert kinds(Row("bbr", 1000, Number.of("9.4"), asked=1000)) == []


def test_the_most_that_a_link_allows() -> None:
    assert payload_limit(1000) == pytest.approx(941.5, abs=0.1)
    assert payload_limit(1000, wire=False) == pytest.approx(956.4, abs=0.1)


def test_missing_flows_leave_a_ceiling() -> None:
    full = [row("100", "1000", 10, jain) for jain in ("1.00", "0.99", "0.98")]
    short = [row("100", "1042", 10, jain) for jain in ("0.96", "0.955", "0.958")]
    counted = [
        Row(one.name, 50, one.total, None, one.jain) if one in short else one
        for one in full + short
    ]
    assert missing_shares(counted) == {50: pytest.approx(0.04)}
    assert missing_shares(full) == {}


def test_tables_are_read_and_a_bad_line_is_named() -> None:
    head = "name,link,asked,flows,total,squares,jain\n"
    [one] = read_rows(head + "reno,100,,10,95.8,917.9,0.9990\n", "audit.csv")
    assert (one.flows, one.link, one.asked) == (10, 100.0, None)
    with pytest.raises(ParseError, match="line 2"):
        read_rows(head + "reno,100,,ten,95.8,917.9,0.9990\n", "audit.csv")
    with pytest.raises(ParseError, match="there is no column"):
        constants("a,b\n1,2\n", "flows.csv")


def test_the_exercise_holds_rows_of_each_kind_and_sound_ones() -> None:
    rows = read_rows((ROOT / "labs/03-scale/audit.csv").read_text(encoding="utf-8"), "audit.csv")
    said = [tuple(kinds(one)) for one in rows]
    assert {kind for found in said for kind in found} == {"index", "link", "flows"}
    assert () in said


@needs_reference
@pytest.mark.parametrize(
    ("name", "by_losses", "by_halvings"),
    [
        ("packet_loss_iperf_edge_10.csv", 2.474, 3.264),
        ("packet_loss_iperf_100.csv", 2.462, 2.964),
    ],
)
def test_published_constants_recompute(name: str, by_losses: float, by_halvings: float) -> None:
    found = constants((REFERENCE / name).read_text(encoding="utf-8"), name)
    assert found == (pytest.approx(by_losses, abs=5e-4), pytest.approx(by_halvings, abs=5e-4))


@needs_reference
def test_every_inconsistent_row_of_the_published_table_is_flagged() -> None:
    """Against a recomputation of its own: exact numbers, and a difference no rounding makes."""
    text = (REFERENCE / "JFI_cloudlab.csv").read_text(encoding="utf-8-sig")
    table = list(csv.reader(io.StringIO(text)))[1:]
    rows = [
        Row(
            cells[0], int(cells[5]), Number.of(cells[3]), Number.of(cells[4]), Number.of(cells[6]),
            10e6 if float(cells[3]) > 1e6 else 100.0,
        )
        for cells in table
    ]  # fmt: skip
    wrong = {
        line
        for line, cells in enumerate(table, start=2)
        if abs(float(cells[3]) ** 2 / float(cells[4]) / int(cells[5]) - float(cells[6])) > 6e-3
    }
    flagged = {line for line, one in enumerate(rows, start=2) if "index" in kinds(one)}
    assert flagged == wrong
    assert len(flagged) == 11
    assert {line for line, one in enumerate(rows, start=2) if "link" in kinds(one)} == set()
    shares = missing_shares(rows)
    assert list(shares) == [5000]
    assert shares[5000] == pytest.approx(0.04, abs=0.001)
    # More than an MTU of 1500 allows on the wire, and mostly more than a shaper would pass.
    assert sum(one.total.low > payload_limit(one.link or 0) for one in rows) > 100
