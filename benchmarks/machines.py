"""Two machines of browsers on trial 7 of Mathis, in pairs: in node, in Chromium and in Firefox.

    PYTHONPATH=src:tests/support .venv/bin/python benchmarks/machines.py OLD NEW [--pairs 3] [--duration 60] [--in node]

OLD and NEW are folders that scripts/browser/build.sh printed, each with :CHECKOUT behind where another checkout's scripts
drive it. Each pair is once with each, one after the other, the order swapped each time; a browser is started anew for each
run. Printed are the ratios of CPU time, which other work on this computer disturbs least, and of real time, and whether
both made the same bytes. Without folders, as in make bench, there is nothing to compare. Nothing here passes or fails.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from firefox import firefox_path, started_firefox
from playwright.sync_api import sync_playwright

from measuretwice.backends.browser import BrowserMachine, given_to_guest, guest_words
from measuretwice.base.files import read_object
from measuretwice.lab import KernelFacts, Toolchain, load_lab, make_plan

ROOT = Path(__file__).parents[1]
LOOK_S = 0.2
PACKED = {"v86.wasm.gz": "v86.wasm"}

# The page's own worker; what it hands back is told apart by its digest.
RUN = """(async (given) => {
  const { done, tar } = await new Promise((end) => {
    const worker = new Worker(new URL("trial.mjs", location), { type: "module" });
    worker.onmessage = ({ data }) => { if (data.done || data.problem) end(data); };
    worker.postMessage({ ...given, base: new URL(".", location).href });
  });
  if (!done) throw new Error("no run");
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", tar));
  return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
})(GIVEN)"""


@dataclass(frozen=True)
class Side:
    """A machine, and the checkout whose scripts drive it."""

    folder: Path
    checkout: Path

    @classmethod
    def named(cls, text: str) -> Side:
        folder, _, checkout = text.partition(":")
        return cls(Path(folder), Path(checkout or ROOT))


@dataclass(frozen=True)
class Trial:
    """What a guest is told and gets."""

    words: str
    files: dict[str, str]


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


def trial_7(folder: Path, duration_s: int) -> Trial:
    lab = load_lab(ROOT, "mathis")
    machine = BrowserMachine(folder, KernelFacts.from_json(read_object(folder / "machine.json")))
    toolchain = Toolchain("browser", machine.name, machine.programs, {}, None)
    plan = make_plan(lab, 7, seed=1, toolchain=toolchain, changes={"duration_s": duration_s})
    return Trial(guest_words(lab, plan), given_to_guest(lab, plan, ROOT))


def in_node(side: Side, trial: Trial) -> str:
    with tempfile.TemporaryDirectory(prefix="measuretwice-bench-") as work:
        for name, text in trial.files.items():
            file = Path(work, "files", name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        runner = side.checkout / "scripts/browser/run.mjs"
        subprocess.run(["node", runner, side.folder, work, trial.words], check=True)
        shutil.rmtree(Path(work, "files"))
        digest = hashlib.sha256()
        for file in sorted(path for path in Path(work).rglob("*") if path.is_file()):
            digest.update(str(file.relative_to(work)).encode() + file.read_bytes())
        return digest.hexdigest()


def page_of(side: Side, trial: Trial, place: Path) -> str:
    """Lay out beside each other what the page's worker loads; return what it is told, as JSON."""
    shutil.copytree(side.checkout / "docs/assets/machine", place, dirs_exist_ok=True)
    files = []
    for name in ("state.bin.zst", "v86.wasm.gz", "libv86.mjs"):
        content = (side.folder / PACKED.get(name, name)).read_bytes()
        content = gzip.compress(content, mtime=0) if name in PACKED else content
        (place / name).write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()[:16]
        files.append({"name": name, "bytes": len(content), "digest": digest})
    (place / "index.html").write_text("<!doctype html><title>A machine</title>", encoding="utf-8")
    machine = {**read_object(side.folder / "machine.json"), "files": files}
    told = {"machine": machine, "words": trial.words, "packs": [], "files": trial.files}
    return RUN.replace("GIVEN", json.dumps(told))


