"""Linux's own network selftests, in a kernel with this project's patches and in one without: the same verdicts?

    .venv/bin/python benchmarks/selftests.py --quick            a few tests: under two minutes once the kernels are built
    .venv/bin/python benchmarks/selftests.py --only tbf         those with this in their names
    .venv/bin/python benchmarks/selftests.py                    all of them: three quarters of an hour of two CPUs
    .venv/bin/python benchmarks/selftests.py --write            ... and keep the verdicts in sample-data/selftests.json
    ... --kept FILE    note each verdict in FILE, and go on from those that it has: what was interrupted loses nothing

The tests (tools/testing/selftests) are of the very source that the virtual kernel is built from. Both kernels have
the configuration scripts/kernel/config with selftests.config behind it; the stock one has no patch of ours, not even
those that only make the kernel faster, and Linux's own compiler flags. So it ticks at User-Mode Linux's fixed 100 Hz,
not at 1000 Hz. Both are built once, into the cache: ten minutes on two free cores. Which tests there are, and which can't be run and why, is
in selftests.toml.

Each test has a guest of its own, with this machine's programs, and a time limit. It is run in real time in both
kernels, and in virtual time in the patched one, as the labs have it: with the thread that reads ahead of programs. One whose verdicts aren't the same is run twice more in each:
what then never had the same verdict differs, what had two in one kernel varies. A skip in both is no evidence and is
counted apart. Nothing here passes or fails.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import queue
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(Path(__file__).parent)]

from verdicts import Agreement, Outcome, compare, read_outcome, total  # noqa: E402

from measuretwice.backends import virtual  # noqa: E402
from measuretwice.backends.script import READER_INTERVAL_US, SETTLE_SECONDS, START_NS  # noqa: E402

RECORD = ROOT / "sample-data" / "selftests.json"
HERE = Path(__file__).parent
BUILDER = ROOT / "scripts/kernel/build.sh"
MORE = HERE / "selftests.config"
MEMORY_MB = 1024
# Where Debian's iproute2 has netem's distributions.
DISTRIBUTIONS = "/usr/lib/x86_64-linux-gnu/tc"
# Programs that the tests call, and the Debian packages that they are in; without one, tests would be skipped.
NEEDS = {
    "gcc": "gcc", "make": "make", "flex": "flex", "bison": "bison", "pkg-config": "pkg-config", "clang": "clang", "jq": "jq", "socat": "socat", "mausezahn": "netsniff-ng", "ping": "iputils-ping",
    "tcpdump": "tcpdump", "ethtool": "ethtool", "iperf3": "iperf3", "tc": "iproute2", "arping": "iputils-arping", "nc": "netcat-openbsd",
}  # fmt: skip
NEEDED_FILES = {
    "include/libmnl/libmnl.h": "libmnl-dev", "include/sys/capability.h": "libcap-dev", "include/numa.h": "libnuma-dev",
    "include/gelf.h": "libelf-dev", "lib/python3/dist-packages/pyroute2": "python3-pyroute2",
    "lib/python3/dist-packages/scapy": "python3-scapy",
}  # fmt: skip
# As the labs have it: with the thread that reads ahead, too (scripts/kernel/patches/0006).
VIRTUAL_TIME = (
    "time-travel=inf-cpu",
    f"time-travel-start={START_NS}",
    f"tcp_reader_interval_us={READER_INTERVAL_US}",
)
# busywait() of the tests' lib.sh asks without a pause: in virtual time it pauses.
BUSY_LOOP = 's/loopy_wait : /loopy_wait "sleep 0.02" /'
# How many checks of one test are printed.
MOST_LINES = 5
# Where a run takes place: which kernel, and whose time.
PLACES = ("stock", "patched", "virtual")
LETTERS = {"pass": "p", "fail": "f", "skip": "s", "timeout": "t", "absent": "-"}


@dataclass(frozen=True)
class Test:
    """One program of the selftests, or one file of tdc's tests."""

    folder: str
    name: str
    limit_s: int
    quick: bool = False
    # In virtual time too? Not where it looks at the time that a real processor takes.
    virtual: bool = True

    @property
    def called(self) -> str:
        return f"{self.folder}/{self.name}"

    @property
    def command(self) -> str:
        """What is run in its folder; tdc's own words for what goes wrong stand on the same output."""
        if self.folder == "tc-testing":
            return f"./tdc.py -f tc-tests/{self.name}"
        return f"./{self.name}"


def read_tests(text: str) -> list[Test]:
    """Return the tests that a list such as selftests.toml names."""
    return [
        Test(
            group["folder"],
            name,
            group["limit_s"],
            quick=name in group.get("quick", "").split(),
            virtual=name not in group.get("real_time", "").split(),
        )
        for group in tomllib.loads(text)["group"]
        for name in group["tests"].split()
    ]


