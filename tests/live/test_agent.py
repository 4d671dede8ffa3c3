"""The agent of a live lab's kernel, outside of it: what it does when much happens at once."""

import os
import select
from pathlib import Path

from measuretwice.live import wire
from measuretwice.live.agent import Agent


def test_a_shell_and_its_terminal_may_end_in_one_round_of_events(tmp_path: Path) -> None:
    console, far_end = os.openpty()
    agent = Agent(far_end, "/dev/null", str(tmp_path))
    # There is no such folder: the shell ends at once.
    agent.open(1, wire.Opening("nowhere", "dumb", "", 24, 80))
    shell = agent.shells[1]
    os.waitid(os.P_PID, shell.pid, os.WEXITED | os.WNOWAIT)
    assert select.select([shell.terminal], [], [], 10)[0]
    happened = agent.selector.select()
    assert len(happened) == 2
    # In a round's order, the shell's end may stand before its terminal's.
    for key, events in sorted(happened, key=lambda event: event[0].fd == shell.terminal):
        key.data(events)
    assert agent.shells == {}
    frames = list(wire.Reader().feed(os.read(console, 65536)))
    assert frames[-1].kind == wire.EXIT
    assert frames[-1].read(wire.Exit) == wire.Exit(127)
    os.close(console)
    os.close(far_end)
