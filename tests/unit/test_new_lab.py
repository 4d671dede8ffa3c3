"""./lab new NAME: the copy is a lab like the others from its first minute, and never half a lab."""

import json
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import ROOT, call_lab, start_lab

from measuretwice.facts import RecordedSets
from measuretwice.lab import find_labs, load_lab, published_labs, read_lab
from measuretwice.site.build import prepare_text
from measuretwice.site.macros import LabContext, SiteContext
from measuretwice.site.render import Renderer

NAMES = list(find_labs(ROOT))
PUBLISHED = list(published_labs(ROOT))
# The number that the next lab gets, and the one after it.
NEXT, LATER = (f"{len(NAMES) + n:02d}" for n in (0, 1))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout without the package: what ./lab reads and runs."""
    for name in ("labs", "scripts"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def facts_but(text: str) -> list[str]:
    """lab.toml without what a copy has of its own: comments, its title, that it is a draft."""
    return [line for line in text.splitlines() if not re.match(r"#|title = |draft = |$", line)]


def test_a_copy_is_listed_checked_and_run_at_once(checkout: Path) -> None:
    root = {"MEASURETWICE_ROOT": str(checkout)}
    made = start_lab("new", "pacing-2", **root)
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout.startswith(f"labs/{NEXT}-pacing-2: Pacing-2: a copy of the calibrate lab\n")
    assert "./lab run pacing-2 --trial 1\n" in made.stdout
    assert [path.name for path in (checkout / "labs").iterdir() if path.name[0] == "."] == []
    assert "\npacing-2: Pacing-2: a copy of" in call_lab("list", **root).stdout
    assert json.loads(call_lab("list", "--json", **root).stdout)[-1]["lab"] == "pacing-2"
    shown = call_lab("testbed", "pacing-2", "--cloudlab", "--out", "-", **root)
    assert (shown.returncode, shown.stderr) == (0, "")


@pytest.mark.parametrize("like", NAMES)
def test_every_lab_can_be_copied(checkout: Path, like: str) -> None:
    """All but its title stays; the first lab is the default."""
    chosen = ["--like", like] if like != NAMES[0] else []
    done = call_lab("new", "mine", *chosen, MEASURETWICE_ROOT=str(checkout))
    assert (done.returncode, done.stderr) == (0, "")
    model, copy = find_labs(checkout)[like], checkout / f"labs/{NEXT}-mine"
    files, copied = (
        [
            path.relative_to(of)
            for path in sorted(of.rglob("*"))
            if path.is_file() and not {"facts", "studies"}.intersection(path.parts)
        ]
        for of in (model, copy)
    )
    assert {*copied} == {*files, Path("facts.py")}
    assert not (copy / "facts").exists()
    for file in files:
        assert os.access(copy / file, os.X_OK) == os.access(model / file, os.X_OK)
        if file.suffix in (".sh", ".py") and file.name != "facts.py":
            old = (model / file).read_text(encoding="utf-8")
            number = model.name[:2]
            named = old.replace(f"labs/{model.name}/", f"labs/{NEXT}-mine/")
            named = named.replace(f"Lab {number}", f"Lab {NEXT}")
            assert (copy / file).read_text(encoding="utf-8") == named
        elif file.name not in ("lab.toml", "facts.py"):
            assert (copy / file).read_bytes() == (model / file).read_bytes()
    old, new = ((folder / "lab.toml").read_text(encoding="utf-8") for folder in (model, copy))
    assert facts_but(new) == facts_but(old)
    assert new.splitlines()[:2] == [
        "#:schema ../lab.schema.json",
        f"# The mine lab: a copy of {like}, to be changed. Facts only.",
    ]
    assert re.search(r'^title = "Mine: a copy of the .* lab"$', new, re.MULTILINE)
    assert read_lab(copy).trials == load_lab(checkout, like).trials


@pytest.mark.parametrize("like", NAMES)
def test_a_bare_copy_is_what_runs(checkout: Path, like: str) -> None:
    """The network, the parameters and the first trial, with nothing of what the model measured or taught."""
    done = call_lab("new", "mine", "--like", like, "--bare", MEASURETWICE_ROOT=str(checkout))
    assert (done.returncode, done.stderr) == (0, "")
    model, copy = load_lab(ROOT, like), load_lab(checkout, "mine")
    first = min(model.trials)
    assert copy.trials == {first: model.trials[first]}
    assert (copy.file.topology, copy.file.run) == (model.file.topology, model.file.run)
    assert copy.file.parameters == model.file.parameters
    taught = ("pitfalls", "recordings", "figures", "expect", "first_try", "model")
    assert [name for name in taught if getattr(copy.file, name)] == []
    table = {"trials.csv"} & {path.name for path in model.folder.iterdir()}
    begun = {"facts.py", "lab.toml", "nodes", "questions.md"}
    assert {path.name for path in copy.folder.iterdir()} == begun | table


def test_its_pages_are_begun_whole(checkout: Path) -> None:
    """The pages that ./lab new writes can be made as they are, and its facts computed, once the lab is no draft."""
    lab = load_lab(ROOT, "queues")
    (checkout / f"docs/modules/{NEXT}-mine").mkdir(parents=True)
    shutil.copytree(ROOT / "docs/layouts", checkout / "docs/layouts")
    (checkout / f"docs/modules/{NEXT}-mine/case-02.md").write_text("begun\n")
    done = call_lab("new", "mine", "--like", "queues", MEASURETWICE_ROOT=str(checkout))
    assert f"docs/modules/{NEXT}-mine/: its pages, 7 begun" in done.stdout
    made = checkout / f"docs/modules/{NEXT}-mine"
    names = [f"case-{n:02d}.md" for n in range(1, 1 + len(lab.file.pitfalls))]
    assert sorted(path.name for path in made.iterdir()) == [*names, "index.md"]
    assert (made / "case-02.md").read_text() == "begun\n"
    compute = runpy.run_path(str(checkout / f"labs/{NEXT}-mine/facts.py"))["facts"]
    labs = {name: LabContext(ROOT, load_lab(ROOT, name)) for name in NAMES}
    labs["queues"].facts = compute(RecordedSets(ROOT, lab))
    assert "wrong-metric.goodput_after" in labs["queues"].facts
    renderer = Renderer(SiteContext(checkout, labs, instructor=False))
    for name in ("case-01.md", "index.md"):
        text = renderer.render(made / name, f"modules/05-queues/{name}")
        assert text.count("## ") > 3
        assert not re.search(r"\{\{|\{%|\{##", text)


def test_a_drafts_new_cases_get_pages(checkout: Path) -> None:
    """Called again, ./lab new begins the pages that are missing, and leaves the others alone."""
    (checkout / "docs/modules").mkdir(parents=True)
    root = {"MEASURETWICE_ROOT": str(checkout)}
    call_lab("new", "mine", "--like", "queues", **root)
    made = checkout / f"docs/modules/{NEXT}-mine"
    (made / "case-01.md").write_text("mine\n")
    (made / "case-07.md").unlink()
    again = call_lab("new", "mine", **root)
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout.startswith(f"docs/modules/{NEXT}-mine/: pages begun: 1;")
    assert (made / "case-07.md").is_file()
    assert (made / "case-01.md").read_text() == "mine\n"


def test_no_page_shows_a_draft(checkout: Path) -> None:
    call_lab("new", "mine", MEASURETWICE_ROOT=str(checkout))
    assert [*find_labs(checkout)] == [*NAMES, "mine"]
    assert [*published_labs(checkout)] == PUBLISHED
    facts = checkout / f"labs/{NEXT}-mine/lab.toml"
    facts.write_text(facts.read_text().replace("draft = true\n", ""))
    assert [*published_labs(checkout)] == [*PUBLISHED, "mine"]


def test_instructors_see_no_page_of_a_draft(checkout: Path) -> None:
    """Its notes, slides and plan would quote runs that aren't recorded yet."""
    call_lab("new", "mine", MEASURETWICE_ROOT=str(checkout))
    folder = find_labs(checkout)["mine"].name
    pages = {f"modules/{folder}/index.md", f"instructors/key/{folder}-notes.md", f"instructors/tuesday/{folder}.md"}  # fmt: skip
    for name in (*pages, "instructors/map.md"):
        page = checkout / "docs" / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text("# A page\n")
    prepare_text(checkout, checkout / "out")
    made = {path.relative_to(checkout / "out").as_posix() for path in (checkout / "out").rglob("*.md")}  # fmt: skip
    assert "instructors/map.md" in made
    assert not made & pages


