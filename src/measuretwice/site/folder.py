"""The folder of prepared pages, which mkdocs reads: what is written there, and what is no longer."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from measuretwice.site.maths import with_formulas


@dataclass
class Folder:
    """The folder `path`, and the files that this time are put there."""

    path: Path
    written: set[Path] = field(default_factory=set)

    def write(self, name: str, text: str) -> None:
        """Write a page, if it is another than the one there: mkdocs watches these files."""
        # A path from the site's root, as words give it, is made one from this page.
        up = "../" * name.count("/")
        text = re.sub(r"(?<=\]\()/(?=assets/)", up, text)
        text = with_formulas(name, text) if name.endswith(".md") else text
        path = self.path / name
        self.written.add(path)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def write_bytes(self, content: bytes, name: str) -> None:
        """Write a file that is no text, if it is another than the one there."""
        path = self.path / name
        self.written.add(path)
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def keep(self, name: str) -> bool:
        """Leave the page as it is there; return whether there is one."""
        path = self.path / name
        if not path.is_file():
            return False
        self.written.add(path)
        return True

    def copy(self, source: Path, name: str) -> None:
        """Put a copy of a file there, if it is another than the one there."""
        path = self.path / name
        self.written.add(path)
        if not path.is_file() or path.read_bytes() != source.read_bytes():
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, path)

    def pages(self, folder: str, names: list[str]) -> dict[str, str]:
        """Return the text of those pages NAME.md below `folder` that were written, by name."""
        paths = {name: self.path / folder / f"{name}.md" for name in names}
        return {
            name: path.read_text(encoding="utf-8")
            for name, path in paths.items()
            if path in self.written
        }

    def sweep(self) -> None:
        """Remove what was not written this time, and folders that are empty then."""
        for path in sorted(self.path.rglob("*"), reverse=True):
            if path.is_file() and path not in self.written:
                path.unlink()
            elif path.is_dir() and not any(path.iterdir()):
                path.rmdir()
