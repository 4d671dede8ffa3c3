"""Lines over time as text: for a terminal, with labelled axes. One line in braille dots, several in
a mark each, so that they can be told apart without colours."""

from __future__ import annotations

from collections.abc import Sequence

MARKS = "*o+x"
SHARED = "#"
# A braille character has two by four dots; their bits, by row and column (U+2800 and on).
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_BRAILLE = 0x2800
_LABEL_WIDTH = 8
Points = tuple[Sequence[float], Sequence[float]]


def text_panel(
    heading: str, lines: Sequence[Points], spans: tuple[float, float], width: int, height: int
) -> list[str]:
    """Return a panel of `width` characters: its heading, `height` rows with the y axis, the x axis.

    `spans` are the largest x and y; both axes begin at 0. Every line of the result is as wide.
    """
    columns = max(10, width - _LABEL_WIDTH - 2)
    most_x, most_y = (span if span > 0 else 1.0 for span in spans)
    draw = _braille if len(lines) == 1 else _marks
    rows = draw(lines, (most_x, most_y), columns, height)
    labels = [""] * height
    labels[0], labels[-1] = _short(most_y), "0"
    if height % 2:
        labels[height // 2] = _short(most_y / 2)
    body = [f"{label:>{_LABEL_WIDTH}} ┤{row}" for label, row in zip(labels, rows, strict=True)]
    end = f"{most_x:.4g} s"
    axis = f"{'':>{_LABEL_WIDTH}} └{'─' * columns}"
    foot = f"{'':>{_LABEL_WIDTH}}  0{'':{columns - 1 - len(end)}}{end}"
    return [f"{line[:width]:<{width}}" for line in (heading, *body, axis, foot)]


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else f"{value:.4g}"


def _cells(
    line: Points, most: tuple[float, float], columns: int, rows: int
) -> set[tuple[int, int]]:
    """The cells that a line goes through: column, and row counted from below.

    Every sample is on it, so that a short peak isn't lost, and a straight line between each two.
    """
    cells: set[tuple[int, int]] = set()
    before: tuple[int, int] | None = None
    for x, y in zip(*line, strict=True):
        if not 0 <= x <= most[0]:
            continue
        column = min(columns - 1, int(x / most[0] * columns))
        row = max(0, min(rows - 1, round(y / most[1] * (rows - 1))))
        from_column, from_row = before or (column, row)
        steps = max(abs(column - from_column), abs(row - from_row), 1)
        for step in range(steps + 1):
            share = step / steps
            cells.add((
                round(from_column + (column - from_column) * share),
                round(from_row + (row - from_row) * share),
            ))  # fmt: skip
        before = column, row
    return cells


def _braille(
    lines: Sequence[Points], most: tuple[float, float], columns: int, height: int
) -> list[str]:
    grid = [[0] * columns for _ in range(height)]
    for column, row in _cells(lines[0], most, 2 * columns, 4 * height):
        from_top = 4 * height - 1 - row
        grid[from_top // 4][column // 2] |= _DOTS[from_top % 4][column % 2]
    return ["".join(chr(_BRAILLE + dots) if dots else " " for dots in row) for row in grid]


def _marks(
    lines: Sequence[Points], most: tuple[float, float], columns: int, height: int
) -> list[str]:
    grid = [[" "] * columns for _ in range(height)]
    for number, line in enumerate(lines):
        mark = MARKS[number % len(MARKS)]
        for column, row in _cells(line, most, columns, height):
            cell = grid[height - 1 - row][column]
            grid[height - 1 - row][column] = mark if cell in (" ", mark) else SHARED
    return ["".join(row) for row in grid]
