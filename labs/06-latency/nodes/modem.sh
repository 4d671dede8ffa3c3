#!/usr/bin/env bash
# Lab 06, modem: the near end of the narrow link. Its FIFO is what it was sold with.
#
#     sudo bash modem.sh prepare     set the link's rate upwards, and the FIFO before it
#     sudo bash modem.sh undo        take both away again
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "${BASH_SOURCE[0]%"${BASH_SOURCE[0]##*/}"}../../../scripts/lib.sh"

# --8<-- [start:settings]
ROUTER=10.6.3.1
ISP=10.6.4.2
LINK_UP_MBIT="${LINK_UP_MBIT:-10}"
BURST_BYTES="${BURST_BYTES:-1600}"
MODEM_FIFO_BYTES="${MODEM_FIFO_BYTES:-256000}"
OFFLOADS="${OFFLOADS:-off}"
# --8<-- [end:settings]
OUT="${OUT:-.}"

prepare() {
  local to_isp
  to_isp=$(iface_to "$ISP")
  set_offloads "$OFFLOADS" "$to_isp" "$(iface_to "$ROUTER")"
  # --8<-- [start:link]
  tc qdisc add dev "$to_isp" root tbf rate "${LINK_UP_MBIT}mbit" burst "$BURST_BYTES" limit "$MODEM_FIFO_BYTES"
  undo tc qdisc del dev "$to_isp" root
  # --8<-- [end:link]
  tc -s -d qdisc show >"$OUT/tc.txt"
}

run_phase "${1:-}" prepare
