#!/usr/bin/env bash
# Lab 06, phone: the host at home that feels the full link. It pings the server, has a call with it, and fetches
# pages from it. It may have bulk flows of its own, of CUBIC and without ECN.
#
#     sudo bash phone.sh prepare     set the host up
#     bash phone.sh validate         ping the server before you measure
#     bash phone.sh measure          pings, a call and short transfers
#     sudo bash phone.sh undo        set all of it back
set -euo pipefail
# shellcheck source=labs/06-latency/nodes/host.sh
. "${BASH_SOURCE[0]%"${BASH_SOURCE[0]##*/}"}./host.sh"

prepare() {
  # It never asks for ECN, whatever the laptop does.
  set_host "$(iface_to "$SERVER")" 2
}

validate() {
  ping -n -c "$PING_COUNT" -i 0.2 "$SERVER" >"$OUT/ping.txt"
}

measure() {
  local pids=() pid
  announce_ready
  if ((CLASSIC_FLOWS > 0)); then
    bulk "$SERVER" "$CLASSIC_PORT" "$CLASSIC_FLOWS" cubic &
    pids+=($!)
  fi
  pause "$WARMUP_S"
  call "$SERVER" &
  pids+=($!)
  pages &
  pids+=($!)
  pings "$SERVER"
  for pid in "${pids[@]}"; do
    wait "$pid"
  done
}

# pages: one short transfer after the other, each over a connection of its own.
pages() {
  # --8<-- [start:pages]
  PYTHONHASHSEED=0 python3 -SIB "$here/pages.py" fetch "$SERVER" "$PAGE_PORT" "$PAGE_PAUSE_MS" "$(measured_s)" \
    >"$OUT/pages.txt"
  # --8<-- [end:pages]
}

run_phase "${1:-}" prepare validate measure
