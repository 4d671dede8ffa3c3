#!/usr/bin/env bash
# Lab 06, router: the one box on this path whose queues the people at home can set, in both directions.
#
#     sudo bash router.sh prepare     set both rates, and the discipline below each
#     bash router.sh watch            sample the queue towards the modem until you end it (Ctrl-C)
#     sudo bash router.sh undo        take all of it away again
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "${BASH_SOURCE[0]%"${BASH_SOURCE[0]##*/}"}../../../scripts/lib.sh"

# --8<-- [start:settings]
LAPTOP=10.6.1.2
PHONE=10.6.2.2
MODEM=10.6.3.2
DISCIPLINE="${DISCIPLINE:-fq_codel}"
ROUTER_UP_MBIT="${ROUTER_UP_MBIT:-9.5}"
ROUTER_DOWN_MBIT="${ROUTER_DOWN_MBIT:-47.5}"
ROUTER_BURST_BYTES="${ROUTER_BURST_BYTES:-1600}"
FIFO_BYTES="${FIFO_BYTES:-500000}"
FIFO_PACKETS="${FIFO_PACKETS:-1000}"
ECN="${ECN:-if-asked}"
OFFLOADS="${OFFLOADS:-off}"
# --8<-- [end:settings]
SAMPLE_INTERVAL_S="${SAMPLE_INTERVAL_S:-0.2}"
OUT="${OUT:-.}"

prepare() {
  local to_modem
  to_modem=$(iface_to "$MODEM")
  set_offloads "$OFFLOADS" "$to_modem" "$(iface_to "$LAPTOP")" "$(iface_to "$PHONE")"
  # --8<-- [start:up]
  # Up: what leaves for the modem. A rate makes the queue, and the discipline inside rules it.
  tc qdisc add dev "$to_modem" root handle 1: tbf rate "${ROUTER_UP_MBIT}mbit" burst "$ROUTER_BURST_BYTES" limit 10000000
  undo tc qdisc del dev "$to_modem" root
  set_queue "$to_modem"
  # --8<-- [end:up]
  # --8<-- [start:down]
  # Down: what comes from the modem makes a detour through an interface that only exists to have a queue.
  ip link add from-modem type ifb
  undo ip link del from-modem
  ip link set from-modem up
  tc qdisc add dev "$to_modem" handle ffff: ingress
  undo tc qdisc del dev "$to_modem" ingress
  tc filter add dev "$to_modem" parent ffff: matchall action mirred egress redirect dev from-modem
  tc qdisc add dev from-modem root handle 1: tbf rate "${ROUTER_DOWN_MBIT}mbit" burst "$ROUTER_BURST_BYTES" limit 10000000
  set_queue from-modem
  # --8<-- [end:down]
  tc -s -d qdisc show >"$OUT/tc.txt"
}

# set_queue INTERFACE: put DISCIPLINE below the rate.
set_queue() {
  local ecn=()
  [[ $ECN != on ]] || ecn=(ecn)
  queue() { tc qdisc add dev "$1" parent 1:1 handle 10: "${@:2}"; }
  case $DISCIPLINE in
    # --8<-- [start:disciplines]
    bfifo) queue "$1" bfifo limit "$FIFO_BYTES" ;;
    pfifo) queue "$1" pfifo limit "$FIFO_PACKETS" ;;
    codel) queue "$1" codel "${ecn[@]}" ;;
    fq_codel) queue "$1" fq_codel ;;
    cake) queue "$1" cake unlimited ;;
    pie) queue "$1" pie "${ecn[@]}" ;;
    fq_pie) queue "$1" fq_pie "${ecn[@]}" ;;
    dualpi2)
      # This tc doesn't know it, so it has its defaults. DCTCP's packets aren't marked as L4S asks for (ECT(1)), so
      # a filter puts what is marked ECT(0) or CE into the queue for low latency.
      queue "$1" dualpi2
      tc filter add dev "$1" parent 10: protocol ip prio 1 u32 match ip tos 0x02 0x03 classid 10:1
      tc filter add dev "$1" parent 10: protocol ip prio 1 u32 match ip tos 0x03 0x03 classid 10:1
      ;;
    # --8<-- [end:disciplines]
    *) die "no such discipline here: $DISCIPLINE" ;;
  esac
}

watch() {
  sample_queue "$(iface_to "$MODEM")" "$SAMPLE_INTERVAL_S" "$OUT/queue.txt" &
  until_told $!
}

run_phase "${1:-}" prepare watch
