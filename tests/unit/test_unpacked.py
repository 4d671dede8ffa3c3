"""./lab check and ./lab report take an archive of runs, as the page's "Save my runs" gives it."""

from pathlib import Path

import pytest
from command_line import call_lab

from measuretwice.base.files import pack_zip
from measuretwice.runs.folder import PLAN

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "tests/data/report/trial-07-seed1-b402df08"
BOOK = "# Lab book\n\n- Seed: 7\n"


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    files: dict[str, Path | bytes] = {
        f"mathis/{RECORDED.name}/{path.relative_to(RECORDED)}": path
        for path in RECORDED.rglob("*")
        if path.is_file()
    }
    place = tmp_path / "mathis-runs.zip"
    place.write_bytes(pack_zip({**files, "mathis/lab-book.md": BOOK.encode()}))
    return place


def test_check_says_of_an_archive_what_it_says_of_its_runs(saved: Path, tmp_path: Path) -> None:
    packed = call_lab("check", saved)
    folder = call_lab("check", RECORDED)
    assert packed.returncode == folder.returncode
    first, *rest = packed.stdout.splitlines()
    assert rest == folder.stdout.splitlines()[1:]
    assert first.startswith(f"{saved}:mathis/{RECORDED.name}: ")
    as_json = call_lab("check", saved, "--json")
    assert f'"{saved}:mathis/{RECORDED.name}"' in as_json.stdout
    assert "measuretwice-" not in as_json.stdout


def test_a_report_of_an_archive_lies_beside_it(saved: Path) -> None:
    done = call_lab("report", saved)
    assert done.returncode == 0, done.stderr
    page = (saved.parent / "report.html").read_text(encoding="utf-8")
    assert RECORDED.name in page
    assert "measuretwice-" not in page


@pytest.mark.parametrize("command", ["check", "report"])
def test_a_damaged_archive_is_one_clear_line(saved: Path, command: str) -> None:
    saved.write_bytes(saved.read_bytes()[:3000])
    done = call_lab(command, saved)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"lab: {saved}: is damaged, or no archive (BadZipFile)\n"


@pytest.mark.parametrize("command", ["check", "report"])
def test_what_leads_out_of_an_archive_is_not_unpacked(tmp_path: Path, command: str) -> None:
    place = tmp_path / "runs.zip"
    place.write_bytes(pack_zip({f"../{PLAN}": b"{}"}))
    done = call_lab(command, place)
    assert done.returncode == 2
    assert "its path leads out of the archive" in done.stderr
    assert not (tmp_path.parent / PLAN).exists()
