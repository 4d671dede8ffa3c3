"""What pages say of recorded runs that no fact holds, because a command or a choice of lines says it.

Each test names its page and what it says there; where the sentence has numbers beside it, the page names the test:
{## held: test_... ##}.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

from click.testing import CliRunner

from measuretwice.cli.main import cli
from measuretwice.lab import load_lab
from measuretwice.site.macros import LabContext
from measuretwice.site.macros.excerpts import LineSelection, raw_text

ROOT = Path(__file__).parents[2]
CALIBRATE = LabContext(ROOT, load_lab(ROOT, "calibrate"))
SCALE = LabContext(ROOT, load_lab(ROOT, "scale"))


def test_the_checker_finds_nothing_in_the_readings() -> None:
    """00 index: './lab check finds nothing in any of them'."""
    command = ["check", "--json", str(ROOT / "sample-data/00-calibrate/readings")]
    answered = json.loads(CliRunner().invoke(cli, command).stdout)
    found = {Path(run["run"]).name: run["findings"] for run in answered}
    assert len(found) == len(CALIBRATE.trials)
    assert not any(found.values())


def test_halving_counter_shows_a_window_that_comes_down_in_steps() -> None:
    """03 halving-counter: 'the window of one flow where it comes down'; between two steps it stands still."""
    text = raw_text(SCALE.run("halving-counter-broken").run_dir, "sender-0/cwnd.txt")
    shown = LineSelection(falls=17).apply(text.rstrip("\n").split("\n"))
    assert len(shown) == 17
    windows = [int(line.split()[1]) for line in shown]
    falls = [n for n, (before, now) in enumerate(pairwise(windows)) if now < before]
    assert len(falls) >= 3
    assert max(windows) > 1.3 * min(windows)
    assert any(later - earlier > 1 for earlier, later in pairwise(falls)), "no flat sample between"
