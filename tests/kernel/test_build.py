"""scripts/kernel/build.sh: what it says and leaves behind when something is not as it should be.

Small means only: nothing here compiles a kernel or leaves this machine.
"""

import fcntl
import gzip
import hashlib
import io
import json
import lzma
import os
import shutil
import signal
import socket
import subprocess
import tarfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from serving import served

SOURCE = Path(__file__).parents[2] / "scripts" / "kernel"


BUILD_TOOLS = ("gcc", "make", "flex", "bison", "bc", "ld", "patch", "xz")
needs_build_tools = pytest.mark.skipif(
    not all(shutil.which(tool) for tool in BUILD_TOOLS), reason="this machine can't build a kernel"
)

PINNED = ("linux-source-7.2", "7.2.12-1~bpo13+1")


class Checkout:
    """A copy of scripts/kernel and scripts/machines with a cache of its own, both in folders with a space."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "check out"
        self.scripts = self.folder / "scripts" / "kernel"
        for name in ("kernel", "machines"):
            shutil.copytree(SOURCE.parent / name, self.scripts.with_name(name))
        # apt waits longer before each further try, which nothing here is about.
        source = self.scripts / "source.sh"
        assert 'Acquire::Retries "2";' in source.read_text()
        source.write_text(
            source.read_text().replace('Acquire::Retries "2";', 'Acquire::Retries "0";')
        )
        self.cache = folder / "ca che"
        self.stubs = folder / "stubs"
        self.stubs.mkdir()
        self.environment = {
            "PATH": f"{self.stubs}:{os.environ['PATH']}",
            "HOME": str(folder),
            "MEASURETWICE_CACHE": str(self.cache),
            "no_proxy": "127.0.0.1",
        }

    def stub(self, name: str, text: str) -> None:
        """Put a program in front of the one that the system has."""
        path = self.stubs / name
        path.write_text("#!/bin/bash\n" + text)
        path.chmod(0o755)

    def start(self, *arguments: str, **environment: str) -> "subprocess.Popen[str]":
        """Start the builder in a process group of its own."""
        return subprocess.Popen(
            [str(self.scripts / "build.sh"), *arguments],
            env=self.environment | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def build(self, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        process = self.start(*arguments, **environment)
        try:
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def refused(self, *arguments: str, code: int = 1, **environment: str) -> str:
        """Run it, expecting a refusal; return the line that says why."""
        done = self.build(*arguments, **environment)
        assert done.returncode == code, done.stderr
        assert done.stdout == ""
        *before, last = done.stderr.splitlines()
        assert last.startswith("build.sh: ")
        assert not any("rror" in line or "***" in line for line in before), done.stderr
        assert not list(self.cache.glob("kernel/*/kernel.json"))
        assert not list(self.cache.glob("kernel/.[br]*"))
        return last

    @property
    def key(self) -> str:
        return self.build("--key").stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


# --- options ------------------------------------------------------------------------------------


def test_help_names_every_option(checkout: Checkout) -> None:
    done = checkout.build("--help")
    assert done.returncode == 0
    for option in "no-build sources keep-sources tarball sha256 path key needs check smoke".split():
        assert f"--{option}" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--frobnicate"], "unknown option --frobnicate"),
        (["--tarball"], "--tarball needs a value"),
        (["--sources", "/nowhere"], "--sources /nowhere: there is no such folder"),
        (["--tarball", "x.tar.xz"], "--tarball needs --sha256"),
        (["--more", "/nowhere"], "--more needs a file of settings"),
        (["--show-apt-sources", "x"], "needs a directory and a codename"),
    ],
)
def test_wrong_usage(checkout: Checkout, arguments: list[str], complaint: str) -> None:
    assert complaint in checkout.refused(*arguments, code=2)


def test_path_says_nothing_until_ready(checkout: Checkout) -> None:
    done = checkout.build("--path")
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "")


def test_check_is_json(checkout: Checkout) -> None:
    facts = json.loads(checkout.build("--check").stdout)
    assert facts["kernel_ready"] is False
    assert facts["cache"] == f"{checkout.cache}/kernel"
    assert facts["key"] == checkout.key
    assert facts["disk_free_mib"] > 0
    assert isinstance(facts["missing_packages"], list)
    assert {"path", "free_mib", "exec"} == set(facts["memory_folders"][0])


# --- the key ------------------------------------------------------------------------------------


def test_key_is_the_same_everywhere(checkout: Checkout, tmp_path: Path) -> None:
    other = Checkout(tmp_path / "elsewhere")
    assert checkout.key == other.key == checkout.key
    assert len(checkout.key) == 20


@pytest.mark.parametrize(
    "changed",
    [
        "config",
        "patches/0001*.patch",
        "patches/0002*.patch",
        "ss-sampler.c",
        "packages.txt",
        "confine/0001*.patch",
        "faster/0001*.patch",
        "faster/0003*.patch",
        "options/0001*.patch",
        "profile.tar.xz",
    ],
)
def test_key_follows_what_is_built(checkout: Checkout, changed: str) -> None:
    before = checkout.key
    (path,) = checkout.scripts.glob(changed)
    path.write_bytes(path.read_bytes().rstrip() + b"x\n")
    assert checkout.key != before


def test_key_follows_new_and_renamed_patches(checkout: Checkout) -> None:
    keys = {checkout.key}
    first = min(checkout.scripts.glob("patches/*.patch"))
    shutil.copy(first, first.with_name("9999-new.patch"))
    keys.add(checkout.key)
    first.with_name("9999-new.patch").rename(first.with_name("9998-new.patch"))
    keys.add(checkout.key)
    assert len(keys) == 3


def test_key_ignores_what_is_not_built(checkout: Checkout) -> None:
    before = checkout.key
    (checkout.scripts / "remark.sh").write_text("#!/bin/sh\n")
    programs = checkout.scripts / "packages.txt"
    programs.write_text("# another remark\n" + programs.read_text())
    assert checkout.key == before


def test_a_kernel_to_compare_with_has_a_key_of_its_own(checkout: Checkout, tmp_path: Path) -> None:
    more = tmp_path / "more.config"
    more.write_text("CONFIG_IPV6=y\n")

    def keys() -> list[str]:
        wanted = ([], ["--stock"], ["--more", str(more)], ["--stock", "--more", str(more)])
        return [checkout.build(*options, "--key").stdout.strip() for options in wanted]

    before = keys()
    assert len(set(before)) == 4
    first = min(checkout.scripts.glob("patches/*.patch"))
    first.write_bytes(first.read_bytes().rstrip() + b"x\n")
    # The stock one is none of the patches'.
    assert [one == other for one, other in zip(before, keys(), strict=True)] == [False, True] * 2


# --- what is missing ----------------------------------------------------------------------------


def with_programs_but(checkout: Checkout, absent: Sequence[str]) -> None:
    """Put this machine's programs, but for these, into the folder of stand-ins."""
    for folder in os.environ["PATH"].split(":"):
        try:
            programs = list(Path(folder).iterdir())
        except OSError:  # not there, or this user may not enter it: no shell finds a program there
            continue
        for program in programs:
            link = checkout.stubs / program.name
            if program.name not in absent and not link.exists():
                link.symlink_to(program)


