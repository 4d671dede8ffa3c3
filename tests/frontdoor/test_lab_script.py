"""The front door: what `lab` installs, what it says, and that it never leaves a half-made .venv.

Everything happens in a copy that holds only `lab`, a list of no packages and a stub of the
package, with a PATH of our own: nothing is fetched, and no real apt-get or sudo is ever called.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from command_line import until

ROOT = Path(__file__).parents[2]
NOBODY = 65534
STUB = """
import json, os, sys
print(json.dumps({"argv": sys.argv[1:], "folder": os.getcwd(), "package": __file__}))
"""
# Says "all" where the packages are imported, and have what they need themselves.
COMPLETE = """
import importlib.metadata as installed, click, matplotlib.figure, numpy, pydantic, rich
from packaging.requirements import Requirement
for package in installed.distributions():
    for needed in map(Requirement, package.requires or []):
        if not needed.marker or needed.marker.evaluate({"extra": ""}):
            assert installed.version(needed.name) in needed.specifier, (package.name, needed)
print("all")
"""
# As the kernel's builder: only who builds on purpose needs what a build does.
BUILDER = """
[[ -z ${MEASURETWICE_KERNEL:-} ]] || for name in gcc bison; do command -v $name >/dev/null || echo $name; done
"""
# What lab calls, linked to the real ones.
REAL = (
    "awk bash cat cp env flock getent grep kill mkdir mktemp mv readlink rm sed sh sha256sum sleep tail touch"
).split()
# What lab only looks for: these do nothing.
NETWORK = "iperf3 ip tc ss ethtool tcpdump ping taskset setpriv".split()
ON_HOST = ["run", "mathis", "--on", "host"]
BUILD = "chromium firefox-esr ssh tmux gcc bison".split()


@functools.cache
def good_python() -> str:
    """A Python with venv that every user may start (a home folder's may be closed to them)."""
    for candidate in ("/usr/bin/python3", getattr(sys, "_base_executable", sys.executable)):
        test = "import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))"
        if (
            Path(candidate).exists()
            and subprocess.run([candidate, "-Ic", test], capture_output=True).returncode == 0
        ):
            return str(candidate)
    pytest.skip("no Python here can make a virtual environment")


def script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


class Checkout:
    """A copy of the front door, a PATH for it, and a way to call it."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder, self.home, self.bin = folder, home, home / "bin"
        self.venv = folder / ".venv"

    def environment(self, changes: Mapping[str, str | None]) -> dict[str, str]:
        home = str(self.home)
        values = {"PATH": str(self.bin), "HOME": home, "TMPDIR": home, "LANG": "C.UTF-8", **changes}
        return {name: value for name, value in values.items() if value is not None}

    def __call__(
        self,
        *arguments: str,
        program: Path | None = None,
        cwd: Path | None = None,
        as_nobody: bool = False,
        umask: int = -1,
        **changes: str | None,
    ) -> subprocess.CompletedProcess[str]:
        drop = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        return subprocess.run(
            [str(program or self.folder / "lab"), *arguments],
            cwd=cwd or self.folder,
            env=self.environment(changes),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            umask=umask,
            **(drop if as_nobody and os.geteuid() == 0 else {}),  # type: ignore[call-overload]
        )

    def succeed(self, *arguments: str, **how: Any) -> subprocess.CompletedProcess[str]:
        done = self(*arguments, **how)
        assert done.returncode == 0, done.stderr
        return done

    def start(self, *arguments: str, **changes: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(self.folder / "lab"), *arguments],
            env=self.environment(changes),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def lacks(self, *names: str) -> None:
        for name in names:
            (self.bin / name).unlink()
            if shutil.which(name, path="/usr/local/sbin:/usr/sbin:/sbin"):
                pytest.skip(f"{name} is in sbin here, where lab looks too")


def make_checkout(folder: Path, home: Path) -> Checkout:
    (folder / "src/measuretwice").mkdir(parents=True)
    shutil.copy2(ROOT / "lab", folder / "lab")
    (folder / "requirements.txt").write_text("# none\n")
    for level in ("cluster", "docs", "dev"):
        (folder / f"requirements-{level}.txt").write_text("# none\n")
    (folder / "src/measuretwice/__main__.py").write_text(STUB)
    builder = folder / "scripts/kernel/build.sh"
    builder.parent.mkdir(parents=True)
    builder.write_text(BUILDER)
    bin_ = home / "bin"
    bin_.mkdir(parents=True)
    for name in REAL:
        real = shutil.which(name)
        assert real is not None, name
        (bin_ / name).symlink_to(real)
    for name in NETWORK + BUILD:
        script(bin_ / name, "exit 0")
    script(bin_ / "python3", f'exec {good_python()} "$@"')
    return Checkout(folder, home)


@pytest.fixture
def place() -> Iterator[Path]:
    """A temporary folder that other users may enter (pytest's own is closed to them)."""
    folder = Path(tempfile.mkdtemp(prefix="frontdoor-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout that has been set up, to copy from."""
    base = tmp_path_factory.mktemp("finished")
    make_checkout(base / "checkout", base / "home").succeed("hello")
    return base / "checkout"


@pytest.fixture
def fresh(place: Path) -> Checkout:
    """A checkout as it comes from git."""
    return make_checkout(place / "with some spaces", place / "home")


@pytest.fixture
def checkout(fresh: Checkout, finished: Path) -> Checkout:
    """A checkout that was set up elsewhere and then moved here."""
    shutil.copytree(finished / ".venv", fresh.venv, symlinks=True, copy_function=os.link)
    (fresh.venv / ".ready").unlink()
    shutil.copy(finished / ".venv/.ready", fresh.venv)
    return fresh


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("lab: ")
    return done.stderr


# --- handing over ---------------------------------------------------------------------------


def test_hands_over_all_arguments_as_they_are(checkout: Checkout) -> None:
    done = checkout.succeed("run", "mathis", "--set", "a=b c", "", "*")
    assert '"argv": ["run", "mathis", "--set", "a=b c", "", "*"]' in done.stdout
    assert done.stderr == ""


def test_works_from_another_folder(checkout: Checkout, place: Path) -> None:
    # A module of the same name in the folder where one stands is not ours.
    (place / "json.py").write_text("raise SystemExit('the wrong json')")
    (place / "measuretwice.py").write_text("raise SystemExit('the wrong package')")
    done = checkout.succeed("list", cwd=place, PYTHONPATH=str(place))
    assert f'"folder": "{place}"' in done.stdout
    assert str(checkout.folder / "src/measuretwice") in done.stdout


def test_works_by_a_symbolic_link(checkout: Checkout, place: Path) -> None:
    (place / "links").mkdir()
    (place / "links/one").symlink_to(checkout.folder / "lab")
    (place / "links/two").symlink_to("one")
    checkout.succeed("list", program=place / "links/two", cwd=place)


def test_works_without_home(checkout: Checkout) -> None:
    checkout.succeed("list", HOME=None)


def test_works_with_no_arguments(checkout: Checkout) -> None:
    assert '"argv": []' in checkout().stdout


def test_passes_the_exit_status_on(checkout: Checkout) -> None:
    (checkout.folder / "src/measuretwice/__main__.py").write_text("raise SystemExit(7)")
    assert checkout("run").returncode == 7


# --- the Python packages --------------------------------------------------------------------


def test_first_call_says_what_it_installs_and_second_installs_nothing(fresh: Checkout) -> None:
    first = fresh.succeed("list")
    lines = first.stderr.splitlines()
    assert "MB to download" in lines[0]
    assert "less than a minute" in lines[0]
    assert str(fresh.venv) in lines[0]
    # Without pip, and with a Python that fails at everything, a second set-up could not work.
    for pip in fresh.venv.glob("lib/python*/site-packages/pip"):
        shutil.rmtree(pip)
    script(fresh.bin / "python3", "exit 1")
    second = fresh.succeed("list")
    assert second.stderr == ""


@pytest.mark.parametrize("damage", ["no marker", "half a marker", "no python", "python is gone"])
def test_unfinished_venv_is_made_anew(checkout: Checkout, damage: str) -> None:
    left_over = checkout.venv / "left-over"
    left_over.touch()
    match damage:
        case "no marker":
            (checkout.venv / ".ready").unlink()
        case "half a marker":
            (checkout.venv / ".ready").write_text("run 0123")
        case "no python":
            (checkout.venv / "bin/python").unlink()
        case "python is gone":
            (checkout.venv / "bin/python").unlink()
            (checkout.venv / "bin/python").symlink_to("/nonexistent/python3")
    done = checkout.succeed("list")
    assert "Python packages" in done.stderr
    assert not left_over.exists()
    assert checkout("list").stderr == ""


def test_changed_list_of_packages_sets_up_again(checkout: Checkout) -> None:
    (checkout.folder / "requirements-dev.txt").write_text("# students don't use this list\n")
    assert checkout("list").stderr == ""
    (checkout.folder / "requirements.txt").write_text("# another\n")
    assert "Python packages" in checkout("list").stderr


def test_dev_set_up_stops_before_the_package_and_serves_students_too(checkout: Checkout) -> None:
    done = checkout.succeed(MEASURETWICE_SETUP="dev")
    assert done.stdout == ""
    assert "Python packages" in done.stderr
    assert checkout(MEASURETWICE_SETUP="dev").stderr == ""
    assert checkout("list").stderr == ""
    assert "run, cluster, docs or dev" in one_line(checkout(MEASURETWICE_SETUP="all"))


def test_each_level_has_the_packages_of_those_before_it(checkout: Checkout) -> None:
    """Also where one is set up after another; what a level before it lists then changes this one, too."""
    for level in ("cluster", "docs", "dev"):
        assert "Python packages" in checkout(MEASURETWICE_SETUP=level).stderr
    for level in ("run", "cluster", "docs", "dev"):
        assert "Python packages" not in checkout(MEASURETWICE_SETUP=level).stderr
    (checkout.folder / "requirements-docs.txt").write_text("# another\n")
    assert "Python packages" not in checkout(MEASURETWICE_SETUP="cluster").stderr
    assert "Python packages" in checkout(MEASURETWICE_SETUP="dev").stderr


def test_docs_brings_its_own_packages_but_no_tools(checkout: Checkout) -> None:
    for name in NETWORK + BUILD:
        (checkout.bin / name).unlink()
    missing = one_line(checkout("docs", MEASURETWICE_NO_INSTALL="1"))
    assert "Python packages" in missing
    assert "iperf3" not in missing
    done = checkout.succeed("docs")
    assert "Python packages" in done.stderr
    assert (checkout.venv / ".ready").read_text().splitlines()[-1].startswith("docs ")
    assert checkout("docs").stderr == ""


def test_wrong_usage_installs_nothing_more(checkout: Checkout) -> None:
    """Where the package can say what is wrong, it does so before more is fetched for it."""
    checkout.succeed("list")
    (checkout.folder / "src/measuretwice/__main__.py").write_text(
        "import os, sys\n"
        "if os.environ.get('MEASURETWICE_USAGE_ONLY'): sys.exit('lab: wrong' if 'abc' in sys.argv else 0)\n"
    )
    done = checkout("docs", "--port", "abc")
    assert done.returncode != 0
    assert done.stderr == "lab: wrong\n"
    assert not (checkout.venv / ".ready").read_text().count("docs ")
    assert "Python packages" in checkout("docs", "--port", "8001").stderr


@pytest.mark.parametrize("moment", ["pyvenv.cfg", "bin/python", "lib"])
def test_killed_set_up_does_not_count(fresh: Checkout, moment: str) -> None:
    process = fresh.start("list")
    until((fresh.venv / moment).exists)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert not (fresh.venv / ".ready").exists()
    done = fresh.succeed("list")
    assert '"argv": ["list"]' in done.stdout


def test_interrupted_set_up_says_so_and_does_not_go_on(fresh: Checkout) -> None:
    # As pip does: it catches Ctrl-C and exits by itself.
    script(
        fresh.bin / "python3",
        f'case "$*" in *venv\\ *) touch "$HOME/began"; trap "exit 2" INT; sleep 60 & wait ;; esac\n'
        f'exec {good_python()} "$@"',
    )
    process = fresh.start("list")
    until((fresh.home / "began").exists)
    time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert out == ""
    assert err.splitlines()[-1].startswith("lab: stopped")
    assert not (fresh.venv / ".ready").exists()


def test_interrupted_pips_end_with_it(fresh: Checkout) -> None:
    (fresh.folder / "requirements.txt").write_text("one==1\ntwo==2\n")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        index = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        process = fresh.start("list", PIP_INDEX_URL=index, NO_PROXY="127.0.0.1")
        for _ in range(2):  # both ask for their package, and wait
            silent.settimeout(60)
            silent.accept()[0].detach()
        os.killpg(process.pid, signal.SIGINT)
        began = time.monotonic()
        _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert err.splitlines()[-1].startswith("lab: stopped")
    # They had its stderr: had they gone on, it would have stayed open.
    assert time.monotonic() - began < 5
    assert not (fresh.venv / ".ready").exists()


def test_two_at_once_make_one_venv(fresh: Checkout) -> None:
    both = [fresh.start("list"), fresh.start("list")]
    outputs = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    assert sum("about" in err for _, err in outputs) == 1, outputs


@pytest.mark.user
def test_read_only_checkout_uses_the_cache(fresh: Checkout) -> None:
    fresh.folder.chmod(0o555)
    cache = fresh.home / "cache"
    cache.mkdir()
    cache.chmod(0o777)
    fresh.home.chmod(0o777)
    done = fresh.succeed("list", as_nobody=True, MEASURETWICE_CACHE=str(cache))
    assert str(cache) in done.stderr
    assert not fresh.venv.exists()
    assert fresh("list", as_nobody=True, MEASURETWICE_CACHE=str(cache)).stderr == ""
    line = one_line(fresh("list", as_nobody=True, MEASURETWICE_CACHE="/proc/nowhere"))
    assert "MEASURETWICE_CACHE" in line
    fresh.folder.chmod(0o755)


def test_a_umask_that_closes_files_to_oneself_is_one_line(fresh: Checkout) -> None:
    line = one_line(fresh("list", umask=0o777))
    assert "with umask 0777 new files are closed to yourself: umask 022" in line
    assert not fresh.venv.exists()
    fresh.succeed("list", umask=0o077)


def test_no_network_is_one_clear_line(fresh: Checkout) -> None:
    (fresh.folder / "requirements.txt").write_text("surely-not-cached-anywhere==1.0\n")
    # Nothing listens on port 9 of this machine.
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_RETRIES": "0"}
    done = fresh("list", **nowhere, PIP_NO_CACHE_DIR="1", PIP_CONFIG_FILE="/dev/null")
    assert done.returncode == 2
    announced, line = done.stderr.splitlines()
    assert "MB" in announced
    assert "no network" in line
    assert "setup.log" in line
    assert not (fresh.venv / ".ready").exists()


def test_other_failures_show_the_end_of_the_log(fresh: Checkout) -> None:
    (fresh.folder / "requirements.txt").write_text("not a requirement\n")
    done = fresh("list")
    assert done.returncode == 2
    assert "Invalid requirement" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("lab: pip can't")


def test_old_python_is_one_line(fresh: Checkout) -> None:
    script(fresh.bin / "python3", 'case "$*" in *-V*) echo "Python 3.9.2" ;; *) exit 1 ;; esac')
    line = one_line(fresh("list"))
    assert "3.11" in line
    assert "Python 3.9.2" in line


# --- the system's packages ------------------------------------------------------------------

APT = """
case "$*" in
  *--print-uris*) [ -e "$HOME/no-lists" ] || echo "'file:/x/iperf3.deb' iperf3.deb 3000000 SHA256:0" ;;
  *update*) rm -f "$HOME/no-lists"; echo "$*" >>"$HOME/apt" ;;
  *)
    echo "$DEBIAN_FRONTEND $*" >>"$HOME/apt"
    [ ! -e "$HOME/offline" ] || { echo "Temporary failure resolving 'nowhere'"; exit 100; }
    printf '#!/bin/sh\\nexit 0\\n' >"$HOME/bin/iperf3"
    chmod +x "$HOME/bin/iperf3" ;;
esac
"""
SUDO = 'case "$*" in "-n true") exit 0 ;; esac; echo used >>"$HOME/sudo"; exec "$@"'


def with_apt(checkout: Checkout, sudo: str | None = SUDO) -> None:
    script(checkout.bin / "apt-get", APT)
    (checkout.bin / "chmod").symlink_to(shutil.which("chmod") or "")
    if sudo:
        script(checkout.bin / "sudo", sudo)
    for path in (checkout.home, checkout.bin, checkout.folder):
        path.chmod(0o777)


def test_without_apt_names_what_to_install(checkout: Checkout) -> None:
    checkout.lacks("iperf3", "ping")
    line = one_line(checkout(*ON_HOST))
    assert "iperf3" in line
    assert "ping" in line


def test_without_sudo_names_the_command_to_run(checkout: Checkout) -> None:
    checkout.lacks("iperf3", "ping")
    with_apt(checkout, sudo=None)
    line = one_line(checkout(*ON_HOST, as_nobody=True))
    assert "apt-get install -y --no-install-recommends iperf3 iputils-ping" in line


@pytest.mark.user
def test_with_sudo_that_refuses_names_the_command_to_run(checkout: Checkout) -> None:
    checkout.lacks("iperf3")
    with_apt(checkout, sudo="exit 1")
    done = checkout(*ON_HOST, as_nobody=True)
    assert done.returncode == 2
    assert "3 MB" in done.stderr.splitlines()[0]
    assert "apt-get install" in done.stderr.splitlines()[-1]
    assert not (checkout.home / "apt").exists()


@pytest.mark.parametrize("as_nobody", [False, True])
def test_installs_after_saying_so(checkout: Checkout, as_nobody: bool) -> None:
    checkout.lacks("iperf3")
    with_apt(checkout)
    done = checkout.succeed(*ON_HOST, as_nobody=as_nobody)
    assert "3 MB to download" in done.stderr.splitlines()[0]
    assert "iperf3" in done.stderr.splitlines()[0]
    assert f'"argv": {json.dumps(ON_HOST)}' in done.stdout
    # iperf3's package asks a question where it may.
    assert (checkout.home / "apt").read_text().startswith("noninteractive install -y")
    assert (checkout.home / "sudo").exists() == (as_nobody or os.geteuid() != 0)
    assert checkout(*ON_HOST, as_nobody=as_nobody).stderr == ""


def test_fetches_the_lists_where_there_are_none(checkout: Checkout) -> None:
    checkout.lacks("iperf3")
    with_apt(checkout)
    (checkout.home / "no-lists").touch()
    done = checkout.succeed(*ON_HOST)
    assert "lists of packages" in done.stderr.splitlines()[0]
    assert "3 MB to download" in done.stderr.splitlines()[1]


def test_apt_without_network_is_one_clear_line(checkout: Checkout) -> None:
    checkout.lacks("iperf3")
    with_apt(checkout)
    (checkout.home / "offline").touch()
    done = checkout(*ON_HOST)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 2
    assert "no network" in done.stderr.splitlines()[1]


def test_the_virtual_kernel_needs_no_tools_of_the_machine(checkout: Checkout) -> None:
    checkout.lacks("iperf3", "ip", "tc", "ss", "ethtool", "tcpdump", "ping")
    record = ["record", "mathis", "--only", "mtu"]
    for words in (["run", "mathis"], record, ["run", "--on", "n.toml"]):
        assert checkout.succeed(*words).stderr == "", words


def test_missing_names_of_protocols_are_a_package(checkout: Checkout) -> None:
    (checkout.bin / "getent").unlink()
    script(checkout.bin / "getent", "exit 2")
    line = one_line(checkout("run", "mathis", "--on=host"))
    assert "the names of protocols" in line
    assert "netbase" in line


def test_what_only_tests_need_is_for_developers(checkout: Checkout) -> None:
    checkout.lacks("ssh", "tmux")
    checkout.succeed("run", "mathis")
    line = one_line(checkout(MEASURETWICE_SETUP="dev"))
    assert "openssh-client" in line
    assert "tmux" in line


def test_only_who_builds_a_kernel_needs_a_compiler(checkout: Checkout) -> None:
    checkout.lacks("gcc", "bison")
    checkout.succeed("run", "mathis")
    assert "gcc bison" in one_line(checkout("run", "mathis", MEASURETWICE_KERNEL="build"))
    assert "gcc bison" in one_line(checkout(MEASURETWICE_SETUP="dev"))


@pytest.mark.parametrize(
    "arguments", [[], ["--help"], ["doctor"], ["new", "x"], ["check", "x"], ["run", "--help"]]
)
def test_what_only_reads_needs_no_package(checkout: Checkout, arguments: list[str]) -> None:
    checkout.lacks("iperf3", "gcc")
    checkout.succeed(*arguments)


def test_no_install_only_says_what_is_missing(fresh: Checkout) -> None:
    fresh.lacks("iperf3")
    with_apt(fresh)
    line = one_line(fresh(*ON_HOST, MEASURETWICE_NO_INSTALL="1"))
    assert "iperf3" in line
    assert ".venv" in line
    assert not fresh.venv.exists()
    assert not (fresh.home / "apt").exists()


def test_no_install_runs_where_nothing_is_missing(checkout: Checkout) -> None:
    checkout.succeed("run", "mathis", MEASURETWICE_NO_INSTALL="1")


# --- the real thing -------------------------------------------------------------------------


@pytest.mark.nightly(
    "which packages, and pip's end: this file, with a pip that installs nothing; .ci/run sets up for real"
)
@pytest.mark.network
@pytest.mark.slow
def test_real_packages_install_and_import(fresh: Checkout) -> None:
    """All that they need is in the list: nothing is installed that isn't there."""
    shutil.copy(ROOT / "requirements.txt", fresh.folder)
    (fresh.folder / "src/measuretwice/__main__.py").write_text(COMPLETE)
    pip = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))}
    home = {"HOME": os.environ["HOME"]} if "HOME" in os.environ else {}
    done = fresh("list", **pip, **home)
    if "no network" in done.stderr:
        pytest.skip("no network")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "all\n"
