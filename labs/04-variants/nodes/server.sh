#!/usr/bin/env bash
# Lab 04, server: it receives.
#
#     sudo bash server.sh prepare      set the host up
#     bash server.sh serve             iperf3 for the client, its rival and others, until told to end
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../../scripts/lib.sh"

# --8<-- [start:settings]
OFFLOADS="${OFFLOADS:-off}"
BUFFER_MAX_BYTES="${BUFFER_MAX_BYTES:-16777216}"
# --8<-- [end:settings]
OUT="${OUT:-.}"

prepare() {
  # --8<-- [start:prepare]
  set_offloads "$OFFLOADS" "$(iface_to 10.4.1.2)"
  sysctl -qw net.ipv4.tcp_rmem="4096 131072 $BUFFER_MAX_BYTES"
  # --8<-- [end:prepare]
}

serve() {
  local port pids=()
  for port in 5201 5202 5203; do
    # --8<-- [start:serve]
    iperf3 -s -p "$port" >"$OUT/iperf3-server-$port.txt" &
    # --8<-- [end:serve]
    pids+=($!)
  done
  # shellcheck disable=SC2064 # the pids are meant as they are now
  trap "kill -TERM ${pids[*]} 2>/dev/null" TERM INT
  for port in 5201 5202 5203; do
    wait_until 10 listens "$port" || die "iperf3 does not listen on port $port: is another server running?"
  done
  announce_ready
  wait "${pids[@]}" || true
}

case "${1:-}" in
  prepare | serve) "$1" ;;
  *) die "say what to do: prepare or serve" ;;
esac
