#!/usr/bin/env bash
# Lab 02, d2: it receives what s2 sends.
#
#     sudo bash d2.sh prepare      set the host up, and its delay
#     bash d2.sh serve             answer one iperf3 test, then end
#     sudo bash d2.sh undo         set all of it back
set -euo pipefail
SECOND_DELAY_MS="${SECOND_DELAY_MS:-20}"
DELAY_MS=$SECOND_DELAY_MS
PEER=10.10.10.12
# shellcheck source=labs/02-buffers/nodes/receiver.sh
. "${BASH_SOURCE[0]%"${BASH_SOURCE[0]##*/}"}./receiver.sh"
