"""A student's own runs over the recorded steps: one HTML file that needs nothing else.

It holds no cause that its student hasn't found: steps go by their cases' numbers and what is seen, and
the settings of runs, which would tell, stay out of it until all these cases are solved.
"""

from __future__ import annotations

import html
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Template

from measuretwice.base.files import write_text
from measuretwice.figures import rows as figure_rows
from measuretwice.figures.rows import (
    ROW_KEYS,
    StepRuns,
    json_for_script,
    names_of,
    run_data,
    steps_data,
)
from measuretwice.lab import Lab, first_try_cases, recorded_steps, step_cases
from measuretwice.runs.first_try_history import Try, results_of_try
from measuretwice.runs.recorded import SET_FILE, results_of

FIGURE = "figure.html"
ASSETS = "docs/assets"
TEMPLATE = Path(__file__).parent / "templates/own-figure.html.j2"
SCRIPTS = (
    "interactive/common.js",
    "interactive/chart.js",
    "interactive/steps.js",
)
# Of a run's data, what tells how it was set: why the model makes no claim, and its command.
TELLING = (len(ROW_KEYS) + 1, len(ROW_KEYS) + 2)


def own_figure(
    root: Path, lab: Lab, folder: Path, tries: Sequence[Try], opened: Collection[int]
) -> Path | None:
    """Write the figure beside the runs and return its path; None of a lab without a model, or without
    its recorded runs.

    `opened` are the cases whose cause its student knows.
    """
    use = lab.file.model
    samples = root / "sample-data" / lab.folder.name
    recordings = recorded_steps(lab)
    if use is None or not all(
        (samples / recording.id / SET_FILE).is_file() for recording in recordings
    ):
        return None
    steps = [
        StepRuns(
            recording.title, step_cases(lab, recording.id), results_of(lab, samples / recording.id)
        )
        for recording in recordings
    ]
    data = steps_data(lab, use, steps)
    data["own"] = [
        {
            "title": own_try.after,
            "brief": own_try.brief,
            "runs": [
                run_data(lab, row, result)
                for result in results_of_try(folder, own_try, lab)
                for row in figure_rows.rows_for_table([result], names_of(use))
            ],
        }
        for own_try in tries
    ]
    _veil(data, opened, first_try_cases(lab))
    path = folder / FIGURE
    write_text(path, page(root, lab, data))
    return path


def _veil(data: dict[str, Any], opened: Collection[int], moving: Collection[int]) -> None:
    """Take out of the figure's data what its student hasn't found yet."""
    for step in data["steps"]:
        step["open"] = {case["number"] for case in step["cases"]} <= set(opened)
        if not step["open"]:
            step["title"] = None
    if set(moving) <= set(opened):
        return
    for step in (*data["steps"], *data["own"]):
        for run in step["runs"]:
            for index in TELLING:
                run[index] = None
    # What was published says of some values why they are off.
    for value in data["published"]:
        value["note"] = ""


def page(root: Path, lab: Lab, data: dict[str, Any]) -> str:
    """Return the whole page: its styles, scripts and data are in it."""
    assets = root / ASSETS
    scripts = [(assets / name).read_text(encoding="utf-8") for name in SCRIPTS]
    escaped = (script.replace("</script", "<\\/script") for script in scripts)
    template = Template(TEMPLATE.read_text(encoding="utf-8"), keep_trailing_newline=True)
    rendered: str = template.render(
        lab=lab.name,
        title=html.escape(f"Your own runs: {lab.file.lab.title}"),
        styles=(assets / "extra.css").read_text(encoding="utf-8"),
        data=json_for_script(data),
        scripts="\n".join(f"<script>\n{script}\n</script>" for script in escaped),
    )
    return rendered
