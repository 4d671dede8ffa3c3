"""Don't believe the machines that come with the checkout: build them from source, and compare.

    make machines-verify ARGS="[--sources DIR] [kernel] [browser] [libraries]"

Each is built in a cache of its own, and every file compared with the shipped one's, byte for byte. With another
compiler a kernel's own bytes differ; then what counts is compared: the bytes of runs. Of the virtual kernel, a recorded
set of each lab is run on what was built; of the browser's machine, a trial of each lab is run on both. What came out is
noted beside the cache, where ./lab doctor reads it.

Exit codes: 0 the same, or the same runs; 1 they differ, or one can't be built; 2 wrong usage.
"""

from __future__ import annotations

import argparse
import filecmp
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import shipped

from measuretwice.backends.machines import VERIFIED_FILE
from measuretwice.base.files import write_json
from measuretwice.base.paths import cache_folder
from measuretwice.lab import Lab, published_labs
from measuretwice.runs.folder import digest_of

ROOT = shipped.CHECKOUT
# A trial on the browser's machine: long enough to send some thousand packets.
TRIAL_S = 5


def main() -> int:
    parser = argparse.ArgumentParser(description="build the shipped machines again, and compare")
    parser.add_argument("kinds", nargs="*", metavar="kind", help=", ".join(shipped.BUILDERS))
    parser.add_argument("--sources", type=Path, help="a folder that --keep-sources made")
    asked = parser.parse_args()
    if unknown := set(asked.kinds) - set(shipped.BUILDERS):
        parser.error(
            f"no machine is called {', '.join(sorted(unknown))}: {', '.join(shipped.BUILDERS)}"
        )
    outcome = 0
    place = cache_folder()
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="verify-", dir=place) as work:
        for kind in asked.kinds or shipped.BUILDERS:
            try:
                outcome |= verify(kind, Path(work), asked.sources)
            except shipped.Failed as error:
                print(f"{kind}: {error}", file=sys.stderr)
                outcome = 1
    return outcome


def verify(kind: str, work: Path, sources: Path | None) -> int:
    """Build one, compare, and note what came out; return 0 where it, or its runs, are the same."""
    manifest = shipped.read_manifest(kind)
    began = time.monotonic()
    built = build(kind, work / "cache", sources)
    took_s = round(time.monotonic() - began)
    if built.name != manifest["key"]:
        raise shipped.Failed("the shipped one is of another checkout: run make machines")
    ours = work / kind
    shipped.unpack(kind, ours)
    different = list(differences(ours, built))
    print(f"{kind}: built in {took_s} s; {len(different)} files differ from the shipped ones")
    for name in different:
        print(f"  {name}")
    runs: list[str] | None = None
    if different:
        print(f"{kind}: so the bytes of runs are compared, which is what counts")
        runs = list(other_runs(kind, work, ours, built))
        for line in runs:
            print(f"  {line}")
    elif (builder_name := shipped.FACTS[kind]) is not None:
        print(
            f"{kind}: the same byte for byte, compiled by {json.loads((built / builder_name).read_text())['compiler']}"
        )
    else:
        print(f"{kind}: the same byte for byte")
    note(
        kind,
        {
            "sha256": manifest["sha256"],
            "day": date.today().isoformat(),
            "files": different,
            "runs": runs,
        },
    )
    return 1 if runs else 0


def build(kind: str, cache: Path, sources: Path | None) -> Path:
    """Build a machine from source into a cache of its own; return its folder."""
    taken = ["--sources", str(sources)] if sources and kind != "libraries" else []
    done = subprocess.run(
        ["bash", str(ROOT / shipped.BUILDERS[kind]), *taken],
        env={**os.environ, "MEASURETWICE_KERNEL": "build", "MEASURETWICE_CACHE": str(cache)},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise shipped.Failed("can't be built; its builder's last line says why")
    return Path(done.stdout.strip())


def differences(ours: Path, built: Path) -> Iterator[str]:
    """Yield the names of files that are in one alone, or differ: in bytes, in where a link leads, in who may run them."""
    names = {path.relative_to(top).as_posix() for top in (ours, built) for path in top.rglob("*")}
    for name in sorted(names - {shipped.SUMS}):
        one, other = ours / name, built / name
        if one.is_symlink() and other.is_symlink():
            same = one.readlink() == other.readlink()
        elif one.is_dir() and other.is_dir():
            same = True
        elif one.is_file() and other.is_file():
            same = _same_file(one, other)
        else:
            same = False
        if not same:
            yield name


def _same_file(one: Path, other: Path) -> bool:
    if one.stat().st_mode & 0o100 != other.stat().st_mode & 0o100:
        return False
    if one.suffix == shipped.PACKED_TWICE:
        return gzip.decompress(one.read_bytes()) == gzip.decompress(other.read_bytes())
    return filecmp.cmp(one, other, shallow=False)


# --- runs ----------------------------------------------------------------------------------------


def other_runs(kind: str, work: Path, ours: Path, built: Path) -> Iterator[str]:
    """Yield a line for each lab whose runs don't come out the same with what was built."""
    for name, lab in published_labs(ROOT).items():
        if kind == "kernel":
            smallest = min(
                (ROOT / "sample-data" / lab.folder.name).glob("*/results.json"), key=_bytes_of_set
            ).parent.name
            done = _lab(work / "cache", "record", name, "--verify", "--only", smallest)
            if done.returncode:
                yield f"{name}: the recorded set {smallest} comes out otherwise"
        elif kind == "browser":
            # The machine that is shipped, where the builder looks for it.
            place = work / "shipped-cache" / "browser" / built.name
            if not place.exists():
                shutil.copytree(ours, place, symlinks=True)
            digests = [
                _browser_run(lab, cache, work / "runs")
                for cache in (work / "cache", work / "shipped-cache")
            ]
            if digests[0] != digests[1]:
                yield f"{name}: trial {min(lab.trials)} comes out otherwise"
        else:
            yield f"{name}: pages would load other libraries"
            return


def _bytes_of_set(results: Path) -> int:
    return sum(path.stat().st_size for path in results.parent.rglob("*") if path.is_file())


def _browser_run(lab: Lab, cache: Path, out: Path) -> str:
    """The digest of a short trial's raw files, run on the machine in this cache."""
    shutil.rmtree(out, ignore_errors=True)
    set_s = ["--set", f"duration_s={TRIAL_S}"] if "duration_s" in lab.defaults() else []
    trial = str(min(lab.trials))
    done = _lab(
        cache, "run", lab.name, "--trial", trial, *set_s, "--on", "browser", "--out", str(out)
    )
    [run] = (out / lab.name).glob("trial-*") if done.returncode == 0 else [None]
    return "none" if run is None else digest_of(run / "raw")


def _lab(cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "measuretwice", *arguments],
        env={**os.environ, "MEASURETWICE_CACHE": str(cache), "PYTHONPATH": str(ROOT / "src")},
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        text=True,
        check=False,
    )


def note(kind: str, what: dict[str, Any]) -> None:
    """Keep what came out beside the cache."""
    path = cache_folder() / VERIFIED_FILE
    noted = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    write_json(path, {**noted, kind: what})


if __name__ == "__main__":
    sys.exit(main())
