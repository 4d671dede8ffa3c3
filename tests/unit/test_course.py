"""The order in which modules are taken, how long they are, where the kit is, what a page says it is."""

import re
from pathlib import Path

import pytest

from measuretwice.lab import published_labs
from measuretwice.site.drawings.maps import direct_needs
from measuretwice.site.layouts import LONGEST, described, first_words
from measuretwice.site.macros import LabContext, SiteContext
from measuretwice.site.macros.site import (
    address_in,
    course_map,
    get_kit,
    half_hours,
    hours_and_minutes,
    in_order,
)
from measuretwice.site.navigation import navigation

ROOT = Path(__file__).parents[2]
LABS = published_labs(ROOT)
SETTINGS = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def site(root: Path = ROOT) -> SiteContext:
    labs = {name: LabContext(ROOT, lab) for name, lab in LABS.items()}
    return SiteContext(root, labs, instructor=False)


def test_each_module_comes_after_those_that_it_needs() -> None:
    needs = {"a": [], "c": ["a", "d"], "b": ["a"], "d": ["b"]}
    assert in_order(needs) == ["a", "b", "d", "c"]
    order = in_order({name: lab.file.lab.needs for name, lab in LABS.items()})
    for place, name in enumerate(order):
        assert set(LABS[name].file.lab.needs) <= set(order[:place]), name


def test_the_navigation_has_the_modules_in_that_order() -> None:
    order = in_order({name: lab.file.lab.needs for name, lab in LABS.items()})
    fronts = re.findall(r"modules/([\w-]+)/index\.md", navigation(SETTINGS))
    assert fronts == [LABS[name].folder.name for name in order]


def test_what_follows_from_other_needs_is_not_drawn() -> None:
    needs = {"a": [], "b": ["a"], "c": ["a", "b"], "d": ["a"], "e": ["a", "b", "d"]}
    assert direct_needs(needs) == {"a": [], "b": ["a"], "c": ["b"], "d": ["a"], "e": ["b", "d"]}


def test_no_two_arrows_of_the_map_lie_on_each_other() -> None:
    for drawing in str(course_map(site())).split("<svg ")[1:]:
        runs: set[tuple[tuple[int, int], tuple[int, int]]] = set()
        arrows = re.findall(r'<path d="(M[^"]*)" marker-end', drawing)
        assert len(arrows) > len(LABS) - 2
        for arrow in arrows:
            own = set(_steps_of(arrow))
            assert not own & runs, arrow
            runs |= own


def _steps_of(path: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Every unit that a path of level and upright lines passes."""
    x, y = map(int, re.findall(r"M(\d+),(\d+)", path)[0])
    found = []
    for axis, end in re.findall(r"([HV])(\d+)", path):
        begin = x if axis == "H" else y
        for at in range(*sorted((begin, int(end)))):
            found.append(((at, y), (at + 1, y)) if axis == "H" else ((x, at), (x, at + 1)))
        x, y = (int(end), y) if axis == "H" else (x, int(end))
    return found


def test_times() -> None:
    assert [hours_and_minutes(n) for n in (55, 60, 210)] == ["55 min", "1 h", "3 h 30 min"]
    assert [half_hours(n) for n in (55, 210, 250, 1235)] == [
        "60 minutes", "3½ hours", "4 hours", "20½ hours",
    ]  # fmt: skip


def test_every_lab_says_what_it_asks_and_tells_nothing() -> None:
    for lab in LABS.values():
        question = lab.file.lab.question or ""
        assert question.endswith("?"), lab.name
        for pitfall in lab.file.pitfalls:
            for word in pitfall.key_words:
                assert not re.search(rf"(?i)(?<!\w){re.escape(word)}(?!\w)", question), lab.name


@pytest.mark.parametrize(
    "line", ["kit: https://x.example/kit.git", 'kit: "https://x.example/kit.git"']
)
def test_the_kit_is_fetched_from_the_address_that_the_settings_name(
    tmp_path: Path, line: str
) -> None:
    (tmp_path / "mkdocs.yml").write_text(f"extra:\n  {line}\nnav:\n", encoding="utf-8")
    text = get_kit(site(tmp_path), "mathis")
    assert "git clone https://x.example/kit.git measure-twice && cd measure-twice\n" in text
    # A line of its own: no column is so narrow that it breaks within the command.
    assert "\n./lab start mathis\n" in text
    assert "unzip" not in text


def test_without_an_address_pages_say_how_to_unpack_it(tmp_path: Path) -> None:
    (tmp_path / "mkdocs.yml").write_text('extra:\n  kit: ""\n', encoding="utf-8")
    assert "unzip measure-twice.zip && cd measure-twice\n./lab start mathis\n" in get_kit(
        site(tmp_path), "mathis"
    )


def test_all_places_name_one_address() -> None:
    """README.md and CITATION.cff name the one of mkdocs.yml, and none where that has none."""
    assert len(re.findall(r"^  kit:", SETTINGS, re.MULTILINE)) == 1
    address = address_in(SETTINGS)
    readme, citation = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CITATION.cff"))  # fmt: skip
    assert re.findall(r"git clone (\S+)", readme) == ([address] if address else [])
    named = re.findall(r"^repository-code: *[\"']?([^\"'\s]+)", citation, re.MULTILINE)
    assert named == ([address] if address else [])


BY_FOLDER = {lab.folder.name: lab for lab in LABS.values()}


def test_a_page_keeps_what_it_says_of_itself() -> None:
    text = described('---\ndescription: "Mine"\n---\n\n# T\n\nText.\n', "start/ss.md", BY_FOLDER)
    assert text == '---\ncard: course\ndescription: "Mine"\n---\n\n# T\n\nText.\n'


def test_a_case_is_described_by_what_is_seen() -> None:
    text = described("# T\n\nText.\n", "modules/01-mathis/case-05.md", BY_FOLDER)
    assert text.startswith('---\ncard: 01-mathis\ndescription: "Mathis, case 5 of 13: ')
    assert BY_FOLDER["01-mathis"].case(5).symptom in text


def test_others_by_their_first_words() -> None:
    page = '# T\n\n<div>x</div>\n\nIt **sends** a [ping](ping.md){ .x } "now". Then it waits.\n'
    assert first_words(page) == 'It sends a ping "now". Then it waits.'
    assert "'now'" in described(page, "start/x.md", BY_FOLDER)
    assert len(first_words("# T\n\n" + "word " * 80)) <= LONGEST
    assert first_words("# T\n\n- one\n") == ""
