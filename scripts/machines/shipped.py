#!/usr/bin/env python3
"""The machines that come with the checkout, in machines/: packed, checked and unpacked.

    shipped.py unpack KIND FOLDER   a machine's files into FOLDER, after its archive's checksum
    shipped.py pack KIND FOLDER     FOLDER, as a builder left it in the cache, becomes machines/KIND.tar.xz and KIND.json
    shipped.py lint                 does each manifest name what this checkout would build?

KIND is kernel, browser or libraries. The builders call the first (scripts/kernel/tools.sh), so this needs nothing
but Python's own library. The same folder is the same archive, whatever its files' owners, dates and order on disk.

Exit codes: 0 done, 1 it can't be done (one line says why), 2 wrong usage.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import lzma
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
MACHINES = CHECKOUT / "machines"
# What a builder says of what it built, which the manifest repeats; and the script that builds it.
FACTS = {"kernel": "kernel.json", "browser": "machine.json", "libraries": None}
BUILDERS = {
    "kernel": "scripts/kernel/build.sh",
    "browser": "scripts/browser/build.sh",
    "libraries": "scripts/browser/libraries.sh",
}
# The checksums of a machine's files, but for what a builder says of it, as sha256sum(1) has them: by these a damaged
# file is told later (backends/machines.py).
SUMS = "SHA256SUMS"
# Most of it is programs for x86: their calls are given by absolute addresses, which repeat. The dictionary holds the
# largest machine whole.
FILTERS = [
    {"id": lzma.FILTER_X86},
    {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 64 << 20},
]
PACKED_TWICE = ".gz"
LARGEST_MANIFEST_BYTES = 1 << 20
MOST_COMPRESSED = 4


class Failed(Exception):
    """Why it can't be done, in a line."""


# --- packing -------------------------------------------------------------------------------------


def pack(kind: str, folder: Path) -> None:
    """Write a ready machine's archive and its manifest."""
    key = folder.name
    facts_file = FACTS[kind]
    if not (folder / (facts_file or "")).exists():
        raise Failed(f"{folder}: no ready machine of this kind")
    facts = json.loads((folder / facts_file).read_text("utf-8")) if facts_file else {}
    if facts.get("origin", "built") != "built":
        raise Failed(f"{folder}: was unpacked, not built; MEASURETWICE_KERNEL=build builds one")
    MACHINES.mkdir(exist_ok=True)
    archive = MACHINES / f"{kind}.tar.xz"
    part = archive.with_name(f"{archive.name}.part")
    with (
        lzma.open(
            part, "wb", format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC64, filters=FILTERS
        ) as out,
        tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for path in _files(folder):
            _add(tar, folder, path)
    part.replace(archive)
    manifest = {
        "key": key,
        "archive": archive.name,
        "bytes": archive.stat().st_size,
        "sha256": _sha256(archive),
        "unpacked_bytes": sum(path.stat().st_size for path in _plain_files(folder)),
        "build_again": BUILDERS[kind],
        "made_from": list(sources(kind)),
        "facts": facts,
    }
    text = json.dumps(manifest, indent=2) + "\n"
    (MACHINES / f"{kind}.json").write_text(text, encoding="utf-8")
    print(f"{archive.relative_to(CHECKOUT)}: {archive.stat().st_size / 1e6:.1f} MB")


def _files(folder: Path) -> list[Path]:
    """What is packed, in one order: files of a kind stand together, which packs smaller."""
    paths = [path for path in folder.rglob("*") if path != folder / SUMS]
    folders = sorted(path for path in paths if path.is_dir() and not path.is_symlink())
    others = (path for path in paths if path.is_symlink() or not path.is_dir())
    return folders + sorted(others, key=lambda path: (path.suffix, path.name, path.as_posix()))


def _plain_files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _add(tar: tarfile.TarFile, folder: Path, path: Path) -> None:
    """Add a file without owner and date. What is compressed already is added as it was before."""
    entry = tar.gettarinfo(path, path.relative_to(folder).as_posix())
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    # A second name of the same file is a file of its own.
    if entry.islnk():
        entry.type, entry.linkname, entry.size = tarfile.REGTYPE, "", path.stat().st_size
    entry.mode = 0o777 if entry.issym() else 0o755 if entry.mode & 0o100 else 0o644
    if not entry.isreg():
        tar.addfile(entry)
        return
    content = path.read_bytes()
    if path.suffix == PACKED_TWICE:
        content = gzip.decompress(content)
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))


