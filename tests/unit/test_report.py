"""The report: from a recorded run (cut short) to HTML, Markdown and JSON; hostile folders."""

import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from command_line import call_lab
from html_page import check_page

from measuretwice.base.errors import UserError
from measuretwice.book.lab_book import read_notes
from measuretwice.lab import load_lab, read_questions, trial_params
from measuretwice.lab.spoilers import cases_asked_about
from measuretwice.report.markdown import fence, inline_html, markdown_text
from measuretwice.report.report import book_table, make_report, render_html, render_markdown
from measuretwice.report.tables import NONE, summary_table
from measuretwice.runs.remeasure import read_run

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "tests/data/report/trial-07-seed1-b402df08"
MADE = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
HOSTILE = "<script>alert(1)</script>|`x`\"'&\x1b[31m\u202e![i](http://evil.example/p.png)"


def copy_run(to: Path, change: Callable[[dict[str, Any]], None] | None = None) -> Path:
    """A copy of the recorded run whose plan was made (not only written) differently."""
    shutil.copytree(RECORDED, to)
    if change:
        plan = json.loads((to / "plan.json").read_text())
        change(plan)
        decided = {k: v for k, v in plan.items() if k not in ("digest", "kernel_seed")}
        text = json.dumps(decided, sort_keys=True)
        plan["digest"] = hashlib.sha256(text.encode()).hexdigest()[:8]
        (to / "plan.json").write_text(json.dumps(plan))
        provenance = json.loads((to / "provenance.json").read_text())
        provenance["plan_digest"] = plan["digest"]
        (to / "provenance.json").write_text(json.dumps(provenance))
    return to


def stage(plan: dict[str, Any]) -> None:
    plan["pitfall"], plan["stage"] = "mtu", "broken"
    plan["params"]["mss_bytes"] = 4312


def texts(*folders: Path, **options: Any) -> tuple[str, str]:
    runs = [read_run(ROOT, folder, folder.name) for folder in folders]
    report = make_report(runs, **{"title": None, "author": None, "made": MADE, **options})
    return render_html(report), render_markdown(report)


