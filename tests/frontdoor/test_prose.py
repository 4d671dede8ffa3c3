"""What `make lint` holds of the English: a small checkout of two pages, in which sentences are made worse and better."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from command_line import run_program

ROOT = Path(__file__).parents[2]
LINT = ROOT / "scripts/lint"
GOOD = """# Start

Call the first command.

??? note "More"

    The queue holds ten packets.
"""


@pytest.fixture(scope="session")
def vale() -> str:
    """Vale's path, where it is here."""
    done = run_program("bash", LINT / "vale.sh", "--no-get")
    if done.returncode:
        pytest.skip("no Vale here: make vale gets it")
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path, vale: str) -> Path:
    """One page, one module of the package, and the counts, all of which are 0."""
    for folder in ("docs", "labs", "src/measuretwice", "scripts/lint"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "mkdocs.yml").write_text("site_name: Measure Twice\n")
    (tmp_path / "docs/start.md").write_text(GOOD)
    (tmp_path / "src/measuretwice/words.py").write_text('WORDS = "The queue holds ten packets."\n')
    for rule in ("Calques", "Stand"):
        with (tmp_path / "scripts/lint/prose.toml").open("a") as counts:
            counts.write(f"{rule} = 0\n")
    return tmp_path


def lint(checkout: Path, *words: str) -> subprocess.CompletedProcess[str]:
    path = f"{ROOT / 'src'}:{LINT}"
    return run_program(
        sys.executable, "-P", LINT / "prose.py", *words, PYTHONPATH=path, MEASURETWICE_PROSE_OF=str(checkout),
    )  # fmt: skip


def test_good_prose_passes(checkout: Path) -> None:
    done = lint(checkout)
    assert done.returncode == 0, done.stdout
    assert done.stdout == "prose: 0 places by 2 rules\n"


def test_a_new_calque_fails_with_its_place(checkout: Path) -> None:
    page = checkout / "docs/start.md"
    page.write_text(GOOD + "    Ten packets are on their way.\n\nCall it anew.\n")
    done = lint(checkout)
    assert done.returncode == 1
    assert "Calques: 2 places, at most 0" in done.stdout
    assert "docs/start.md:8: Calques: write 'in flight', not 'on their way'" in done.stdout
    assert "docs/start.md:10: Calques: write 'again', not 'anew'" in done.stdout


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("The cause stands in the table.", "Stand"),
        ("What stands at an arrow there is done to packets.", "FreeRelative"),
        ("This is Linux' own algorithm.", "Possessive"),
        ("Who runs it here needs no installation.", "Who"),
    ],
)
def test_other_rules_find_what_they_are_for(checkout: Path, line: str, rule: str) -> None:
    (checkout / "docs/start.md").write_text(f"# Start\n\n{line}\n")
    done = lint(checkout, "docs/start.md")
    assert done.returncode == 1
    assert f"docs/start.md:3: {rule}: " in done.stdout


def test_a_string_in_code_is_read_and_a_docstring_is_not(checkout: Path) -> None:
    module = checkout / "src/measuretwice/words.py"
    module.write_text(
        '"""What stands here is read anew."""\n\nWORDS = (\n    "The queue holds ten packets. "\n    f"Call {__name__} anew."\n)\n'
    )
    done = lint(checkout)
    assert "Calques: 1 places, at most 0" in done.stdout
    assert "src/measuretwice/words.py:5: Calques: write 'again', not 'anew'" in done.stdout
    module.write_text('WORDS = "Call this command anew."  # vale: Calques\n')
    assert lint(checkout).returncode == 0


def test_a_page_says_where_a_rule_is_wrong(checkout: Path) -> None:
    (checkout / "docs/start.md").write_text(GOOD + "\nCall it anew. {## vale: Calques ##}\n")
    assert lint(checkout).returncode == 0


def test_counts_only_fall(checkout: Path) -> None:
    counts = checkout / "scripts/lint/prose.toml"
    counts.write_text("# Why.\nCalques = 2\nStand = 0\n")
    (checkout / "docs/start.md").write_text(GOOD + "\nCall it anew.\n")
    done = lint(checkout)
    assert done.returncode == 0
    assert "lower these in scripts/lint/prose.toml" in done.stdout
    assert "Calques = 1" in done.stdout
    assert lint(checkout, "--lower").returncode == 0
    assert counts.read_text() == "# Why.\nCalques = 1\nStand = 0\n"


def test_make_lint_asks_for_it() -> None:
    done = run_program("make", "--dry-run", "lint", cwd=ROOT)
    assert "scripts/lint/prose.py" in done.stdout
