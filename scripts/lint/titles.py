#!/usr/bin/env python3
"""Are the titles of commits short? At most 72 characters, so that they stand whole in a list.

titles.py     exit 1 with a line for each commit that is longer, of those since the rule is there
"""

from __future__ import annotations

import subprocess
import sys

LONGEST = 72
SINCE = "2026-11-26T19:00:00Z"


def main() -> int:
    command = ["git", "log", "--no-merges", f"--since={SINCE}", "--format=%h %s"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        print("titles of commits: no git here, so none are looked at")
        return 0
    commits = [line.partition(" ") for line in listed.splitlines()]
    for commit, _, title in commits:
        if len(title) > LONGEST:
            print(f"{commit}: a title of {len(title)} characters; at most {LONGEST}: {title}")
    return int(any(len(title) > LONGEST for _, _, title in commits))


if __name__ == "__main__":
    sys.exit(main())
