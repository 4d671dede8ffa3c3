"""Nodes of their own, reached by ssh, as a place for trials: for `--on nodes.toml`."""

from __future__ import annotations

import io
import shlex
import shutil
import tarfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Self

from measuretwice.backends.backend import TOOLS, Backend
from measuretwice.backends.script import (
    READY_SECONDS,
    STATE_SCRIPT,
    actions,
    edited_folder,
    environment,
)
from measuretwice.backends.ssh_nodes import NodeLost, Nodes, read_node_list
from measuretwice.base.errors import UserError
from measuretwice.lab import KernelFacts, Lab, Plan
from measuretwice.lab.schema.network import Step

UNDO_S = 30.0


class SshNodes(Backend):
    """One trial at a time on machines of their own; connections stay in this process."""

    name = "nodes"
    accepts = "a file as nodes.toml"
    option = " --on nodes.toml"
    real_time = True
    portable = False
    location = "on the nodes"

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self.kernel, self.tools = nodes.kernel_name, nodes.tools

    @classmethod
    def matches(cls, where: str) -> bool:
        return Path(where).suffix == ".toml" or Path(where).is_file()

    @classmethod
    @contextmanager
    def open(cls, where: str, lab: Lab, root: Path) -> Iterator[Self]:
        node_list = read_node_list(Path(where), lab.file.topology.node_names)
        if not shutil.which("ssh"):
            raise UserError("ssh is missing: install openssh-client")
        nodes = Nodes(node_list)
        try:
            nodes.greet(TOOLS)
            yield cls(nodes)
        finally:
            nodes.close()

    def problems(self, lab: Lab, plans: Iterable[Plan]) -> list[str]:
        return self._nodes.problems(lab, plans)

    @contextmanager
    def serving(self) -> Iterator[None]:
        self._nodes.stopping.clear()
        try:
            yield
        finally:
            self._nodes.stopping.set()

    def measure(self, lab: Lab, plan: Plan, root: Path, work: Path, wall_limit_s: float) -> None:
        trial = _Trial(self._nodes, lab, work, time.monotonic() + wall_limit_s)
        failed = work / "raw" / "failed"
        try:
            trial.open(_pack(lab, plan, root, work))
            try:
                trial.measure()
            except _StepFailed as step:
                failed.write_text(f"{step.node} {step.phase}\n", encoding="utf-8")
            trial.fetch()
            if not failed.exists():
                (work / "raw" / "finished").touch()
        except NodeLost as error:
            raise NodeLost(
                f"trial {plan.trial}: {error}; what was changed there is put back there, without us. "
                "When it answers again, the same command goes on",
                1,
            ) from None
        finally:
            trial.close()

    def kernel_facts(self) -> KernelFacts:
        return KernelFacts(self.kernel, {"nodes": self._nodes.kernels})

    @property
    def remarks(self) -> list[str]:
        return self._nodes.remarks


class _StepFailed(Exception):
    def __init__(self, node: str, phase: str) -> None:
        self.node, self.phase = node, phase


