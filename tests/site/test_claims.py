"""What pages of the labs say in words of recorded numbers.

Where a page can, it computes such a word ({{ claim(...) }} or {% if %}). These are the others: sentences
that new recordings could make false. Each test names its page and what it says there; where the sentence
has numbers beside it, the page names the test: {## held: test_... ##}.
"""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from measuretwice.cli.commands import cli
from measuretwice.lab import load_lab
from measuretwice.site.macros.table import LabContext

ROOT = Path(__file__).parents[2]
CALIBRATE = LabContext(ROOT, load_lab(ROOT, "calibrate"))


def test_the_checker_finds_nothing_in_the_readings() -> None:
    """00 index: './lab check finds nothing in any of them'."""
    command = ["check", "--json", str(ROOT / "sample-data/00-calibrate/readings")]
    answered = json.loads(CliRunner().invoke(cli, command).stdout)
    found = {Path(one["run"]).name: one["findings"] for one in answered}
    assert len(found) == len(CALIBRATE.trials)
    assert not any(found.values())
