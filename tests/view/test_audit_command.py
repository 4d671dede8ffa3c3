"""./lab audit: what it prints, its exit codes, and files that are no table."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from command_line import call_lab

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs/reference/audit-example.csv"


def test_a_real_table_its_lines_and_its_exit_codes(tmp_path: Path) -> None:
    done = call_lab("audit", EXAMPLE, "--rate", "10gbit")
    assert done.returncode == 1
    assert done.stderr == ""
    for said in (
        "13 rows, each a run",
        "line 3 (reno): total is 103.43 % of the link",
        "line 4 (reno): index 0.994457; recomputed 0.984513",
        "line 12 (bbr): the same total, squares, index as line 5 (reno): a copied row, under another name",
        "line 13 (reno): total is 0",
        "line 14 (reno): total is 113.88 % of the link",
    ):
        assert said in done.stdout
    sound = tmp_path / "sound.csv"
    sound.write_text("flow,goodput_mbps\n1,9.5\n2,9.4\n")
    done = call_lab("audit", sound, "--rate", "100mbit")
    assert done.returncode == 0
    assert "nothing in it is impossible" in done.stdout


def test_json_has_all_of_it() -> None:
    done = call_lab("audit", EXAMPLE, "--rate", "10gbit", "--json")
    document = json.loads(done.stdout)
    assert done.returncode == 1
    [table] = document["tables"]
    assert table["rows"] == 13
    assert [problem["lines"] for problem in table["problems"]] == [[3], [4], [12], [13], [14]]
    kinds = {problem["kind"] for problem in table["problems"]}
    assert kinds == {"link", "index", "copied", "zero"}


def test_many_of_a_kind_are_told_by_example(tmp_path: Path) -> None:
    table = tmp_path / "flows.csv"
    rows = "".join(f"{n},9.{n:03},{n + 20},99\n" for n in range(50))
    table.write_text("flow,goodput_mbps,retransmits,halvings\n" + rows)
    done = call_lab("audit", table)
    assert "and so 47 more, line 5-51" in done.stdout
    assert len(done.stdout.splitlines()) < 20
    [found] = json.loads(call_lab("audit", table, "--json").stdout)["tables"]
    assert len(found["problems"]) == 50


def test_what_is_no_table_ends_in_one_line(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.csv")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "empty.csv").touch()
    with open(tmp_path / "large.csv", "wb") as large:
        large.truncate(100 * 2**20)
    names = [f"{name}.csv" for name in ("fifo", "folder", "empty", "large", "missing")]
    for name in (*names, "/dev/zero", "/dev/null"):
        done = call_lab("audit", name, cwd=tmp_path)
        assert done.returncode == 2, name
        assert done.stdout == ""
        assert re.fullmatch(rf"lab: \S*{name}: [^\n]+\n", done.stderr), done.stderr


@pytest.mark.parametrize("rate", ["10", "fast", "-10gbit", "10ms", "0gbit"])
def test_a_rate_has_its_unit(rate: str) -> None:
    done = call_lab("audit", EXAMPLE, f"--rate={rate}")
    assert done.returncode == 2
    assert "expected a rate with its unit" in done.stderr


def test_a_terminal_obeys_nothing_in_a_table(tmp_path: Path) -> None:
    table = tmp_path / "evil.csv"
    table.write_text("flow,goodput_mbps,\x1b[31mred\n\x1b[2J1,-5,1\n2,x\x1b]0;hi\x07,1\n")
    done = call_lab("audit", table)
    assert done.returncode == 1
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", done.stdout)
