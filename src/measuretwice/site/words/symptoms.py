"""The figure of a case's symptom: drawn once of its recorded runs, kept in build/, told in words."""

from __future__ import annotations

import hashlib
import html
import json
import shutil
import tempfile
from functools import cache
from pathlib import Path

from measuretwice.base.files import read_object
from measuretwice.base.paths import PACKAGE
from measuretwice.lab import Pitfall
from measuretwice.measure.over_time import OverTime
from measuretwice.runs.recorded import SET_FILE
from measuretwice.site.words.blocks import Block
from measuretwice.site.words.pitfalls import pitfall
from measuretwice.site.words.registry import word
from measuretwice.site.words.subjects import LabWords
from measuretwice.view.over_time import read_over_time

# How a picture is named and headed: of the first try alone, or of that beside the mended run.
FIRST, BEFORE, AFTER = "first", "before", "after"
HEADINGS = {FIRST: "", BEFORE: "The first try", AFTER: "Mended"}
# Beside the pictures: what each shows, by its name.
WORDS = "words.json"


@word('symptom("mtu")')
def symptom(words: LabWords, name: str, stage: str = "broken") -> Block:
    """The figure of what is seen of a case's first try; `symptom("mtu", "fixed")`, that beside the mended
    run's."""
    staged = pitfall(words, name)
    folder = symptom_pictures(words, staged)
    said = read_object(folder / WORDS)
    wanted = (FIRST,) if stage == "broken" else (BEFORE, AFTER)
    pictures = [
        f"![{html.escape(said[file])}](/assets/figures/{words.lab.folder.name}/{file})"
        '{ .figure loading="lazy" }'
        for place in range(len(staged.figure))
        for kind in wanted
        if (file := _file(words, staged, place, kind)) in said
    ]
    return Block("\n".join([*pictures, "{ .symptom }"]) + "\n" if pictures else "")


def symptom_pictures(words: LabWords, staged: Pitfall) -> Path:
    """Return the folder with a case's pictures, drawn where those that are kept are of other runs.

    UserError where a run hasn't what a panel shows.
    """
    sources = [
        file
        for name in (f"{staged.id}-broken", f"{staged.id}-fixed", *words.steps[-1:])
        if (file := words.set_folder(name) / SET_FILE).is_file()
    ]
    digest = hashlib.sha256(_code())
    digest.update(repr(staged.figure).encode())
    for file in sources:
        digest.update(file.read_bytes())
    of_lab = words.root / "build/symptoms" / words.lab.folder.name
    number = words.lab.case_number(staged)
    kept = of_lab / f"{number:02d}-{digest.hexdigest()[:16]}"
    if not kept.is_dir():
        of_lab.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=".part-", dir=of_lab))
        try:
            _draw(words, staged, part)
            for old in of_lab.glob(f"{number:02d}-*"):
                shutil.rmtree(old, ignore_errors=True)
            part.rename(kept)
        except OSError:
            # Another site is being made of the same checkout, and was first.
            if not kept.is_dir():
                raise
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return kept


@cache
def _code() -> bytes:
    files = [
        *sorted((PACKAGE / "figures").glob("symptom*.py")),
        PACKAGE / "figures/style.py",
        PACKAGE / "view/over_time.py",
        PACKAGE / "measure/over_time.py",
        Path(__file__),
    ]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).digest()


def _draw(words: LabWords, staged: Pitfall, out: Path) -> None:
    # matplotlib takes half a second to import, and figures are drawn seldom.
    from measuretwice.figures.symptoms import Stage, draw_stages, small_svg

    @cache
    def over_time(run: Path) -> OverTime:
        return read_over_time(words.root, run, None)

    recorded = {
        stage: words.results_of(f"{staged.id}-{stage}")
        for stage in ("broken", "fixed")
        if (words.set_folder(f"{staged.id}-{stage}") / SET_FILE).is_file()
    }
    beside = [
        run for run in (words.results_of(words.steps[-1]) if words.steps else []) if run.comparable
    ]
    said = {}
    if "broken" in recorded:
        for place, panel in enumerate(staged.figure):
            shown: list[tuple[tuple[str, ...], list[Stage]]] = [
                ((FIRST,), [Stage("", recorded["broken"], beside)])
            ]
            if "fixed" in recorded:
                pair = zip((BEFORE, AFTER), recorded.values(), strict=True)
                stages = [Stage(HEADINGS[kind], runs, beside) for kind, runs in pair]
                shown.append(((BEFORE, AFTER), stages))
            for kinds, stages in shown:
                figures = draw_stages(words.lab, panel, stages, over_time)
                if len(figures) > 1 and len({figure.description for figure in figures}) == 1:
                    # What was mended is what was made of it: twice the same picture shows nothing.
                    continue
                for kind, figure in zip(kinds, figures, strict=True):
                    file = _file(words, staged, place, kind)
                    (out / file).write_text(small_svg(figure), encoding="utf-8")
                    heading = f"{HEADINGS[kind]}. " if HEADINGS[kind] else ""
                    said[file] = heading + figure.description
    (out / WORDS).write_text(json.dumps(said, indent=1), encoding="utf-8")


def _file(words: LabWords, staged: Pitfall, place: int, kind: str) -> str:
    return f"case-{words.lab.case_number(staged):02d}-{place + 1}-{kind}.svg"
