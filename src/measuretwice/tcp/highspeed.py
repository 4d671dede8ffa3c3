"""HighSpeed TCP as Linux has it: a loss takes the part that a step of RFC 3649's table says.

Read from net/ipv4/tcp_highspeed.c of Linux 7.2. What RFC 3649 says of any window is in model.py.
"""

from __future__ import annotations

# Appendix B of RFC 3649: up to which window (segments), and which part of it, in 1/256, a loss takes.
STEPS = (
    (38, 128), (118, 112), (221, 104), (347, 98), (495, 93), (663, 89), (851, 86), (1058, 83),
    (1284, 81), (1529, 78), (1793, 76), (2076, 74), (2378, 72), (2699, 71), (3039, 69),
    (3399, 68), (3778, 66), (4177, 65), (4596, 64), (5036, 62), (5497, 61), (5979, 60),
    (6483, 59), (7009, 58), (7558, 57), (8130, 56), (8726, 55), (9346, 54), (9991, 53),
    (10661, 52), (11358, 52), (12082, 51), (12834, 50), (13614, 49), (14424, 48), (15265, 48),
    (16137, 47), (17042, 46), (17981, 45), (18955, 45), (19965, 44), (21013, 43), (22101, 43),
    (23230, 42), (24402, 41), (25618, 41), (26881, 40), (28193, 39), (29557, 39), (30975, 38),
    (32450, 38), (33986, 37), (35586, 36), (37253, 36), (38992, 35), (40808, 35), (42707, 34),
    (44694, 33), (46776, 33), (48961, 32), (51258, 32), (53677, 31), (56230, 30), (58932, 30),
    (61799, 29), (64851, 28), (68113, 28), (71617, 27), (75401, 26), (79517, 26), (84035, 25),
    (89053, 24),
)  # fmt: skip


def decrease_ratio(window_segments: float) -> float:
    """Return which share of its window Linux' HighSpeed TCP gives up after a loss.

    That of the first step that isn't below the window. The loss that ends slow start takes the
    first step's half instead: Linux looks for the step as the window grows in congestion avoidance.
    """
    parts = (part for until, part in STEPS if window_segments <= until)
    return next(parts, STEPS[-1][1]) / 256
