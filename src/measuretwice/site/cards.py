"""The picture that a link to the site becomes elsewhere: one for the course, one for each module.

Whoever shows it fetches it by its full address. So there are some only where mkdocs.yml says, as
`site_url`, where the site will be.
"""

from __future__ import annotations

import hashlib
import re
import textwrap
from pathlib import Path

from measuretwice.lab import Lab
from measuretwice.site.folder import Folder

SITE_URL = re.compile(r"^site_url: *[\"']?(https?://[^\"'\s#]+)", re.MULTILINE)
PLACE = "assets/cards"
WIDE, HIGH, DPI = 1200, 630, 100
GROUND, INK, FAINT, ACCENT = "#0b4f6c", "#ffffff", "#cfe3ec", "#ffb68a"
COURSE = ("Measure Twice", "Reproduce a TCP result. Find out why your first try was wrong.")


def add_cards(settings: str, labs: list[Lab], pages: Folder) -> None:
    """Put the cards into the site, if it has an address; those that are kept are drawn once."""
    if not SITE_URL.search(settings):
        return
    wanted = {"course": COURSE}
    for lab in labs:
        wanted[lab.folder.name] = (lab.name.capitalize(), lab.file.lab.question or lab.file.lab.title)  # fmt: skip
    kept = pages.path.parent / "cards"
    kept.mkdir(parents=True, exist_ok=True)
    code = Path(__file__).read_bytes()
    for name, said in wanted.items():
        digest = hashlib.sha256(code + repr(said).encode()).hexdigest()[:16]
        file = kept / f"{name}-{digest}.png"
        if not file.is_file():
            for old in kept.glob(f"{name}-*.png"):
                old.unlink(missing_ok=True)
            file.write_bytes(card(*said))
        pages.copy(file, f"{PLACE}/{name}.png")


def card(title: str, says: str) -> bytes:
    """Return a PNG of 1200 by 630: what it is called, what it asks, and whose it is."""
    # matplotlib takes half a second to import, and cards are drawn seldom.
    import io

    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDE / DPI, HIGH / DPI), dpi=DPI, facecolor=GROUND)
    FigureCanvasAgg(figure)
    # The site's own sign: a window that grows and is halved.
    x = [0.72, 0.79, 0.79, 0.86, 0.86, 0.93, 0.93]
    y = [0.1, 0.24, 0.17, 0.31, 0.2, 0.34, 0.22]
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.plot(x, y, color=ACCENT, linewidth=7, solid_joinstyle="round", solid_capstyle="round")
    figure.text(0.07, 0.8, title, color=INK, fontsize=46, fontweight="bold", va="center")
    lines = "\n".join(textwrap.wrap(says, 36))
    figure.text(0.07, 0.68, lines, color=FAINT, fontsize=30, va="top", linespacing=1.35)
    figure.text(0.07, 0.1, "Measure Twice: TCP and queueing, for real", color=FAINT, fontsize=17)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=DPI, facecolor=GROUND, metadata={"Software": None})
    return out.getvalue()
