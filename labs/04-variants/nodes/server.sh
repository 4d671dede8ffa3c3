#!/usr/bin/env bash
# Lab 04, server: it receives.
#
#     sudo bash server.sh prepare      set the host up
#     bash server.sh serve             iperf3 for the client, its rival and others, until told to end
#     sudo bash server.sh undo         set all of it back
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "${BASH_SOURCE[0]%"${BASH_SOURCE[0]##*/}"}../../../scripts/lib.sh"

# --8<-- [start:settings]
OFFLOADS="${OFFLOADS:-off}"
BUFFER_MAX_BYTES="${BUFFER_MAX_BYTES:-16777216}"
# --8<-- [end:settings]
OUT="${OUT:-.}"

prepare() {
  # --8<-- [start:prepare]
  set_offloads "$OFFLOADS" "$(iface_to 10.4.1.2)"
  undo_sysctl net.ipv4.tcp_rmem
  sysctl -qw net.ipv4.tcp_rmem="4096 131072 $BUFFER_MAX_BYTES"
  # --8<-- [end:prepare]
}

serve() {
  local port
  for port in 5201 5202 5203; do
    # --8<-- [start:serve]
    iperf3 -s -p "$port" >"$OUT/iperf3-server-$port.txt" &
    # --8<-- [end:serve]
    server_on "$port"
  done
  serve_until_told
}

run_phase "${1:-}" prepare serve
