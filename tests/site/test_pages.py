"""The built pages: what they hold, what they leave out, and that every link leads somewhere."""

from __future__ import annotations

import base64
import gzip
import html
import io
import json
import os
import re
import zipfile
from pathlib import Path

import click
import pytest
from command_line import start_lab
from editions import Pages
from page_kinds import pages_of
from same_sentences import Sentences

from measuretwice.base.errors import UserError
from measuretwice.checks import KINDS
from measuretwice.cli.main import cli
from measuretwice.lab import Lab, published_labs
from measuretwice.lab.schema.cases import Pitfall
from measuretwice.site.build import prepare
from measuretwice.site.macros import LabContext
from measuretwice.site.navigation import KEY
from measuretwice.testbeds import cloudlab_profile, fabric_notebook

ROOT = Path(__file__).parents[2]
LABS = published_labs(ROOT)


def texts(site: Path) -> dict[str, str]:
    return {page: (site / page).read_text(encoding="utf-8") for page in pages_of(site)}


TAKES_THE_SITE = "takes the instructors' site; by day the students' is looked at, and the other's pages as they are prepared"
# By day the students' site; at night the instructors', too.
EDITIONS = ["student", pytest.param("instructor", marks=pytest.mark.nightly(TAKES_THE_SITE))]


@pytest.mark.parametrize("edition", EDITIONS)
def test_no_placeholder_is_left(request: pytest.FixtureRequest, edition: str) -> None:
    for page, text in texts(request.getfixturevalue(edition)).items():
        shown = re.sub(r"<(script|style|pre|code)\b.*?</\1>", "", text, flags=re.DOTALL)
        assert not re.search(r"\{\{|\{%|%\}|[\x02\x03]", shown), page
        # A list of attributes that stands in the text was written where none can be.
        assert "{ ." not in shown, page


@pytest.mark.parametrize("edition", EDITIONS)
def test_links_and_anchors(request: pytest.FixtureRequest, edition: str) -> None:
    """mkdocs checks what Markdown says; this, what browsers get."""
    site: Path = request.getfixturevalue(edition)
    ids = {page: set(re.findall(r'\bid="([^"]+)"', text)) for page, text in texts(site).items()}
    found: dict[Path, str | None] = {}
    for page, text in texts(site).items():
        if page == "404.html":
            continue
        folder = (site / page).parent
        for link in set(re.findall(r'(?:href|src)="([^"]+)"', text)):
            path, _, anchor = html.unescape(link).partition("#")
            if re.match(r"[a-z]+:", link):
                continue
            # Without `..`, by the text alone: pages have some hundred links each, most of them the same.
            target = Path(os.path.normpath(folder / path)) if path else site / page
            if target not in found:
                file = target / "index.html" if target.is_dir() else target
                found[target] = file.relative_to(site).as_posix() if file.is_file() else None
            name = found[target]
            assert name is not None, f"{page}: {link}"
            if anchor and name in ids and not anchor.startswith("__"):
                assert anchor in ids[name], f"{page}: {link}"


def case_of(lab: Lab, pitfall: Pitfall) -> str:
    return f"case-{lab.case_number(pitfall):02d}"


def test_every_page_that_the_checker_names_exists(student: Path) -> None:
    for lab in LABS.values():
        for pitfall in lab.file.pitfalls:
            assert (
                student / f"modules/{lab.folder.name}/{case_of(lab, pitfall)}/index.html"
            ).is_file()
    checks = (student / "reference/checks/index.html").read_text(encoding="utf-8")
    for name in KINDS:
        assert f'id="{name}"' in checks, name


