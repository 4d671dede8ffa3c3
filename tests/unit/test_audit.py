"""Tables of results: rows that can't be true are found, and no others; constants recompute."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import random
from pathlib import Path

import pytest

from measuretwice.audit import Report, audit_table, read_choices
from measuretwice.audit.cells import Number, find_unit, read_cell
from measuretwice.base.errors import UserError
from measuretwice.stats.intervals import jains_index, slope_through_zero
from measuretwice.tcp.model import payload_limit

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs/reference/audit-example.csv"
# The sources' own files stay outside the kit: it has no right to pass them on.
REFERENCE = Path(
    os.environ.get("MEASURETWICE_REFERENCE_DATA", ROOT.parent / "shared" / "reference-data")
)
needs_reference = pytest.mark.skipif(
    not REFERENCE.is_dir(), reason="MEASURETWICE_REFERENCE_DATA names no folder"
)
RUNS = "name,link,asked,flows,total,squares,jain\n"


def audit(
    text: str, *columns: str, rate_bps: float | None = None, mss: float | None = None
) -> Report:
    return audit_table(
        text.encode(), "t.csv", read_choices(columns), rate_bps=rate_bps, mss_bytes=mss
    )


def kinds(report: Report) -> list[tuple[int, str]]:
    return [(line, problem.kind) for problem in report.problems for line in problem.lines]


def of_one(rows: str) -> list[str]:
    return [kind for _, kind in kinds(audit(RUNS + rows))]


def constants(report: Report) -> dict[str, float]:
    return {one.name: one.value for one in report.tables[0].recomputed}


def test_a_number_holds_what_its_last_digit_leaves_open() -> None:
    assert Number.of("95.75") == Number(95.75, 95.745, 95.755)
    rough = Number.of("1.02E+11")
    assert (rough.low, rough.high) == (1.015e11, 1.025e11)
    for text in ("", "ten", "9,5", "nan", "inf", "1e999"):
        with pytest.raises(ValueError, match="no number"):
            Number.of(text)


@pytest.mark.parametrize(
    ("heading", "factor"),
    [
        ("Total Bandwidth(Kbps)", 1e3), ("goodput_mbps", 1e6), ("Mbit/s", 1e6), ("bits_per_second", 1),
        ("rate [Gbit/s]", 1e9), ("MB/s", 8e6), ("Mb/s", 1e6), ("MBytes/sec", 8e6), ("MBPS", 1e6),
        ("goodput_mbit", 1e6), ("rtt_ms", 1e-3), ("Base RTT(ms)", 1e-3), ("Duration of Expt(sec)", 1),
        ("share (%)", 0.01), ("loss pct", 0.01), ("bandwidth_port", None), ("flows", None),
        ("total_data_seg_out", None), ("C_ss", None), ("x1", None),
    ],
)  # fmt: skip
def test_units_of_headings(heading: str, factor: float | None) -> None:
    unit, _ = find_unit(heading)
    assert (unit and unit.factor) == factor


def test_cells_as_people_write_them() -> None:
    def value(text: str, comma: bool = False) -> float | None:
        number, unit = read_cell(text, comma)
        return number and number.value * (unit.factor if unit else 1)

    assert value("9,891,590") == 9891590
    assert value("9.891.590,5", comma=True) == 9891590.5
    assert value("81,5 %", comma=True) == pytest.approx(0.815)
    assert value("9.9 Gbit/s") == 9.9e9
    assert value("1\u00a0024") == 1024
    assert value("n/a") is None
    for text in ("nan", "ten", "1.2.3", "5 apples", "9" * 100):
        with pytest.raises(ValueError, match="no number"):
            read_cell(text, False)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("reno,,,2,20,200,1.0", []),
        ("reno,,,2,20,250,0.8", []),
        # A rounded sum leaves room: 19.5 to 20.5.
        ("reno,,,2,20,200,0.97", []),
        ("reno,,,2,20,200,0.90", ["index"]),
        ("reno,,,2,20.00,200.0,0.97", ["index"]),
        # More than 1 can't be: the sum or the squares are wrong, whatever the index says.
        ("reno,,,2,22.00,200.0,1.000", ["index"]),
        ("reno,,,2,22.00,200.0,", ["index"]),
        # Nor more squares than the sum's own.
        ("reno,,,2,20.00,410.0,", ["squares"]),
        ("reno,,,2,20.00,400.0,0.5000", []),
        ("reno,,,2,20.00,0,1.000", ["squares"]),
        ("reno,19.0,,2,20.00,200.0,1.000", ["link"]),
        ("reno,20.0,,2,20.00,200.0,1.000", []),
        ("bbr,,1000,500,5.96,,", ["flows"]),
        ("bbr,,1000,1000,9.4,,", []),
        ("bbr,,,9.5,9.4,,", ["flows"]),
        ("bbr,,,0,9.4,,", ["zero"]),
        ("bbr,,,10,0,0,0", ["zero"]),
        ("bbr,,,10,-9.4,,", ["negative"]),
        # Without squares an index has bounds.
        ("bbr,,,10,9.4,,1.02", ["index"]),
        ("bbr,,,10,9.4,,1.000", []),
        ("bbr,,,10,9.4,,0.0999", ["index"]),
        ("bbr,,,10,9.4,,0.100", []),
        ("bbr,,,10,9.4,,99.8", ["index"]),
        ("bbr,,,10,9.4,,nan", ["cell"]),
        ("bbr,,,10,9.4", ["cell"]),
        ("bbr,,,10,9,4,,0.99", ["cell"]),
    ],
)  # fmt: skip
def test_a_row_by_itself(row: str, said: list[str]) -> None:
    assert of_one(row) == said


def test_what_is_wrong_is_said_with_line_label_and_reason() -> None:
    report = audit(RUNS + "\nreno,,,10,9.40,,0.99\ncubic,,,10,9.41,,99.8\n")
    [problem] = report.problems
    assert (problem.lines, problem.label) == ((4,), "cubic")
    assert problem.text == "index 99.8 is more than 1; 99.8 % would be 0.998"


def test_indices_of_real_flows_are_never_blamed() -> None:
    """However few digits are kept of sum, squares and index."""
    draw = random.Random(5)
    lines = []
    for number in range(300):
        rates = [draw.lognormvariate(0, draw.random() * 2) for _ in range(draw.randint(1, 40))]
        digits = draw.randint(2, 9)
        values = (sum(rates), sum(rate * rate for rate in rates), jains_index(rates))
        cells = ",".join(f"{value:.{digits}g}" for value in values)
        lines.append(f"run {number},,,{len(rates)},{cells}")
    assert audit(RUNS + "\n".join(lines)).problems == ()


def test_shares() -> None:
    head = "algorithm,run,share\n"
    assert kinds(audit(head + "cubic,1,0.815\nreno,1,0.185\ncubic,2,0.7\nreno,2,0.3\n")) == []
    assert kinds(audit(head + "cubic,1,81.5\nreno,1,0.185\n")) == [(2, "share")]
    assert kinds(audit(head + "cubic,1,0.815\nreno,1,0.285\n")) == [(2, "share"), (3, "share")]
    percent = audit(head + "cubic,1,81.5\nreno,1,18.5\n")
    assert percent.problems == ()
    assert "per cent" in percent.tables[0].notes[0]
    assert "add up to 0.9" in audit(head + "cubic,1,0.80\nreno,1,0.10\n").tables[0].notes[0]
    # One algorithm's share of several runs is no part of one whole.
    assert kinds(audit("algorithm,flows,share\ncubic,10,0.8\ncubic,30,0.7\n")) == []
    beside = "algorithm,share,goodput_mbps\ncubic,0.815,8.15\nreno,0.185,1.85\n"
    assert kinds(audit(beside)) == []
    assert kinds(audit(beside.replace("8.15\n", "7.15\n"))) == [(2, "share"), (3, "share")]


def test_a_copied_row_is_found_under_any_label_and_chance_is_none() -> None:
    """The source's table on another testbed: a row of reno stands once more as one of bbr."""
    report = audit_table(EXAMPLE.read_bytes(), EXAMPLE.name)
    [copied] = [problem for problem in report.problems if problem.kind == "copied"]
    assert (copied.lines, copied.label) == ((12,), "bbr")
    assert "as line 5 (reno)" in copied.text
    assert "another name" in copied.text
    draw = random.Random(7)
    flows = "\n".join(
        f"{n},{draw.gauss(9.5, 0.3):.2f},{draw.randint(120, 180)},{draw.randint(50, 80)}"
        for n in range(1000)
    )
    assert kinds(audit("flow,goodput_mbps,retransmits,halvings\n" + flows)) == []


