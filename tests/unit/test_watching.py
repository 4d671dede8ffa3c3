"""What a node script watches in the background is written out, however soon a person ends it."""

from __future__ import annotations

import subprocess
from pathlib import Path

LIB = Path(__file__).parents[2] / "scripts/lib.sh"
# A watcher that is slow to begin, as on a busy machine: only once its trap is set does it hear that it shall end.
WATCH = """
source "$1"
watcher() {
  sleep 0.5
  trap 'echo written >"$0"; exit 0' TERM
  while :; do pause 0.05; done
}
watcher &
until_told $!
"""


def test_ready_is_said_once_the_watcher_listens(tmp_path: Path) -> None:
    written = tmp_path / "samples.txt"
    with subprocess.Popen(
        ["bash", "-c", WATCH, written, LIB], stdout=subprocess.PIPE, text=True
    ) as script:
        assert script.stdout is not None
        assert script.stdout.readline() == "ready\n"
        script.terminate()
    assert written.read_text() == "written\n"
