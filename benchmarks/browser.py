"""How long the browser's machine takes, by a stopwatch, in Chromium and in Firefox, through the pages themselves.

    make bench                                                                   a run of seconds, then a minute each of two trials
    PYTHONPATH=src:tests/support .venv/bin/python benchmarks/browser.py --all    every lab's cheapest and dearest case
    ... --record                                                                 and keep it for the site

Broken off, it goes on where it was, with the same machine: its rows are kept in runs/stopwatch.json until the last.
What a page says while it works is noted with its time: fetching, Python, the machine's start, the run, the reading.
Fetching is from this machine, so it is what a browser needs to check and to keep the files; the line comes on top.
Nothing here passes or fails: tests don't time.
"""

from __future__ import annotations

import argparse
import functools
import html
import itertools
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from firefox import firefox_path, started_firefox

from measuretwice.base.files import write_json
from measuretwice.runs.recorded import processor

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "sample-data" / "browser-stopwatch.json"
KEPT = ROOT / "runs" / "stopwatch.json"
LONGEST_S = 900
# A reader looks at the settings before pressing the button. Where the files are kept, Python starts meanwhile, and the
# machine becomes fast.
LOOK_S = 10
# No dearer than this: what takes longer is a case to leave to the terminal, and the page says so.
DEAREST_S = 200

# A panel of the page's own, as its tab "in this page" has it; each thing that it says is noted with its time.
RUN = """(async ({ asked, changes, twice }) => {
  const { fill } = await import(new URL("assets/machine/run-panel.mjs", ROOT));
  const panel = document.createElement("div"), wait = (ms) => new Promise((go) => setTimeout(go, ms));
  panel.dataset.here = JSON.stringify(asked);
  document.querySelector("h1").after(panel);
  fill([panel]);
  while (!panel.querySelector("input[type=number]")) await wait(50);
  for (const [name, value] of Object.entries(changes)) {
    [...panel.querySelectorAll("button")].find((button) => button.textContent === "Change a setting").click();
    const [its_name, its_value] = [...panel.querySelectorAll(".here-setting")].at(-1).querySelectorAll("input");
    its_name.value = name;
    its_value.value = value;
  }
  await wait(LOOK);
  const said = [], begun = performance.now();
  let longest_ms = 0, last = begun, going = true;
  (function frame(now) { longest_ms = Math.max(longest_ms, now - last); last = now; if (going) requestAnimationFrame(frame); })(begun);
  panel.querySelector(".here-buttons button").click();
  for (;;) {
    const text = panel.querySelector(".here-says").textContent;
    if (!said.length || said.at(-1)[1] !== text) said.push([performance.now() - begun, text]);
    if (/^(Done|Measured already|It didn)/.test(text)) break;
    if (performance.now() - begun > LONGEST) throw new Error(text);
    await wait(20);
  }
  going = false;
  let again_ms = null;
  if (twice) {
    while (panel.querySelector(".here-buttons button").disabled) await wait(20);
    panel.querySelector("input[type=number]").value = 2;
    const pressed = performance.now();
    panel.querySelector(".here-buttons button").click();
    while (panel.querySelector(".here-buttons button").disabled) await wait(20);
    again_ms = performance.now() - pressed;
  }
  return { said, longest_ms, again_ms };
})(GIVEN)""".replace("LONGEST", str(1000 * LONGEST_S)).replace("LOOK", str(1000 * LOOK_S))
# What each change of the machine is measured by: a minute of a trial with many packets, and of one with few,
# which is nearly all set-up.
MINUTES = [
    {"lab": "mathis", "kind": "trials", "trials": trial, "runs": 1, "packs": [], "likely_s": 30}
    for trial in ("7", "28")
]
STEPS = (
    ("fetch_s", r"^Fetching"),
    ("python_s", r"^Starting Python"),
    ("start_s", r"starting the machine"),
    ("run_s", r"in the experiment"),
    ("read_s", r"^Reading"),
)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def served_site() -> Iterator[tuple[Path, str]]:
    """The students' site, built anew and served on loopback: its folder and address."""
    with tempfile.TemporaryDirectory(prefix="measuretwice-bench-") as out:
        site = Path(out) / "site"
        subprocess.run([ROOT / "lab", "docs", "--build", "--out", site], check=True)
        server = ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(_Quiet, directory=str(site))
        )
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield site, f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def first_runs(site: Path) -> list[dict[str, Any]]:
    """What each page runs first, with its address: no mends, and what is one run of a fair length."""
    found = []
    for page in sorted(site.glob("modules/*/*/index.html")):
        for place in re.findall(r'data-here="([^"]*)"', page.read_text(encoding="utf-8")):
            asked = json.loads(html.unescape(place))
            if asked["kind"] in ("first", "trials") and asked["likely_s"] <= DEAREST_S:
                found.append(
                    {"page": f"{page.parent.relative_to(site).as_posix()}/", "asked": asked}
                )
                break
    return found


def chosen(runs: list[dict[str, Any]], every: bool) -> list[dict[str, Any]]:
    """A minute each of two trials with a warm cache, after the cheapest of all; or each lab's cheapest and dearest, too."""
    by_lab: dict[str, list[dict[str, Any]]] = {}
    for run in sorted(runs, key=lambda run: float(run["asked"]["likely_s"])):
        by_lab.setdefault(run["asked"]["lab"], []).append(run)
    cheapest = next(iter(by_lab.values()))[0]
    ends = [run for of_lab in by_lab.values() for run in (of_lab[0], of_lab[-1])]
    minutes = [
        {"page": cheapest["page"], "asked": asked, "changes": {"duration_s": 60}}
        for asked in MINUTES
    ]
    return [cheapest, *minutes, *([run for run in ends if run is not cheapest] if every else [])]