def sources(kind: str) -> Iterator[dict[str, str]]:
    """Yield what a machine is made from: packages with their checksums, the source packages that they are of by
    Debian's names, and licences."""
    licences = _Licences(json.loads(Path(__file__).with_name("licences.json").read_text("utf-8")))
    if kind == "libraries":
        for line in _lines(CHECKOUT / "scripts/browser/libraries.txt"):
            package, version, sha512, *_ = line.split()
            yield {
                "package": package,
                "version": version,
                "sha512": sha512,
                "licence": licences[package],
            }
        return
    pins = dict(
        re.findall(
            r"^(\w+)='?([^'\n]*)'?$",
            (CHECKOUT / "scripts/kernel/source.sh").read_text("utf-8"),
            re.M,
        )
    )
    yield {
        "package": pins["PIN_PACKAGE"],
        "version": pins["PIN_VERSION"],
        "sha256": pins["PIN_SHA256"],
        "source": "linux",
        "licence": licences["linux"],
    }
    if kind == "browser":
        text = (CHECKOUT / BUILDERS[kind]).read_text("utf-8")
        v86 = dict(re.findall(r"^V86_(\w+)=(.*)$", text, re.M))
        yield {
            "package": "v86",
            "version": v86["VERSION"],
            "sha512": v86["SHA512"],
            "licence": licences["v86"],
        }
    for line in _lines(CHECKOUT / Path(BUILDERS[kind]).parent / "packages.txt"):
        sha256, place, _called, *_ = line.split(" ")
        file = Path(place)
        package, version, *_ = (
            file.name.removesuffix(".deb").removesuffix(".orig.tar.xz").split("_")
        )
        source = file.parent.name
        yield {
            "package": package,
            "version": version,
            "sha256": sha256,
            "source": source,
            "licence": licences[source],
        }


class _Licences(dict[str, str]):
    """What is under which licence, by the names of source packages."""

    def __missing__(self, name: str) -> str:
        raise Failed(
            f"scripts/machines/licences.json has none for {name}: add it, from the package's copyright file"
        )


def _lines(path: Path) -> list[str]:
    return [
        line for line in path.read_text("utf-8").splitlines() if line and not line.startswith("#")
    ]


# --- unpacking -----------------------------------------------------------------------------------


def unpack(kind: str, folder: Path) -> None:
    """Check a machine's archive by the manifest, and write its files; of a machine their checksums, too."""
    manifest = read_manifest(kind)
    archive = MACHINES / f"{kind}.tar.xz"
    check(archive, manifest)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with lzma.open(archive) as data, tarfile.open(fileobj=data, mode="r|") as tar:
            # What is compressed again is larger in the archive.
            bytes_left = MOST_COMPRESSED * manifest["unpacked_bytes"]
            for entry in tar:
                bytes_left -= entry.size
                if bytes_left < 0:
                    raise ValueError("more than its manifest says")
                _write(tar, entry, folder)
        if facts := FACTS[kind]:
            names = sorted(path.relative_to(folder).as_posix() for path in _plain_files(folder))
            sums = [f"{_sha256(folder / name)}  {name}\n" for name in names if name != facts]
            (folder / SUMS).write_text("".join(sums), encoding="utf-8")
    except (EOFError, ValueError, AssertionError, lzma.LZMAError, tarfile.TarError) as error:
        raise Failed(f"machines/{archive.name} is damaged ({error}): {_again(archive)}") from None
    except OSError as error:
        raise Failed(
            f"can't unpack {archive.name} into {folder.parent}: {error.strerror}"
        ) from None


