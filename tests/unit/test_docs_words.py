"""The words of pages that read recorded runs: values as they were printed, and none made up."""

from __future__ import annotations

from pathlib import Path

from measuretwice.backends.ssh_nodes import read_node_list
from measuretwice.lab import load_lab
from measuretwice.site.macros.blocks import in_words
from measuretwice.site.macros.table import LabContext

ROOT = Path(__file__).parents[2]
CALIBRATE = LabContext(ROOT, load_lab(ROOT, "calibrate"))


def test_provenance_says_how_long_it_took() -> None:
    said = CALIBRATE.provenance("readings", trial=2)
    assert said["command"] == "./lab run calibrate --trial 2 --seed 1"
    assert 0 < said["real_s"] < 600


def test_long_lines_wrap_and_short_ones_do_not() -> None:
    wide = CALIBRATE.excerpt("readings", "romeo/ss.txt", trial=2, last=1)
    assert wide.startswith('```{ .text .wrapped title="romeo/ss.txt" ')
    narrow = CALIBRATE.excerpt("readings", "romeo/ping.txt", trial=2, last=1)
    assert narrow.startswith('```{ .text title="romeo/ping.txt" ')


def test_counts_in_words() -> None:
    assert [in_words(n) for n in (0, 8, 13)] == ["none", "eight", "13"]


def test_every_recorded_reading_is_as_expected() -> None:
    """The module says of these runs that they read back what was set."""
    for name in ("readings", "wide-buffer"):
        for run in CALIBRATE.runs(name):
            for e in run.expectations:
                assert e.ok, f"{name}, trial {run.trial}: {e}"
    again = [e for run in CALIBRATE.runs("loss-again") for e in run.expectations]
    counts = [e for e in again if e.confidence]
    assert len(counts) == 2 * len(CALIBRATE.runs("loss-again"))
    # One in a hundred may lie outside; three of forty would be no chance.
    assert sum(not e.ok for e in counts) < 3


def test_what_a_testbed_costs(tmp_path: Path) -> None:
    mathis = LabContext(ROOT, load_lab(ROOT, "mathis"))
    assert mathis.hours == 60 * 240 / 3600
    # Its trials say how large they are, and that sets how long they last.
    scale = LabContext(ROOT, load_lab(ROOT, "scale"))
    assert 0 < scale.hours < 100
    assert (len(scale.layout.machines), len(scale.layout.networks)) == (22, 3)
    assert (mathis.layout.cores, mathis.layout.memory_gb, mathis.layout.disk_gb) == (6, 24, 30)
    shown = tmp_path / "nodes.toml"
    shown.write_text("\n".join(mathis.node_list.splitlines()[1:-1]), encoding="utf-8")
    nodes = read_node_list(shown, ["romeo", "router", "juliet"])
    assert nodes.destinations["router"] == "you@router.example.org"
