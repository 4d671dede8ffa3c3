"""The built pages: what they hold, what they leave out, and that every link leads somewhere."""

from __future__ import annotations

import ast
import html
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from measuretwice import docs_reference
from measuretwice.cli import cli
from measuretwice.docs_words import LabWords
from measuretwice.hints import GENERAL_HINTS
from measuretwice.lab import Lab, find_labs

ROOT = Path(__file__).parents[2]
LABS = {name: Lab(folder) for name, folder in find_labs(ROOT).items()}


def pages_of(site: Path) -> list[str]:
    """Every page of a built site, by its path."""
    return sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))


def texts(site: Path) -> dict[str, str]:
    return {page: (site / page).read_text(encoding="utf-8") for page in pages_of(site)}


def test_no_placeholder_is_left(student: Path, instructor: Path) -> None:
    for site in (student, instructor):
        for page, text in texts(site).items():
            shown = re.sub(r"<(script|style|pre).*?</\1>", "", text, flags=re.DOTALL)
            assert not re.search(r"\{\{|\{%|%\}|[\x02\x03]", shown), page
            # A list of attributes that stands in the text was written where none can be.
            assert "{ ." not in shown, page


def test_links_and_anchors(student: Path, instructor: Path) -> None:
    """mkdocs checks what Markdown says; this, what browsers get."""
    for site in (student, instructor):
        ids = {page: set(re.findall(r'\bid="([^"]+)"', text)) for page, text in texts(site).items()}
        for page, text in texts(site).items():
            if page == "404.html":
                continue
            for link in re.findall(r'(?:href|src)="([^"]+)"', text):
                path, _, anchor = html.unescape(link).partition("#")
                if re.match(r"[a-z]+:", link):
                    continue
                target = (site / page).parent / path if path else site / page
                target = target / "index.html" if target.is_dir() else target
                assert target.is_file(), f"{page}: {link}"
                name = target.resolve().relative_to(site.resolve()).as_posix()
                if anchor and name in ids and not anchor.startswith("__"):
                    assert anchor in ids[name], f"{page}: {link}"


def test_every_page_that_the_checker_names_exists(student: Path) -> None:
    for lab in LABS.values():
        for pitfall in lab.file.pitfalls:
            assert (student / f"modules/{lab.folder.name}/{pitfall.id}/index.html").is_file()
    checks = (student / "reference/checks/index.html").read_text(encoding="utf-8")
    for name in {*GENERAL_HINTS, *docs_reference.LOOKS_AT}:
        assert f'id="{name}"' in checks, name


