"""rubric.toml: its points are the questions', its CSV is one that Canvas imports."""

import csv
import io
import re
import shutil
from pathlib import Path

import pytest

from measuretwice.base.errors import UserError
from measuretwice.grading.rubric import FILE, csv_text, read_rubric, unmatched_points
from measuretwice.lab import Lab, find_labs, load_lab, read_lab

ROOT = Path(__file__).parents[2]
MARKED = [name for name, folder in find_labs(ROOT).items() if (folder / FILE).is_file()]


def test_these_labs_are_marked() -> None:
    assert {"mathis", "calibrate"} <= set(MARKED)


@pytest.mark.parametrize("name", MARKED)
def test_each_question_has_its_points(name: str) -> None:
    lab = load_lab(ROOT, name)
    rubric = read_rubric(lab)
    assert rubric is not None
    assert not unmatched_points(lab, rubric)
    assert rubric.points == 100


def test_a_question_taken_out_of_its_list_is_missed(tmp_path: Path) -> None:
    folder = tmp_path / "01-mathis"
    shutil.copytree(ROOT / "labs/01-mathis", folder)
    questions = folder / "questions.md"
    text = questions.read_text()
    lab = read_lab(folder)
    rubric = read_rubric(lab)
    assert rubric is not None
    (second,) = re.findall(r"(?m)^2\. .*\n", text)
    questions.write_text(text.replace(second, ""))
    count, *others = unmatched_points(lab, rubric)
    assert count.startswith("12 questions, and rubric.toml marks 13: ")
    assert any(problem.startswith("question 2: ") for problem in others)
    questions.write_text(text.replace(" points)", ")", 1))
    assert unmatched_points(lab, rubric)[0].startswith("question 1 has no points")


@pytest.mark.parametrize("name", MARKED)
def test_each_pitfall_is_marked_once(name: str) -> None:
    lab = load_lab(ROOT, name)
    rubric = read_rubric(lab)
    assert rubric is not None
    for prediction in (True, False):
        marked = [
            criterion.pitfall
            for criterion in rubric.criteria
            if criterion.pitfall and criterion.prediction == prediction
        ]
        assert sorted(marked) == sorted(pitfall.id for pitfall in lab.file.pitfalls)


@pytest.mark.parametrize("name", MARKED)
def test_what_students_see_of_it_names_no_cause(name: str) -> None:
    """Its CSV goes into a learning management system, which shows it to them."""
    lab = load_lab(ROOT, name)
    rubric = read_rubric(lab)
    assert rubric is not None
    text = csv_text(rubric)
    for pitfall in lab.file.pitfalls:
        assert f"Case {lab.case_number(pitfall)}: the prediction" in text
        assert pitfall.title not in text
        assert f"mistake {pitfall.id}" not in text


def test_hints_cost_more_the_later_they_are() -> None:
    for name in MARKED:
        rubric = read_rubric(load_lab(ROOT, name))
        assert rubric is not None
        assert rubric.hint_costs[0] == 0
        assert list(rubric.hint_costs) == sorted(rubric.hint_costs)
        # A lab without cases has no hints.
        if rubric.ladder:
            assert rubric.hint_costs[3] > rubric.hint_costs[2]
            # The rungs that a machine judges.
            shares = {rung.title: rung.share for rung in rubric.ladder}
            assert shares["Shown"] < shares["Diagnosed"] < shares["Run again"] == 1


@pytest.mark.parametrize("name", MARKED)
def test_csv_is_what_canvas_imports(name: str) -> None:
    rubric = read_rubric(load_lab(ROOT, name))
    assert rubric is not None
    header, *rows = csv.reader(io.StringIO(csv_text(rubric)))
    assert header[:4] == [
        "Rubric Name", "Criteria Name", "Criteria Description", "Criteria Enable Range",
    ]  # fmt: skip
    assert header[4:7] == ["Rating Name", "Rating Description", "Rating Points"]
    assert len({row[1] for row in rows}) == len(rows) == len(rubric.criteria)
    total = 0.0
    for row in rows:
        assert row[0] == rubric.title
        assert row[3] == "false"
        assert len(row) <= len(header)
        assert all(row)
        points = [float(text) for text in row[6::3]]
        assert points == sorted(points, reverse=True)
        assert points[-1] == 0
        total += points[0]
    assert total == 100


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return read_lab(Path(shutil.copytree(ROOT / "labs/01-mathis", tmp_path / "labs/01-mathis")))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('pitfall = "mtu"', 'pitfall = "mut"', "mathis has no pitfall 'mut'"),
        ('pitfall = "mtu"\npoints = 2', 'pitfall = "mtu"\npoints = "2"', "points"),
        ('pitfall = "mtu"', 'title = "MTU"', "expected pitfall, or else title, full and half"),
        ('pitfall = "mtu"', 'pitfall = "mtu"\nfull = "x"', "expected pitfall, or else title"),
        ("share = 0.75", "share = 75", "ladder.1.share"),
        ("share = 0.75", "share = ", "not valid TOML"),
        ("costs = [0.0, 0.05, 0.25]", "costs = [0.0]", "hints.costs"),
        ("costs = [0.0, 0.05, 0.25]", "costs = [0.0, 0.05, 2.5]", "hints.costs.2"),
    ],
)
def test_what_is_wrong_is_named(lab: Lab, old: str, new: str, says: str) -> None:
    path = lab.folder / FILE
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(UserError) as caught:
        read_rubric(lab)
    assert str(caught.value).startswith("labs/01-mathis/rubric.toml: ")
    assert says in str(caught.value)


def test_a_case_needs_a_ladder(lab: Lab) -> None:
    path = lab.folder / FILE
    text = path.read_text()
    path.write_text(text[: text.index("[[ladder]]")] + text[text.index("[[criteria]]") :])
    with pytest.raises(UserError, match="file: expected a ladder of at least two rungs"):
        read_rubric(lab)


def test_no_rubric(lab: Lab) -> None:
    (lab.folder / FILE).unlink()
    assert read_rubric(lab) is None