@pytest.mark.user
def test_missing_tools_are_named_as_packages(checkout: Checkout) -> None:
    with_programs_but(checkout, ("gcc", "cc", "bison", "bc", "flex"))
    complaint = checkout.refused(PATH=str(checkout.stubs))
    assert "sudo apt install" in complaint
    for package in ("gcc", "libc6-dev", "bison", "bc", "flex"):
        assert f" {package} " in f"{complaint} "


def test_other_processors(checkout: Checkout) -> None:
    checkout.stub("uname", "[[ $1 == -m ]] && echo aarch64 || echo Linux")
    assert "x86-64" in checkout.refused()


@needs_build_tools
def test_too_little_disk(checkout: Checkout) -> None:
    checkout.stub("stat", "echo 77 1048576")
    complaint = checkout.refused()
    assert "needs 700 MB" in complaint
    assert "77 MB are free" in complaint


@needs_build_tools
def test_unwritable_cache(checkout: Checkout, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "can't write to the cache" in checkout.refused(
        MEASURETWICE_CACHE=str(tmp_path / "file" / "below")
    )


# --- a tar file as the source -------------------------------------------------------------------


def make_tarball(path: Path, files: dict[str, str]) -> str:
    """Write a .tar.xz with these files below linux-x/; return its SHA-256."""
    with tarfile.open(path, "w:xz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(f"linux-x/{name}")
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    return hashlib.sha256(path.read_bytes()).hexdigest()


@needs_build_tools
def test_wrong_checksum_of_the_source(checkout: Checkout, tmp_path: Path) -> None:
    seen = make_tarball(tmp_path / "linux.tar.xz", {"Kconfig": ""})
    complaint = checkout.refused("--tarball", str(tmp_path / "linux.tar.xz"), "--sha256", "0" * 64)
    assert "wrong checksum" in complaint
    assert seen in complaint


@needs_build_tools
def test_source_that_is_no_kernel_or_another(checkout: Checkout, tmp_path: Path) -> None:
    tarball = tmp_path / "linux.tar.xz"
    sha256 = make_tarball(tarball, {"README": ""})
    complaint = checkout.refused("--tarball", str(tarball), "--sha256", sha256)
    assert "holds no kernel source" in complaint
    files = {"Kconfig": "", "arch/um/kernel/time.c": "something else\n"}
    sha256 = make_tarball(tarball, files)
    complaint = checkout.refused("--tarball", str(tarball), "--sha256", sha256)
    assert "patch 0001" in complaint
    assert "doesn't apply" in complaint
    log = Path(complaint.split(": see ")[1])
    assert "time.c" in log.read_text()


# --- the kernel that comes with the checkout ----------------------------------------------------


Ship = Callable[..., Path]


@pytest.fixture
def ship(checkout: Checkout, tmp_path: Path) -> Ship:
    """Pack a folder that looks like a kernel into the checkout's machines/; return its archive."""

    def make(key: str | None = None) -> Path:
        key = key or checkout.key
        folder = tmp_path / "packed" / key
        for name in ("linux", "config", "root/sbin/guest-init", "root/bin/bash-static"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(b"stands for a program\n")
        (folder / "root/bin/bash").unlink(missing_ok=True)
        (folder / "root/bin/bash").symlink_to("bash-static")
        (folder / "root/etc").mkdir(exist_ok=True)
        (folder / "root/etc/mtab").unlink(missing_ok=True)
        (folder / "root/etc/mtab").symlink_to("/proc/mounts")
        for name in ("linux", "root/sbin/guest-init", "root/bin/bash-static"):
            (folder / name).chmod(0o755)
        (folder / "notes.gz").write_bytes(gzip.compress(b"stands for pages\n", mtime=0))
        described = {"version": "7.2.12-measuretwice", "key": key, "origin": "built"}
        (folder / "kernel.json").write_text(json.dumps(described, indent=2) + "\n")
        packer = checkout.scripts.with_name("machines") / "shipped.py"
        subprocess.run(["python3", "-I", packer, "pack", "kernel", folder], check=True)
        return checkout.folder / "machines/kernel.tar.xz"

    return make


def test_what_comes_with_the_checkout_is_unpacked(checkout: Checkout, ship: Ship) -> None:
    archive = ship()
    done = checkout.build()
    folder = Path(done.stdout.removesuffix("\n"))
    assert done.returncode == 0, done.stderr
    assert done.stderr == "unpacking machines/kernel.tar.xz, which comes with the checkout: 0 MB\n"
    assert folder == checkout.cache / "kernel" / checkout.key
    assert json.loads((folder / "kernel.json").read_text())["origin"] == "shipped"
    packed = archive.parents[2] / "packed" / checkout.key
    for name in ("linux", "config", "root/bin/bash-static", "notes.gz"):
        assert (folder / name).read_bytes() == (packed / name).read_bytes()
    assert (folder / "root/etc/mtab").readlink() == Path("/proc/mounts")
    assert not os.access(folder / "config", os.X_OK)
    # By these it is found out if it is damaged later.
    sums = dict(line.split("  ")[::-1] for line in (folder / "SHA256SUMS").read_text().splitlines())
    assert sums["linux"] == hashlib.sha256((packed / "linux").read_bytes()).hexdigest()
    programs = {"linux", "root/sbin/guest-init", "root/bin/bash-static"}
    assert set(sums) == {*programs, "config", "notes.gz"}
    # From now on nothing is unpacked, and --path answers.
    archive.unlink()
    again = checkout.build()
    assert (again.stdout, again.stderr) == (done.stdout, "")
    assert checkout.build("--path").stdout == done.stdout


def test_it_needs_no_compiler_and_no_xz(checkout: Checkout, ship: Ship) -> None:
    ship()
    with_programs_but(checkout, BUILD_TOOLS)
    assert checkout.build("--needs", PATH=str(checkout.stubs)).stdout == ""
    done = checkout.build(PATH=str(checkout.stubs))
    assert done.returncode == 0, done.stderr


def test_why_a_compiler_is_asked_for_is_said(checkout: Checkout, ship: Ship) -> None:
    ship()
    with_programs_but(checkout, BUILD_TOOLS)
    why = "machines/kernel.tar.xz was made from other patches or settings than those here"
    with open(checkout.scripts / "config", "a") as config:
        config.write("# changed\n")
    needs = checkout.build("--needs", PATH=str(checkout.stubs))
    assert "gcc" in needs.stdout.split()
    assert needs.stderr.startswith(why)
    done = checkout.build(PATH=str(checkout.stubs))
    assert done.returncode == 1
    assert done.stderr.startswith(why)
    assert "to build the kernel these Debian packages are missing" in done.stderr.splitlines()[-1]
    # Who builds on purpose knows why.
    assert why not in checkout.build("--needs", MEASURETWICE_KERNEL="build").stderr


def test_what_lost_its_modes_gets_them_back(checkout: Checkout, ship: Ship) -> None:
    """As a copy over a file system without them: nothing is made anew for that."""
    ship()
    done = checkout.build()
    folder = Path(done.stdout.strip())
    for name in ("linux", "root/sbin/guest-init", "root/bin/bash-static"):
        (folder / name).chmod(0o644)
    again = checkout.build("--path")
    assert (again.returncode, again.stdout) == (0, done.stdout)
    assert os.access(folder / "linux", os.X_OK)
    assert os.access(folder / "root/bin/bash", os.X_OK)
    # What is missing can't be given back: why it is made again is said.
    (folder / "config").unlink()
    anew = checkout.build()
    assert (anew.returncode, anew.stdout) == (0, done.stdout)
    assert f"{folder} is no whole kernel, config is missing: it is made anew\n" in anew.stderr


@pytest.mark.parametrize("damage", ["truncated", "changed", "gone"])
def test_a_damaged_archive_is_not_unpacked(checkout: Checkout, ship: Ship, damage: str) -> None:
    archive = ship()
    content = archive.read_bytes()
    if damage == "gone":
        archive.unlink()
    else:
        archive.write_bytes(content[:-50] if damage == "truncated" else content[:-1] + b"!")
    complaint = checkout.refused()
    assert (
        "machines/kernel.tar.xz is " + ("missing" if damage == "gone" else "damaged") in complaint
    )
    assert "git checkout machines/kernel.tar.xz" in complaint


@pytest.mark.parametrize("text", [None, "", "{}", "[1]", '{"key": 7}'])
def test_a_damaged_manifest_is_no_reason_to_build(
    checkout: Checkout, ship: Ship, text: str | None
) -> None:
    manifest = ship().with_name("kernel.json")
    if text is None:
        manifest.unlink()
    else:
        manifest.write_text(text)
    assert "machines/kernel.json is missing or damaged: git checkout machines" in checkout.refused()


def add_hostile(tar: tarfile.TarFile, kind: str, elsewhere: Path) -> None:
    """Entries of which the last leads out of the folder that they are unpacked into, or is none."""

    def add(name: str, form: bytes, link: str = "") -> None:
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = form, link
        entry.size = 1 if form == tarfile.REGTYPE else 0
        tar.addfile(entry, io.BytesIO(b"x") if entry.size else None)

    match kind:
        case "above":
            add("../x", tarfile.REGTYPE)
        case "absolute":
            add(f"{elsewhere}/x", tarfile.REGTYPE)
        case "through a link":
            add("d", tarfile.SYMTYPE, str(elsewhere))
            add("d/x", tarfile.REGTYPE)
        case "onto a link":
            add("d", tarfile.SYMTYPE, f"{elsewhere}/x")
            add("d", tarfile.REGTYPE)
        case "hard link":
            add("d", tarfile.LNKTYPE, f"{elsewhere}/manifest")
        case "pipe":
            add("d", tarfile.FIFOTYPE)


@pytest.mark.parametrize(
    "kind",
    ["above", "absolute", "through a link", "onto a link", "hard link", "pipe", "no tar", "no xz"],
)
def test_nothing_is_written_elsewhere(checkout: Checkout, ship: Ship, kind: str) -> None:
    """Whoever can change an archive can change its checksum beside it."""
    archive = ship()
    manifest = json.loads(archive.with_name("kernel.json").read_text())
    if kind.startswith("no "):
        archive.write_bytes(b"x" if kind == "no xz" else lzma.compress(b"x" * 2000))
    else:
        with tarfile.open(archive, "w:xz") as tar:
            add_hostile(tar, kind, archive.parent)
    content = archive.read_bytes()
    manifest |= {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    archive.with_name("kernel.json").write_text(json.dumps(manifest, indent=2) + "\n")
    before = sorted(archive.parent.iterdir())
    assert "machines/kernel.tar.xz is damaged (" in checkout.refused()
    assert sorted(archive.parent.iterdir()) == before


def test_a_full_disk_is_told_before(checkout: Checkout, ship: Ship) -> None:
    ship()
    checkout.stub("stat", "echo 0 1048576")
    assert "no room in" in checkout.refused()


def test_another_checkouts_kernel_is_not_taken(checkout: Checkout, ship: Ship) -> None:
    ship("0123456789abcdef0123")
    assert checkout.build("--no-build").returncode == 3
    lint = [checkout.scripts.with_name("machines") / "shipped.py", "lint"]
    done = subprocess.run(["python3", "-I", *lint], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"would build now (key {checkout.key}, shipped 0123456789abcdef0123)" in done.stderr
    assert "run make machines" in done.stderr


@needs_build_tools
def test_it_is_built_on_purpose(checkout: Checkout, ship: Ship) -> None:
    ship()
    assert checkout.build("--no-build", MEASURETWICE_KERNEL="build").returncode == 3
    # Nor is what was unpacked taken for built.
    assert checkout.build().returncode == 0
    assert checkout.build("--path").returncode == 0
    assert checkout.build("--path", MEASURETWICE_KERNEL="build").returncode == 3
    complaint = checkout.build(MEASURETWICE_KERNEL="https://one.example/kernel.tar.gz")
    assert (complaint.returncode, complaint.stdout) == (2, "")
    assert "MEASURETWICE_KERNEL is 'build', or not set" in complaint.stderr


def test_without_a_python_that_unpacks(checkout: Checkout, ship: Ship) -> None:
    ship()
    for name in ("python3", "python3.11", "python3.12", "python3.13", "python3.14"):
        checkout.stub(name, "exit 1")
    assert "install python3" in checkout.refused()


def test_pack_gives_the_same_bytes(ship: Ship, tmp_path: Path) -> None:
    archive = ship()
    first = archive.read_bytes()
    manifest = json.loads(archive.with_name("kernel.json").read_text())
    for file in (tmp_path / "packed").rglob("*"):
        if not file.is_symlink():
            os.utime(file, (1, 1))
    assert ship().read_bytes() == first
    assert manifest["sha256"] == hashlib.sha256(first).hexdigest()
    assert {"package": "bash-static", "source": "bash"}.items() <= manifest["made_from"][1].items()
    assert all(part["licence"] for part in manifest["made_from"])


# --- several builds, and interrupted ones -------------------------------------------------------


def test_second_build_waits_for_the_first(checkout: Checkout, ship: Ship) -> None:
    ship()
    (checkout.cache / "kernel").mkdir(parents=True)
    with (checkout.cache / "kernel" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = checkout.start()
        assert process.stderr is not None
        assert "waiting" in process.stderr.readline()
        assert process.poll() is None
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert out


@pytest.fixture
def silent_server() -> Iterator[socket.socket]:
    """A server that takes connections and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server


def start_fetching(checkout: Checkout, server: socket.socket) -> "subprocess.Popen[str]":
    """Start a build that waits for the server, its mirror."""
    url = f"http://127.0.0.1:{server.getsockname()[1]}"
    (checkout.scripts / "packages.txt").write_text(
        f"{'0' * 64} pool/b/bash/bash_5_amd64.deb bash -\n"
    )
    checkout.stub("apt-config", "echo \"etc='/nowhere/'\"")
    process = checkout.start(MEASURETWICE_MIRROR=url)
    assert process.stderr is not None
    assert "building the virtual kernel" in process.stderr.readline()
    assert "fetching the programs" in process.stderr.readline()
    return process


def traces(checkout: Checkout) -> list[str]:
    digest = hashlib.sha256(f"{checkout.cache}/kernel".encode()).hexdigest()[:8]
    work = Path(f"/var/tmp/measuretwice-{os.getuid()}-{digest}")
    names = [path.name for path in (checkout.cache / "kernel").iterdir() if path.name != "lock"]
    return names + (["work"] if work.exists() else [])


@needs_build_tools
@pytest.mark.parametrize("whole_group", [True, False], ids=["group", "script alone"])
@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_build_leaves_nothing(
    checkout: Checkout, silent_server: socket.socket, signal_number: int, whole_group: bool
) -> None:
    process = start_fetching(checkout, silent_server)
    # A terminal's Ctrl-C goes to the whole group; a program that stops it knows only the script.
    (os.killpg if whole_group else os.kill)(process.pid, signal_number)
    # communicate() also waits for everything that the script has started and not ended.
    process.communicate(timeout=30)
    assert process.returncode == 128 + signal_number
    assert traces(checkout) == []


@needs_build_tools
def test_killed_build_is_cleared_away_by_the_next(
    checkout: Checkout, silent_server: socket.socket, ship: Ship
) -> None:
    process = start_fetching(checkout, silent_server)
    connection, _ = silent_server.accept()
    process.kill()
    # Its download is still under way, and keeps the lock until it ends.
    silent_server.close()
    connection.close()
    process.communicate(timeout=30)
    assert traces(checkout) == ["work"]
    ship()
    done = checkout.build()
    assert done.returncode == 0, done.stderr
    assert traces(checkout) == [checkout.key]


# --- apt ----------------------------------------------------------------------------------------

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def apt_sources(checkout: Checkout, folder: Path, codename: str = "bookworm") -> list[list[str]]:
    done = checkout.build("--show-apt-sources", str(folder), codename)
    assert done.returncode == 0, done.stderr
    return [line.split("\t") for line in done.stdout.splitlines()]


def apt_folder(folder: Path, **files: str) -> Path:
    """A folder as /etc/apt: a file's name stands with _ for its dot, all but sources.list below sources.list.d."""
    parts = folder / "apt" / "sources.list.d"
    parts.mkdir(parents=True)
    for name, text in files.items():
        place = parts.parent if name == "sources_list" else parts
        (place / name.replace("_", ".")).write_text(text)
    return parts.parent


def test_apt_stanzas(checkout: Checkout, tmp_path: Path) -> None:
    folder = apt_folder(
        tmp_path,
        debian_sources=f"""# the security archive comes first here
Types: deb deb-src
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
Signed-By: {KEYRING}

Types: deb
# a comment inside
URIs: http://mirror.example/some/path/debian/
  https://second.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: {KEYRING}

Types: deb
Enabled: no
URIs: http://disabled.example/debian
Suites: bookworm
Components: main

Types: deb-src
URIs: http://source.example/debian
Suites: bookworm
Components: main
""",
    )
    assert apt_sources(checkout, folder) == [
        ["http://mirror.example/some/path/debian/", KEYRING],
        ["https://second.example/debian", KEYRING],
    ]


def test_apt_lines(checkout: Checkout, tmp_path: Path) -> None:
    folder = apt_folder(
        tmp_path,
        sources_list=f"""
# deb http://commented.example/debian bookworm main
deb cdrom:[Debian GNU/Linux 12]/ bookworm main
deb-src http://mirror.example/debian bookworm main
deb [arch=amd64 signed-by={KEYRING}] http://mirror.example/pub/debian bookworm main non-free # ours
deb [ signed-by={KEYRING} ] http://mirror.example/pub/debian bookworm-updates main
deb\thttp://plain.example/debian\ttesting\tmain
deb http://security.example/debian-security bookworm-security main
deb [trusted=yes] http://trusting.example/debian unstable main
""",
        docker_list="deb [signed-by=/d.gpg] http://docker.example/linux/debian bookworm stable\n",
        tool_list="deb http://tool.example/apt nodistro main\n",
    )
    assert apt_sources(checkout, folder) == [
        ["http://mirror.example/pub/debian", KEYRING],
        ["http://plain.example/debian", ""],
        # what the entry says of trust is not taken over
        ["http://trusting.example/debian", ""],
    ]


def test_apt_prefers_the_archive_with_updates(checkout: Checkout, tmp_path: Path) -> None:
    """Other makers name their suite after the release; only Debian has its updates."""
    folder = apt_folder(
        tmp_path,
        a_list="deb http://vendor.example/debian/12/prod bookworm main\n",
        b_sources="""Types: deb
URIs: mirror+file:/etc/apt/mirrors/debian.list
Suites: bookworm bookworm-updates bookworm-backports
Components: main
""",
    )
    assert [uri for uri, _ in apt_sources(checkout, folder)] == [
        "mirror+file:/etc/apt/mirrors/debian.list",
        "http://vendor.example/debian/12/prod",
    ]


def test_apt_key_inside_a_stanza(checkout: Checkout, tmp_path: Path) -> None:
    folder = apt_folder(
        tmp_path,
        debian_sources="""Types: deb
URIs: http://mirror.example/debian
Suites: bookworm
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mDMEZ
 -----END PGP PUBLIC KEY BLOCK-----
""",
    )
    ((uri, signed),) = apt_sources(checkout, folder)
    assert uri == "http://mirror.example/debian"
    assert "BEGIN PGP" in signed
    assert "mDMEZ" in signed


def test_apt_without_debian(checkout: Checkout, tmp_path: Path) -> None:
    folder = apt_folder(
        tmp_path, ubuntu_list="deb http://archive.example/ubuntu noble main restricted\n"
    )
    assert apt_sources(checkout, folder, "plucky") == []


@pytest.fixture
def apt(checkout: Checkout, tmp_path: Path) -> Callable[..., None]:
    """Stand-ins for apt: an archive with these versions, or one that can't be reached."""
    folder = apt_folder(tmp_path, a_list="deb http://one.example/debian bookworm main\n")

    def make(versions: dict[str, str], update: str = "") -> None:
        names = " ".join(versions)
        madison = "\n".join(
            f'{name}) echo " {name} | {version} | http://one.example" ;;'
            for name, version in versions.items()
        )
        checkout.stub("apt-config", f"echo \"etc='{folder}/'\"")
        checkout.stub(
            "apt-cache",
            f"""shift
case $1 in
pkgnames) printf '%s\\n' {names} ;;
madison) case $2 in
{madison}
esac ;;
esac""",
        )
        checkout.stub(
            "apt-get",
            f"""shift 2
case $1 in
update) {update or "true"} ;;
download) echo "${{*: -1}}" > "${{2%%=*}}.deb" ;;
esac""",
        )

    return make


@pytest.fixture
def mirror(checkout: Checkout, tmp_path: Path) -> Iterator[Path]:
    """A mirror on this machine, with the one program that this checkout asks for and no kernel."""
    place = "pool/main/b/bash/bash-static_5.2_amd64.deb"
    file = tmp_path / "served" / place
    file.parent.mkdir(parents=True)
    file.write_bytes(b"stands for a package")
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    (checkout.scripts / "packages.txt").write_text(f"{sha256} {place} bash ./bin/bash-static\n")
    with served(tmp_path / "served") as address:
        checkout.environment["MEASURETWICE_MIRROR"] = address.rstrip("/")
        yield file


@needs_build_tools
def test_archive_out_of_reach(checkout: Checkout) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{closed.getsockname()[1]}/debian"
        checkout.stub("apt-config", "echo \"etc='/nowhere/'\"")
        complaint = checkout.refused(MEASURETWICE_MIRROR=f"http://me:secret@{place}")
    assert f"; asked: http://{place} (" in complaint
    assert "Is there a network" in complaint
    assert "secret" not in complaint
    assert "no mirror of this machine's has all" in complaint
    assert "The machine that comes with the checkout" in complaint


@needs_build_tools
def test_a_program_with_another_checksum_is_not_taken(
    checkout: Checkout, apt: Callable[..., None], mirror: Path
) -> None:
    apt({}, update="exit 100")
    mirror.write_bytes(b"something else.......")
    assert "no mirror of this machine's has all" in checkout.refused()


@needs_build_tools
def test_a_source_with_another_checksum_is_not_taken(
    checkout: Checkout, apt: Callable[..., None], mirror: Path
) -> None:
    apt({"linux-source-7.3": "7.3.2-1"})
    name, version = PINNED
    other = mirror.parents[2] / f"l/linux/{name}_{version}_all.deb"
    other.parent.mkdir(parents=True)
    other.write_bytes(b"no kernel")
    assert "taking linux-source-7.3 7.3.2-1" in checkout.build().stderr


@needs_build_tools
def test_pinned_version_has_left(
    checkout: Checkout, apt: Callable[..., None], mirror: Path
) -> None:
    apt({"linux-source-7.5": "7.5.1-1", "linux-source-7.3": "7.3.2-1", "linux-source-7.3-x": "1"})
    done = checkout.build()
    assert "has left the archive: taking linux-source-7.3 7.3.2-1" in done.stderr
    assert "machines/*.tar.xz" in done.stderr
    # The stand-in's package is no package.
    assert "can't be unpacked" in done.stderr.splitlines()[-1]
    # Another version of the same kernel is nearest.
    apt({"linux-source-7.1": "7.1.9-1", "linux-source-7.2": "7.2.14-1"})
    assert "taking linux-source-7.2 7.2.14-1" in checkout.build().stderr
    apt({"linux-source-8.0": "8.0.1-1"})
    assert "can't get linux-source-7" in checkout.refused()


@needs_build_tools
def test_what_was_kept_is_taken_instead_of_a_mirror(
    checkout: Checkout, apt: Callable[..., None], mirror: Path, tmp_path: Path
) -> None:
    apt({}, update="exit 100")
    sources = tmp_path / "kept sources"
    # The mirror has no kernel: it goes as far as the programs.
    assert "can't get linux-source-7" in checkout.refused("--keep-sources", str(sources))
    assert [path.name for path in sources.iterdir()] == [mirror.name]
    mirror.unlink()
    assert "no mirror of this machine's has all" in checkout.refused()
    assert "can't get linux-source-7" in checkout.refused("--sources", str(sources))
    (sources / mirror.name).write_bytes(b"something else.......")
    assert "wrong checksum" in checkout.refused("--sources", str(sources))


@needs_build_tools
def test_a_machine_without_debians_archive(checkout: Checkout) -> None:
    checkout.stub("apt-config", "echo \"etc='/nowhere/'\"")
    assert "set MEASURETWICE_MIRROR" in checkout.refused()
