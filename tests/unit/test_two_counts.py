"""Where two numbers for one thing may differ, it is said why: what is sampled, and what was counted in all."""

from pathlib import Path

from measuretwice.lab import load_lab
from measuretwice.measure.fields import CATALOGUE

ROOT = Path(__file__).parents[2]


def test_drops_by_samples_say_that_the_counter_may_have_more() -> None:
    assert "from the first sample to the last" in CATALOGUE["queue_drops"].meaning
    page = (ROOT / "docs/modules/05-queues/case-04.md").read_text(encoding="utf-8")
    assert "is in tc's counter alone" in page


def test_acks_in_the_capture_and_by_counters() -> None:
    lab = load_lab(ROOT, "mathis")
    number = lab.case_number(lab.pitfall("ack-policy"))
    page = (ROOT / f"docs/modules/01-mathis/case-{number:02d}.md").read_text(encoding="utf-8")
    assert "These are counters of the whole run" in page
    questions = (ROOT / "labs/01-mathis/questions.md").read_text(encoding="utf-8")
    assert "according to the counters of the whole run" in questions