class _Trial:
    def __init__(self, nodes: Nodes, lab: Lab, work: Path, until: float) -> None:
        self._nodes, self._lab, self._work, self._until = nodes, lab, work, until
        self._number = 0
        self._background: list[tuple[Step, int]] = []
        self._begun = time.monotonic()

    def open(self, files: bytes) -> None:
        for channel in self._nodes.channels.values():
            channel.take("still")
        self._order_all(lambda name: f"open {name}", "opened")
        for channel in self._nodes.channels.values():
            channel.send(files, ".")
        self._await_all("unpacked")

    def measure(self) -> None:
        run = self._lab.file.run
        for action in actions(run):
            if isinstance(action, Step):
                self._step(action)
            elif action == "end_background":
                self._end_background()
                self._share_files({step.node for step in run.conclude})
            elif action == "state":
                self._state()
            else:
                self._snapshot(action.removeprefix("snapshot "))

    def _share_files(self, nodes: set[str]) -> None:
        """Give these nodes the others' files beside their own: who works everything up sees all of them."""
        if nodes:
            self.fetch()
        for node in sorted(nodes):
            channel = self._nodes.channels[node]
            others = [name for name in self._nodes.channels if name != node]
            channel.send(_tar({f"out/{name}": self._work / "raw" / name for name in others}), ".")
            channel.answer("unpacked", watch=self._watch)

    def fetch(self) -> None:
        """Bring every node's files."""
        self._order_all(lambda _: "pack", "packed")
        for node, channel in self._nodes.channels.items():
            channel.order("fetch")
            _, packed = channel.answer("files", watch=self._watch)
            assert packed is not None  # "files" is the message that brings some
            folder = self._work / "raw" / node
            folder.mkdir(exist_ok=True)
            try:
                unpack(packed, folder)
            except (tarfile.TarError, EOFError) as error:
                self._nodes.watch()  # cut off in the midst of it?
                raise UserError(f"{node}: its files came broken: {error}", 1) from None

    def close(self) -> None:
        """Have every node that is there put back what was changed, and note what it could not."""
        self._note("all nodes: close")
        channels = self._nodes.channels
        for channel in channels.values():
            channel.order("close")
        until = time.monotonic() + UNDO_S
        for node, channel in channels.items():

            def watch(node: str = node) -> None:
                if channels[node].lost() or time.monotonic() > until:
                    raise NodeLost(node, 1)

            try:
                channel.answer("closed", watch=watch)
            except NodeLost:
                continue
            self._nodes.remarks += [
                f"{node}: not as it was before: this {still.replace(' ', ': ', 1)}"
                for still in channel.take("still")
            ]

    # --- steps

    def _step(self, step: Step) -> None:
        number = self._run(step)
        if not step.background:
            self._wait_end(step.node, step.phase, number)
            return
        self._background.append((step, number))
        until = time.monotonic() + READY_SECONDS

        def watch() -> None:
            self._watch()
            if time.monotonic() > until:
                raise _StepFailed(step.node, step.phase)

        channel = self._nodes.channels[step.node]
        answer, _ = channel.answer(f"ready {number}", f"ended {number}", watch=watch)
        if answer.startswith("ended"):
            raise _StepFailed(step.node, step.phase)

    def _end_background(self) -> None:
        """First those that end by themselves: who is told to stop may be serving them."""
        for stopped in (False, True):
            for step, number in self._background:
                if step.stop != stopped:
                    continue
                if stopped:
                    self._order(step.node, f"stop {number}")
                self._wait_end(step.node, step.phase, number)

    def _run(self, step: Step) -> int:
        self._number += 1
        mode = "background" if step.background else "step"
        script = f"{_folder(self._lab)}/{self._lab.script_name(step.node)}.sh"
        self._order(step.node, f"run {self._number} {mode} {script} {step.phase}")
        return self._number

    def _snapshot(self, when: str) -> None:
        self._number += 1
        self._note(f"all nodes: snapshot {when}")
        for channel in self._nodes.channels.values():
            channel.order(f"snapshot {self._number} {when}")
        for node in self._nodes.channels:
            self._wait_end(node, "snapshot", self._number)

    def _state(self) -> None:
        """What can't change a run any more can't fail it either."""
        self._number += 1
        self._order_all(lambda _: f"state {self._number}", f"ended {self._number}")

    def _wait_end(self, node: str, phase: str, number: int) -> None:
        answer, _ = self._nodes.channels[node].answer(f"ended {number}", watch=self._watch)
        if answer != f"ended {number} 0":
            raise _StepFailed(node, phase)

    # --- orders

    def _order(self, node: str, line: str) -> None:
        self._note(f"{node}: {line}")
        self._nodes.channels[node].order(line)

    def _order_all(self, line: Callable[[str], str], answer: str) -> None:
        for node in self._nodes.channels:
            self._order(node, line(node))
        self._await_all(answer)

    def _await_all(self, answer: str) -> None:
        for node, channel in self._nodes.channels.items():
            channel.answer(answer, watch=self._watch)
            if wrong := channel.take("wrong"):
                raise UserError(f"{node}: {wrong[0]}", 1)

    def _watch(self) -> None:
        self._nodes.watch()
        if time.monotonic() > self._until:
            raise TimeoutError

    def _note(self, what: str) -> None:
        """Log an order, with its node and the seconds since the trial's begin, in the run's folder."""
        with open(self._work / "experiment.log", "a", encoding="utf-8") as log:
            log.write(f"{time.monotonic() - self._begun:9.3f} s  {what}\n")


def _folder(lab: Lab) -> str:
    return f"labs/{lab.folder.name}/nodes"


def _pack(lab: Lab, plan: Plan, root: Path, work: Path) -> bytes:
    """All that a node needs: its lab's scripts, those that they share, and the settings."""
    settings = "".join(
        f"export {name}={shlex.quote(value)}\n" for name, value in environment(plan).items()
    )
    shared = [*(root / "scripts").glob("*.sh"), *(root / STATE_SCRIPT).parent.glob("*.sh")]
    files = {path.relative_to(root).as_posix(): path for path in shared}
    scripts = (work / edited_folder(lab) if plan.edited else lab.folder) / "nodes"
    return _tar(files | {_folder(lab): scripts}, {"environment": settings.encode()})


def unpack(packed: IO[bytes], folder: Path) -> None:
    """Unpack a node's files: plain ones and folders, inside `folder` only; else TarError.

    By hand, since tarfile's own filters came with Python 3.11.4, and Debian 12 has 3.11.2.
    """
    with tarfile.open(fileobj=packed, mode="r:gz") as tar:
        for entry in tar:
            name = PurePosixPath(entry.name)
            if name.is_absolute() or ".." in name.parts or not (entry.isreg() or entry.isdir()):
                raise tarfile.TarError(f"{entry.name!r} doesn't belong in it")
            target = folder / name
            if entry.isdir():
                target.mkdir(parents=True, exist_ok=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            content = tar.extractfile(entry)
            assert content  # it is a plain file
            with open(target, "wb") as file:
                shutil.copyfileobj(content, file)


def _tar(paths: dict[str, Path], texts: dict[str, bytes] | None = None) -> bytes:
    buffer = io.BytesIO()

    def without_owner(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        return None if "__pycache__" in info.name else info

    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, path in paths.items():
            tar.add(path, name, filter=without_owner)
        for name, text in (texts or {}).items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text))
    return buffer.getvalue()