def missing_packages() -> list[str]:
    """Return the Debian packages that this machine lacks."""
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    lacking = [package for tool, package in NEEDS.items() if not shutil.which(tool, path=path)]
    return lacking + [p for file, p in NEEDED_FILES.items() if not Path("/usr", file).exists()]


def _output_of(*command: str | Path, quiet: bool = False) -> str | None:
    done = subprocess.run(
        ["bash", *map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if quiet else None,
        text=True,
        check=False,
    )
    return done.stdout.strip() if done.returncode == 0 else None


def ensure_tests() -> Path:
    """Return the folder of the compiled tests."""
    folder = _output_of(HERE / "selftests.sh")
    return Path(folder) if folder else sys.exit("selftests.py: without the tests nothing can be run; the reason stands above")  # fmt: skip


def ensure_kernel(*options: str | Path, sources: Path | None = None) -> virtual.Kernel:
    """Return a kernel built by scripts/kernel/build.sh with these options, from the cache where it is there."""
    folder = _output_of(BUILDER, *options, "--path", quiet=True)
    if folder is None:
        kept = ("--sources", sources) if sources and sources.is_dir() else ()
        folder = _output_of(BUILDER, *options, *kept)
    if folder is None:
        sys.exit("selftests.py: the kernel can't be built; the reason stands above")
    return virtual.Kernel.read(Path(folder), virtual.FACTS, "kernel")


def guest_script(test: Test, virtual_time: bool = False) -> str:
    """Return what the guest runs: the tests' tree copied to its memory, then the test, in a time limit of its own.

    Virtual time needs two things more. Its timers are fine only once the first of it has gone by; labs wait, too. And it
    passes only while every program waits, so the tests' own loop that asks and asks again would never end; it gets a sleep.
    """
    top, _, below = test.folder.partition("/")
    settle_s = SETTLE_SECONDS if virtual_time else 0
    patient = (
        f"sed -i {shlex.quote(BUSY_LOOP)} /tmp/tests/net/lib.sh"
        if virtual_time and top == "net"
        else ":"
    )
    # Of net, which is large, only what stands in its own folder and what tests share.
    trees = f"kselftest kselftest.h {'tc-testing' if top == 'tc-testing' else ''}"
    return f"""\
cd /run/lab && mkdir -p /tmp/tests && cp -r {trees} /tmp/tests/
if [[ {top} == net ]]; then
  mkdir -p /tmp/tests/net/forwarding
  cp net/forwarding/lib.sh /tmp/tests/net/forwarding/
  find net -maxdepth 1 -type f \\( -name '*.sh' -o -perm /111 -o -name '*.o' -o -name settings \\) -exec cp -t /tmp/tests/net -- {{}} +
  cp -r net/lib {f"net/{below}" if below else ""} /tmp/tests/net/
fi
{patient}
mkdir -p /run/netns /tmp/tests/tc-testing/tmp
cat >/tmp/tests/tc-testing/tdc_config_local.py <<'END'
EXTRA_NAMES = dict(TC='/tmp/bin/tc', IP='/tmp/bin/ip')
ENVIR = dict(TC_LIB_DIR='{DISTRIBUTIONS}')
END
export TC_LIB_DIR={DISTRIBUTIONS}
# All that the kernel can do is built in, as a modprobe would find.
cp -r bin /tmp/
printf '#!/bin/sh\\nexit 0\\n' >/tmp/bin/modprobe
chmod +x /tmp/bin/modprobe
export PATH=/tmp/bin:$PATH
ulimit -n 4096
ip link set lo up
sleep {settle_s}
cd /tmp/tests/{test.folder}
timeout -k 5 {test.limit_s} {test.command} </dev/null >/run/measuretwice/output 2>&1
echo $? >/run/measuretwice/code
"""


def run(test: Test, kernel: virtual.Kernel, tests: Path, options: Sequence[str]) -> tuple[Outcome, float]:  # fmt: skip
    """Run a test in a guest of its own; return its outcome and how many seconds it took. Nothing it does can hang this."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="measuretwice-selftest-") as name:
        folder = Path(name)
        script = guest_script(test, virtual_time=bool(options))
        (folder / "experiment.sh").write_text(script, encoding="utf-8")
        process = virtual.start(
            kernel, tests, folder, *options, f"uml_dir={virtual._FOLDERS}/91/.uml/",
            memory_mb=MEMORY_MB, machines_programs=True, folders=virtual.ALL_FOLDERS,
        )  # fmt: skip
        try:
            process.wait(timeout=test.limit_s + 60)
        except subprocess.TimeoutExpired:
            pass
        finally:
            virtual.end(process, folder)
        text = _text_of(folder / "output")
        code = _text_of(folder / "code").strip()
        outcome = read_outcome(text, int(code) if code else None)
        keep = os.environ.get("MEASURETWICE_SELFTESTS_OUTPUT")
        if keep:
            where = f"{test.called.replace('/', '_')}-{kernel.facts.version}-{'virtual' if options else 'real'}"  # fmt: skip
            Path(keep, where).write_text(f"{text}\n{_text_of(folder / 'console.txt')}\ncode {code}\n")  # fmt: skip
    return outcome, time.monotonic() - began


def _text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


Runs = dict[str, dict[str, list[Outcome]]]


class Runner:
    """Runs tests, one guest a CPU, and keeps all tries by test and place."""

    def __init__(
        self, kernels: Mapping[str, virtual.Kernel], tests: Path, kept: Path | None = None
    ) -> None:
        self.kernels, self.tests, self.kept = kernels, tests, kept
        self.outcomes: Runs = {}
        self._cpus: queue.SimpleQueue[int] = queue.SimpleQueue()
        for cpu in sorted(os.sched_getaffinity(0)):
            self._cpus.put(cpu)
        self._lock = threading.Lock()
        for line in (
            kept.read_text(encoding="utf-8").splitlines() if kept and kept.is_file() else ()
        ):
            try:
                row = json.loads(line)
            except ValueError:
                print(f"{kept}: a line was cut short; its test is run again")
                continue
            if row["kernel"] == kernels[row["place"]].name:
                outcome = Outcome(row["verdict"], row["checks"], row["why"])
                self.outcomes.setdefault(row["test"], {}).setdefault(row["place"], []).append(outcome)  # fmt: skip

    def tries(self, test: Test, place: str) -> int:
        """Return how often a test was run in a place."""
        return len(self.outcomes.get(test.called, {}).get(place, ()))

    def _keep(self, test: Test, place: str, outcome: Outcome) -> None:
        """Note an outcome where it survives this process."""
        if self.kept:
            row = {"test": test.called, "place": place, "kernel": self.kernels[place].name, "verdict": outcome.verdict, "checks": outcome.checks, "why": outcome.why}  # fmt: skip
            with self.kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")

    def _one(self, job: tuple[Test, str]) -> None:
        test, place = job
        cpu = self._cpus.get()
        try:
            # Of this thread alone, and of the guest that it starts.
            os.sched_setaffinity(0, {cpu})
            # Another seed for each try: the same would do the same.
            seed = 1 + self.tries(test, place)
            options = (*VIRTUAL_TIME, f"random-seed={seed}") if place == "virtual" else ()
            outcome, took_s = run(test, self.kernels[place], self.tests, options)
        finally:
            self._cpus.put(cpu)
        with self._lock:
            self.outcomes.setdefault(test.called, {}).setdefault(place, []).append(outcome)
            self._keep(test, place, outcome)
            print(f"  {test.called:<44} {place:<8} {outcome.verdict:<8} {len(outcome.checks):4} checks {took_s:6.1f} s", flush=True)  # fmt: skip

    def run(self, jobs: Iterable[tuple[Test, str]]) -> None:
        jobs = list(jobs)
        with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
            list(pool.map(self._one, jobs))

    def agreements(self, beside: str) -> dict[str, Agreement]:
        """Compare the stock kernel with another place, test by test."""
        return {
            name: compare(places["stock"], places[beside])
            for name, places in self.outcomes.items()
            if "stock" in places and beside in places
        }


def run_all(chosen: Sequence[Test], runner: Runner, again: int) -> None:
    """Run each test once in each place, and again what doesn't have the same verdicts."""
    runner.run(
        (test, place)
        for test in chosen
        for place in PLACES
        if (test.virtual or place != "virtual") and not runner.tries(test, place)
    )
    for beside in PLACES[1:]:
        unlike = {name for name, found in runner.agreements(beside).items() if found.differ}
        if unlike and again:
            print(f"{len(unlike)} tests whose verdicts aren't the same in {beside}: {again} times more in each")  # fmt: skip
            tests = [test for test in chosen if test.called in unlike]
            runner.run(
                (test, place)
                for test in tests
                for place in ("stock", beside)
                for _ in range(runner.tries(test, place), 1 + again)
            )


def show(runner: Runner) -> None:
    """Print how many units are the same, and each that isn't."""
    for beside in PLACES[1:]:
        found = runner.agreements(beside)
        counted = total(found)
        words = ", ".join(f"{counted.get(verdict, 0)} {said}" for verdict, said in (
            ("pass", "pass in both"), ("fail", "fail in both"), ("timeout", "take too long in both"),
            ("skip", "skipped in both (no evidence)"), ("differ", "differ"), ("vary", "vary"),
        ))  # fmt: skip
        print(f"\nstock in real time beside {beside}: {len(found)} tests; of their checks {words}")
        for name, agreement in found.items():
            lines = [
                f"differs: {name} {check}: stock {one}, {beside} {other}"
                for check, (one, other) in agreement.differ.items()
            ]
            lines += [f"varies: {name} {check}" for check in agreement.vary]
            for line in lines[:MOST_LINES]:
                print(f"  {line}")
            if len(lines) > MOST_LINES:
                print(f"  ... and {len(lines) - MOST_LINES} more of {name}")


def document(runner: Runner, listed: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is kept: each test's verdicts by place (all tries), and its checks', a letter each try.

    `listed` is what selftests.toml has: which can't be run, and why some differ.
    """
    rows = {}
    for name, places in sorted(runner.outcomes.items()):
        checks: dict[str, dict[str, str]] = {}
        for place, tries in places.items():
            for tried in tries:
                for check, verdict in tried.checks.items():
                    checks.setdefault(check, {}).setdefault(place, "")
                    checks[check][place] += LETTERS[verdict]
        why = next((tried.why for tries in places.values() for tried in tries if tried.why), "")
        rows[name] = {
            "verdicts": {place: [tried.verdict for tried in tries] for place, tries in places.items()},
            **({"skipped_because": why} if why else {}),
            "checks": {check: " ".join(by.get(place, "-") for place in PLACES) for check, by in checks.items()},
        }  # fmt: skip
    return {
        "date": datetime.date.today().isoformat(),
        "kernels": {
            place: {
                "version": kernel.facts.version,
                "source": kernel.facts.others["source_version"],
                "config_sha256": kernel.facts.others["config_sha256"],
                "patches_sha256": kernel.facts.others["patches_sha256"],
                "results_key": kernel.facts.others["results_key"],
            }
            for place, kernel in runner.kernels.items()
        },
        "letters": LETTERS,
        "columns_of_checks": PLACES,
        "counts": {place: total(runner.agreements(place)) for place in PLACES[1:]},
        "differ": {
            place: {n: a.differ for n, a in runner.agreements(place).items() if a.differ}
            for place in PLACES[1:]
        },
        "vary": {
            place: {n: a.vary for n, a in runner.agreements(place).items() if a.vary}
            for place in PLACES[1:]
        },
        "cannot": dict(listed["cannot"]),
        "explained": {name: why for name, why in listed["explained"].items() if name in rows},
        "tests": rows,
    }


def written(content: Mapping[str, Any]) -> str:
    """Return it as JSON with a test a line, so that two recordings can be compared line by line."""
    rows = content["tests"]
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
    rest = json.dumps({**content, "tests": {}}, indent=1)
    return rest.replace('"tests": {}', f'"tests": {{\n{lines}\n }}') + "\n"


def main() -> int:
    """Run what is asked for and print it; 0, or 2 where something is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", action="append", metavar="PATTERN", help="tests with this in their names")  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="a few tests, under two minutes")
    parser.add_argument("--again", type=int, default=2, help="tries more of what differs (2)")
    parser.add_argument("--write", action="store_true", help=f"keep the verdicts in {RECORD.name}")
    parser.add_argument("--kept", type=Path, metavar="FILE", help="note each verdict there, and go on from them")  # fmt: skip
    options = parser.parse_args()
    if missing := missing_packages():
        print(f"to run Linux's selftests these Debian packages are missing: apt-get install {shlex.join(missing)}")  # fmt: skip
        return 2
    listed = (HERE / "selftests.toml").read_text(encoding="utf-8")
    chosen = [
        test
        for test in read_tests(listed)
        if (test.quick or not options.quick)
        and (not options.only or any(part in test.called for part in options.only))
    ]
    print("tests and two kernels, built where the cache lacks them: some twelve minutes on two free cores")  # fmt: skip
    tests = ensure_tests()
    patched = ensure_kernel("--more", MORE, sources=tests.parent / "sources")
    stock = ensure_kernel("--stock", "--more", MORE, sources=tests.parent / "sources")
    print(f"{len(chosen)} tests in {stock.name} (stock), {patched.name} (patched) in real time, and the latter in virtual time:")  # fmt: skip
    runner = Runner({"stock": stock, "patched": patched, "virtual": patched}, tests, options.kept)
    run_all(chosen, runner, options.again)
    show(runner)
    if options.write:
        content = document(runner, tomllib.loads(listed))
        RECORD.write_text(written(content), encoding="utf-8")
        print(f"written to {RECORD.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