def test_pitfalls_keep_their_order(student: Path) -> None:
    """Predict, run, see, hints, diagnosis, fix, run again; nothing is told before it is asked."""
    wanted = "predict run what-you-see hints diagnosis fix-it run-again".split()
    for lab in LABS.values():
        for pitfall in lab.file.pitfalls:
            path = student / f"modules/{lab.folder.name}/{case_of(lab, pitfall)}/index.html"
            text = path.read_text(encoding="utf-8")
            # A case of judgement is solved by an answer, and needs no second run.
            headings = wanted[:-1] if pitfall.judgement else wanted
            places = [text.find(f'<h2 id="{name}"') for name in headings]
            assert -1 not in places, pitfall.id
            assert places == sorted(places), pitfall.id
            if (ROOT / f"docs/modules/{lab.folder.name}/{case_of(lab, pitfall)}.md").is_file():
                answers = [
                    text.find(f'<h2 id="{name}"') for name in ("what-the-authors-saw", "key-points")
                ]
                assert max(places) < answers[0] < answers[1], pitfall.id


def test_pitfalls_can_be_run_in_every_way() -> None:
    """The command, and folded a tab each; on nodes of one's own a script is told what differs from its own defaults."""
    words = LabContext(ROOT, LABS["mathis"])
    text = words.terminals("mtu", "broken")
    first, *ways = re.split(r'^    === "(.*)"$', text, flags=re.MULTILINE)
    assert ways[::2] == ["live terminals", "other machines"]
    live, testbed = ways[1::2]
    assert "./lab run mathis --case 5\n" in first
    assert "Other ways to run it" in first
    assert "./lab up mathis --case 5\n" in live
    typed = [
        "router.sh prepare",
        "romeo.sh validate",
        "snapshot.sh before .",
        "juliet.sh serve",
        "romeo.sh measure",
        "check",
    ]
    assert [live.index(words) for words in typed] == sorted(live.index(words) for words in typed)
    assert "sudo ./lab run mathis --case 5 --on host\n" in testbed
    assert "--case 5 --on nodes.toml\n" in testbed
    names, nodes = (re.split(r'title="([^"]*)"', testbed)[n::2] for n in (1, 2))
    assert names == ["router", "juliet", "romeo"]
    router, _, romeo = nodes
    # One of the settings is what a student looks for: a shell reads them, a page doesn't say them.
    assert "export" not in testbed
    [packed] = re.findall(r"base64 -d <<<([^)]*)", router)
    assert "export LOSS_RATIO=0.006217314741" in base64.b64decode(packed).decode()
    assert "MTU_BYTES" not in base64.b64decode(packed).decode()
    assert romeo.index("romeo.sh prepare") < romeo.index("romeo.sh measure")
    # A small number is typed as a person would, not as Python prints it.
    [packed] = re.findall(r"base64 -d <<<([^)]*)", words.terminals("receiver-drops", "broken"))[:1]
    assert "LOSS_RATIO=0.000005" in base64.b64decode(packed).decode()
    assert words.terminals("mtu", "fixed").count("./lab") == 1


def secrets() -> list[str]:
    """What stands in the solutions and teaching notes, and nowhere in the checkout's public texts."""
    public = " ".join(
        " ".join(path.read_text(encoding="utf-8").split())
        for path in [*ROOT.glob("labs/*/*"), *(ROOT / "docs").rglob("*.md")]
        if path.is_file() and "key" not in path.parts
    )
    found = []
    for path in [
        *(ROOT / "solutions").glob("[0-9]*.py"),
        *(ROOT / "docs/instructors/key").iterdir(),
    ]:
        # What stands between the words that are filled in.
        own = 0
        for piece in re.split(r"\{[{%].*?[%}]\}|\n", path.read_text(encoding="utf-8")):
            piece = " ".join(piece.strip("#-*|` ").split())
            if len(piece) >= 30 and piece not in public:
                found.append(piece)
                own += 1
        assert own > 15, path.name
    return found