def check(archive: Path, manifest: dict[str, Any]) -> None:
    """Failed where an archive isn't the one that its manifest names."""
    name = f"machines/{archive.name}"
    if not archive.is_file():
        raise Failed(f"{name} is missing: {_again(archive)}")
    try:
        same = (
            archive.stat().st_size == manifest["bytes"] and _sha256(archive) == manifest["sha256"]
        )
    except OSError as error:
        raise Failed(f"{name}: {error.strerror}: {_again(archive)}") from None
    if not same:
        raise Failed(f"{name} is damaged, its checksum isn't its manifest's: {_again(archive)}")


def _again(archive: Path) -> str:
    return (
        f"get it again (git checkout machines/{archive.name}, or download the kit anew), or build it: "
        "MEASURETWICE_KERNEL=build"
    )


def _write(tar: tarfile.TarFile, entry: tarfile.TarInfo, folder: Path) -> None:
    """Write one entry: a folder, a link or a file; what was compressed is so again. ValueError where it would lead out
    of the folder, by its name or by a link that was unpacked before, or is there already."""
    place = folder / entry.name
    if ".." in Path(entry.name).parts or Path(entry.name).is_absolute():
        raise ValueError(f"{entry.name} leads out of it")
    if not place.parent.resolve().is_relative_to(folder.resolve()) or place.is_symlink():
        raise ValueError(f"{entry.name} leads out of it")
    if entry.isdir():
        place.mkdir(exist_ok=True)
    elif entry.issym():
        place.symlink_to(entry.linkname)
    elif not entry.isreg():
        raise ValueError(f"{entry.name} is no file, folder or link")
    else:
        file = tar.extractfile(entry)
        assert file is not None, entry.name
        content = file.read()
        if place.suffix == PACKED_TWICE:
            content = gzip.compress(content, mtime=0)
        place.write_bytes(content)
        place.chmod(entry.mode)


def read_manifest(kind: str) -> dict[str, Any]:
    """Return what machines/KIND.json says; Failed where it lacks what is asked of it."""
    try:
        with open(MACHINES / f"{kind}.json", "rb") as file:
            manifest = json.loads(file.read(LARGEST_MANIFEST_BYTES))
        wanted = {"key": str, "sha256": str, "bytes": int, "unpacked_bytes": int, "made_from": list}
        for name, form in wanted.items():
            if not isinstance(manifest[name], form):
                raise TypeError(name)
        assert isinstance(manifest, dict)
        return manifest
    except (OSError, ValueError, TypeError, KeyError, AssertionError, RecursionError):
        raise Failed(
            f"machines/{kind}.json is missing or damaged: git checkout machines, or download the kit anew"
        ) from None


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        digest = hashlib.sha256()
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


# --- lint ----------------------------------------------------------------------------------------


def lint() -> None:
    """Failed where a patch, a list or a script changed and the machine that is shipped did not."""
    for kind, builder in BUILDERS.items():
        done = subprocess.run(
            ["bash", CHECKOUT / builder, "--key"], capture_output=True, text=True, check=True
        )
        manifest = read_manifest(kind)
        if manifest["key"] != done.stdout.strip():
            raise Failed(
                f"machines/{kind}.tar.xz isn't what {builder} would build now (key {done.stdout.strip()}, shipped "
                f"{manifest['key']}): run make machines, and commit machines/"
            )
        check(MACHINES / f"{kind}.tar.xz", manifest)
        if manifest["made_from"] != list(sources(kind)):
            raise Failed(
                f"machines/{kind}.json lists other packages than {builder} takes: run make machines"
            )


def main(arguments: list[str]) -> int:
    try:
        match arguments:
            case ["pack", kind, folder] if kind in BUILDERS:
                pack(kind, Path(folder))
            case ["unpack", kind, folder] if kind in BUILDERS:
                unpack(kind, Path(folder))
            case ["lint"]:
                lint()
            case _:
                print((__doc__ or "").split("\n\n")[1], file=sys.stderr)
                return 2
    except Failed as error:
        print(f"{Path(__file__).name}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
