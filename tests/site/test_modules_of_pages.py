"""The pages' JavaScript modules: they import what they call (a name that is missing is only found by whoever presses the
button), and pages say of their memory what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs/assets/machine"
EXPORTED = re.compile(r"^export (?:async )?(?:function|const|class|let) (\w+)", re.MULTILINE)
# A name that the module has for itself: imported, declared, a parameter or a method.
OWN = r"(?:import[^;]*\b{0}\b[^;]*from|\b(?:function|const|let|class)[^=;(]*\b{0}\b|^  (?:async )?{0}\()"
COMMENT = re.compile(r"^\s*(?://|/?\*).*$", re.MULTILINE)


def not_imported(text: str, names: set[str]) -> list[str]:
    """Those of `names`, exported by other modules, that are used here as if they were."""
    code = COMMENT.sub("", text)
    used = [name for name in names if re.search(rf"(?<![\w.\"'-]){name}\(", code)]
    return sorted(name for name in used if not re.search(OWN.format(name), code, re.MULTILINE))


NAMES = {
    name for path in FOLDER.glob("*.mjs") for name in EXPORTED.findall(path.read_text("utf-8"))
}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.mjs")), ids=lambda path: path.name)
def test_what_is_called_is_imported(path: Path) -> None:
    assert not_imported(path.read_text("utf-8"), NAMES) == []


def test_what_is_missing_is_found() -> None:
    assert "from_packs" in NAMES
    live = (FOLDER / "live.mjs").read_text("utf-8")
    assert not_imported(live.replace(", from_packs }", " }"), NAMES) == ["from_packs"]


def test_pages_say_what_memory_modules_take() -> None:
    for module, name, words in (
        ("machine.mjs", "reference/browser-machine.md", "The Linux inside has {} MB of memory"),
        ("page.mjs", "reference/browser-machine.md", "about {} MB of memory"),
        ("page.mjs", "start/browser.md", "about {} MB of memory"),
    ):
        page = (FOLDER.parents[1] / name).read_text("utf-8")
        found = re.search(r"MEMORY_MB = (\d+);", (FOLDER / module).read_text("utf-8"))
        assert found
        assert words.format(found[1]) in page
