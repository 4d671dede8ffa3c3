"""Trials that a page runs itself: from the button to the folder that is handed in, in each browser that there is.

By day one case from its prediction to the hand-in, whose runs ./lab grade makes again, to the byte; one run that is
cancelled; and what costs no run. What else only a browser shows, comes at night: the machine's bytes are those of
kernel/test_browser_machine.py, and what its panel asks of the kit is answered in in_page/test_api.py.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import browsers_machine
import pytest
from command_line import call_lab
from firefox import firefox_path, started_firefox
from kept_runs import files_of
from processes import command_lines, stat_of

from measuretwice.backends.browser import find_machine
from measuretwice.report.markdown import read_answers

PAGE = "modules/01-mathis/case-04/"
SEED = 4711
# One short run: some ten seconds of a quiet machine, and a few minutes of one that is busy.
LONGEST_S = 300

pytestmark = [
    pytest.mark.skipif(bool(browsers_machine.lacking()), reason=browsers_machine.lacking()),
    pytest.mark.slow,
]

# What a reader does: say a seed, press the button, and wait. Then all that the page has kept. Another seed
# goes first: the machine of the second run begins with what the first one's has compiled.
RUN = (
    """(async () => {
  const panel = document.querySelector(".here");
  const until = async (what, seconds) => {
    for (const end = performance.now() + 1000 * seconds; performance.now() < end; ) {
      const value = what();
      if (value) return value;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    throw new Error("not after " + seconds + " s: " + panel.querySelector(".here-says").textContent);
  };
  const seed = await until(() => panel.querySelector("input[type=number]"), 60);
  let says = "";
  for (const value of [OTHER, SEED]) {
    seed.value = value;
    panel.querySelector(".here-buttons button").click();
    says = await until(() => {
      const text = panel.querySelector(".here-says").textContent;
      return /^(Done|It didn't work)/.test(text) && !panel.querySelector(".here-buttons button").disabled && text;
    }, LONGEST);
  }
  const { kept_names, kept_value } = await import(new URL("../../../assets/machine/store.mjs", location.href));
  const runs = await Promise.all((await kept_names("mathis")).map(async (name) => [name, await kept_value(name)]));
  const text = (bytes) => { let all = ""; for (const byte of new Uint8Array(bytes)) all += String.fromCharCode(byte); return btoa(all); };
  return { says, runs: runs.map(([name, { tar }]) => [name, text(tar)]), table: panel.querySelector("table").innerText };
})()""".replace("OTHER", str(SEED + 1))
    .replace("SEED", str(SEED))
    .replace("LONGEST", str(LONGEST_S))
)
# By whose code a result was derived: a page has its labs' cases sealed.
OF_PLACE = {"provenance.json", "console.txt", "result.json"}


def in_chromium(browser: Any, address: str) -> dict[str, Any]:
    page = browser.new_page()
    page.set_default_timeout(1000 * LONGEST_S)
    page.goto(address)
    found = dict(page.evaluate(RUN))
    page.close()
    return found


def in_firefox(_: Any, address: str) -> dict[str, Any]:
    path = firefox_path()
    if path is None:
        pytest.skip("no Firefox here: apt-get install firefox-esr, or MEASURETWICE_SETUP=dev ./lab")
    with started_firefox(path) as firefox:
        firefox.open(address)
        return dict(firefox.evaluate(RUN, LONGEST_S))


@pytest.fixture(scope="module")
def in_node(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The same trial by the terminal's command."""
    out = tmp_path_factory.mktemp("node")
    done = call_lab(
        "run", "mathis", "--case", "4", "--seed", str(SEED), "--on", "browser", "--out", out
    )
    assert done.returncode == 0, done.stderr
    [run] = (path.parent for path in out.rglob("DONE"))
    return {
        path.relative_to(run).as_posix(): path.read_bytes()
        for path in run.rglob("*")
        if path.is_file()
    }


def result_of(files: dict[str, bytes]) -> dict[str, Any]:
    result = dict(json.loads(files["result.json"]))
    del result["derived_by"]
    return result


def test_the_machine_is_built_and_no_larger_than_said(student: Path) -> None:
    assert browsers_machine.ready() is not None
    loads = json.loads((student / "assets/machine/loads.json").read_text(encoding="utf-8"))
    machine = sum(file["bytes"] for file in loads["machine"]["files"])
    assert machine < 9e6
    assert sum(file["bytes"] for file in loads["python"]["files"] + loads["kit"]["files"]) < 9e6


@pytest.mark.nightly(
    "by day a page's runs are made again by ./lab grade, to the same bytes; kernel/test_browser_machine.py has the machine's"
)
@pytest.mark.parametrize("run_in", [in_chromium, in_firefox])
def test_a_page_makes_the_bytes_that_node_makes(
    request: pytest.FixtureRequest,
    address: str,
    in_node: dict[str, bytes],
    run_in: Callable[[Any, str], dict[str, Any]],
) -> None:
    browser = request.getfixturevalue("browser") if run_in is in_chromium else None
    found = run_in(browser, address + PAGE)
    assert found["says"] == "Done."
    assert str(SEED) in found["table"]
    stored = dict(found["runs"])
    [name] = [name for name in stored if f"seed{SEED}-" in name]
    files = files_of(stored[name])
    assert files.keys() == in_node.keys()
    assert [file for file in files if files[file] != in_node[file] and file not in OF_PLACE] == []
    assert result_of(files) == result_of(in_node)
    assert json.loads(files["plan.json"])["kernel"] == find_machine().name  # type: ignore[union-attr]


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    context = browser.new_context(accept_downloads=True)
    page = context.new_page()
    page.set_default_timeout(1000 * LONGEST_S)
    page.goto(address + PAGE)
    yield page
    context.close()


def case_page(page: Any, address: str, case: str) -> tuple[Any, Any]:
    """A case's page with all folds open: the panel of its first try, and that of one's own changes."""
    page.goto(f"{address}modules/{case}/")
    first = ready(page)
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    return first, page.locator(".here[data-here]").nth(1)


def test_a_page_says_how_long_many_runs_take_and_what_is_quicker(page: Any, address: str) -> None:
    first, fix = case_page(page, address, "02-buffers/case-06")
    many = fix.get_by_label("How many runs of each trial")

    def says(text: str) -> None:
        fix.locator(".here-says", has_text=text).wait_for()

    def names(command: str) -> None:
        fix.locator(f'.here-says code:text-is("{command}")').wait_for()

    says("These 2 runs take about 5 minutes.")
    assert not fix.locator(".here-says code").count()
    many.fill("30")
    says("These 60 runs take about 2.4 hours. That is long for a page.")
    names("./lab run buffers --case 6 --repeat 30")
    fix.get_by_label("Seed,").fill("77")
    fix.locator(".here-setting .here-name").fill("duration_s")
    fix.locator(".here-setting input:not(.here-name)").fill("60")
    names("./lab run buffers --case 6 --set duration_s=60 --seed 77 --repeat 30")
    for wrong in ("0", "1.5", "10001"):
        many.fill(wrong)
        says("These 2 runs take")
        fix.get_by_role("button", name="Run it here").click()
        says("The number of runs is a whole number from 1 to 10000.")
    # A first try takes it as well; a case that is shown has its own.
    assert first.get_by_label("How many runs of each trial").count() == 1
    first, fix = case_page(page, address, "01-mathis/case-05")
    fix.get_by_label("How many runs, with").fill("3")
    says("These 3 runs take")
    shown = page.locator('.here[data-here*="show"]').first
    # It stands in a tab that isn't chosen.
    shown.get_by_label("Seed,").wait_for(state="attached")
    assert not shown.get_by_label("How many runs").count()


# Ten runs of 20 s each, three minutes of a quiet machine; a test has ten.
A_SET_OF_RUNS_S = 590


@pytest.mark.nightly(
    "by day in_page/test_cases_solved.py solves such cases by recorded runs, after their first try"
)
def test_a_case_is_solved_by_how_many_runs_there_are(page: Any, address: str) -> None:
    """Cancelled in the middle, it goes on with the rest."""
    page.set_default_timeout(1000 * A_SET_OF_RUNS_S)
    _, fix = case_page(page, address, "01-mathis/case-13")
    press = fix.get_by_role("button", name="Run it here")

    def says(text: str | re.Pattern[str]) -> None:
        fix.locator(".here-says", has_text=text).wait_for()

    says("These 5 runs take about")
    press.click()
    says("or choose the number of runs")
    fix.get_by_label("How many runs of each trial").fill("2")
    says("These 10 runs take about")
    press.click()
    says(re.compile(r"Run 2 of 10: \d+ of about \d+ s in .*, about .* to go for all of them"))
    fix.get_by_role("button", name="Cancel").click()
    says("Cancelled.")
    press.click()
    says("Run 2 of 10: ")
    says("Done. Is the case solved?")
    runs = fix.locator("table").first.locator("thead th").all_inner_texts()
    assert runs[1:] == [f"run {n}" for n in range(1, 11)]
    seeds = fix.locator("table").first.locator("tr", has_text="seed").locator("td")
    assert len(set(seeds.all_inner_texts())) == 2
    fix.get_by_role("button", name="Is something off?").click()
    fix.get_by_text("Case 13 is solved").wait_for()
    assert not fix.locator(".here-finding").count()


@pytest.mark.nightly(
    "by day in_page/test_cases_solved.py: an answer by the recorded runs is in the book handed in"
)
def test_an_answer_without_a_run_is_handed_in(page: Any, address: str) -> None:
    page.goto(address + "modules/05-queues/case-02/")
    page.locator(".notebook[data-kind=diagnosis] textarea").fill("the sum can't differ here")
    page.locator(".notebook[data-kind=diagnosis] button").click()
    form = page.locator(".judgement form")
    place = page.locator(".judgement")
    number = json.loads(place.get_attribute("data-asked"))["recorded"]
    form.locator("input[value=c]").check()
    for value, says in (
        (f"{1.0:.4g}", "the recorded runs give another number"),
        (f"{number:.4g} ms", "the question asks for"),
        (f"{100 * number:.4g} %", "That is right, by the recorded runs"),
        (f"{number:.4g}", "That is right, by the recorded runs"),
    ):
        form.locator("input:not([type=radio])").fill(value)
        form.locator("button").click()
        form.locator("[role=status]").get_by_text(says).wait_for()
    page.goto(address + "modules/05-queues/questions/")
    save = page.get_by_role("button", name="Save my runs and answers")
    with page.expect_download() as download:
        save.click()
    with zipfile.ZipFile(download.value.path()) as archive:
        book = archive.read("queues/lab-book.md").decode()
    assert f"- Judgement: c, {number:.4g} (by the recorded runs)" in book
    assert "- Outcome: answered right by the recorded runs: " in book


@pytest.mark.nightly("by day in_page/test_api.py: a question is judged by the reader's own runs")
def test_a_question_is_judged_by_the_runs_of_this_browser(page: Any, address: str) -> None:
    page.goto(address + "modules/05-queues/case-05/")
    panel = ready(page)
    panel.get_by_role("button", name="Run it here").click()
    panel.locator('.here-says:text-is("Done.")').wait_for()
    page.locator(".notebook[data-kind=diagnosis] textarea").fill("the total is among the rows")
    page.locator(".notebook[data-kind=diagnosis] button").click()
    form = page.locator(".judgement form")
    form.locator("input[value=b]").check()
    for number, says in (("1", "your runs give another number"), (OWN, "Case 5 is solved")):
        value = page.evaluate(number) if number == OWN else number
        form.locator("input:not([type=radio])").fill(f"{float(value):.4g} Mbit/s")
        form.locator("button").click()
        form.locator("[role=status]").get_by_text(says).wait_for()
    assert page.locator("details.behind[data-behind=diagnosis]").get_attribute("open") is not None
    panel.get_by_role("button", name="Is something off?").click()
    panel.get_by_text("Case 5 is solved").wait_for()
    assert not panel.locator(".here-finding").count()


# The deviation that this browser's run of case 5 of the queues lab gives.
OWN = """(async () => {
  const { kept_names, kept_value } = await import(new URL("../../../assets/machine/store.mjs", location.href));
  const { unpack } = await import(new URL("../../../assets/machine/tar.mjs", location.href));
  const [name] = (await kept_names("queues")).filter((name) => name.includes("/case-05-"));
  const files = unpack(new Uint8Array((await kept_value(name)).tar));
  // It tells the case's mistake by its name, so it is packed.
  const packed = Uint8Array.from(atob(JSON.parse(new TextDecoder().decode(files["result.json"])).unlisted_params), (c) => c.charCodeAt(0));
  const { measured } = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
  return measured.find(([, value]) => value === "host_1_seconds_deviation_bps")[2] / 1e6;
})()"""


@pytest.mark.nightly(
    "a minute, and CI runs it: by day a page begins and cancels a run, in_page/test_api.py: a case up to its hand-in"
)
def test_a_case_from_prediction_to_fixed_run_and_hand_in(page: Any, tmp_path: Path) -> None:
    page.locator(".notebook input").first.fill("0.05 Mbit/s, by the model")
    page.locator(".notebook button").first.click()
    recorded = page.locator("details.behind[data-behind=prediction]")
    # Nobody sees another's result before their own.
    page.get_by_text("The recorded run stays folded until you write down").wait_for()
    assert recorded.get_attribute("open") is None
    first, fix = (page.locator(".here[data-here]").nth(n) for n in (0, 1))
    first.get_by_role("button", name="My run’s values").click()
    dealt = first.get_by_text("Your own run has ")
    dealt.wait_for()
    before = dealt.inner_text()
    first.get_by_role("button", name="Run it here").click()
    first.locator('.here-says:text-is("Done.")').wait_for()
    assert dealt.inner_text() == before
    assert "Goodput. You predicted: 0.05 Mbit/s, by the model." in first.inner_text()
    # Nor before they have looked at it themselves.
    assert recorded.get_attribute("open") is None
    first.get_by_role("button", name="Is something off?").click()
    first.get_by_role("button", name="Hint 1").click()
    first.get_by_text("hint 1:").wait_for()
    assert "timestamps (" not in first.inner_text()
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    fix.get_by_role("button", name="Run it here").click()
    assert "Change something first" in fix.inner_text()
    fix.locator(".here-setting .here-name").fill("timestamps")
    fix.locator(".here-setting input:not(.here-name)").fill("perhaps")
    fix.get_by_role("button", name="Run it here").click()
    fix.locator(".here-says", has_text="expected one of").wait_for()
    fix.locator(".here-setting input:not(.here-name)").fill("off")
    fix.get_by_role("button", name="Run it here").click()
    fix.locator('.here-says:has-text("Done. Is the case solved?")').wait_for()
    fix.get_by_role("button", name="Is something off?").click()
    fix.get_by_text("nothing is off any more").wait_for()
    page.locator(".notebook textarea").fill("an option takes 12 B of each segment")
    page.locator(".notebook button").nth(1).click()
    with page.expect_download():
        fix.get_by_role("button", name="Save my runs").click()
    fix.get_by_text("Saved as mathis-runs.zip: 2 runs, your lab book and report.html.").wait_for()
    fix.get_by_text("answer them on the module's page Questions").wait_for()
    page.goto(page.url.replace("case-04", "questions"))
    answer = page.get_by_label("Your answer to question 1", exact=True)
    # Kept as it is typed: a phone may end a tab at any time.
    answer.fill("A ratio counts, not a difference.")
    page.reload()
    assert answer.input_value() == "A ratio counts, not a difference."
    with page.expect_download() as download:
        page.get_by_role("button", name="Save my runs and answers").click()
    page.get_by_text("Your answers to 1 question are in the report.").wait_for()
    saved = tmp_path / "class" / "Ada Lovelace" / "mathis-runs.zip"
    download.value.save_as(saved)
    folder = tmp_path / "unpacked"
    with zipfile.ZipFile(saved) as archive:
        archive.extractall(folder)
    book = (folder / "mathis/lab-book.md").read_text(encoding="utf-8")
    assert "- Prediction: 0.05 Mbit/s, by the model\n" in book
    assert "- Outcome: nothing is off any more" in book
    assert "- Diagnosis: an option takes 12 B of each segment\n" in book
    # One of the checker's, and the page's own, which were all opened.
    assert re.findall("^- Hint: (.)", book, re.MULTILINE) == ["1", "2", "3"]
    report = (folder / "mathis/report.md").read_text(encoding="utf-8")
    assert list(read_answers(report).values()) == ["A ratio counts, not a difference."]
    checked = call_lab("check", *sorted((folder / "mathis").glob("case-04-*")))
    assert "for 32 bits" in checked.stdout
    graded = call_lab(
        "grade", tmp_path / "class", "--again", "1", "--costly", "--out", tmp_path / "grades"
    )
    output = graded.stdout + graded.stderr
    assert "Run again, of 1 run: 1 the same bytes, 0 not" in output, output


@pytest.mark.nightly(
    "by day the case that is handed in keeps runs and answers from page to page; in_page/test_api.py: what is kept"
)
def test_what_a_page_keeps_is_there_after_it_was_loaded_again(page: Any) -> None:
    panel = page.locator(".here[data-here]").first
    panel.get_by_role("button", name="Run it here").click()
    panel.locator('.here-says:text-is("Done.")').wait_for()
    # What a run needs has been fetched: the page is there without a connection, and makes another.
    page.context.set_offline(True)
    page.reload()
    panel.get_by_role("button", name="Run it here").click()
    panel.locator(".here-says", has_text="Measured already").wait_for()
    ready(page).get_by_label("Seed,").fill(str(SEED + 2))
    panel.get_by_role("button", name="Run it here").click()
    panel.locator('.here-says:text-is("Done.")').wait_for()
    page.context.set_offline(False)
    # A claim changes no packet: nothing is measured for it.
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    fix = page.locator(".here[data-here]").nth(1)
    fix.locator(".here-setting .here-name").fill("constant_claimed")
    fix.locator(".here-setting input:not(.here-name)").fill("1.31")
    fix.get_by_role("button", name="Run it here").click()
    fix.locator(".here-says", has_text="Nothing was measured again").wait_for()
    page.on("dialog", lambda dialog: dialog.accept())
    panel.get_by_role("button", name="Forget my runs").click()
    panel.get_by_text("Forgotten.").wait_for()
    page.reload()
    panel.locator(".here-says", has_text="A run takes about").wait_for()
    assert not panel.get_by_role("button", name="Show my earlier runs").count()


@pytest.mark.nightly(
    "by day what a cache never gives is fetched again; that there is no connection is said only here"
)
def test_without_a_connection_it_says_so_and_goes_on_later(browser: Any, address: str) -> None:
    # What a service worker fetches, no test can break.
    page = browser.new_page(service_workers="block")
    page.set_default_timeout(1000 * LONGEST_S)
    page.goto(address + PAGE)
    panel = page.locator(".here[data-here]").first
    press = panel.get_by_role("button", name="Run it here")
    page.context.route("**/kit.zip*", lambda route: route.abort())
    press.click()
    panel.locator(
        ".here-says", has_text="kit.zip can't be fetched. Is there a connection?"
    ).wait_for()
    page.context.unroute("**/kit.zip*")
    page.context.route("**/kit.mjs*", lambda route: route.abort())
    press.click()
    panel.locator(
        ".here-says", has_text="own scripts can't be fetched. Is there a connection?"
    ).wait_for()
    page.context.unroute("**/kit.mjs*")
    # What a full disk leaves of a file that was kept.
    page.evaluate("""(async () => {
      const cache = await caches.open("measure-twice-machine-files");
      const [state] = (await cache.keys()).filter((request) => request.url.includes("state.bin"));
      await cache.put(state, new Response(new Blob([new Uint8Array(1000)])));
    })()""")
    press.click()
    panel.locator(".here-says", has_text="s in the experiment").wait_for()
    panel.get_by_role("button", name="Cancel").click()
    panel.locator(".here-says", has_text="Cancelled.").wait_for()
    page.close()


def test_a_run_can_be_cancelled(page: Any) -> None:
    panel = page.locator(".here[data-here]").first
    panel.get_by_role("button", name="Run it here").click()
    panel.locator(".here-says", has_text="s in the experiment").wait_for()
    panel.get_by_role("button", name="Cancel").click()
    panel.locator(".here-says", has_text="Cancelled.").wait_for()
    assert panel.get_by_role("button", name="Run it here").is_enabled()
    panel.get_by_role("button", name="Run it here").click()
    panel.locator(".here-says", has_text="s in the experiment").wait_for()
    page.reload()
    broken_off = "The run that was going when you left this page ended with it"
    panel.locator(".here-says", has_text=broken_off).wait_for()
    page.reload()
    panel.locator(".here-says", has_text="A run takes about").wait_for()
    assert broken_off not in panel.inner_text()


@pytest.mark.nightly("rare; by day what is kept and never comes is fetched again")
def test_a_worker_that_says_nothing_is_begun_anew(page: Any) -> None:
    """Firefox has done so, once in a few hundred: what a worker had asked of its cache never came."""
    page.clock.install()
    page.add_init_script("""
      const Its = Worker;
      let silent = 1;
      window.Worker = function (url, options) {
        return String(url).includes("trial.mjs") && silent-- > 0 ? new Its("data:text/javascript,") : new Its(url, options);
      };
    """)
    page.reload()
    panel = page.locator(".here[data-here]").first
    panel.get_by_role("button", name="Run it here").click()
    panel.locator(".here-says", has_text="starting the machine").wait_for()
    page.clock.fast_forward(31000)
    panel.locator(".here-says", has_text="s in the experiment").wait_for()
    panel.get_by_role("button", name="Cancel").click()
    panel.locator(".here-says", has_text="Cancelled.").wait_for()


def test_what_is_kept_and_never_comes_is_fetched_again(page: Any) -> None:
    page.clock.install()
    file_bytes = page.evaluate("""async () => {
      const base = new URL("../../../assets/machine/", location.href);
      const { fetched } = await import(new URL("store.mjs", base));
      const [file] = (await (await fetch(new URL("loads.json", base))).json()).kit.files;
      await fetched(base, file);
      Cache.prototype.match = () => new Promise(() => {});
      window.got = fetched(base, file).then((bytes) => bytes.byteLength);
      return file.bytes;
    }""")
    for _ in range(2):
        page.clock.fast_forward(10001)
    assert page.evaluate("window.got") == file_bytes


def renderers() -> list[int]:
    """The processes that run this test's pages: below this one, named so by Chromium."""

    def is_mine(pid: int) -> bool:
        stat = stat_of(pid)
        return pid == os.getpid() or (bool(stat) and is_mine(int(stat[1])))

    lines = command_lines().items()
    return [pid for pid, line in lines if "--type=renderer" in line and is_mine(pid)]


@pytest.mark.nightly(
    "rare, and holds the browser for eight seconds; by day a run that was left behind is said to have ended"
)
def test_a_page_that_was_held_says_so_and_goes_on(page: Any) -> None:
    """As a browser holds a page that nobody sees: nothing of it runs for a while."""
    panel = ready(page)
    panel.get_by_role("button", name="Run it here").click()
    panel.locator(".here-says", has_text="s in the experiment").wait_for()
    held = renderers()
    for pid in held:
        os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(8)
    finally:
        for pid in held:
            os.kill(pid, signal.SIGCONT)
    panel.locator(".here-says", has_text="This browser held the page for").wait_for()
    panel.locator('.here-says:text-is("Done.")').wait_for()


def test_from_a_folder_a_page_says_what_to_type_and_that_serves_it(
    browser: Any, offline: Path, tmp_path: Path
) -> None:
    with zipfile.ZipFile(offline) as archive:
        archive.extractall(tmp_path)
    site = tmp_path / "measuretwice"
    page = browser.new_page()
    name = f"{PAGE.rstrip('/')}.html"
    page.goto((site / name).as_uri())
    page.get_by_text("python3 serve.py").first.wait_for()
    server = subprocess.Popen(
        [sys.executable, "-I", str(site / "serve.py"), "0"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        address = server.stdout.readline().split()[0]
        page.goto(address + name)
        page.get_by_text("The first time it fetches").first.wait_for()
    finally:
        server.terminate()
        server.wait()
        page.close()


def ready(page: Any) -> Any:
    """The case's first panel, once it is laid out."""
    panel = page.locator(".here[data-here]").first
    panel.locator(".here-more").evaluate("fold => { fold.open = true; }")
    panel.get_by_label("Seed,").wait_for()
    return panel


def book_of(page: Any) -> str:
    """The lab book that the browser keeps; nothing where it keeps none."""
    return str(
        page.evaluate("""(async () => {
      const { kept_value } = await import(new URL("../../../assets/machine/store.mjs", location.href));
      const value = await kept_value("mathis/lab-book.md");
      return value ? new TextDecoder().decode(value.tar).replaceAll("\\0", "") : "";
    })()""")
    )


@pytest.mark.nightly(
    "by day in_page/test_api.py keeps and reads a book; two tabs at once there are only here"
)
def test_two_tabs_share_one_book(page: Any, address: str) -> None:
    """Each has its own Python: what one has noted, and run, the other has, too."""
    other = page.context.new_page()
    other.set_default_timeout(1000 * LONGEST_S)
    other.goto(address + PAGE)
    for tab in (page, other):
        panel = ready(tab)
        seed = panel.get_by_label("Seed,")
        for wrong in ("1.5", "-3", "99999999999999"):
            seed.fill(wrong)
            panel.get_by_role("button", name="Run it here").click()
            panel.locator(
                ".here-says", has_text="The seed is a whole number from 0 to 2147483647."
            ).wait_for()
        seed.fill("7" if tab is page else "8")
        panel.get_by_role("button", name="Run it here").click()
        panel.locator('.here-says:text-is("Done.")').wait_for()
    # The first tab is the one that writes last.
    ready(page).get_by_role("button", name="Is something off?").click()
    ready(page).get_by_role("button", name="Hint 1").click()
    ready(page).get_by_text("hint 1:").wait_for()
    book = book_of(page)
    assert "seed7" in book
    assert "seed8" in book
    assert "- Hint: 1" in book
    with page.expect_download() as download:
        ready(page).get_by_role("button", name="Save my runs").click()
    with zipfile.ZipFile(download.value.path()) as archive:
        runs = {name.split("/")[1] for name in archive.namelist() if name.endswith("/DONE")}
    assert len(runs) == 2


@pytest.mark.nightly(
    "by day test_panel_tables.py has the panels' tables on a phone, and a case is worked through"
)
def test_a_file_that_is_opened_is_in_view(page: Any) -> None:
    panel = ready(page)
    panel.get_by_role("button", name="Run it here").click()
    panel.locator('.here-says:text-is("Done.")').wait_for()
    for width, height in ((1280, 800), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        panel.get_by_role("button", name="What the tools printed").click()
        link = panel.locator(".here-link").last
        link.scroll_into_view_if_needed()
        link.click()
        text = panel.locator("h4").first
        text.wait_for()
        top = page.evaluate(
            "() => document.querySelector('.here-detail').getBoundingClientRect().top"
        )
        assert 0 <= top < height / 2, (width, top)
        panel.get_by_role("button", name="All files").click()


@pytest.mark.nightly("by day in_page/test_api.py: what failed is said, and is no try")
def test_where_nothing_arrives_the_run_ends_and_says_so(page: Any) -> None:
    """No connection comes up where all packets are lost: iperf3's server waits for one for ever."""
    ready(page)
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    fix = page.locator(".here[data-here]").nth(1)
    fix.locator(".here-setting .here-name").fill("loss_percent")
    fix.locator(".here-setting input:not(.here-name)").fill("100")
    fix.get_by_role("button", name="Run it here").click()
    fix.locator(".here-says", has_text="perhaps no connection came up").wait_for()
    assert "loss_percent" not in book_of(page)


def test_what_is_kept_can_be_saved_and_forgotten_whatever_it_is(page: Any) -> None:
    """A run that can't be read takes nothing with it; what was written on the page goes with the runs."""
    ready(page)
    page.locator(".notebook input").first.fill("1 Mbit/s")
    page.locator(".notebook button").first.click()
    page.evaluate("""(async () => {
      const at = (name) => import(new URL("../../../assets/machine/" + name, location.href));
      const [{ keep }, { pack }] = await Promise.all([at("store.mjs"), at("tar.mjs")]);
      const run = { "plan.json": "{}", "result.json": '{"seed": 1.5}', DONE: "" };
      await keep("mathis/case-04-trial-17-seed1.5-01234567", { at: Date.now(), tar: pack(run).buffer });
    })()""")
    page.reload()
    panel = ready(page)
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    # One list, however many forms the page has.
    assert page.get_by_role("button", name="Show my earlier runs").count() == 1
    panel.get_by_role("button", name="Show my earlier runs").click()
    panel.get_by_text("can't be read. It is left out").wait_for()
    page.on("dialog", lambda dialog: dialog.accept())
    panel.get_by_role("button", name="Forget my runs").click()
    panel.get_by_text("Forgotten.").wait_for()
    assert page.locator(".notebook input").first.input_value() == ""
    page.reload()
    ready(page).get_by_text("A run takes about").wait_for()
    assert page.locator(".notebook input").first.input_value() == ""
    assert not page.get_by_role("button", name="Save my runs").count()