def plain(text: str) -> str:
    """What a reader, or someone who searches, sees of a file: without tags and escapes."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", text)).replace("\\n", " ").split())


# What pages load to run trials: no text, and nothing of the kit's.
PROGRAMS = {
    f"assets/machine/{name}"
    for name in (
        "state.bin.zst", "v86.wasm.gz", "python.tar.gz", "python/pyodide.asm.wasm.gz",
        "python/python_stdlib.zip",
    )
}  # fmt: skip


def texts_of(archive: bytes) -> str:
    """All that stands of the labs in the packed kit; its code is public, and solutions share lines with it."""
    with zipfile.ZipFile(io.BytesIO(archive)) as packed:
        names = [name for name in packed.namelist() if name.startswith("labs/")]
        assert names
        return "\n".join(packed.read(name).decode("utf-8") for name in names)


def test_students_get_nothing_of_the_solutions(
    student: Path, offline: Path, tmp_path: Path
) -> None:
    """Not in pages, not in the index of the search, not in the site map."""
    with zipfile.ZipFile(offline) as archive:
        archive.extractall(tmp_path)
    hidden = Sentences({plain(secret) for secret in secrets()})
    for site in (student, tmp_path / "measuretwice"):
        for path in site.rglob("*"):
            if not path.is_file() or "vendor" in path.parts or path.suffix in (".woff2", ".png"):
                continue
            where = path.relative_to(site)
            if where.as_posix() in PROGRAMS:
                continue
            data = path.read_bytes()
            if where.name == "kit.zip":
                text_of_file = plain(texts_of(data))
            else:
                text = gzip.decompress(data) if path.suffix == ".gz" else data
                text_of_file = plain(text.decode("utf-8"))
            assert "instructors/key" not in text_of_file, where
            assert hidden.found_in(text_of_file) == [], where
        assert not (site / "instructors/key").exists()
        assert (site / "sitemap.xml").is_file()


def test_the_secrets_are_real(instructors_pages: Pages) -> None:
    """What is kept from students does stand in the instructors' pages, so the test above can fail."""
    names = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").glob(f"{KEY}/*.md")]
    key = " ".join(plain(instructors_pages.html(name.as_posix())) for name in sorted(names))
    shown = Sentences({plain(secret) for secret in secrets()}).found_in(key)
    assert len(shown) > 100


@pytest.mark.nightly(
    "by day tests/solutions runs the notebooks, and looks at the pages that are made of them"
)
def test_instructors_get_the_answer_keys(instructor: Path) -> None:
    """By day tests/solutions runs the notebooks, and looks at the pages that are made of them."""
    for path in (ROOT / "solutions").glob("[0-9]*.py"):
        page = instructor / "instructors/key" / path.stem / "index.html"
        text = page.read_text(encoding="utf-8")
        # What the cells printed, not their code alone.
        assert ".svg" in text
        assert "<td>" in text


def test_every_mistake_has_teaching_notes(instructors_pages: Pages) -> None:
    for lab in LABS.values():
        if lab.file.pitfalls:
            text = instructors_pages.html(f"{KEY}/{lab.folder.name}-notes.md")
            for pitfall in lab.file.pitfalls:
                start = text.index(f'<h2 id="{pitfall.id}"')
                part = text[start:].split("<h2 ")[1]
                for wanted in ("What students get wrong.", "Ask.", "Full marks."):
                    assert f"<strong>{wanted}</strong>" in part, f"{pitfall.id}: {wanted}"


def test_rubrics_can_be_fetched(student: Path, offline: Path) -> None:
    for lab in LABS.values():
        if (lab.folder / "rubric.toml").is_file():
            name = f"assets/rubrics/{lab.folder.name}.csv"
            assert f'href="../../{name}"' in (student / "instructors/rubric/index.html").read_text()
            text = (student / name).read_text(encoding="utf-8")
            assert text.startswith("Rubric Name,Criteria Name,")
            with zipfile.ZipFile(offline) as archive:
                assert archive.read(f"measuretwice/{name}").decode() == text


def test_testbeds_files_can_be_fetched(student: Path, offline: Path) -> None:
    page = (student / "start/testbeds/index.html").read_text(encoding="utf-8")
    for lab in LABS.values():
        made = {"fabric.ipynb": fabric_notebook(lab), "cloudlab.py": cloudlab_profile(lab)}
        for kind, text in made.items():
            name = f"assets/testbeds/{lab.name}-{kind}"
            assert f'href="../../{name}"' in page
            assert (student / name).read_text(encoding="utf-8") == text
            with zipfile.ZipFile(offline) as archive:
                assert archive.read(f"measuretwice/{name}").decode() == text


def test_map_shows_every_lab_and_mistake(student: Path) -> None:
    """The diagram and the table say the same: each box, and each arrow."""
    text = (student / "instructors/map/index.html").read_text(encoding="utf-8")
    drawn = re.findall(r'<div class="diagram">(.*?)</div>', text, re.DOTALL)
    wanted = [{(name, need) for name, lab in LABS.items() for need in lab.file.lab.needs}]
    wanted += [
        {(pitfall.id, need) for pitfall in lab.file.pitfalls for need in pitfall.needs}
        for lab in LABS.values()
        if lab.file.pitfalls
    ]
    assert len(drawn) == len(wanted)
    for diagram, arrows in zip(drawn, wanted, strict=True):
        found = re.findall(r'data-from="([^"]+)" data-to="([^"]+)"', diagram)
        assert {(to, of) for of, to in found} == arrows
    for lab in LABS.values():
        for pitfall in lab.file.pitfalls:
            assert pitfall.teaches, pitfall.id
            assert f'/{case_of(lab, pitfall)}/">' in text
            assert pitfall.id in text


@pytest.mark.nightly(
    "takes the instructors' site; by day its keys' texts are prepared and looked at"
)
def test_the_index_of_the_search_has_the_keys(instructor: Path) -> None:
    index = (instructor / "search/search_index.json").read_text(encoding="utf-8")
    assert "instructors/key/" in index


def test_search_finds(student: Path) -> None:
    index = json.loads((student / "search/search_index.json").read_text(encoding="utf-8"))
    entries = [plain(entry["title"] + " " + entry["text"]) for entry in index["docs"]]
    for words in (("netem", "limit"), ("MSS", "1448")):
        assert any(all(word in entry for word in words) for entry in entries), words


@pytest.mark.parametrize(
    ("page", "says"),
    [
        ("# A\n\n{{ nosuchword }}\n", "docs/index.md, line 3: 'nosuchword' is undefined"),
        ("# A\n\n{{ lab('mathis').run('nosuchset') }}\n", "line 3:"),
        ("# A\n{% if %}\n", "docs/index.md, line 2:"),
        ("# A\n{{ lab('nosuchlab') }}\n", "line 2: there is no lab 'nosuchlab'"),
        ("# A\n{{ lab('mathis').trial(7).rtt }}\n", "line 2:"),
    ],
)
def test_what_is_wrong_in_a_page_is_named(tmp_path: Path, page: str, says: str) -> None:
    for name in ("labs", "sample-data", "mkdocs.yml", "solutions"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text(page)
    with pytest.raises(UserError) as refused:
        prepare(tmp_path, tmp_path / "out")
    assert says in str(refused.value)


@pytest.mark.nightly(
    "takes a build from nothing; by day a release's pages, made for themselves, are the students' own to the byte"
)
def test_the_offline_zip_is_the_same_again(offline: Path, tmp_path: Path) -> None:
    names = zipfile.ZipFile(offline).namelist()
    assert "measuretwice/index.html" in names
    assert "measuretwice/search/search_index.js" in names
    again = tmp_path / "again.zip"
    # Made from nothing: what was kept of pages is the same as what is made anew.
    (ROOT / "build/docs.kept.json").unlink(missing_ok=True)
    assert start_lab("docs", "--offline", "--out", str(again)).returncode == 0
    with zipfile.ZipFile(offline) as zipped, zipfile.ZipFile(again) as other:
        # The site map has the day of the build in it.
        for name in names:
            if "sitemap" not in name:
                assert zipped.read(name) == other.read(name), name


def test_vendored_files_have_licences_and_stay_small() -> None:
    vendor = ROOT / "docs/assets/vendor"
    files = [path for path in vendor.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 4 * 2**20
    for package in vendor.iterdir():
        assert (package / "LICENSE").is_file(), package.name


def fences() -> list[tuple[str, str, list[str]]]:
    """Every fenced block of the pages' sources: where, its language, its lines."""
    found = []
    sources = [
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "src/measuretwice/site/templates").iterdir(),
    ]
    for path in sources:
        text = path.read_text(encoding="utf-8")
        for language, body in re.findall(r"^ *```([^\n]*)\n(.*?)^ *```", text, re.M | re.DOTALL):
            # ```sh, or ```{ .python title="..." }
            word = re.match(r"(?:\{ \.)?(\w*)", language)
            assert word is not None
            found.append((path.name, word[1], body.splitlines()))
    assert found
    return found


def test_no_output_and_no_script_is_typed_into_a_page() -> None:
    """Blocks are commands, code from the labs' own files, words that are filled in, or a page's source, where one is explained."""
    for name, language, lines in fences():
        if language == "markdown":
            continue
        assert language in ("sh", "bash", "python", "toml", "text"), (
            f"{name}: a block of {language!r}"
        )
        written = False
        for line in filter(str.strip, lines):
            # A file that the reader writes, between its command and the END.
            if written or line.endswith(" <<END"):
                assert written or re.match(r"cat >~/\S+ <<END", line), f"{name}: {line}"
                written = line != "END"
            elif language == "sh":
                assert re.match(
                    r" *(?:MEASURETWICE_\w+=\S+ )?(\./lab|make|git|sudo|mkdir|cp -r |for run in |awk |done$|openssl req |export DASK_CONFIG=|\.venv/bin/|bash (labs|scripts)/|tc qdisc |sysctl -w |\{\{|#) ?",
                    line,
                ), f"{name}: {line}"
            elif language in ("bash", "python", "toml"):
                assert line.strip().startswith('--8<-- "'), f"{name}: {line}"
            else:
                # A word, or a file of the checkout's as it stands.
                assert re.fullmatch(r' *(\{\{.*\}\}|--8<-- "[^"]+") *', line), f"{name}: {line}"


def test_scripts_on_pages_exist() -> None:
    """A page that names a node's script and a phase of it means one that is there."""
    named = set()
    for name, language, lines in fences():
        for line in lines if language == "sh" else ():
            for script, phase in re.findall(r"bash ((?:labs|scripts)/\S+)(?: (\w+))?", line):
                named.add(script)
                path = ROOT / script
                assert path.is_file(), f"{name}: {line}"
                if script.startswith("labs/"):
                    # "undo" is every node script's, by lib.sh
                    text = path.read_text(encoding="utf-8")
                    defined = re.findall(r"^(\w+)\(\) ", text, re.M)
                    assert phase in (*defined, "undo"), f"{name}: {line}"
                    assert "run_phase " in text, f"{name}: {line}"
    assert len(named) > 3


def test_commands_on_pages_exist() -> None:
    for name, language, lines in fences():
        for line in lines if language == "sh" else ():
            words = line.split("#")[0].split()
            if words[:1] != ["./lab"] or len(words) == 1:
                continue
            command = cli.get_command(click.Context(cli), words[1])
            if isinstance(command, click.Group) and len(words) > 2:
                command = command.get_command(click.Context(command), words[2])
            assert command is not None, f"{name}: {line}"
            known = {option for param in command.params for option in param.opts}
            used = {word.split("=")[0] for word in words if word.startswith("--")}
            assert used <= known, f"{name}: {line}"


def test_no_title_says_the_site_s_name_twice(student: Path) -> None:
    for page in student.rglob("index.html"):
        [title] = re.findall("<title>(.*?)</title>", page.read_text(encoding="utf-8"))[:1] or [""]
        assert title.count("Measure Twice") <= 1, page


def test_the_title_of_a_module_s_page_says_of_which_module_it_is(student: Path) -> None:
    """Five modules have a case 5, and each has its questions: a search engine shows a title alone."""
    titles = {}
    for page in (student / "modules").glob("*/*/index.html"):
        if page.parent.name != "print":
            [title] = re.findall("<title>(.*?)</title>", page.read_text(encoding="utf-8"))[:1]
            module = page.parents[1].name.partition("-")[2].capitalize()
            assert title.startswith(module), page
            titles[page] = title
    assert len(set(titles.values())) == len(titles) > 60
