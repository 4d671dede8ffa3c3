"""Tables as people have them, in tests/data/audit/tables.toml: what is off in each is said, and nothing of the others."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from command_line import call_lab

TABLES = tomllib.loads((Path(__file__).parents[1] / "data/audit/tables.toml").read_text())["table"]


@pytest.mark.parametrize("table", TABLES, ids=[table["what"] for table in TABLES])
def test_a_table_as_people_have_it(table: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_text(table["text"])
    options = [word for word in table.get("options", "").split(" ") if word]
    done = call_lab("audit", file, *options)
    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == table["exit"], said
    for words in table.get("says", ()):
        assert words in said
    for words in table.get("never", ()):
        assert words not in said


def test_most_kinds_of_faults_have_a_table_that_is_like_them_and_sound() -> None:
    exits = [table["exit"] for table in TABLES]
    assert exits.count(0) > exits.count(1) > 40