def timed(evaluate: Callable[[str], Any], run: dict[str, Any], root: str) -> dict[str, float]:
    """Seconds by step of one run on the page that is open, the longest that the page stood still, and where settings are
    changed how long the same run took with another seed after it."""
    twice = "changes" in run
    given = json.dumps({"asked": run["asked"], "changes": run.get("changes", {}), "twice": twice})
    found = evaluate(RUN.replace("GIVEN", given).replace("ROOT", json.dumps(root)))
    said = found["said"]
    steps = dict.fromkeys((name for name, _ in STEPS), 0.0)
    for (began, text), (ended, _) in itertools.pairwise(said):
        for name, pattern in STEPS:
            if re.search(pattern, text):
                steps[name] += (ended - began) / 1000
    if not said[-1][1].startswith("Done"):
        raise SystemExit(f"a run ended with: {said[-1][1]}")
    steps["whole_s"] = said[-1][0] / 1000
    steps["longest_still_s"] = found["longest_ms"] / 1000
    if twice:
        steps["again_s"] = found["again_ms"] / 1000
    return {name: round(value, 2) for name, value in steps.items()}


def in_a_terminal(run: dict[str, Any]) -> dict[str, Any]:
    """The same trial in the virtual kernel: seconds of the whole command."""
    asked, changes = run["asked"], run["changes"]
    settings = [word for key, value in changes.items() for word in ("--set", f"{key}={value}")]
    with tempfile.TemporaryDirectory(prefix="measuretwice-bench-") as out:
        began = time.monotonic()
        subprocess.run(
            [ROOT / "lab", "run", asked["lab"], "--trials", asked["trials"], *settings, "--out", out, "--json"],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        whole_s = round(time.monotonic() - began, 2)
    return {"lab": asked["lab"], "trials": asked["trials"], "changes": changes, "whole_s": whole_s}


def measured_already(machine: str) -> dict[str, list[dict[str, Any]]]:
    """Each browser's rows so far, where what was broken off had the same machine."""
    try:
        kept = json.loads(KEPT.read_text(encoding="utf-8"))
        return dict(kept["rows"]) if kept["machine"] == machine else {}
    except (OSError, ValueError, KeyError, TypeError):
        # None yet, or one that isn't whole: all is measured anew.
        return {}


def named(run: dict[str, Any]) -> dict[str, Any]:
    """What a row is of."""
    asked = {key: run["asked"][key] for key in ("lab", "case", "trials") if key in run["asked"]}
    return {**asked, "changes": run.get("changes", {})}


def row_of(run: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the row among `rows` that is of a run."""
    return next((row for row in rows if named(run).items() <= row.items()), None)


def missing_rows(
    started: Callable[[], Any],
    runs: list[dict[str, Any]],
    address: str,
    rows: list[dict[str, Any]],
) -> Iterator[dict[str, Any]]:
    """Measure with one browser what isn't among its `rows` yet, a row at a time."""
    todo = [run for run in runs if row_of(run, rows) is None]
    if not todo:
        return
    with started() as opened:
        if todo[0] is not runs[0]:
            # A browser that was begun anew has kept nothing: only the first row is of that.
            timed(opened(address + runs[0]["page"]), runs[0], address)
        for run in todo:
            yield {**named(run), **timed(opened(address + run["page"]), run, address)}


@contextmanager
def chromium() -> Iterator[Callable[[str], Callable[[str], Any]]]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_context().new_page()
        page.set_default_timeout(1000 * LONGEST_S)

        def opened(address: str) -> Callable[[str], Any]:
            page.goto(address)
            return page.evaluate

        yield opened
        browser.close()


@contextmanager
def firefox() -> Iterator[Callable[[str], Callable[[str], Any]]]:
    path = firefox_path()
    if path is None:
        raise SystemExit("no Firefox here: MEASURETWICE_SETUP=dev ./lab")
    with started_firefox(path) as browser:

        def opened(address: str) -> Callable[[str], Any]:
            browser.open(address)
            return lambda expression: browser.evaluate(expression, LONGEST_S)

        yield opened


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--all", action="store_true", help="each lab's cheapest and dearest case")
    parser.add_argument("--record", action="store_true", help="keep the figures for the site")
    options = parser.parse_args()
    kept: dict[str, Any] = {"processor": processor(), "look_s": LOOK_S}
    with served_site() as (site, address):
        loads = json.loads((site / "assets/machine/loads.json").read_text(encoding="utf-8"))
        kept["bytes"] = {
            name: sum(file["bytes"] for file in loads[name]["files"])
            for name in ("machine", "python", "kit")
        }
        print("to fetch, in MB:", {k: round(v / 1e6, 2) for k, v in kept["bytes"].items()})
        runs = chosen(first_runs(site), options.all)
        machine = loads["machine"]["key"]
        so_far = measured_already(machine)
        kept["terminal"] = [in_a_terminal(run) for run in runs if "changes" in run]
        print("in a terminal:", kept["terminal"])
        for name, started in (("Chromium", chromium), ("Firefox", firefox)):
            rows = so_far.setdefault(name, [])
            for row in missing_rows(started, runs, address, rows):
                print(name, row, flush=True)
                rows.append(row)
                KEPT.parent.mkdir(exist_ok=True)
                write_json(KEPT, {"machine": machine, "rows": so_far})
        kept["browsers"] = {
            name: [row_of(run, rows) for run in runs] for name, rows in so_far.items()
        }
    KEPT.unlink(missing_ok=True)
    if options.record:
        RECORD.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
