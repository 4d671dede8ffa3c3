"""The reference pages: what they say of files, held against recorded runs."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

from measuretwice.backends import virtual as kernel
from measuretwice.checks import TELLING
from measuretwice.cli.release import described
from measuretwice.lab import load_lab
from measuretwice.site.macros import LabContext, SiteContext
from measuretwice.site.macros.site import fields_table

ROOT = Path(__file__).parents[2]


def test_every_raw_file_is_explained() -> None:
    page = (ROOT / "docs/reference/run-folder.md").read_text(encoding="utf-8")
    explained = set(re.findall(r"`([^`/ ]+)`", page))
    archives = sorted(ROOT.glob("sample-data/*/*-broken/*/raw.tar.xz"))
    assert archives
    for archive in archives:
        with tarfile.open(archive) as packed:
            for name in packed.getnames():
                file = re.sub(r"^iperf3-\d+\.", "iperf3-N.", Path(name).name)
                file = re.sub(r"-\d+\.(json|txt)$", r"-PORT.\1", file)
                # A step's own log has the step's name: they are explained together.
                assert file in explained or file.endswith(".log"), name


def test_a_table_of_values_tells_no_case_on_students_pages() -> None:
    parts = ("measured", "together", "crowd", "flow", "crowd_flow")
    mathis = LabContext(ROOT, load_lab(ROOT, "mathis"))
    pages = {
        instructor: {
            name
            for part in parts
            for name in re.findall(
                r"`(\w+)`",
                str(fields_table(SiteContext(ROOT, {"mathis": mathis}, instructor), part)),
            )
        }
        for instructor in (True, False)
    }
    assert pages[True] >= {"other_qdisc_drops", "own_counted_halvings", "buffer_bdp_ratio_max"}
    assert not pages[False] & TELLING
    assert pages[True] - pages[False] <= TELLING


def test_the_command_line_is_in_plain_words() -> None:
    options = {
        (command.name, option.names): option.help
        for command in described()
        for option in command.options
    }
    assert options["check", "--hint N"].endswith("[1 to 3]")
    assert "1 to 65535" in options["docs", "--port N"]
    # In backticks a backslash would show.
    assert ("grade", "--again N|ALL") in options
    text = " ".join(f"{names} {help_text}" for (_, names), help_text in options.items())
    assert not re.search(r"RANGE|x&lt;|<=|--help", text)


def test_the_virtual_kernels_page_says_what_is_built() -> None:
    page = (ROOT / "docs" / "reference" / "virtual-kernel.md").read_text()
    patches = sorted((ROOT / "scripts" / "kernel" / "patches").glob("*.patch"))
    counted = {11: "eleven", 12: "twelve", 13: "thirteen"}[len(patches)]
    assert f"{counted} small patches" in page
    assert page.count("\n| ", page.index("| patch | why |")) >= len(patches)
    clock = patches[0].read_text()
    assert "#define TIME_TRAVEL_READ_COST_NS\t32ULL" in clock
    assert "| 32 ns;" in page
    assert kernel.READER_INTERVAL_US == 10_000
    assert "every 10 ms" in page