def test_constants_indices_and_sums_of_flows_recompute() -> None:
    """Flows made by a model with C = 1.2 give it back, within the interval, in any unit."""
    draw = random.Random(3)
    rows, rates = [], []
    for n in range(50):
        halvings, segments, rtt_ms = draw.randint(40, 80), draw.randint(900_000, 1_100_000), 200 + n
        rate = 1.2 * 1448 * 8 / (rtt_ms / 1e3) / (halvings / segments) ** 0.5 * draw.gauss(1, 0.02)
        rates.append(rate)
        rows.append(f"{n},{rate / 1e6:.5f},{rtt_ms},{2 * halvings},{halvings},{segments}")
    head = "flow,goodput (Mbit/s),rtt (ms),retransmits,halvings,data_segs_out\n"
    report = audit(head + "\n".join(rows), mss=1448)
    assert report.problems == ()
    found = {one.name: one for one in report.tables[0].recomputed}
    by_halvings, by_losses = found["C by halvings"], found["C by losses"]
    assert by_halvings.low is not None
    assert by_halvings.high is not None
    assert by_halvings.low < 1.2 < by_halvings.high
    assert by_halvings.high - by_halvings.low < 0.03
    assert by_losses.value == pytest.approx(by_halvings.value * 2**0.5, rel=1e-3)
    assert found["Jain's index"].value == pytest.approx(jains_index(rates), rel=1e-6)
    assert found["sum"].value == pytest.approx(sum(rates) / 1e6, rel=1e-6)
    # Seconds, bit/s and a segment size for each.
    other = "flow,throughput_bps,srtt_s,lost,cwnd_reductions,segments,mss\n" + "\n".join(
        f"{n},{float(mbit) * 1e6:.1f},{int(rtt) / 1e3},{lost},{cuts},{segments},1448"
        for n, mbit, rtt, lost, cuts, segments in (row.split(",") for row in rows)
    )
    assert constants(audit(other))["C by halvings"] == pytest.approx(by_halvings.value, rel=1e-6)
    # More flows than the link can carry.
    assert audit(head + "\n".join(rows), mss=1448, rate_bps=sum(rates) * 0.99).problems
    assert not audit(head + "\n".join(rows), mss=1448, rate_bps=sum(rates) * 1.01).problems


