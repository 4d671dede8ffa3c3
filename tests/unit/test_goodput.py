"""Goodput is one number over one time that is named: in ./lab run, in a report, on pages."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from measuretwice.cli import terminal
from measuretwice.course.wording import in_brief
from measuretwice.lab import find_labs, load_lab, published_labs
from measuretwice.report.tables import key_values_table, summary_table
from measuretwice.runs.recorded import read_set
from measuretwice.runs.remeasure import read_run
from measuretwice.runs.result import BY_ACKS, goodput_means, goodput_of
from measuretwice.site.macros import LabContext
from measuretwice.site.macros.lab import goodput as word

ROOT = Path(__file__).parents[2]
LABS = find_labs(ROOT)
# Which recorded set's runs keep their files.
WHOLE = {
    "calibrate": "readings",
    "mathis": "case-05-fixed",
    "buffers": "each-once",
    "scale": "edge-once",
    "variants": "signatures",
    "queues": "two-arms-once",
    "latency": "home-tails",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LABS)
def test_run_and_report_say_the_same_of_two_runs_of_each_lab(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = load_lab(ROOT, name)
    folder = ROOT / "sample-data" / lab.folder.name / WHOLE[name]
    runs = [read_run(ROOT, path, path.name) for path in sorted(folder.glob("trial-*"))[:2]]
    assert runs
    summary = summary_table(runs)
    for run, row in zip(runs, summary.rows, strict=True):
        meant = goodput_of(lab, run.result)
        assert meant.bps
        assert meant.bps == run.result.measured[meant.name]
        assert meant.time
        terminal.print_table(lab, [replace(run.result, folder=ROOT / "runs/a-run")])
        output = capsys.readouterr().out
        printed = f"{meant.bps * 1e-6:.4g}"
        assert re.search(rf"\s{re.escape(printed)}\s+{re.escape(meant.time)}\s", output), output
        means = goodput_means(lab, run.result.params)
        assert f"Goodput: {means}." in output
        cells = dict(zip(summary.headings, row, strict=True))
        assert (cells["goodput, Mbit/s"], cells["over"]) == (printed, meant.time)
        first = key_values_table(run).rows[0]
        assert first[:2] == [f"goodput: {means}", f"{meant.bps * 1e-6:.5g}"]
        assert in_brief(lab, run.result).startswith(f"{printed} Mbit/s")


@pytest.mark.parametrize("name", published_labs(ROOT))
def test_pages_name_the_time_and_take_the_same_number(name: str) -> None:
    """Where a lab's goodput is of one settled sender, a page takes the whole test's only by saying so."""
    lab = load_lab(ROOT, name)
    pages = sorted((ROOT / "docs/modules" / lab.folder.name).glob("*.md"))
    assert pages
    if name != "calibrate":
        assert any("{{ goodput }}" in page.read_text() for page in pages)
    if lab.file.collect.one_sender is None:
        return
    for page in pages:
        for line in page.read_text().splitlines():
            if re.search(r"(\.measured|\"measured)\.goodput_bps", line):
                assert "ten seconds" in section_of(page.read_text(), line), (page.name, line)


def section_of(text: str, line: str) -> str:
    return text[max(0, text.index(line) - 1200) : text.index(line) + len(line)]


def test_a_sum_above_the_link_comes_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    """Counted from ACKs, a sum may be a little above what the link carries; never by more than a round trip."""
    lab = load_lab(ROOT, "buffers")
    found = read_set(ROOT / "sample-data/02-buffers/thirty-times").runs
    above = [run.result for run in found if goodput_of(lab, run.result).above_link]
    below = [run.result for run in found if not goodput_of(lab, run.result).above_link]
    assert above
    assert below
    for result in above:
        round_trips = result.measured["rtt_mean_ms"] / 1e3 / result.measured["duration_s"]
        assert goodput_of(lab, result).above_link < round_trips + 1e-3
    for results, is_marked in ((above[:1], True), (below[:1], False)):
        for result in results:
            terminal.print_table(lab, [replace(result, folder=ROOT / "runs/a-run")])
            assert (BY_ACKS.split(".")[0] in " ".join(capsys.readouterr().out.split())) == is_marked


def test_the_word_of_pages_is_what_is_printed() -> None:
    lab = load_lab(ROOT, "variants")
    assert (
        word(LabContext(ROOT, lab))
        == "bytes of the client's flow acknowledged per second, from its second 30 on"
    )
    assert "second 30" in goodput_means(lab, lab.defaults())
