"""A student's own runs over the recorded steps: one HTML file that needs nothing else.

It holds no cause that its student hasn't found: steps go by their cases' numbers and what is seen, and
the settings of runs, which would tell, stay out of it until all these cases are solved.
"""

from __future__ import annotations

import html
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from measuretwice.base.files import write_text
from measuretwice.figures import rows as figure_rows
from measuretwice.lab import Lab, first_try_cases, recorded_steps, step_cases
from measuretwice.runs.first_try_history import Try, results_of_try
from measuretwice.runs.recorded import SET_FILE, results_of
from measuretwice.site.macros.blocks import json_for_script
from measuretwice.site.macros.interactive import (
    ROW_KEYS,
    StepRuns,
    names_of,
    run_data,
    steps_data,
)

FIGURE = "figure.html"
ASSETS = "docs/assets"
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
            "title": known.after,
            "brief": known.brief,
            "runs": [
                run_data(lab, row, result)
                for result in results_of_try(folder, known, lab)
                for row in figure_rows.rows_for_table([result], names_of(use))
            ],
        }
        for known in tries
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
    """The whole page: its styles, scripts and data are in it."""
    assets = root / ASSETS
    title = html.escape(f"Your own runs: {lab.file.lab.title}")
    scripts = "\n".join(f"<script>\n{_script(assets / name)}\n</script>" for name in SCRIPTS)
    styles = (assets / "extra.css").read_text(encoding="utf-8")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{STYLE}
{styles}
</style>
</head>
<body class="md-typeset">
<main>
<h1>{title}</h1>
<p>The faint marks are the recorded runs, one a trial, at the step that you choose. The strong ones are yours. <code>./lab start {lab.name}</code>
adds a state of yours when you have solved more cases.</p>
<div class="interactive"><div class="live live--steps"></div></div>
<noscript><p>This figure is drawn by scripts. What your runs came to, ./lab progress {lab.name} says in words.</p></noscript>
</main>
<script type="application/json" id="data">{json_for_script(data)}</script>
{scripts}
<script>
{BEGIN}
</script>
</body>
</html>
"""


def _script(path: Path) -> str:
    return path.read_text(encoding="utf-8").replace("</script", "<\\/script")


# What the site's theme brings to its pages, as far as the figure needs it.
STYLE = """
[data-md-color-scheme] { --md-default-fg-color: #000000de; --md-default-fg-color--lightest: #00000012; --md-default-bg-color: #fff; --md-shadow-z2: 0 .2rem .5rem #0000001a; }
[data-md-color-scheme="slate"] { --md-default-fg-color: #e2e8ecd1; --md-default-fg-color--lightest: #e2e8ec1f; --md-default-bg-color: #1e2429; }
html { font-size: 125%; }
body { margin: 0; font: .8rem/1.6 system-ui, sans-serif; color: var(--md-default-fg-color); background: var(--md-default-bg-color); }
main { max-width: 61rem; margin: 0 auto; padding: .6rem 1rem 2rem; }
h1 { font-size: 1.3rem; line-height: 1.3; }
* { box-sizing: border-box; }
.md-button { display: inline-block; font: inherit; font-weight: 700; background: none; border: .1rem solid currentcolor; border-radius: .1rem; color: inherit; }
"""
BEGIN = """
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const dress = () => document.body.setAttribute("data-md-color-scheme", dark.matches ? "slate" : "default");
  dress();
  dark.addEventListener("change", dress);
  const figure = document.querySelector(".interactive");
  measureTwice.steps(figure.firstElementChild, JSON.parse(document.getElementById("data").textContent))
    .then(() => figure.classList.add("drawn"));
})();
"""
