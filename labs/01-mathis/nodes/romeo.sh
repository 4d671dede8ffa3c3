#!/usr/bin/env bash
# Lab 01, romeo: the sender.
#
#     sudo bash romeo.sh prepare      set the host up
#     bash romeo.sh validate          ping before you measure
#     bash romeo.sh measure           one TCP flow to juliet, its state sampled meanwhile
#     sudo bash romeo.sh undo         set all of it back
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "${BASH_SOURCE[0]%"${BASH_SOURCE[0]##*/}"}../../../scripts/lib.sh"

# --8<-- [start:settings]
MSS_BYTES="${MSS_BYTES:-1460}"
MTU_BYTES="${MTU_BYTES:-1500}"
DURATION_S="${DURATION_S:-240}"
CONGESTION_CONTROL="${CONGESTION_CONTROL:-reno}"
TIMESTAMPS="${TIMESTAMPS:-off}"
OFFLOADS="${OFFLOADS:-off}"
WMEM_MAX_BYTES="${WMEM_MAX_BYTES:-4194304}"
# --8<-- [end:settings]
PING_COUNT="${PING_COUNT:-25}"
PING_INTERVAL_S="${PING_INTERVAL_S:-0.2}"
PICK_SOCKET="${PICK_SOCKET:-port}"
SAMPLE_INTERVAL_S="${SAMPLE_INTERVAL_S:-0.1}"
OUT="${OUT:-.}"

prepare() {
  local to_juliet timestamps=0
  to_juliet=$(iface_to 10.10.2.100)
  [[ $TIMESTAMPS == off ]] || timestamps=1
  # --8<-- [start:prepare]
  undo_mtu "$to_juliet"
  ip link set dev "$to_juliet" mtu "$MTU_BYTES"
  set_offloads "$OFFLOADS" "$to_juliet"
  undo_sysctl net.ipv4.tcp_{timestamps,no_metrics_save,wmem}
  sysctl -qw net.ipv4.tcp_timestamps="$timestamps" \
    net.ipv4.tcp_no_metrics_save=1 \
    net.ipv4.tcp_wmem="4096 16384 $WMEM_MAX_BYTES"
  # --8<-- [end:prepare]
}

validate() {
  # A lost ping is no failure here: losing packets is what this path does.
  # --8<-- [start:validate]
  ping -n -c "$PING_COUNT" -i "$PING_INTERVAL_S" 10.10.2.100 >"$OUT/ping.txt" || true
  # --8<-- [end:validate]
}

measure() {
  begin_samples 10.10.2.100 "$SAMPLE_INTERVAL_S" "$OUT/ss.txt"
  # --8<-- [start:measure]
  iperf3 -c 10.10.2.100 -t "$DURATION_S" -C "$CONGESTION_CONTROL" -M "$MSS_BYTES" -J \
    >"$OUT/iperf3.json" || iperf3_failed "$OUT/iperf3.json"
  # --8<-- [end:measure]
  end_samples
  last_lines
}

# The connection's last lines: the very last sums up the whole run.
last_lines() {
  local mark=$CONGESTION_CONTROL port
  if [[ $PICK_SOCKET == port ]]; then
    port=$(sed -n 's/.*"local_port":[^0-9]*\([0-9]*\).*/\1/p' "$OUT/iperf3.json" | head -n 1)
    mark="10.10.1.100:$port"
  fi
  grep -w -- "$mark" "$OUT/ss.txt" | tail -n 20 >"$OUT/ss-last.txt" || true
}

run_phase "${1:-}" prepare validate measure