def test_every_finding_is_described() -> None:
    """The ids of findings, read from the code that raises them."""
    raised = set()
    for name in ("checks.py", "checks_flows.py", "checks_queue.py", "check_set.py"):
        tree = ast.parse((ROOT / "src/measuretwice" / name).read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                first = node.args[0] if node.args else None
                if node.func.id == "Finding" and isinstance(first, ast.Constant):
                    raised.add(first.value)
    assert raised == set(docs_reference.LOOKS_AT)


def test_pitfalls_keep_their_order(student: Path) -> None:
    """Predict, run, see, hints, diagnosis, mend, run again; nothing is told before it is asked."""
    wanted = "predict run what-you-see hints diagnosis mend-it run-again".split()
    for lab in LABS.values():
        for pitfall in lab.file.pitfalls:
            path = student / f"modules/{lab.folder.name}/{pitfall.id}/index.html"
            text = path.read_text(encoding="utf-8")
            places = [text.find(f'<h2 id="{name}"') for name in wanted]
            assert -1 not in places, pitfall.id
            assert places == sorted(places), pitfall.id
            if (ROOT / f"docs/modules/{lab.folder.name}/{pitfall.id}.md").is_file():
                told = [
                    text.find(f'<h2 id="{name}"') for name in ("what-the-authors-saw", "key-points")
                ]
                assert max(places) < told[0] < told[1], pitfall.id


def test_pitfalls_can_be_run_on_nodes_of_ones_own() -> None:
    """A tab a node tells its script what differs from the script's own defaults."""
    words = LabWords(ROOT, LABS["mathis"])
    text = words.terminals("mtu", "broken")
    title, whole, *nodes = re.split(r'^=== "(.*)"$', text, flags=re.MULTILINE)[1:]
    assert title == "one command"
    assert "./lab run mathis --pitfall mtu --stage broken\n" in whole
    assert nodes[::2] == ["router", "juliet", "romeo"]
    router, _, romeo = nodes[1::2]
    assert "export LOSS_RATIO=0.006217314741\n" in router
    assert "MTU_BYTES" not in router + romeo
    assert romeo.index("romeo.sh prepare") < romeo.index("romeo.sh measure")
    assert words.terminals("mtu", "fixed").count("export MTU_BYTES=4352\n") == 3
    # A small number is typed as a person would, not as Python prints it.
    assert "LOSS_RATIO=0.000005\n" in words.terminals("receiver-drops", "broken")


def secrets() -> list[str]:
    """Sentences of the solutions that stand nowhere else in the checkout's public texts."""
    public = " ".join(
        " ".join(path.read_text(encoding="utf-8").split())
        for path in [*ROOT.glob("labs/*/*"), *(ROOT / "docs").rglob("*.md")]
        if path.is_file() and "key" not in path.parts
    )
    found = []
    for path in sorted((ROOT / "solutions").glob("[0-9]*.py")):
        words = docs_reference.notebook(path.read_text(encoding="utf-8"))
        for line in words.splitlines():
            line = " ".join(line.strip("#-* `").split())
            if len(line) >= 30 and line not in public:
                found.append(line)
    assert len(found) > 50
    return found


def plain(text: str) -> str:
    """What a reader, or someone who searches, sees of a file: without tags and escapes."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", text)).replace("\\n", " ").split())


def test_students_get_nothing_of_the_solutions(student: Path) -> None:
    for path in student.rglob("*"):
        if path.suffix in (".html", ".json", ".js", ".xml", ".txt") and "vendor" not in path.parts:
            text = plain(path.read_text(encoding="utf-8"))
            for secret in secrets():
                assert plain(secret) not in text, f"{path.relative_to(student)}: {secret}"
    assert not (student / "instructors/key").exists()


def test_instructors_get_the_answer_keys(instructor: Path) -> None:
    for path in (ROOT / "solutions").glob("[0-9]*.py"):
        page = instructor / "instructors/key" / path.stem / "index.html"
        assert page.is_file()
    index = (instructor / "search/search_index.json").read_text(encoding="utf-8")
    assert "instructors/key/" in index


def test_the_two_navigations_agree() -> None:
    """mkdocs can't add to a list that it inherits, so the instructors' repeats the students'."""

    def lines(name: str) -> list[str]:
        text = (ROOT / name).read_text(encoding="utf-8")
        nav = text[text.index("\nnav:") :].split("\ntheme:")[0]
        kept = (line for line in nav.splitlines() if "instructors/key/" not in line)
        return [line for line in kept if line and not line.startswith("#")]

    assert lines("mkdocs.yml") == lines("mkdocs.instructor.yml")


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
    program = (
        "import sys; from pathlib import Path; from measuretwice import docs\n"
        "from measuretwice.errors import UserError\n"
        "root = Path(sys.argv[1])\n"
        "try: docs.prepare(root, root / 'out')\n"
        "except UserError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        env={"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert says in done.stdout, done.stdout + done.stderr


def test_the_offline_zip_is_the_same_again(
    offline: Path, tmp_path: Path, lab_docs: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    names = zipfile.ZipFile(offline).namelist()
    assert "measuretwice/index.html" in names
    assert "measuretwice/search/search_index.js" in names
    again = tmp_path / "again.zip"
    assert lab_docs("--offline", "--out", str(again)).returncode == 0
    with zipfile.ZipFile(offline) as one, zipfile.ZipFile(again) as other:
        # The site map has the day of the build in it.
        for name in names:
            if "sitemap" not in name:
                assert one.read(name) == other.read(name), name


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
        *(ROOT / "src/measuretwice/templates/site").iterdir(),
    ]
    for path in sources:
        text = path.read_text(encoding="utf-8")
        for language, body in re.findall(r"^ *```([^\n]*)\n(.*?)^ *```", text, re.M | re.DOTALL):
            found.append((path.name, language.split(" ")[0], body.splitlines()))
    assert found
    return found


def test_no_output_and_no_script_is_typed_into_a_page() -> None:
    """Blocks are commands, code from the labs' own files, words that are filled in, or diagrams."""
    for name, language, lines in fences():
        assert language in ("sh", "bash", "diagram", "text"), f"{name}: a block of {language!r}"
        if language == "diagram":
            continue
        for line in filter(str.strip, lines):
            if language == "sh":
                assert re.match(
                    r" *(\./lab|make|git|sudo|mkdir|bash (labs|scripts)/|\{\{|#) ?", line
                ), f"{name}: {line}"
            elif language == "bash":
                assert line.strip().startswith('--8<-- "'), f"{name}: {line}"
            else:
                assert re.fullmatch(r" *\{\{.*\}\} *", line), f"{name}: {line}"


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
                    text = path.read_text(encoding="utf-8")
                    assert re.search(rf"^{phase or 'none'}\(\) ", text, re.M), f"{name}: {line}"
    assert len(named) > 3


def test_commands_on_pages_exist() -> None:
    for name, language, lines in fences():
        for line in lines if language == "sh" else ():
            words = line.split("#")[0].split()
            if words[:1] != ["./lab"] or len(words) == 1:
                continue
            command = cli.commands.get(words[1])
            assert command is not None, f"{name}: {line}"
            known = {option for one in command.params for option in one.opts}
            used = {word.split("=")[0] for word in words if word.startswith("--")}
            assert used <= known, f"{name}: {line}"
