"""What one case's page or question says leads to no other case's cause."""

import re
from pathlib import Path

import pytest

from measuretwice.lab import find_labs, load_lab

ROOT = Path(__file__).parents[2]
LABS = [load_lab(ROOT, name) for name in find_labs(ROOT)]


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_a_question_on_a_case_is_headed_by_its_number(lab) -> None:  # type: ignore[no-untyped-def]
    """A heading such as 'The control arm' beside 'case 3' would tell what the case is about."""
    text = (lab.folder / "questions.md").read_text(encoding="utf-8")
    for heading, first in re.findall(r"(?m)^\d+\. \*\*([^*]+)\*\* \([^)]*\)(.*)$", text):
        cases = re.findall(r"\bcases? (\d+)", heading.casefold())
        if re.search(r"(?i)\bcase \d", first.partition(".")[0]) and lab.file.pitfalls:
            assert cases, heading


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_a_link_to_another_case_names_no_cause(lab) -> None:  # type: ignore[no-untyped-def]
    for page in sorted((ROOT / "docs/modules" / lab.folder.name).glob("case-*.md")):
        text = page.read_text(encoding="utf-8")
        numbers = {pitfall.id: n for n, pitfall in enumerate(lab.file.pitfalls, 1)}
        links = re.findall(r"\[([^\]]+)\]\(case-(\d+)\.md\)", text)
        links += [
            (words, numbers[name])
            for words, name in re.findall(r'\[([^\]]+)\]\(\{\{ case_page\("([^"]+)"\) \}\}\)', text)
        ]
        for words, number in links:
            for word in lab.case(int(number)).key_words:
                assert not re.search(rf"(?i)(?<!\w){re.escape(word)}(?!\w)", words), page.name
            assert "packets on the wire" not in words


def test_code_of_a_case_sets_no_other_cases_setting() -> None:
    """What is shown of a node's script to fix a case names only what that case is about."""
    lab = load_lab(ROOT, "mathis")
    for id_, others in {
        "timestamps": ("offloads", "mtu"),
        "mtu": ("OFFLOADS", "timestamps"),
        "offload": ("mtu", "timestamps"),
        "receiver-drops": ("OFFLOADS", "timestamps", "mtu"),
    }.items():
        page = (
            ROOT / f"docs/modules/{lab.folder.name}/case-{lab.case_number(lab.pitfall(id_)):02d}.md"
        )
        places = re.findall(r'--8<-- "([^":]+):(\d+):(\d+)"', page.read_text(encoding="utf-8"))
        assert places
        for path, first, last in places:
            lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
            shown = "\n".join(lines[int(first) - 1 : int(last)])
            assert shown.strip()
            assert not [word for word in others if word in shown]


def test_what_comes_before_the_cases_answers_none() -> None:
    """Home and Start don't say what came of the first try, and the trials shown there are no case's."""
    trials = {pitfall.trial for pitfall in load_lab(ROOT, "mathis").file.pitfalls}
    shown = set()
    for name in (
        "docs/index.md",
        "docs/start.md",
        "docs/start/half-an-hour.md",
        "docs/modules/01-mathis/worked.md",
        "README.md",
    ):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert ".within(" not in text, name
        if "README" not in name:
            shown |= {int(n) for n in re.findall(r"trial(?:\(|=| )(\d+)", text)}
    assert shown
    assert not shown & trials