def test_flows_that_cannot_be() -> None:
    head = "flow,goodput_mbps,retransmits,halvings,data_segs_out,loss rate\n"
    good = "1,9.5,200,100,1000000,0.0002\n"
    assert kinds(audit(head + good)) == []
    for row, kind in (
        ("2,9.4,99,100,1000000,0.000099", "halvings"),
        ("2,0,200,100,1000000,0.0002", "zero"),
        ("2,-1,200,100,1000000,0.0002", "negative"),
        ("2,9.4,200,100,1000000,0.02", "percent"),
        ("2,9.4,200,100,1000000,0.0003", "quotient"),
        ("2,9.4,2000000,100,1000000,", "counts"),
        ("2,9.4,200,100,1000000,1.5", "share"),
    ):
        assert (3, kind) in kinds(audit(head + good + row)), row


def test_a_model_rate_that_does_not_follow_from_its_row() -> None:
    rows = [f"{n},9.5e6,{0.2 + n / 1e3},1e-4,{1448 * 8 / (0.2 + n / 1e3) / 1e-2}" for n in range(5)]
    head = "flow,goodput_bps,rtt_s,packet_loss,x1\n"
    assert kinds(audit(head + "\n".join(rows))) == []
    rows[3] = rows[2].replace("2,9.5e6,0.202", "3,9.5e6,0.303")
    assert kinds(audit(head + "\n".join(rows))) == [(5, "model")]


def test_missing_flows_leave_a_ceiling_which_is_a_remark() -> None:
    rows = ["a,,,10,,,1.00", "b,,,10,,,0.99", "c,,,10,,,0.98"]
    short = ["a,,,50,,,0.96", "b,,,50,,,0.955", "c,,,50,,,0.958"]
    report = audit(RUNS + "\n".join(rows + short))
    assert report.problems == ()
    assert "50 flows" in report.tables[0].notes[0]
    assert "4.0 %" in report.tables[0].notes[0]
    assert audit(RUNS + "\n".join(rows)).tables[0].notes == ()


