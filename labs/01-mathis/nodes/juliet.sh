#!/usr/bin/env bash
# Lab 01, juliet: the receiver.
#
#     sudo bash juliet.sh prepare     set the host up
#     bash juliet.sh serve            answer one iperf3 test, then end
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../../scripts/lib.sh"

# --8<-- [start:settings]
MTU_BYTES="${MTU_BYTES:-1500}"
OFFLOADS="${OFFLOADS:-off}"
TIMESTAMPS="${TIMESTAMPS:-off}"
RMEM_MAX_BYTES="${RMEM_MAX_BYTES:-16777216}"
# --8<-- [end:settings]
ACKNOWLEDGE="${ACKNOWLEDGE:-delayed}"
OUT="${OUT:-.}"

prepare() {
  local to_romeo timestamps=0
  to_romeo=$(iface_to 10.10.1.100)
  [[ $TIMESTAMPS == off ]] || timestamps=1
  # --8<-- [start:prepare]
  ip link set dev "$to_romeo" mtu "$MTU_BYTES"
  set_offloads "$OFFLOADS" "$to_romeo"
  sysctl -qw net.ipv4.tcp_timestamps="$timestamps" \
    net.ipv4.tcp_rmem="4096 131072 $RMEM_MAX_BYTES"
  # --8<-- [end:prepare]
  if [[ $ACKNOWLEDGE == every-segment ]]; then
    # --8<-- [start:quickack]
    ip route replace 10.10.1.0/24 via 10.10.2.1 quickack 1
    # --8<-- [end:quickack]
  fi
}

serve() {
  # --8<-- [start:serve]
  iperf3 -s -1 -J >"$OUT/iperf3-server.json" &
  # --8<-- [end:serve]
  local pid=$!
  # shellcheck disable=SC2064 # the pid is meant as it is now
  trap "kill -TERM $pid 2>/dev/null" TERM
  wait_until 10 listens 5201 || die "iperf3 does not listen on port 5201: is another server running?"
  announce_ready
  wait "$pid"
}

case "${1:-}" in
  prepare | serve) "$1" ;;
  *) die "say what to do: prepare or serve" ;;
esac