def report(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return call_lab("report", *arguments, **environment)


def check_tables(markdown: str) -> None:
    """As many cells in each row as in its table's first."""
    cells = 0
    for line in markdown.splitlines():
        if not line.startswith("|"):
            cells = 0
            continue
        found = len(re.findall(r"(?<!\\)\|", line))
        assert cells in (0, found), line
        cells = found


def test_what_the_report_says_of_a_recorded_run() -> None:
    html, markdown = texts(RECORDED, author="A. Student")
    page = check_page(html)
    check_tables(markdown)
    row = next(line for line in markdown.splitlines() if line.startswith("| 7 |"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    # 961 of 165,669 dropped; 1.96/(2 sqrt(961)) of 1.246 is 0.04.
    assert cells == [
        "7", "duration_s=60", "1", "6", "1460", "0.00573", "0.0058", "0.00544 to 0.00618",
        "32.05", "60 s", "25.72", "1.25 ± 0.04", "none",
    ]  # fmt: skip
    whole = " ".join(page.texts)
    for text in (whole, markdown):
        assert "A. Student" in text
        assert "retrans:0/969" in text
        assert "25 packets transmitted, 25 received" in text
    # The Markdown is to be written in: what nobody reads there stands in the HTML alone.
    digest = hashlib.sha256((RECORDED / "raw/romeo/ping.txt").read_bytes()).hexdigest()
    again = "./lab run mathis --trial 7 --seed 1 --set duration"
    for only_html in ("CHANGED: 240 in the trial", again, digest):
        assert only_html in whole
        assert only_html not in markdown
    assert all(link.startswith("#") for link in page.links)
    assert '<main id="main"' in html
    assert "prefers-color-scheme: dark" in html
    assert "@media print" in html


def test_runs_are_sorted_and_findings_shown(tmp_path: Path) -> None:
    broken = copy_run(tmp_path / "broken", stage)
    fixed = copy_run(tmp_path / "a", lambda plan: plan.update(pitfall="mtu", stage="fixed"))
    early = copy_run(tmp_path / "z", lambda plan: plan.update(trial=6))
    off = copy_run(tmp_path / "off", lambda plan: plan["params"].update(loss_ratio=0.01))
    html, markdown = texts(fixed, broken, early, RECORDED, off)
    rows = [
        line.split(" | ")[:2] for line in markdown.splitlines() if re.match(r"\| [67] \|", line)
    ]
    assert [first for first, _ in rows] == ["| 6", "| 7", "| 7", "| 7", "| 7"]
    # What was changed tells two runs of one trial apart.
    assert [second for _, second in rows[1:3]] == [
        "duration_s=60",
        "loss_ratio=0.01, duration_s=60",
    ]
    assert [second[:6] for _, second in rows[3:]] == ["mtu, b", "mtu, f"]
    text = " ".join(check_page(html).texts)
    assert "segments of 1460 B (ss)" in text
    assert "An MTU of 1500 B leaves no more than that." in text
    assert "OFF" in text
    assert "1 of 5 counts lies outside its interval; by chance alone about 0.1 would" in markdown


def test_everything_from_a_run_is_escaped(tmp_path: Path) -> None:
    def write_hostile(plan: dict[str, Any]) -> None:
        # Control characters, names that the lab doesn't have and the like are refused (tests/security/).
        words = "".join(filter(str.isprintable, HOSTILE))
        plan.update(where=words, kernel=words)
        plan["tools"] = {words: words}

    run = copy_run(tmp_path / "run", write_hostile)
    provenance = json.loads((run / "provenance.json").read_text())
    provenance |= {"command": HOSTILE, "started": [HOSTILE], "machine": HOSTILE, "ended": {"a": 1}}
    (run / "provenance.json").write_text(json.dumps(provenance))
    (run / f"raw/romeo/{HOSTILE.replace('/', '_')}").touch()
    ping = run / "raw/romeo/ping.txt"
    # Parsers refuse control characters themselves.
    text = ping.read_text() + f"```\n{HOSTILE}\n````\n"
    ping.write_text(text.replace("\x1b", ""))
    html, markdown = texts(run, title=HOSTILE, author=HOSTILE)
    page = check_page(html)
    assert "<script>alert(1)</script>|`x`" in " ".join(page.texts)
    check_tables(markdown)
    for text in (html, markdown):
        assert "\x1b" not in text
        assert "\u202e" not in text
    block = markdown.index("`````text\n")
    inside = markdown[block : markdown.index("\n`````\n", block)]
    assert "```\n<script>" in inside
    outside = markdown.replace(inside, "")
    assert "<script>" not in outside
    assert not re.search(r"(?<!\\)!\[", outside)
    assert not re.search(r"(?<!\\)`x", outside)


def test_markdown_escapes() -> None:
    assert markdown_text("a|b `c`\n<d> &") == r"a\|b \`c\` &lt;d&gt; &amp;"
    assert fence("a ``` b").startswith("````text\n")


def test_figures_stand_inline_without_their_prolog() -> None:
    run = read_run(ROOT, RECORDED, "run")
    made = make_report([run], title="T", author=None, made=MADE)
    svg = (
        '<?xml version="1.0"?>\n<!DOCTYPE svg PUBLIC "x" "http://www.w3.org/x">\n<svg><path/></svg>'
    )
    html = render_html(made, [("<Figure>", svg)])
    assert "<svg><path/></svg></div>" in html
    assert "DOCTYPE svg" not in html
    assert "&lt;Figure&gt;" in html
    assert "&lt;Figure&gt;" in render_markdown(made, [("<Figure>", svg)])


def test_a_labs_name_means_its_runs(tmp_path: Path) -> None:
    for name in ("labs", "scripts"):
        (tmp_path / name).symlink_to(ROOT / name)
    done = report("mathis", MEASURETWICE_ROOT=str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.strip() == "lab: mathis: nothing is measured yet; ./lab run mathis does it"
    shutil.copytree(RECORDED, tmp_path / "runs/mathis" / RECORDED.name)
    done = report("mathis", MEASURETWICE_ROOT=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs/mathis/report.html").is_file()


def test_result_json_is_not_trusted(tmp_path: Path) -> None:
    run = copy_run(tmp_path / "run")
    for text in ("[]", '{"measured": {"goodput_bps": 1e12}, "ratio": "x"}', "{"):
        (run / "result.json").write_text(text)
        assert texts(run) == texts(copy_run(tmp_path / f"run{len(text)}" / "run"))


def write(name: str, content: str) -> Callable[[Path], None]:
    return lambda run: (run / name).write_text(content) and None


def change_plan(**values: Any) -> Callable[[Path], None]:
    """Write into plan.json as somebody would who doesn't know of its digest."""

    def apply(run: Path) -> None:
        plan = json.loads((run / "plan.json").read_text())
        (run / "plan.json").write_text(json.dumps({**plan, **values}))

    return apply


def link_ping(run: Path) -> None:
    (run / "raw/romeo/ping.txt").unlink()
    (run / "raw/romeo/ping.txt").symlink_to("/etc/hostname")


BROKEN: list[tuple[Callable[[Path], object], str]] = [
    (lambda run: (run / "DONE").unlink(), "never finished"),
    (lambda run: shutil.rmtree(run / "raw"), "No such file"),
    (lambda run: (run / "raw/romeo/iperf3.json").unlink(), "iperf3.json: No such file"),
    (write("plan.json", "{"), "plan.json: can't be read"),
    (write("plan.json", "[" * 100_000), "plan.json: can't be read"),
    (write("plan.json", "[]"), "plan.json: can't be read"),
    (write("plan.json", '{"lab": 3}'), "plan.json: names no lab"),
    (write("raw/romeo/nstat.after.json", '{"kernel": []}'), "nstat.after.json"),
    (write("raw/router/qdisc.after.json", "[3]"), "qdisc.after.json"),
    (write("raw/router/softnet_stat.after.txt", "zz yy"), "expected the columns of"),
    (write("raw/romeo/iperf3.json", "x"), "iperf3.json"),
    (write("provenance.json", '{"plan_digest": "0"}'), "are of two runs"),
    (link_ping, "ping.txt: neither a file nor a folder"),
    (change_plan(seed=2), "was changed after the run"),
    (change_plan(seed="2"), "seed: input should be a valid integer"),
    (change_plan(params={}), "was changed after the run"),
    (change_plan(params=3), "plan.json: params: input should be an object"),
    (change_plan(stage=["x"]), "stage: "),
]


@pytest.mark.parametrize(("damage", "says"), BROKEN)
def test_a_broken_folder_is_one_line(
    damage: Callable[[Path], object], says: str, tmp_path: Path
) -> None:
    run = copy_run(tmp_path / "run")
    damage(run)
    with pytest.raises(UserError, match=re.escape(says)) as caught:
        read_run(ROOT, run, "run")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda plan: plan.update(trial=999),
        lambda plan: plan.update(params={}),
        lambda plan: plan["params"].update(rtt_ms="six"),
        lambda plan: plan["params"].update(loss_ratio=float("inf")),
    ],
)
def test_a_plan_that_no_lab_makes(change: Callable[[dict[str, Any]], None], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="run it again"):
        read_run(ROOT, copy_run(tmp_path / "run", change), "run")


def test_provenance_may_be_missing(tmp_path: Path) -> None:
    run = copy_run(tmp_path / "run")
    (run / "provenance.json").unlink()
    assert all("provenance.json is missing" in text for text in texts(run))


# The command


def test_command_writes_both_files_and_nothing_of_the_machine(tmp_path: Path) -> None:
    copy_run(tmp_path / "runs/a")
    copy_run(tmp_path / "runs/b", stage)
    (copy_run(tmp_path / "runs/c") / "DONE").unlink()
    done = report(tmp_path / "runs", SOURCE_DATE_EPOCH="1700000000")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr.count("\n") == 1
    html = (tmp_path / "runs/report.html").read_text()
    markdown = (tmp_path / "runs/report.md").read_text()
    page = check_page(html)
    check_tables(markdown)
    for text in (" ".join(page.texts), markdown):
        assert "2023-11-14 22:13 UTC" in text
        assert "c: this run was never finished; run it again" in text
        assert str(tmp_path) not in text
    again = report(tmp_path / "runs", SOURCE_DATE_EPOCH="1700000000")
    assert again.returncode == 0
    assert (tmp_path / "runs/report.html").read_text() == html
    assert (tmp_path / "runs/report.md").read_text() == markdown


def test_sample_data_is_left_as_it_came(tmp_path: Path) -> None:
    for name in ("labs", "scripts"):
        (tmp_path / name).symlink_to(ROOT / name)
    run = copy_run(tmp_path / "sample-data/01-mathis/some-set/a")
    before = set((tmp_path / "sample-data").rglob("*"))
    for folder in (run, run.parent):
        assert call_lab("report", folder, MEASURETWICE_ROOT=str(tmp_path)).returncode == 0
        assert (tmp_path / "runs/report.html").is_file()
        shutil.rmtree(tmp_path / "runs")
    assert set((tmp_path / "sample-data").rglob("*")) == before


def test_json_is_one_document(tmp_path: Path) -> None:
    run = copy_run(tmp_path / "run")
    out = tmp_path / "new/mine.html"
    done = report(run, "--json", "--out", out, "--title", "T", "--author", "A")
    assert done.returncode == 0, done.stderr
    (document,) = json.loads(done.stdout)
    assert document["trial"] == 7
    assert document["raw_sha256"]["raw/romeo/ping.txt"]
    assert document["loss_interval"]["low"] < document["measured"]["loss_ratio"]
    assert done.stderr == ""
    assert "<h1>T</h1>" in out.read_text()
    assert out.with_suffix(".md").is_file()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere"], "there is no such file or folder"),
        (["unfinished"], "never finished"),
        (["run", "--out", "x.txt"], "ends in .html"),
        (["run", "--out", "run"], "is a folder"),
        (["run", "--out", "/proc/x.html"], "can't be written"),
        ([], "RUN"),
    ],
)
def test_wrong_usage(arguments: list[str], says: str, tmp_path: Path) -> None:
    copy_run(tmp_path / "run")
    (copy_run(tmp_path / "unfinished") / "DONE").unlink()
    given = [
        str(tmp_path / word) if word in ("run", "unfinished", "nowhere") else word
        for word in arguments
    ]
    done = report(*given)
    assert done.returncode == 2
    assert done.stdout == ""
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_questions_are_shown_not_their_markdown() -> None:
    for lab in ("mathis", "buffers", "scale", "variants", "queues", "calibrate"):
        for question in read_questions(load_lab(ROOT, lab)):
            shown = inline_html(question)
            assert "*" not in re.sub("<code>.*?</code>", "", shown), shown
            assert question.count("**") == 2 * shown.count("<strong>")
    assert inline_html("**Two.** 2 * 3 < `a**b**`, *so*") == (
        "<strong>Two.</strong> 2 * 3 &lt; <code>a**b**</code>, <em>so</em>"
    )
    assert "<script" not in inline_html(HOSTILE)


def test_questions_and_answers_stay(tmp_path: Path) -> None:
    """What a student wrote into the Markdown is in the next report, in both files."""
    shutil.copytree(ROOT / "labs", tmp_path / "root/labs")
    (tmp_path / "root/labs/01-mathis/questions.md").write_text(
        "# Questions\n\n1. Why is `p` < 1?\n   Say more.\n\n2. What | else?\n"
    )
    run, env = copy_run(tmp_path / "run"), {"MEASURETWICE_ROOT": str(tmp_path / "root")}
    assert report(run, **env).returncode == 0
    notes = run / "report.md"
    text = notes.read_text()
    assert "**Question 1.** Why is `p` < 1? Say more.\n\nYour answer:\n" in text
    assert "Why is <code>p</code> &lt; 1? Say more." in (run / "report.html").read_text()
    assert (run / "report.html").read_text().count('<div class="answer"></div>') == 2
    second = text.index("Your answer:", text.index("Question 2")) + len("Your answer:\n")
    notes.write_text(text[:second] + "\nBecause of <b> & *all*.\n\nReally.\n" + text[second:])
    assert report(run, **env).returncode == 0
    assert "Because of <b> & *all*.\n\nReally.\n" in notes.read_text()
    html = (run / "report.html").read_text()
    assert "Because of &lt;b&gt; &amp; *all*.\n\nReally.</div>" in html
    notes_before = notes.read_text()
    assert report(run, **env).returncode == 0
    assert re.sub("Made .*", "", notes.read_text()) == re.sub("Made .*", "", notes_before)
    # A question that is asked no longer: nothing is lost.
    done = report(run)
    assert done.returncode == 2
    assert "move it away" in done.stderr
    assert notes.read_text().count("Because of") == 1


def test_labs_with_and_without_a_model_in_one_report(tmp_path: Path) -> None:
    def calibrate(plan: dict[str, Any]) -> None:
        params = trial_params(load_lab(ROOT, "calibrate"), 1)
        plan.update(lab="calibrate", trial=1, params=params)

    other = copy_run(tmp_path / "other", calibrate)
    html, markdown = texts(RECORDED, other)
    check_page(html)
    check_tables(markdown)
    headings = [line for line in markdown.splitlines() if line.startswith("| trial |")]
    assert ["model, Mbit/s" in line for line in headings] == [False, True]
    rows = [line for line in markdown.splitlines() if re.match(r"\| \d+ \|", line)]
    assert [row.split("|")[1].strip() for row in rows[:2]] == ["1", "7"]


def test_questions_on_cases_wait_until_these_are_fixed() -> None:
    """They tell what was off. Without a lab book nobody solves cases, and to mark all are there."""
    run = read_run(ROOT, RECORDED, "a run")
    questions = read_questions(run.lab)
    on_case_5 = [text for text in questions if 5 in cases_asked_about(text)]
    on_none = [text for text in questions if not cases_asked_about(text)]
    assert on_case_5
    assert on_none

    def asked(book: str | None, **options: Any) -> tuple[set[str], list[str]]:
        books = {} if book is None else {"mathis": book}
        made = make_report([run], title=None, author=None, made=MADE, books=books, **options)
        return {question.text for _, asked in made.questions for question in asked}, made.waiting

    begun = "# Lab book\n\n- Seed: 7\n\n## Case 5: far too slow\n\n- Run: x: 1\n"
    fixed = "".join(
        f"\n## Case {n}: x\n\n- Outcome: nothing is off any more\n"
        for n in range(1, len(run.lab.file.pitfalls) + 1)
    )
    waits, remarks = asked(begun)
    assert waits == set(on_none)
    assert "fixed, and the report is made again" in remarks[0]
    assert re.search(r"\b5\b", remarks[0])
    for book, options in ((None, {}), (begun, {"for_marking": True}), (f"- Seed: 7\n{fixed}", {})):
        assert asked(book, **options) == (set(questions), [])
    waits, _ = asked(begun, answers={on_case_5[0]: "my answer"})
    assert waits == {*on_none, on_case_5[0]}


def test_the_first_try_of_a_book_is_in_the_report() -> None:
    """With its prediction, and what came out then and after each case; also where no case is begun."""
    run = read_run(ROOT, RECORDED, "a run")
    tried = "## First try\n\n- Prediction: 40 of 60\n- Run: first try: 0 of 60\n- Run: after case 1: 7 of 60\n"
    case = "\n## Case 5: far too slow\n\n- Prediction: 66 Mbit/s\n- Run: x: 61 Mbit/s\n"
    for book, tables in ((tried, 1), (tried + case, 2), (case, 1), ("- Seed: 7\n", 0)):
        made = make_report([run], title=None, author=None, made=MADE, books={"mathis": book})
        html, markdown = render_html(made), render_markdown(made)
        check_page(html)
        check_tables(markdown)
        assert [len(book.tables) for book in made.books] == [tables][: bool(tables)]
        assert ("| after case 1 | 7 of 60 |" in markdown) == ("First try" in book)
        assert (">40 of 60<" in html) == ("First try" in book)
        assert ("66 Mbit/s" in markdown) == ("Case 5" in book)
        assert "| known |" not in markdown
    book = f"{case}- Known: ss.txt: mss:536\n"
    made = make_report([run], title=None, author=None, made=MADE, books={"mathis": book})
    assert "known" in made.books[0].tables[0].headings
    assert "ss.txt: mss:536" in render_markdown(made)


def test_a_value_that_tells_a_case_waits_until_its_cause_is_known() -> None:
    """By its name in the table of all values; to mark all are there."""
    run = read_run(ROOT, ROOT / "sample-data/05-queues/case-05-broken/trial-21-seed1", "a run")
    begun = "# Lab book\n\n- Seed: 7\n\n## Case 5: x\n\n- Run: x: 1\n"
    found = f"{begun}- Diagnosis: the last row is a sum\n"
    for book, marking, is_there in (
        (None, False, False), (begun, False, False), (found, False, True), (begun, True, True),
    ):  # fmt: skip
        books = {} if book is None else {"queues": book}
        made = make_report([run], title=None, author=None, made=MADE, books=books, for_marking=marking)  # fmt: skip
        names = {row[0] for row in made.sections[0].all_values.rows}
        assert ("rate_rows_spanning" in names) is is_there, (book, marking)
        assert ("host_1_seconds_deviation_bps" in names) is is_there, (book, marking)
        assert "goodput_bps" in names


OWN_COLUMNS = {
    "mathis": ("01-mathis/case-05-broken", {"p set", "95 % interval of p", "model, Mbit/s", "ratio"}),
    "buffers": ("02-buffers/case-03-broken", {"Jain's index of the two goodputs", "packets lost anywhere other than in g1's buffer"}),
    "scale": ("03-scale/case-01-broken", {"drops for each halving", "C by halvings"}),
    "variants": ("04-variants/case-01-broken", {"round-trip time (ms)", "cwnd over rate (ms)"}),
    "queues": ("05-queues/case-02-broken", {"ping under load, mean (ms)", "packets in the queue, mean", "drops"}),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("lab", OWN_COLUMNS)
def test_a_summary_has_the_labs_own_quantities_and_no_empty_column(lab: str) -> None:
    recorded, wanted = OWN_COLUMNS[lab]
    folders = sorted((ROOT / "sample-data" / recorded).glob("trial-*"))
    runs = [read_run(ROOT, folder, folder.name) for folder in folders]
    table = summary_table(runs)
    assert wanted <= set(table.headings)
    assert all(set(column) != {NONE} for column in zip(*table.rows, strict=True))
    assert ("p set" in table.headings) == (lab == "mathis")
    # What stands in a cell is what was measured.
    if lab == "queues":
        place = table.headings.index("ping under load, mean (ms)")
        for run, row in zip(runs, table.rows, strict=True):
            assert float(row[place]) == pytest.approx(run.result.values["busy_ping_mean_ms"], 1e-3)
    assert not re.search("pitfall|stage|\\barm", " ".join([table.caption, *table.headings]))


@pytest.mark.slow
def test_which_quantity_answers_a_case_is_no_column_before_it_is_solved() -> None:
    """Queues 2 is about looking at the wrong one: delay has a column once it is solved, and where nobody plays cases."""
    folders = sorted((ROOT / "sample-data/05-queues/case-02-broken").glob("trial-*"))
    runs = [read_run(ROOT, folder, folder.name) for folder in folders]
    begun = "# Lab book\n\n- Seed: 7\n\n## Case 2: x\n\n- Run: x: 1\n"
    delays = {"ping under load, mean (ms)", "flows' own RTT (ms)"}
    for book, marking, is_there in (
        (begun, False, False),
        (f"{begun}- Diagnosis: look at the delay\n", False, False),
        (f"{begun}- Outcome: nothing is off any more\n", False, True),
        (begun, True, True),
        (None, False, True),
    ):
        books = {} if book is None else {"queues": book}
        made = make_report(runs, title=None, author=None, made=MADE, books=books, for_marking=marking)  # fmt: skip
        [table] = made.summaries
        assert delays & set(table.headings) == (delays if is_there else set()), (book, marking)
        assert "drops" in table.headings
        assert not re.search(r"\bms\b|delay", " ".join(table.headings)) or is_there


@pytest.mark.slow
def test_runs_of_two_labs_have_a_summary_each() -> None:
    queues = next((ROOT / "sample-data/05-queues/case-03-broken").glob("trial-*"))
    html, markdown = texts(RECORDED, queues)
    check_page(html)
    check_tables(markdown)
    titles = [load_lab(ROOT, name).file.lab.title for name in ("mathis", "queues")]
    assert all(f"{title}: one line a run" in markdown for title in titles)
    assert '<a href="#run-1">7</a>' in html
    assert '<a href="#run-2">1</a>' in html


def test_a_cases_runs_are_said_once_each() -> None:
    queues = load_lab(ROOT, "queues")

    def cell(*answers: str, trials: int = 1) -> str:
        runs = "".join(
            f"- Run: case-07-trial-{n % trials + 1:02d}-seed{n}-x: {text}\n"
            for n, text in enumerate(answers)
        )
        table = book_table(queues, read_notes(f"## Case 7: x\n\n{runs}"))
        assert table is not None
        return str(table.rows[0][table.headings.index("measured")])

    assert cell("95.76 Mbit/s", "95.75 Mbit/s") == "95.76 Mbit/s; 95.75 Mbit/s"
    assert cell(*["0.5082 (1 = all)"] * 16) == "0.5082 (1 = all) (16 runs)"
    shares = [f"{0.5 + n / 100:.3g} (1 = all)" for n in range(8)]
    assert cell(*shares, *shares) == "0.5 to 0.57 (1 = all) (16 runs)"
    assert cell("1 ms", "2 ms", "3 ms", "4 ms", "not measured") == "1 to 4 ms (5 runs)"
    assert cell("1 ms", "2 B", "3 ms", "4 ms", "5 ms") == "1 ms; 2 B; 3 ms; 4 ms; 5 ms"
    # Two trials aren't one range, and of many trials nobody reads each.
    of_two = cell(*["1 ms", "20 ms", "2 ms", "22 ms", "3 ms", "20 ms"] * 2, trials=2)
    assert (
        of_two
        == "trial 1: 1 ms (2 runs); 2 ms (2 runs); 3 ms (2 runs); trial 2: 20 ms (4 runs); 22 ms (2 runs)"
    )
    assert cell("1 ms", "2 ms", "3 ms", "4 ms", "5 ms", trials=5) == "1 to 5 ms (5 runs)"