def test_the_line_through_zero_and_its_interval() -> None:
    """The interval holds the slope in 19 of 20 samples, where large points scatter more, too."""
    draw = random.Random(11)
    held = 0
    for _ in range(400):
        xs = [draw.uniform(1, 10) for _ in range(40)]
        _, low, high = slope_through_zero([(x, 2 * x + draw.gauss(0, x * x / 10)) for x in xs])
        held += low <= 2 <= high
    assert 365 <= held <= 392, held
    assert slope_through_zero([(2.0, 3.0)]) == (1.5, float("-inf"), float("inf"))
    with pytest.raises(ValueError, match="at least one point"):
        slope_through_zero([(0.0, 1.0)])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        (b"goodput,rtt\n", "headings and no rows"),
        (b"1,2,3\n4,5,6\n", "numbers where headings"),
        (b"a,b\n1,2\n", "no column is known; found 'a', 'b'"),
        (b"PK\x03\x04rest", "save the sheet as CSV"),
        (b"\x1f\x8brest", "gunzip"),
        (bytes(range(256)) * 20, "is no text"),
        (b'flow,goodput_mbps\n1,"' + b"5" * 200_000 + b'"\n', "line 2: no table"),
        (b"goodput_mbps,losses\n-,n/a\n", "no row has a number"),
    ],
)
def test_what_is_no_table_is_said_in_one_line(content: bytes, said: str) -> None:
    with pytest.raises(UserError) as error:
        audit_table(content, "t.csv")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_columns_are_asked_for_and_said() -> None:
    text = "who,quick_a,quick_b\n1,9.5,9.6\n2,9.4,9.5\n"
    with pytest.raises(UserError, match="no column is known"):
        audit(text)
    report = audit(text, "goodput=quick_a:Mbit/s,flow=who")
    assert constants(report)["sum"] == pytest.approx(18.9)
    assert report.tables[0].unused == ("quick_b",)
    # A unit is asked for where it is needed, and only there.
    bare = "flow,goodput\n1,9.5\n2,9.4\n"
    assert audit(bare).problems == ()
    with pytest.raises(UserError, match=r"'goodput': in which unit.*goodput=goodput:Mbit/s"):
        audit(bare, rate_bps=1e7)
    assert kinds(audit(bare, "goodput=goodput:Mbit/s", rate_bps=1e7)) == [(2, "link"), (3, "link")]
    both = "flow,sender_goodput_mbps,receiver_goodput_mbps\n1,9.5,9.4\n"
    assert audit(both, "goodput=receiver_goodput_mbps").problems == ()
    for wrong in ("nonsense=goodput", "goodput", "rtt=goodput:Mbit/s", "goodput=nowhere"):
        with pytest.raises(UserError, match="--columns"):
            audit(bare, wrong)


def test_any_encoding_and_separator_say_the_same() -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    wanted = kinds(audit(text))
    assert wanted
    semicolons = "\n".join(
        ";".join(cell.replace(".", ",") for cell in row) for row in csv.reader(io.StringIO(text))
    )
    for content in (
        text.encode("utf-8-sig"), text.encode("utf-16"), text.encode("utf-16-be"),
        text.replace("\n", "\r\n").encode(), text.replace(",", "\t").encode(), semicolons.encode(),
        ("# what this is, and from where\n" + text).encode(),
    ):  # fmt: skip
        found = kinds(audit_table(content, "t.csv"))
        offset = content.startswith(b"# what")
        assert [(line - offset, kind) for line, kind in found] == wanted


@pytest.mark.parametrize(
    ("encoding", "headings"),
    [
        ("cp1251", "Поток;Скорость (Мбит/с);Повторные передачи"), ("koi8-r", "Поток;Скорость (Мбит/с);Потери"),
        ("gb18030", "流;吞吐量 (Mbit/s);重传"), ("shift-jis", "フロー;スループット (Mbps);再送"),
        ("cp1252", "Flux;Débit (Mbit/s);Pertes de paquets"), ("cp1250", "Przepływ;Przepustowość (Mbit/s);Straty"),
    ],
)  # fmt: skip
def test_encodings_of_older_programs_are_told_by_their_words(encoding: str, headings: str) -> None:
    table = f"{headings}\n1;24,6;31\n2;22,9;40\n3;41,3;28\n".encode(encoding)
    heading = headings.split(";")[1]
    for choices in ([], [f"goodput={heading}:Mbit/s"]):
        report = audit_table(table, "t.csv", read_choices(choices), rate_bps=40e6)
        assert (4, "link") in kinds(report)
        read = {column.name: column.heading for column in report.tables[0].columns}
        assert (read["goodput"], "losses" in read) == (heading, True)
    with pytest.raises(UserError, match="save it as UTF-8"):
        audit_table("ά;έ\n1;2\n".encode("cp1253"), "t.csv")