def test_a_copy_of_a_draft_has_the_next_number(checkout: Path) -> None:
    for name, like in (("one-a", "mathis"), ("two-b", "one-a")):
        done = call_lab("new", name, "--like", like, MEASURETWICE_ROOT=str(checkout))
        assert (done.returncode, done.stderr) == (0, "")
    assert find_labs(checkout)["two-b"].name == f"{LATER}-two-b"
    assert (checkout / f"labs/{LATER}-two-b/lab.toml").read_text().count("draft = true") == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["Pacing"], "'Pacing' can't be a lab's name: expected small letters"),
        (["2nd"], "'2nd' can't be"),
        (["a_b"], "'a_b' can't be"),
        (["../x"], "'../x' can't be"),
        (["a-"], "'a-' can't be"),
        ([""], "'' can't be"),
        (["mathis"], "there is a lab mathis already: labs/01-mathis"),
        (["mine", "--like", "nosuch"], "there is no lab 'nosuch'; there are: calibrate"),
        ([], "NAME"),
    ],
)
def test_what_cannot_be_made_is_one_line(checkout: Path, arguments: list[str], says: str) -> None:
    before = sorted(checkout.rglob("*"))
    done = call_lab("new", *arguments, MEASURETWICE_ROOT=str(checkout))
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert says in done.stderr
    assert sorted(checkout.rglob("*")) == before


