"""The runs that a browser keeps for its pages, as files."""

from __future__ import annotations

import base64
import io
import tarfile
from pathlib import Path
from typing import Any

# The packed runs of a lab, by the names of their folders.
PACKED = """async (lab) => {
  const { kept_names, kept_value } = await import(new URL("../../../assets/machine/store.mjs", location.href));
  const text = (bytes) => { let all = ""; for (const byte of new Uint8Array(bytes)) all += String.fromCharCode(byte); return btoa(all); };
  const names = (await kept_names(lab)).filter((name) => !name.endsWith("lab-book.md"));
  return Promise.all(names.map(async (name) => [name.slice(lab.length + 1), text((await kept_value(name)).tar)]));
}"""


def files_of(tar: str) -> dict[str, bytes]:
    """The files of a page's own tar, in base64: it has names up to a hundred bytes and plain files alone."""
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(tar))) as packed:
        return {
            entry.name: file.read()
            for entry in packed
            if (file := packed.extractfile(entry)) is not None
        }


def kept_runs(page: Any, lab: str, to: Path) -> list[Path]:
    """Write a lab's runs that a page's browser keeps into folders in `to`, and return these."""
    packed: list[tuple[str, str]] = page.evaluate(PACKED, lab)
    for folder, tar in packed:
        for name, content in files_of(tar).items():
            path = to / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    return sorted(to / folder for folder, _ in packed)
