#!/usr/bin/env bash
# Lab 01, the router: it delays each direction by half of the RTT, and drops packets towards
# juliet at random.
#
#     sudo bash router.sh prepare     set the path up
#     sudo bash router.sh capture     print data packets as they leave towards juliet
#     sudo bash router.sh capture_acks    ... and juliet's answers, as they arrive
#     sudo bash router.sh undo        take the delay and the loss away again
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../../scripts/lib.sh"

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

to_romeo=$(iface_to 10.10.1.100)
to_juliet=$(iface_to 10.10.2.100)

# Half of the RTT on each side, and netem's loss is in percent.
DELAY_MS="${DELAY_MS:-$(awk "BEGIN { printf \"%.6f\", $RTT_MS / 2 }")}"
LOSS_PERCENT="${LOSS_PERCENT:-$(awk "BEGIN { printf \"%.12g\", 100 * $LOSS_RATIO }")}"

prepare() {
  ip link set dev "$to_romeo" mtu "$MTU_BYTES"
  ip link set dev "$to_juliet" mtu "$MTU_BYTES"
  set_offloads "$OFFLOADS" "$to_romeo" "$to_juliet"

  # --8<-- [start:path]
  tc qdisc add dev "$to_romeo" root netem delay "${DELAY_MS}ms" limit "$LIMIT_PACKETS"

  tc qdisc add dev "$to_juliet" root handle 1: htb default 3
  tc class add dev "$to_juliet" parent 1: classid 1:3 htb rate "${RATE_MBIT}mbit" \
    burst "$BURST_BYTES" cburst "$BURST_BYTES" quantum 60000
  tc qdisc add dev "$to_juliet" parent 1:3 handle 3: netem \
    delay "${DELAY_MS}ms" loss "${LOSS_PERCENT}%" limit "$LIMIT_PACKETS"
  # --8<-- [end:path]
}

capture() {
  if ((CAPTURE_PACKETS == 0)); then
    announce_ready
    return
  fi
  # --8<-- [start:capture]
  tcpdump -nn -e -q -t -i "$to_juliet" -c "$CAPTURE_PACKETS" \
    'dst host 10.10.2.100 and tcp dst port 5201 and greater 100' \
    >"$OUT/tcpdump.txt" 2>"$OUT/tcpdump.log" &
  # --8<-- [end:capture]
  until_told $! "$OUT/tcpdump.log"
}

capture_acks() {
  if ((CAPTURE_ACKS_PACKETS == 0)); then
    announce_ready
    return
  fi
  # --8<-- [start:capture_acks]
  tcpdump -nn -tt -i "$to_juliet" -c "$CAPTURE_ACKS_PACKETS" \
    'src host 10.10.2.100 and tcp src port 5201 and less 100' \
    >"$OUT/acks.txt" 2>"$OUT/acks.log" &
  # --8<-- [end:capture_acks]
  until_told $! "$OUT/acks.log"
}

# until_told PID LOG: wait for tcpdump to listen, then until it has its packets or we are told to end.
until_told() {
  # shellcheck disable=SC2064 # the pid is meant as it is now
  trap "kill -TERM $1 2>/dev/null; wait $1 || true; exit 0" TERM
  wait_until 10 grep -qs 'listening on' "$2" || die "tcpdump did not start: see $2"
  announce_ready
  wait "$1"
}

undo() {
  # --8<-- [start:undo]
  tc qdisc del dev "$to_romeo" root
  tc qdisc del dev "$to_juliet" root
  # --8<-- [end:undo]
}

case "${1:-}" in
  prepare | capture | capture_acks | undo) "$1" ;;
  *) die "say what to do: prepare, capture, capture_acks or undo" ;;
esac
