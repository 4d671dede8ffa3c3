#!/usr/bin/env bash
# Lab 01, the router: it delays each direction by half of the RTT, and drops packets towards
# juliet at random.
#
#     sudo bash router.sh prepare     set the path up
#     sudo bash router.sh capture     print data packets as they leave, and ACKs as they arrive
#     sudo bash router.sh undo        take the delay and the loss away again
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "${BASH_SOURCE[0]%"${BASH_SOURCE[0]##*/}"}../../../scripts/lib.sh"

# --8<-- [start:settings]
RTT_MS="${RTT_MS:-6}"
LOSS_RATIO="${LOSS_RATIO:-0.005730706937}"
RATE_MBIT="${RATE_MBIT:-3000}"
BURST_BYTES="${BURST_BYTES:-375000}"
LIMIT_PACKETS="${LIMIT_PACKETS:-100000}"
MTU_BYTES="${MTU_BYTES:-1500}"
OFFLOADS="${OFFLOADS:-off}"
# --8<-- [end:settings]
CAPTURE_PACKETS="${CAPTURE_PACKETS:-1000}"
CAPTURE_ACKS_PACKETS="${CAPTURE_ACKS_PACKETS:-0}"
OUT="${OUT:-.}"

prepare() {
  local to_romeo to_juliet half_rtt_ms percent
  to_romeo=$(iface_to 10.10.1.100)
  to_juliet=$(iface_to 10.10.2.100)
  # Half of the RTT on each side, and netem's loss is in percent.
  read -r half_rtt_ms percent < <(awk "BEGIN { printf \"%.6f %.12g\n\", $RTT_MS / 2, 100 * $LOSS_RATIO }")
  DELAY_MS="${DELAY_MS:-$half_rtt_ms}"
  LOSS_PERCENT="${LOSS_PERCENT:-$percent}"

  undo_mtu "$to_romeo"
  ip link set dev "$to_romeo" mtu "$MTU_BYTES"
  undo_mtu "$to_juliet"
  ip link set dev "$to_juliet" mtu "$MTU_BYTES"
  set_offloads "$OFFLOADS" "$to_romeo" "$to_juliet"

  # --8<-- [start:path]
  tc qdisc add dev "$to_romeo" root netem delay "${DELAY_MS}ms" limit "$LIMIT_PACKETS"
  undo tc qdisc del dev "$to_romeo" root

  tc qdisc add dev "$to_juliet" root handle 1: htb default 3
  undo tc qdisc del dev "$to_juliet" root
  tc class add dev "$to_juliet" parent 1: classid 1:3 htb rate "${RATE_MBIT}mbit" \
    burst "$BURST_BYTES" cburst "$BURST_BYTES" quantum 60000
  tc qdisc add dev "$to_juliet" parent 1:3 handle 3: netem \
    delay "${DELAY_MS}ms" loss "${LOSS_PERCENT}%" limit "$LIMIT_PACKETS"
  # --8<-- [end:path]
}

capture() {
  local to_juliet
  to_juliet=$(iface_to 10.10.2.100)
  if ((CAPTURE_PACKETS > 0)); then
    # --8<-- [start:capture]
    tcpdump -nn -e -q -t -i "$to_juliet" -c "$CAPTURE_PACKETS" \
      'dst host 10.10.2.100 and tcp dst port 5201 and greater 100' \
      >"$OUT/tcpdump.txt" 2>"$OUT/tcpdump.log" &
    # --8<-- [end:capture]
  fi
  if ((CAPTURE_ACKS_PACKETS > 0)); then
    # --8<-- [start:capture_acks]
    tcpdump -nn -tt -i "$to_juliet" -c "$CAPTURE_ACKS_PACKETS" \
      'src host 10.10.2.100 and tcp src port 5201 and less 100' \
      >"$OUT/acks.txt" 2>"$OUT/acks.log" &
    # --8<-- [end:capture_acks]
  fi
  captures_until_told "$OUT/tcpdump.log" "$OUT/acks.log"
}

run_phase "${1:-}" prepare capture
