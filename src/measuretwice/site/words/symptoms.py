"""The figure of a case's symptom: drawn once of its recorded runs, kept in build/, told in words."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from functools import cache
from pathlib import Path

from measuretwice.base.files import read_object
from measuretwice.base.paths import PACKAGE
from measuretwice.figures.files import DARK, Facts
from measuretwice.figures.palette import in_the_dark
from measuretwice.figures.rows import counted_runs
from measuretwice.lab.schema.cases import Pitfall
from measuretwice.measure.over_time import OverTime
from measuretwice.runs.recorded import SET_FILE
from measuretwice.site.words.blocks import Block
from measuretwice.site.words.drawn import captioned, picture
from measuretwice.site.words.pitfalls import pitfall
from measuretwice.site.words.registry import word
from measuretwice.site.words.subjects import LabWords
from measuretwice.view.over_time import read_over_time

# How a picture is named and headed: of the first try alone, or of that beside the run after it.
FIRST, BEFORE, AFTER = "first", "before", "after"
HEADINGS = {FIRST: "", BEFORE: "First try", AFTER: "After the change"}
# Beside the pictures: what each shows and its size, by its name; and their captions.
FACTS = "figures.json"
CAPTIONS = "captions"


@word('symptom("mtu")')
def symptom(words: LabWords, name: str, stage: str = "broken") -> Block:
    """The figure of what is seen of a case's first try; `symptom("mtu", "fixed")`, that beside the run
    after the change, on the same axes. Its caption says of how many runs it is."""
    staged = pitfall(words, name)
    facts = read_object(symptom_pictures(words, staged) / FACTS)
    wanted = (FIRST,) if stage == "broken" else (BEFORE, AFTER)
    lab = words.lab.folder.name
    pictures = [
        picture(lab, f"{file}{variant}.svg", facts[file]["alt"], facts[file]["size"], classes)
        for place in range(len(staged.figure))
        for kind in wanted
        if (file := _file(words, staged, place, kind)) in facts
        for variant, classes in (("", ".light"), (DARK, ".dark"))
    ]
    if not pictures:
        return Block("")
    return Block(captioned(pictures, facts[CAPTIONS][stage], ".symptom"))


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
        PACKAGE / "figures/palette.py",
        PACKAGE / "view/over_time.py",
        PACKAGE / "measure/over_time.py",
        Path(__file__),
    ]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).digest()


def _draw(words: LabWords, staged: Pitfall, out: Path) -> None:
    # matplotlib takes half a second to import, and figures are drawn seldom.
    from measuretwice.figures.style import size_of, svg_text
    from measuretwice.figures.symptoms import Stage, draw_stages

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
    facts: Facts = {}
    same_axes = True
    if "broken" in recorded:
        for place, panel in enumerate(staged.figure):
            shown: list[tuple[tuple[str, ...], list[Stage]]] = [
                ((FIRST,), [Stage("", recorded["broken"], beside)])
            ]
            if "fixed" in recorded:
                pair = zip((BEFORE, AFTER), recorded.values(), strict=True)
                stages = [Stage(HEADINGS[kind], runs, beside, kind == AFTER) for kind, runs in pair]
                shown.append(((BEFORE, AFTER), stages))
            for kinds, stages in shown:
                figures = draw_stages(words.lab, panel, stages, over_time)
                if len(figures) > 1 and len({figure.description for figure in figures}) == 1:
                    # What was mended is what was made of it: twice the same picture shows nothing.
                    continue
                same_axes &= len({figure.axes[0].get_xlim() for figure in figures}) == 1
                for kind, figure in zip(kinds, figures, strict=True):
                    file, text = _file(words, staged, place, kind), svg_text(figure)
                    (out / f"{file}.svg").write_text(text, encoding="utf-8")
                    (out / f"{file}{DARK}.svg").write_text(in_the_dark(text), encoding="utf-8")
                    heading = f"{HEADINGS[kind]}. " if HEADINGS[kind] else ""
                    facts[file] = {"alt": heading + figure.description, "size": size_of(figure)}
    counts = [len(runs) for runs in recorded.values()]
    facts[CAPTIONS] = {
        "broken": f"What the recorded run measured: the first try, {counted_runs(counts[:1] or [0])}",
        "fixed": f"First try and after the change, {counted_runs(counts or [0])} each"
        + (", on the same axes" if same_axes else "; the times differ"),
    }
    (out / FACTS).write_text(json.dumps(facts, indent=1), encoding="utf-8")


def _file(words: LabWords, staged: Pitfall, place: int, kind: str) -> str:
    return f"case-{words.lab.case_number(staged):02d}-{place + 1}-{kind}"