def test_damaged_tables_never_break_it() -> None:
    """Cut, swapped and overwritten bytes: an audit or one line."""
    draw = random.Random(13)
    source = EXAMPLE.read_bytes()
    for _ in range(300):
        content = bytearray(source)
        for _ in range(draw.randint(1, 6)):
            at = draw.randrange(len(content))
            content[at : at + draw.choice((0, 1, 20))] = draw.choice(
                (b"", b"\n", b",", b'"', b"nan", b"-", b"0", b"e99", b"\xff\xfe", b"\0", b"%")
            )
        with contextlib.suppress(UserError):
            audit_table(bytes(content), "t.csv")


def test_the_exercise_holds_rows_of_each_kind_and_sound_ones() -> None:
    path = ROOT / "labs/03-scale/audit.csv"
    report = audit_table(path.read_bytes(), path.name)
    assert {problem.kind for problem in report.problems} == {"index", "link", "flows"}
    [table] = report.tables
    assert 0 < table.lines_off < table.rows


@needs_reference
@pytest.mark.parametrize(
    ("name", "by_losses", "by_halvings"),
    [
        ("packet_loss_iperf_edge_10.csv", 2.474, 3.264),
        ("packet_loss_iperf_100.csv", 2.462, 2.964),
        # The file of a thousand flows, where somebody has put it beside the others.
        ("packet_loss_iperf_1000.csv", 2.668, 3.985),
    ],
)
def test_published_constants_recompute(name: str, by_losses: float, by_halvings: float) -> None:
    path = REFERENCE / name
    if not path.is_file():
        pytest.skip(f"{name} isn't there")
    report = audit_table(path.read_bytes(), name)
    found = constants(report)
    assert found["C by losses"] == pytest.approx(by_losses, abs=5e-4)
    assert found["C by halvings"] == pytest.approx(by_halvings, abs=5e-4)
    assert {problem.kind for problem in report.problems} == {"halvings"}


@needs_reference
def test_every_inconsistent_row_of_the_published_table_is_flagged() -> None:
    """Against a recomputation of its own: exact numbers, and a difference no rounding makes."""
    path = REFERENCE / "JFI_cloudlab.csv"
    table = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"))))[1:]
    report = audit_table(path.read_bytes(), path.name)
    wrong = {
        line
        for line, cells in enumerate(table, start=2)
        if abs(float(cells[3]) ** 2 / float(cells[4]) / int(cells[5]) - float(cells[6])) > 6e-3
    }
    assert {line for line, kind in kinds(report) if kind == "index"} == wrong
    assert len(wrong) == 11
    assert report.tables[0].lines_off == 11
    assert "5000 flows" in report.tables[0].notes[0]
    # More than an MTU of 1500 allows on the wire, and mostly more than a shaper would pass.
    links = [10e6 if float(cells[3]) > 1e6 else 100.0 for cells in table]
    totals = [float(cells[3]) for cells in table]
    assert sum(t > payload_limit(link) for t, link in zip(totals, links, strict=True)) > 100


def test_recorded_flows_give_what_was_measured_of_them() -> None:
    """Each recorded run of many flows, as a table: the same index and constants, and nothing off."""
    found = 0
    for path in sorted(ROOT.glob("sample-data/03-scale/*/*/result.json")):
        result = json.loads(path.read_text())
        measured, flows = result["measured"], result["flows"]
        if not flows or not all(flow.get("halvings") for flow in flows):
            continue
        text = io.StringIO()
        writer = csv.DictWriter(text, list(flows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(flows)
        table = text.getvalue()
        assert len(audit(table).tables) == 2
        report = audit(table, "goodput=goodput_bps", mss=measured["mss_bytes"], rate_bps=1e8)
        assert report.problems == (), path
        again = constants(report)
        assert again["Jain's index"] == pytest.approx(measured["jains_index"], abs=1e-6)
        assert again["C by losses"] == pytest.approx(measured["c_by_retransmits"], rel=1e-3)
        assert again["C by halvings"] == pytest.approx(measured["c_by_halvings"], rel=1e-3)
        found += 1
    assert found >= 3
