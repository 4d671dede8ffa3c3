#!/usr/bin/env bash
# Lab 02, s1: the sender with the long path, to d1.
#
#     sudo bash s1.sh prepare      set the host up, and its delay
#     bash s1.sh validate          ping before you measure
#     bash s1.sh measure           one TCP flow to d1, its state sampled meanwhile
#     sudo bash s1.sh undo         set all of it back
set -euo pipefail
FIRST_DELAY_MS="${FIRST_DELAY_MS:-45}"
DELAY_MS=$FIRST_DELAY_MS
PEER=10.10.20.11
# shellcheck source=labs/02-buffers/nodes/sender.sh
. "${BASH_SOURCE[0]%"${BASH_SOURCE[0]##*/}"}./sender.sh"
