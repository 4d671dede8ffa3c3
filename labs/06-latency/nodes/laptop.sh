#!/usr/bin/env bash
# Lab 06, laptop: the host at home that fills the link, in both directions. host.sh says how.
#
#     sudo bash laptop.sh prepare     set the host up
#     bash laptop.sh validate         ping the server before you measure
#     bash laptop.sh serve            answer the server's flows, then end
#     bash laptop.sh measure          its own flows to the server, their state sampled meanwhile
#     sudo bash laptop.sh undo        set all of it back
set -euo pipefail
# shellcheck source=labs/06-latency/nodes/host.sh
. "${BASH_SOURCE[0]%"${BASH_SOURCE[0]##*/}"}./host.sh"

prepare() {
  set_host "$(iface_to "$SERVER")" "$(tcp_ecn asks)"
}

validate() {
  # --8<-- [start:validate]
  ping -n -c "$PING_COUNT" -i 0.2 "$SERVER" >"$OUT/ping.txt"
  # --8<-- [end:validate]
}

serve() {
  if ((DOWN_FLOWS == 0)); then
    announce_ready
    return
  fi
  # --8<-- [start:serve]
  iperf3 -s -1 -p "$DOWN_PORT" -J >"$OUT/iperf3-server.json" &
  # --8<-- [end:serve]
  server_on "$DOWN_PORT"
  serve_to_the_end
}

measure() {
  announce_ready
  ((UP_FLOWS == 0)) || bulk "$SERVER" "$UP_PORT" "$UP_FLOWS" "$CONGESTION_CONTROL"
}

run_phase "${1:-}" prepare validate serve measure
