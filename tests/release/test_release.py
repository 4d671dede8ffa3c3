"""A students' release: it holds no answer, and all its commands work."""

import json
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import editions
import pytest
from command_line import begin_lab, call_lab, run_program, until
from same_sentences import Sentences

from measuretwice.base.errors import UserError
from measuretwice.lab import Lab, load_lab, published_labs, read_lab, read_questions
from measuretwice.lab.spoilers import READABLE_TABLES, SEALED, seal, split_spoilers, unseal
from measuretwice.release import archive

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/site"))

from test_nobody_is_told import SURFACES, plan_for_a_class, tells, words_found  # noqa: E402

LABS = list(published_labs(ROOT).values())
CASES = [(lab, pitfall) for lab in LABS for pitfall in lab.file.pitfalls]
# Pages that say something else in a release: how it is had, which commands it has, and not how it is marked.
PAGES_OF_ITS_OWN = {"index.md", "reference/command-line.md", "modules/report.md"}
# A sentence of so many letters stands in two places only if it is the same one.
LONG = 45


def lab_of(kit: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the ./lab of a checkout or of a release, in its folder."""
    return run_program(kit / "lab", *words, cwd=kit, MEASURETWICE_NO_INSTALL="1")


def of_release(release: Path) -> Iterator[Path]:
    """Its files; not those of the packages beside it, nor what commands make there."""
    for path in release.rglob("*"):
        name = path.relative_to(release).parts[0]
        if path.is_file() and name not in (".venv", "runs", "build"):
            yield path


WITH_ITS_SITE = "takes a build; by day without it, and its prepared pages are the students' own"
# As it is by day, and at night with its site.
EDITIONS = ["release", pytest.param("release_with_site", marks=pytest.mark.nightly(WITH_ITS_SITE))]


@pytest.fixture(scope="module", params=EDITIONS)
def texts(request: pytest.FixtureRequest) -> dict[str, str]:
    """Every text in it by its path: of archives, those inside, too. Spaces are one, letters small."""
    release, found = request.getfixturevalue(request.param), {}

    def add(name: str, content: bytes) -> None:
        try:
            found[name] = " ".join(content.decode().split()).casefold()
        except UnicodeDecodeError:
            assert not re.search(r"\.(md|toml|py|json|html|txt|csv|sh)$", name), name

    for path in of_release(release):
        name = path.relative_to(release).as_posix()
        if path.name.endswith(".tar.xz"):
            with tarfile.open(path) as packed:
                for entry in packed:
                    content = packed.extractfile(entry) if entry.isreg() else None
                    if content:
                        add(f"{name}/{entry.name}", content.read())
        else:
            add(name, path.read_bytes())
    assert len(found) > 1000
    return found


def sentences(text: str) -> Iterator[str]:
    """Each line that says something, without marks of comments and lists."""
    for line in text.splitlines():
        plain = " ".join(line.lstrip("#|-*> 0123456789.").split()).casefold()
        if len(plain) > LONG and len(plain.split()) > 5 and "{" not in plain:
            yield plain


# What pages and commands say of a case: tests/site/test_nobody_is_told.py.


def test_its_pages_are_the_students_own(release: Path, student: Path) -> None:
    """So what is seen of these, their search among it, holds for its own; without those for instructors."""
    theirs, ours = release / "docs/pages", editions.STUDENTS_PAGES
    assert student.is_dir(), "they are prepared"
    names = [
        {path.relative_to(top).as_posix() for path in top.rglob("*") if path.is_file()}
        for top in (ours, theirs)
    ]
    left_out = names[0] - names[1]
    assert names[1] <= names[0]
    assert left_out
    assert {
        name for name in left_out if not re.match("instructors/|assets/rubrics/", name)
    } == set()
    other = {
        name for name in names[1] if (theirs / name).read_bytes() != (ours / name).read_bytes()
    }
    assert other == PAGES_OF_ITS_OWN
    assert {f"{place}.md" for place in case_places()} <= names[1]


def case_places() -> Iterator[str]:
    for lab, pitfall in CASES:
        yield f"modules/{lab.folder.name}/case-{lab.case_number(pitfall):02d}"


@pytest.mark.slow
def test_no_cause_stands_outside_its_own_page(texts: dict[str, str]) -> None:
    """Neither its title nor its later hints: only behind the first hint of the case's page."""
    leaks = []
    for lab, pitfall in CASES:
        number = lab.case_number(pitfall)
        own = re.compile(rf"(docs/pages|site)/modules/{lab.folder.name}/(case-{number:02d}|print)")
        for words in (pitfall.title, *pitfall.hints[1:]):
            hint_text = " ".join(words.split()).casefold()
            leaks += [
                f"{lab.name}, case {number}: {name} says {words!r}"
                for name, text in texts.items()
                if hint_text in text and not own.match(name)
            ]
    assert leaks == []


def test_no_name_tells_a_cause(release: Path) -> None:
    names = [path.relative_to(release).as_posix() for path in of_release(release)]
    for lab, pitfall in CASES:
        named = re.compile(rf"(^|/|-){re.escape(pitfall.id)}(-broken|-fixed)?[./]")
        assert [name for name in names if lab.folder.name in name and named.search(name)] == []


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_what_is_read_openly_is_the_labs_facts(release: Path, lab: Lab) -> None:
    """But for its settings; and of recorded runs only first tries."""
    facts = tomllib.loads((release / "labs" / lab.folder.name / "lab.toml").read_text())
    assert set(facts) - {"format_version"} <= READABLE_TABLES
    samples = release / "sample-data" / lab.folder.name
    assert not list(samples.glob("*-fixed"))
    ids = [pitfall.id for pitfall in lab.file.pitfalls]
    for path in samples.glob("case-*/*/*.json"):
        document = json.loads(path.read_text())
        for key in ("pitfall", "command"):
            assert words_found(ids, str(document.get(key))) == [], path


@pytest.mark.nightly(
    "takes a release's site; by day its prepared pages are the students' own, of whose site the same is shown"
)
@pytest.mark.slow
def test_no_page_and_no_search_of_its_site_tells_a_cause(release_with_site: Path) -> None:
    """By day its prepared pages are the students' own, of whose site the same is shown."""
    for surface in SURFACES:
        # Plans for a class aren't in it.
        if surface.of == "student" and surface.read is not plan_for_a_class:
            assert tells(surface, release_with_site / "site") == []


@pytest.mark.parametrize("name", sorted(published_labs(ROOT)))
def test_questions_are_asked_and_lie_nowhere_open(release: Path, name: str) -> None:
    lab = load_lab(release, name)
    assert not (lab.folder / "questions.md").exists()
    assert read_questions(lab) == read_questions(load_lab(ROOT, name))


def test_no_answer_is_in_it(texts: dict[str, str]) -> None:
    """Not a sentence of solutions, keys, teaching notes, marking, or of any page for instructors."""
    answers = {
        sentence: path
        for path in (
            *(ROOT / "solutions").glob("*.py"),
            *(ROOT / "docs/instructors").rglob("*.md"),
            *(ROOT / "labs").glob("*/rubric.toml"),
        )
        for sentence in sentences(path.read_text(encoding="utf-8"))
        # What programs and pages for both have in common is no answer.
        if not sentence.startswith(("from ", "import ", "./lab", "licence", "text:", "code:"))
    }
    assert len(answers) > 500
    known = Sentences(answers)
    found = {name: known.found_in(text) for name, text in texts.items()}
    assert {name: sentences for name, sentences in found.items() if sentences} == {}


@pytest.mark.parametrize("edition", EDITIONS)
def test_nothing_of_the_instructors_is_in_it(request: pytest.FixtureRequest, edition: str) -> None:
    release = request.getfixturevalue(edition)
    names = {path.relative_to(release).as_posix() for path in of_release(release)}
    assert not [name for name in names if "instructors" in name or "rubric" in name]
    # Facts are of fixed runs, too, and their names tell causes.
    assert not [name for name in names if {"facts", "facts.py", "facts.json"} & {*Path(name).parts}]
    top = {name.split("/")[0] for name in names}
    assert top <= {
        "CITATION.cff", "LICENSE", "LICENSE-docs", "README.md", "docs", "lab", "labs", "machines", "mkdocs.yml",
        "release.json", "requirements-cluster.txt", "requirements-dev.txt", "requirements-docs.txt",
        "requirements.txt",
        "sample-data", "scripts", "site", "src", "tests",
    }  # fmt: skip
    # Of the tests only what a page shows: an output of a tool.
    assert all(name.startswith("tests/data/parse/") for name in names if name[:6] == "tests/")
    package = {name.split("/")[2] for name in names if name.startswith("src/")}
    assert not package & {"grading", "site", "release"}


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_the_lab_is_the_same(release: Path, lab: Lab) -> None:
    again = read_lab(release / "labs" / lab.folder.name)
    assert again.file == lab.file
    assert again.trials.keys() == lab.trials.keys()
    for pitfall in lab.file.pitfalls:
        name = lab.set_name(f"{pitfall.id}-broken")
        recorded = release / "sample-data" / lab.folder.name / name / "results.json"
        assert recorded.is_file()


# Its commands


@pytest.mark.slow
@pytest.mark.kernel
def test_a_case_from_prediction_to_report(release: Path) -> None:
    ran = lab_of(release, "run", "mathis", "--case", "5", "--seed", "4711", "--duration", "10")
    assert ran.returncode == 0, ran.stderr
    (run,) = (release / "runs/mathis").glob("case-05-*")
    assert not words_found(["mtu"], ran.stdout + ran.stderr)
    outputs = {}
    for hint in ("1", "2", "3"):
        # The last hint tells the cause, so a guess comes first.
        guess = ("--diagnosis", "the path is narrower somewhere") if hint == "3" else ()
        done = lab_of(release, "check", str(run), "--hint", hint, *guess)
        assert done.returncode == 1, done.stderr
        outputs[hint] = done.stdout
    assert not words_found(["mtu"], outputs["1"] + outputs["2"])
    assert words_found(["mtu"], outputs["3"])
    sample = "sample-data/01-mathis/case-05-broken/trial-09-seed1"
    own = ("--set", "mtu_bytes=4352", "--duration", "10")
    for words, code in (
        (("run", "mathis", "--case", "5", "--seed", "4711", *own), 0),
        (("show", str(run), "ss"), 0),
        (("diff", str(run), sample), 1),
        (("plot", str(run), "--over-time", "--text"), 0),
        (("plot", "sample-data/01-mathis/step-1-first-try"), 0),
        (("check", sample), 1),
        (("report", "runs/mathis", "--author", "A student"), 0),
        (("progress",), 0),
        (("doctor",), 0),
        (("list", "--json"), 0),
    ):
        done = lab_of(release, *words)
        assert done.returncode == code, (words, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
    (fixed,) = set((release / "runs/mathis").glob("case-05-*")) - {run}
    done = lab_of(release, "check", str(fixed))
    assert "nothing is off any more" in done.stdout
    assert "1 of 13" in lab_of(release, "progress", "mathis").stdout


@pytest.mark.slow
@pytest.mark.kernel
def test_a_live_lab(release: Path) -> None:
    try:
        up = lab_of(release, "up", "calibrate")
        assert up.returncode == 0, up.stderr
        asked = lab_of(release, "enter", "romeo", "echo", "I am here")
        assert asked.stdout.splitlines()[-1] == "I am here", asked.stderr
    finally:
        lab_of(release, "down")


@pytest.mark.nightly(
    "takes three builds; by day its prepared pages are the students' own, which mkdocs builds"
)
@pytest.mark.slow
def test_its_site_is_made_again(release_with_site: Path, tmp_path: Path) -> None:
    """Two builds. By day its pages are the students' own, and ./lab docs builds those."""
    release = release_with_site
    done = lab_of(release, "docs", "--build", "--out", str(tmp_path / "site"))
    assert done.returncode == 0, done.stderr
    for page in ("index.html", "modules/01-mathis/case-05/index.html", "start/machine/index.html"):
        text = (tmp_path / "site" / page).read_text()
        assert text == (release / "site" / page).read_text()
        assert "instructors/" not in text
    packed = lab_of(release, "docs", "--offline", "--out", str(tmp_path / "site.zip"))
    assert packed.returncode == 0, packed.stderr
    assert "measuretwice/index.html" in zipfile.ZipFile(tmp_path / "site.zip").namelist()


def test_it_checks_a_packed_hand_in(release: Path, tmp_path: Path) -> None:
    run = next((release / "sample-data/05-queues").glob("*/trial-*"))
    with zipfile.ZipFile(tmp_path / "mine.zip", "w") as packed:
        for path in run.rglob("*"):
            packed.write(path, path.relative_to(run.parent))
    done = lab_of(release, "check", str(tmp_path / "mine.zip"))
    assert done.returncode in (0, 1), done.stderr
    assert f"{tmp_path / 'mine.zip'}:{run.name}" in done.stdout


def test_what_its_readme_says_can_be_typed(release: Path) -> None:
    readme = (release / "README.md").read_text()
    known = lab_of(release, "--help").stdout
    for command in re.findall(r"^\./lab (\w+)", readme, re.M):
        assert re.search(rf"^  {command} ", known, re.M), command
    for link in re.findall(r"\]\(([^)#]+)\)", readme):
        assert (release / link).exists(), link


@pytest.mark.parametrize(
    "words",
    [
        ("grade", "x", "--lab", "mathis"),
        ("deal", "class.csv", "--help"),
        ("record", "mathis", "--verify"),
        ("release", "x", "--students"),
        ("docs", "--instructor"),
        ("list", "--causes"),
    ],
)
def test_what_is_for_instructors_says_so(release: Path, words: tuple[str, ...]) -> None:
    done = lab_of(release, *words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "is in the instructors' checkout" in done.stderr
    assert (
        words[0] == "list"
        or words[0] not in re.findall(r"^  (\w+) ", lab_of(release, "--help").stdout, re.M)
        or words[0] == "docs"
    )


def test_a_wrong_id_tells_no_other(release: Path) -> None:
    done = lab_of(release, "run", "mathis", "--pitfall", "nosuch", "--stage", "broken")
    assert done.returncode == 2
    assert not words_found([p.id for lab in LABS for p in lab.file.pitfalls], done.stderr)


# What goes wrong


@pytest.mark.parametrize("damage", ["", "# a\nnot base64!\n", "# a\nAAAA\n", "\x00\xff"])
def test_a_damaged_seal_is_one_line(tmp_path: Path, damage: str) -> None:
    folder = Path(shutil.copytree(ROOT / "labs/00-calibrate", tmp_path / "labs/00-calibrate"))
    (folder / SEALED).write_text(damage, encoding="latin-1")
    with pytest.raises(UserError, match=r"labs/00-calibrate/cases.sealed: is damaged") as caught:
        read_lab(folder)
    assert len(str(caught.value).splitlines()) == 1


def test_a_seal_cut_short_is_no_seal(tmp_path: Path) -> None:
    whole = seal("[[pitfalls]]\n" * 1000)
    (tmp_path / "x").write_text(whole)
    assert unseal(tmp_path / "x") == "[[pitfalls]]\n" * 1000
    (tmp_path / "x").write_text(whole[: len(whole) - 9] + "\n")
    with pytest.raises(UserError):
        unseal(tmp_path / "x")
    # A bomb unpacks to no more than a file may be.
    (tmp_path / "x").write_text(seal("0" * 2**25))
    with pytest.raises(UserError):
        unseal(tmp_path / "x")


def test_facts_are_split_by_table() -> None:
    text = '#: schema\n# a\nv = 1\n\n[lab]\nt = """\n[[pitfalls]]\n# kept\n"""\n\n# b\n[[pitfalls]]\nid = 1\n[pitfalls.x]\ny = 1\n[trials]\nz = 1\n'
    open_text, other = split_spoilers(text)
    assert "# b" not in open_text
    assert "# a" not in open_text
    assert tomllib.loads(open_text + other) == tomllib.loads(text)
    assert "pitfalls" not in tomllib.loads(open_text)
    assert tomllib.loads(open_text)["lab"]["t"] == "[[pitfalls]]\n# kept\n"


def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "file").write_text("mine")
    for name in ("mine", "dangling", "file"):
        done = call_lab("release", tmp_path / name, "--students")
        assert done.returncode == 2
        assert "is there already" in done.stderr
    done = call_lab("release", tmp_path / "file/below", "--students")
    assert done.returncode in (1, 2)
    assert len(done.stderr.splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dangling", "file", "mine"]
    assert call_lab("release", tmp_path / "x").returncode == 2


@pytest.mark.slow
def test_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    begun = begin_lab("release", tmp_path / "x", "--students")
    until(lambda: list(tmp_path.glob(".x.*.part/labs/*")))
    begun.send_signal(signal.SIGINT)
    _, complained = begun.communicate(timeout=60)
    assert begun.returncode == 130, complained
    assert len(complained.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_packed(tmp_path: Path) -> None:
    kit = tmp_path / "kit"
    done = lab_of(ROOT, "release", str(kit), "--students", "--archive", "zip")
    assert done.returncode == 0, done.stderr
    assert f"{kit}.zip: the same, packed" in done.stdout
    assert archive(kit, "tar.gz") == kit.with_name("kit.tar.gz")
    whole = sorted(path.relative_to(kit).as_posix() for path in kit.rglob("*") if path.is_file())
    with zipfile.ZipFile(f"{kit}.zip") as packed:
        names = [entry for entry in packed.infolist() if not entry.is_dir()]
        assert sorted(entry.filename.removeprefix("kit/") for entry in names) == whole
        # Who unpacks it can start it.
        modes = {entry.filename: entry.external_attr >> 16 for entry in names}
        assert modes["kit/lab"] & 0o100
    with tarfile.open(f"{kit}.tar.gz") as packed_tar:
        files = [entry for entry in packed_tar if entry.isreg()]
        assert sorted(entry.name.removeprefix("kit/") for entry in files) == whole
        assert packed_tar.getmember("kit/lab").mode & 0o100


def test_no_module_needs_what_is_left_out(release: Path) -> None:
    """Each module of its package can be loaded, and what functions load later is there too."""
    package = release / "src/measuretwice"
    names = sorted(
        ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__")
        for path in package.rglob("*.py")
        if path.name != "__main__.py"
    )
    assert "measuretwice.cli.start" in names
    program = f"import importlib\nfor name in {names}: importlib.import_module(name)"
    python = release / ".venv/bin/python"
    done = run_program(python, "-P", "-c", program, PYTHONPATH=str(release / "src"))
    assert done.returncode == 0, done.stderr.splitlines()[-1]
