"""One navigation for two sites."""

from pathlib import Path

import pytest

from measuretwice.base.errors import UserError
from measuretwice.site.navigation import (
    feedback,
    module_pages,
    navigation,
    release_settings,
    site_settings,
)

ROOT = Path(__file__).parents[2]
NAV = """\
nav:
  - Home: index.md
  - modules/01-a/index.md

  # a page of this module
  - modules/01-a/b.md
  - modules/02-b/index.md
  - Instructors:
      - instructors/index.md
      - Answers: instructors/key/01-a.md
      - Slides:
          - A: instructors/key/01-a-slides.md
"""


def test_the_navigation_ends_where_another_setting_begins() -> None:
    assert navigation(f"strict: true\n\n{NAV}\ntheme:\n  name: material\n") == NAV + "\n"
    assert navigation(NAV) == NAV


def test_no_navigation() -> None:
    with pytest.raises(UserError):
        navigation("strict: true\nnavy:\n")


def test_pages_in_order() -> None:
    assert module_pages(NAV, "01-a") == ["index", "b"]
    assert module_pages(NAV, "02-b") == ["index"]
    assert module_pages(NAV, "03-c") == []


def test_students_have_no_answers() -> None:
    settings = f"# A word.\nsite_name: Measure Twice\n{NAV}"
    for_all, for_students = (
        site_settings(settings, "docs", instructor=who) for who in (True, False)
    )
    assert for_all.count("\nnav:\n") == for_students.count("\nnav:\n") == 1
    assert "\ndocs_dir: docs\n" in for_students
    assert "  - modules/01-a/b.md\n" in for_students
    assert "instructors/index.md" in for_students
    assert "instructors/key/" not in for_students
    lost = set(for_all.splitlines()) - set(for_students.splitlines())
    assert lost == {
        "site_name: Measure Twice, for instructors",
        "      - Answers: instructors/key/01-a.md",
        "      - Slides:",
        "          - A: instructors/key/01-a-slides.md",
    }


def test_a_release_has_no_section_for_instructors() -> None:
    for settings in (NAV, (ROOT / "mkdocs.yml").read_text(encoding="utf-8")):
        released = navigation(release_settings(settings))
        assert "nstructors" not in released
        assert "Slides" not in released
        assert released.startswith("nav:\n  - Home:")


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ('  feedback: ""\n', ""),
        ("  feedback:\n", ""),
        ("  feedback: https://example.org/a?b=1\n", "https://example.org/a?b=1"),
        ("  feedback: 'mailto:lab@example.org'  # the group's\n", "mailto:lab@example.org"),
    ],
)
def test_a_place_for_feedback_is_in_the_foot_where_it_is_set(line: str, place: str) -> None:
    settings = f"{NAV}\nextra:\n  generator: false\n{line}"
    assert feedback(settings) == place
    for made in (site_settings(settings, "docs", instructor=False), release_settings(settings)):
        assert ("  social:\n" in made) == bool(place)
        assert (f'      link: "{place}"\n' in made) == bool(place)


def test_every_answer_key_has_its_place() -> None:
    """Of the sites' own navigation: keys that docs/ has, and one for each solution."""
    nav = navigation((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    key = ROOT / "docs/instructors/key"
    names = {path.stem for path in [*key.glob("*.md"), *(ROOT / "solutions").glob("[0-9]*.py")]}
    assert names
    for name in names:
        assert nav.count(f"instructors/key/{name}.md") == 1, name