def test_a_lab_that_is_broken_is_not_copied(checkout: Path) -> None:
    facts = checkout / "labs/00-calibrate/lab.toml"
    facts.write_text(facts.read_text().replace("minutes = 55", "minutes = 0"))
    done = call_lab("new", "mine", MEASURETWICE_ROOT=str(checkout))
    assert (done.returncode, done.stdout) == (2, "")
    assert "labs/00-calibrate/lab.toml: lab.minutes: " in done.stderr
    assert not list((checkout / "labs").glob("*mine*"))


@pytest.mark.slow
def test_broken_off_it_leaves_no_lab(checkout: Path) -> None:
    """Killed while it copies, it leaves a hidden folder that is no lab; the next call ends well."""
    large = checkout / "labs/00-calibrate/large"
    large.mkdir()
    for number in range(3000):
        (large / f"{number}.txt").write_text("x" * 4096)
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "measuretwice", "new", "mine"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "MEASURETWICE_ROOT": str(checkout)},
    )
    deadline = time.monotonic() + 60
    while not list((checkout / "labs").glob(f".{NEXT}-mine*/large/1*")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert [*find_labs(checkout)] == NAMES
    done = call_lab("new", "mine", MEASURETWICE_ROOT=str(checkout))
    assert (done.returncode, done.stderr) == (0, "")
    assert load_lab(checkout, "mine").file.lab.draft


@pytest.mark.kernel
def test_a_copy_runs(checkout: Path) -> None:
    root = {"MEASURETWICE_ROOT": str(checkout)}
    call_lab("new", "mine", "--bare", **root)
    done = start_lab("run", "mine", "--trial", "1", "--duration", "2", "--json", **root)
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)
    assert (result["lab"], result["trial"]) == ("mine", 1)
    checked = start_lab("check", result["run_dir"], "--json", **root)
    assert json.loads(checked.stdout)[0]["findings"] == []
