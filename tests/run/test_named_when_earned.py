"""A setting's name once it is earned, as a student comes to it: real runs by ./lab, in a terminal and in a pipe."""

import json
import re
from pathlib import Path

import pytest
from command_line import call_lab, lab_on_terminal

from measuretwice.lab import load_lab

ROOT = Path(__file__).parents[2]
QUEUES = load_lab(ROOT, "queues")
# Measured values that a later case is about.
TELLING = ["rate_rows", "rate_rows_spanning", "host_1_seconds_deviation_bps"]
UNLISTED = [name for name, setting in QUEUES.file.parameters.items() if setting.unlisted]
LONG = [name for name in UNLISTED if "_" in name]
pytestmark = [pytest.mark.kernel, pytest.mark.slow]


def names_in(text: str, names: list[str] | None = None) -> list[str]:
    """The settings that no list has, in capitals or not; of those that are words of the language, too, only where asked."""
    words = {word.lower() for word in re.findall(r"\w+", text)}
    return [name for name in names or UNLISTED if name in words and (names or "_" in name)]


def all_files(folder: Path) -> str:
    """What stands in a run's own documents: raw files are what tools printed."""
    texts = [
        path.read_text(errors="replace") for path in sorted(folder.glob("*")) if path.is_file()
    ]
    assert len(texts) > 5
    return "\n".join(texts)


def test_a_name_is_told_once_there_is_a_diagnosis(tmp_path: Path) -> None:
    out = tmp_path / "runs"
    case = ("run", "queues", "--case", "3", "--out", out, "--set", "duration_s=2")
    ran = call_lab(*case)
    assert ran.returncode == 0, ran.stderr
    [run] = (out / "queues").glob("case-03-*")
    # Nothing that a student reads names it: neither of this case, nor of a later one.
    assert names_in(all_files(run), [*UNLISTED, *TELLING]) == []
    for what in (("show", run), ("show", run, "settings"), ("show", run, "measured"), ("show", run, "plan.json"),
                 ("show", run, "experiment.sh"), ("check", run), ("check", run, "--json"), ("check", run, "--hint", "1"),
                 ("report", run, "--json", "--out", tmp_path / "report.html")):  # fmt: skip
        assert names_in(call_lab(*what).stdout, [*LONG, *TELLING]) == [], what
    assert names_in((tmp_path / "report.md").read_text(), [*LONG, *TELLING]) == []
    for guess in (
        "default_qdisc",
        "qdisc",
        "set",
        "discipline_set",
        "default",
        "limit",
        "runs",
        "dest",
    ):
        refused = call_lab(*case, "--set", f"{guess}=1")
        assert refused.returncode == 2
        assert names_in(refused.stderr) == [], guess

    glob = out / "queues" / "case-03-*"
    asked = call_lab("check", run)
    assert asked.returncode == 1
    assert "Case 3: do you know what it is?" in asked.stdout
    assert "case-03-* --diagnosis 'in your own words'" in asked.stdout
    little = call_lab("check", run, "--diagnosis", "x")
    assert "three words or more" in little.stderr
    assert names_in(little.stdout) == []
    assert "Diagnosis" not in (out / "queues/lab-book.md").read_text()

    wrong = call_lab("check", run, "--diagnosis", "the ping is broken")
    assert wrong.returncode == 1
    assert names_in(wrong.stdout) == ["set_discipline"]
    assert "Would that explain what you saw?" in wrong.stdout
    right = call_lab("check", run, "--diagnosis", "nobody set the queue, so fq_codel is there")
    assert (
        "Case 3: your diagnosis is noted, right or wrong. The setting is set_discipline = no (it takes yes, no)"
        in right.stdout
    )
    assert re.search(r"SET_DISCIPLINE, in line [0-9]+ of router\.sh", right.stdout)
    assert "./lab run queues --case 3 --set set_discipline=VALUE" in right.stdout
    assert "Would that explain" not in right.stdout
    # From now on each check says so, lists have it, and a name near it is answered; no other case's is.
    again = call_lab("check", run)
    assert "The setting is set_discipline" in again.stdout
    assert names_in(call_lab("show", run, "settings").stdout) == ["set_discipline"]
    near = call_lab(*case, "--set", "discipline_set=yes")
    assert set(names_in(near.stderr)) == {"set_discipline"}
    assert (
        names_in(
            call_lab(
                "run", "queues", "--trial", "1", "--out", out, "--set", "set_disciplin=yes"
            ).stderr
        )
        == []
    )

    fixed = call_lab(*case, "--set", "set_discipline=yes")
    assert fixed.returncode == 0, fixed.stderr
    [own] = {*(out / "queues").glob("case-03-*")} - {run}
    done = call_lab("check", *sorted(glob.parent.glob(glob.name)))
    assert done.returncode == 0, done.stdout
    assert "Case 3 is solved" in done.stdout
    assert "The setting is" not in done.stdout
    assert names_in((own / "plan.json").read_text()) == []
    # The same again is measured already, whatever form its plan has.
    assert "1 of 1 are measured already" in call_lab(*case, "--set", "set_discipline=yes").stderr
    report = call_lab("report", out / "queues")
    assert report.returncode == 0, report.stderr
    assert names_in((out / "queues/report.md").read_text()) == ["set_discipline"]
    assert json.loads((own / "plan.json").read_text())["digest"] in own.name


def test_a_terminal_asks_and_says_the_form_that_takes_a_setting_away(tmp_path: Path) -> None:
    out = tmp_path / "runs"
    case = ("run", "queues", "--case", "6", "--out", out, "--set", "duration_s=2")
    assert call_lab(*case).returncode == 0
    runs = sorted((out / "queues").glob("case-06-*"))
    assert len(runs) == 2
    code, output = lab_on_terminal("check", *runs, answers=[("Enter: not yet", "\n")])
    assert code == 1
    assert "destination =" not in output
    code, output = lab_on_terminal(
        "check", *runs, answers=[("Enter: not yet", "both went to the same host\n")], columns=200
    )
    assert code == 1
    assert "The setting is destination = host-3" in output
    assert "--set destination= with nothing after the = takes it away" in output
    assert "./lab run queues --case 6 --set destination=" in output
    assert "- Diagnosis: both went to the same host" in (out / "queues/lab-book.md").read_text()
    fixed = call_lab(*case, "--set", "destination=")
    assert fixed.returncode == 0, fixed.stderr
    own = sorted({*(out / "queues").glob("case-06-*")} - {*runs})
    assert call_lab("check", *own).returncode == 0


def test_a_first_try_names_nothing(tmp_path: Path) -> None:
    started = call_lab("start", "queues", "--out", tmp_path / "runs")
    assert started.returncode == 0, started.stderr
    runs = sorted((tmp_path / "runs/start/queues").glob("trial-*"))
    assert runs
    for run in runs:
        assert names_in(all_files(run), UNLISTED) == []
        for what in ("settings", "measured", "provenance.json"):
            assert names_in(call_lab("show", run, what).stdout) == [], what
