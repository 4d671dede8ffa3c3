"""`lab up`, `lab enter`, `lab down`, `lab status`: a lab's nodes in terminals, in real time."""

from __future__ import annotations

import fcntl
import json
import os
import selectors
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
import tty
from pathlib import Path

import click

from measuretwice.base.errors import UserError
from measuretwice.base.files import usable_cpus
from measuretwice.cli import terminal
from measuretwice.cli.edit import own_copy
from measuretwice.cli.options import (
    AS_JSON,
    CASE,
    NO_EDIT,
    PITFALL,
    SHOW_ME,
    STAGE,
    check_stage,
    refuse_beside_case,
    root_folder,
)
from measuretwice.course.case import (
    choose_live_trial,
    earned_settings,
    live_plan,
    read_changes,
)
from measuretwice.execute.batch import open_batch, without_edges
from measuretwice.lab import Lab, StageName, load_lab
from measuretwice.live import session as lives
from measuretwice.live import wire
from measuretwice.live.session import Live

TERMINALS = 4


@click.command()
@click.argument("lab_name", metavar="LAB")
@click.option("--trial", metavar="N", help="Use this trial's settings.  [default: the first]")
@CASE
@SHOW_ME
@PITFALL
@STAGE
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE", help="Change a parameter.")
@click.option("--tmux", is_flag=True, help="Open the terminals at once, side by side.")
@NO_EDIT
def up(
    lab_name: str,
    trial: str | None,
    case_number: int | None,
    show_me: bool,
    pitfall: str | None,
    stage: StageName | None,
    changes: tuple[str, ...],
    tmux: bool,
    no_edit: bool,
) -> int:
    """Bring LAB's network up in a virtual kernel, in real time, for ./lab enter.

    It stays until ./lab down. The usual settings are in each shell's environment, where the node's
    script reads them.
    """
    root = root_folder()
    lab = load_lab(root, lab_name)
    check_stage(pitfall, stage)
    refuse_beside_case(case_number, show_me, trial, pitfall)
    if case_number is not None:
        stage = "fixed" if show_me else None
    staged = lab.case(case_number) if case_number else lab.pitfall(pitfall) if pitfall else None
    number = choose_live_trial(lab, trial, staged)
    out = terminal.default_out(root)
    own = own_copy(out, lab, leave_out=no_edit or show_me or pitfall is not None)
    due = earned_settings(lab, out, case_number)
    settings = without_edges(lab, {**own.settings, **read_changes(lab, changes, due=due)})
    if tmux and not shutil.which("tmux"):
        raise UserError("--tmux: tmux is missing: install it, or open the terminals yourself")
    batch = open_batch(root, lab, out, own=own.scripts)
    plan = live_plan(batch, number, settings, pitfall=pitfall, stage=stage, case=case_number)
    began = time.monotonic()
    cpus = usable_cpus()
    live = lives.bring_up(root, lab, plan, out, cpus[os.getpid() % len(cpus)], own=own.scripts)
    took_s = time.monotonic() - began
    print(
        f"{lab.name}, trial {live.trial}: up after {took_s:.1f} s, in real time, until ./lab down"
    )
    print(f"files that you write on a node go to {terminal.relative(live.folder)}/raw/NODE/")
    if tmux:
        return _open_tmux(root, lab)
    print("in a terminal each:")
    for node in terminals_of(lab):
        print(f"  ./lab enter {node}")
    return 0


def terminals_of(lab: Lab) -> list[str]:
    """The nodes whose terminals a person needs: one of each kind, the sender's twice (for ss)."""
    chosen = lab.one_of_each_kind()
    if len(chosen) < TERMINALS:
        sender = lab.file.collect.sender or chosen[0]
        chosen.insert(chosen.index(sender), sender)
    return chosen


def _open_tmux(root: Path, lab: Lab) -> int:
    """Open the lab's terminals side by side in tmux, and be there until the person leaves."""
    name = f"lab-{lab.name}"
    enter = [
        shlex.join([str(root / "lab"), "enter", "--lab", lab.name, node])
        for node in terminals_of(lab)
    ]
    tmux = ["tmux", "-L", f"measuretwice-{os.getpid()}", "-f", "/dev/null"]
    subprocess.run([*tmux, "new-session", "-d", "-s", name, enter[0]], check=True)
    subprocess.run([*tmux, "set", "-g", "mouse", "on"], check=True)
    for command in enter[1:]:
        subprocess.run([*tmux, "split-window", "-t", name, command], check=True)
        subprocess.run([*tmux, "select-layout", "-t", name, "tiled"], check=True)
    subprocess.run([*tmux, "select-pane", "-t", f"{name}:0.0"], check=True)
    return subprocess.run([*tmux, "attach", "-t", name], check=False).returncode


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("node", metavar="NODE")
@click.argument("command", metavar="[COMMAND]...", nargs=-1, type=click.UNPROCESSED)
@click.option("--lab", "lab_name", metavar="LAB", help="The lab, if two running ones have NODE.")
def enter(node: str, command: tuple[str, ...], lab_name: str | None) -> int:
    """Open a shell on NODE of the running lab in this terminal, or run COMMAND there.

    You are root there, and only there. Files go into the node's own folder.
    """
    root = root_folder()
    live = _which(root, node, lab_name)
    with live.connected() as link:
        return _Terminal(link).use(node, " ".join(command))