def in_chromium(address: str, expression: str) -> str:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()
        page.set_default_timeout(0)
        page.goto(address)
        digest = page.evaluate(expression)
        browser.close()
    return str(digest)


def in_firefox(address: str, expression: str) -> str:
    path = firefox_path()
    if path is None:
        raise SystemExit("no Firefox here: MEASURETWICE_SETUP=dev ./lab")
    with started_firefox(path) as browser:
        browser.open(address)
        return str(browser.evaluate(expression, 3600))


def in_page(browser: Callable[[str, str], str], side: Side, trial: Trial) -> str:
    with tempfile.TemporaryDirectory(prefix="measuretwice-bench-") as place:
        expression = page_of(side, trial, Path(place))
        handler = functools.partial(_Quiet, directory=place)
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            return browser(f"http://127.0.0.1:{server.server_port}/", expression)
        finally:
            server.shutdown()


PLACES: dict[str, Callable[[Side, Trial], str]] = {
    "node": in_node,
    "chromium": functools.partial(in_page, in_chromium),
    "firefox": functools.partial(in_page, in_firefox),
}


def spent_below(parent: int) -> dict[int, float]:
    """CPU seconds so far of a process and of all that it has started, by number."""
    parents, spent = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        number = int(stat.parent.name)
        parents[number] = int(fields[1])
        spent[number] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    below = {parent}
    while more := {each for each, of in parents.items() if of in below} - below:
        below |= more
    return {number: spent[number] for number in below & spent.keys()}


def apart(work: Callable[[], str]) -> tuple[float, float, str]:
    """CPU seconds and real seconds of work in a process of its own, with all that it starts; and what it returns. A browser
    doesn't wait for its processes, so they are looked at while they are there."""
    read, write = os.pipe()
    began = time.monotonic()
    child = os.fork()
    if not child:
        os.write(write, work().encode())
        os._exit(0)
    os.close(write)
    spent: dict[int, float] = {}
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        spent |= spent_below(child)
        time.sleep(LOOK_S)
    real_s = time.monotonic() - began
    with os.fdopen(read) as told:
        digest = told.read()
    if ended[1]:
        raise SystemExit("a run failed")
    return sum(spent.values()), real_s, digest


def compare(place: str, sides: list[Side], trial: Trial, pairs: int) -> None:
    ratios: list[tuple[float, float]] = []
    for pair in range(pairs):
        found = {}
        for n in (0, 1) if pair % 2 == 0 else (1, 0):
            found[n] = apart(functools.partial(PLACES[place], sides[n], trial))
        same = "the same bytes" if found[0][2] == found[1][2] else "OTHER BYTES"
        old, new = (f"{found[n][0]:.1f} s of CPU, {found[n][1]:.1f} s" for n in (0, 1))
        print(f"{place}: {old} -> {new}; {same}", flush=True)
        ratios.append((found[1][0] / found[0][0], found[1][1] / found[0][1]))
    for what, each in zip(("CPU time", "real time"), zip(*ratios, strict=True), strict=True):
        low, middle, high = min(each), statistics.median(each), max(each)
        print(f"{place}: {what} of the new over the old, {pairs} pairs: {middle:.3f} ({low:.3f} to {high:.3f})")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("machines", nargs="*", metavar="FOLDER[:CHECKOUT]")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--duration", type=int, default=60, metavar="S")
    parser.add_argument("--in", dest="places", action="append", choices=PLACES)
    chosen = parser.parse_args()
    if len(chosen.machines) != 2:
        print("two folders are compared: --help")
        return
    sides = [Side.named(text) for text in chosen.machines]
    trial = trial_7(sides[0].folder, chosen.duration)
    for place in chosen.places or PLACES:
        compare(place, sides, trial, chosen.pairs)


if __name__ == "__main__":
    main()