def _which(root: Path, node: str, lab_name: str | None) -> Live:
    """The live lab that has this node; UserError where none or several have it."""
    up = lives.all_up(terminal.default_out(root))
    if lab_name:
        up = [live for live in up if live.lab == load_lab(root, lab_name).name]
    if not up:
        raise UserError(
            f"{lab_name or 'no lab'} is {'not ' if lab_name else ''}up: ./lab up LAB first"
        )
    nodes_by_lab = {
        live.lab: [n.name for n in load_lab(root, live.lab).file.topology.nodes] for live in up
    }
    fitting = [live for live in up if node in nodes_by_lab[live.lab]]
    if not fitting:
        nodes = "; ".join(f"{lab} has {', '.join(names)}" for lab, names in nodes_by_lab.items())
        raise UserError(f"{node}: there is no such node: {nodes}")
    if len(fitting) > 1:
        raise UserError(
            f"{node}: {' and '.join(live.lab for live in fitting)} have it: say --lab LAB"
        )
    return fitting[0]


class _Terminal:
    """This terminal, in between a person and a shell inside."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self.keys, self.screen = sys.stdin.fileno(), sys.stdout.fileno()
        self.is_terminal = os.isatty(self.keys) and os.isatty(self.screen)

    def _size(self) -> wire.Size:
        if not self.is_terminal:
            return wire.Size(24, 80)
        packed = fcntl.ioctl(self.screen, termios.TIOCGWINSZ, bytes(8))
        rows, columns, _, _ = struct.unpack("HHHH", packed)
        return wire.Size(rows or 24, columns or 80)

    def use(self, node: str, command: str) -> int:
        term = os.environ.get("TERM", "dumb") if self.is_terminal else "dumb"
        size = self._size()
        wanted = wire.Opening(node, term, command, size.rows, size.columns)
        self.link.sendall(wire.pack(wire.OPEN, 0, wanted))
        if not self.is_terminal:
            return self._relay()
        signal.signal(signal.SIGWINCH, self._resize)
        before = termios.tcgetattr(self.keys)
        try:
            tty.setraw(self.keys)
            return self._relay()
        finally:
            termios.tcsetattr(self.keys, termios.TCSADRAIN, before)

    def _resize(self, *_: object) -> None:
        self.link.sendall(wire.pack(wire.SIZE, 0, self._size()))

    def _relay(self) -> int:
        reader = wire.Reader()
        # select, unlike epoll, takes what is typed from a file too.
        with selectors.SelectSelector() as selector:
            selector.register(self.link, selectors.EVENT_READ)
            selector.register(self.keys, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fd == self.keys:
                        if not self._type():
                            selector.unregister(self.keys)
                        continue
                    data = self.link.recv(65536)
                    if not data:
                        self._say("the network has gone down")
                        return 1
                    for frame in reader.feed(data):
                        if frame.kind == wire.EXIT:
                            return frame.read(wire.Exit).status
                        wire.write_all(self.screen, frame.payload)

    def _type(self) -> bool:
        """Pass on what was typed; at the end of a file Ctrl-D. Is there more to come?"""
        typed = os.read(self.keys, wire.PORTION_BYTES)
        self.link.sendall(wire.pack(wire.DATA, 0, typed or b"\x04"))
        return bool(typed)

    def _say(self, words: str) -> None:
        os.write(sys.stderr.fileno(), f"\r\nlab: {words}\r\n".encode())


@click.command()
@click.argument("lab_name", metavar="[LAB]", required=False)
def down(lab_name: str | None) -> int:
    """Take down LAB, or all running labs. Files written on nodes stay."""
    root = root_folder()
    up = lives.all_up(terminal.default_out(root))
    if lab_name:
        name = load_lab(root, lab_name).name
        up = [live for live in up if live.lab == name]
    for live in up:
        files = lives.bring_down(live)
        remark = (
            f"; what you wrote is in {terminal.relative(live.folder)}: ./lab check it"
            if files
            else ""
        )
        print(f"{live.lab}: down{remark}")
    if not up:
        print(f"{lab_name or 'nothing'} is {'not ' if lab_name else ''}up")
    return 0


@click.command()
@AS_JSON
def status(as_json: bool) -> int:
    """Show which labs are running, since when, and where their files go."""
    root = root_folder()
    up = lives.all_up(terminal.default_out(root))
    if as_json:
        rows = [
            {"lab": live.lab, "trial": live.trial, "since": live.since, "folder": str(live.folder)}
            for live in up
        ]
        print(json.dumps(rows, indent=2))
        return 0
    for live in up:
        nodes = load_lab(root, live.lab).file.topology.node_names
        print(
            f"{live.lab}, trial {live.trial}: up since {live.since}, files in {terminal.relative(live.folder)}"
        )
        print(f"  nodes: {', '.join(nodes)}")
    if not up:
        print("nothing is up")
    return 0
