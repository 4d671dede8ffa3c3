#!/usr/bin/env bash
# Lab 05, what both routers do: router-1.sh and router-2.sh set SELF, then read this file. The
# queue that fills is the one of the router on the senders' side, before the link between the two.
# shellcheck source=scripts/lib.sh
. "${BASH_SOURCE[0]%"${BASH_SOURCE[0]##*/}"}../../../scripts/lib.sh"
# shellcheck source=labs/05-queues/nodes/names.sh
. "$here/names.sh"

# --8<-- [start:settings]
RECEIVER="${RECEIVER:-host-3}"
DISCIPLINE="${DISCIPLINE:-pfifo_fast}"
RATE_MBIT="${RATE_MBIT:-100}"
BURST_BYTES="${BURST_BYTES:-3200}"
ECN="${ECN:-off}"
FIFO_PACKETS="${FIFO_PACKETS:-1000}"
FIFO_BYTES="${FIFO_BYTES:-375000}"
RED_LIMIT_BYTES="${RED_LIMIT_BYTES:-366000}"
RED_MIN_BYTES="${RED_MIN_BYTES:-100000}"
RED_MAX_BYTES="${RED_MAX_BYTES:-225000}"
RED_AVPKT_BYTES="${RED_AVPKT_BYTES:-1000}"
RED_BURST_PACKETS="${RED_BURST_PACKETS:-141}"
RED_PROBABILITY_RATIO="${RED_PROBABILITY_RATIO:-0.01}"
# --8<-- [end:settings]
RED_BANDWIDTH="${RED_BANDWIDTH:-link}"
SET_DISCIPLINE="${SET_DISCIPLINE:-yes}"
SYSTEM_DEFAULT="${SYSTEM_DEFAULT:-fq_codel}"
ACCESS_MBIT="${ACCESS_MBIT:-}"
OFFLOADS="${OFFLOADS:-off}"
SAMPLE_INTERVAL_S="${SAMPLE_INTERVAL_S:-0.1}"
OUT="${OUT:-.}"

far_end() {
  if same_side "$SELF" host-1; then echo 10.1.3.1; else echo 10.1.1.1; fi
}

near_hosts() {
  if same_side "$SELF" host-1; then echo 10.1.1.1 10.1.1.2; else echo 10.1.3.1 10.1.3.2; fi
}

prepare() {
  local link host interface
  link=$(iface_to "$(far_end)")
  # A router sends through the same interface on which its hosts' cables end: one for each host.
  for host in $(near_hosts); do
    interface=$(iface_to "$host")
    set_offloads "$OFFLOADS" "$interface"
    [[ -n $ACCESS_MBIT ]] || continue
    tc qdisc add dev "$interface" root tbf rate "${ACCESS_MBIT}mbit" burst "$BURST_BYTES" limit 1514000
    undo tc qdisc del dev "$interface" root
  done
  set_offloads "$OFFLOADS" "$link"
  # --8<-- [start:bottleneck]
  # The rate that makes a queue, and inside it the discipline that rules the queue.
  tc qdisc add dev "$link" root handle 1: tbf rate "${RATE_MBIT}mbit" burst "$BURST_BYTES" limit 10000000
  undo tc qdisc del dev "$link" root
  set_queue "$link"
  # --8<-- [end:bottleneck]
  tc -s -d qdisc show dev "$link" >"$OUT/tc.txt"
}

# set_queue INTERFACE: put DISCIPLINE below the rate; or, if nobody says which, leave the system's.
set_queue() {
  local discipline=$DISCIPLINE ecn=() noecn=() bandwidth=()
  if [[ $SET_DISCIPLINE == no ]]; then
    # On a machine with systemd net.core.default_qdisc does this by itself, on each interface that
    # has a queue. The cables between these nodes have none, so it's done here in its place.
    discipline=$SYSTEM_DEFAULT
  fi
  if [[ $ECN == on ]]; then ecn=(ecn); else noecn=(noecn); fi
  [[ $RED_BANDWIDTH == none ]] || bandwidth=(bandwidth "${RATE_MBIT}mbit")
  queue() { tc qdisc add dev "$1" parent 1:1 handle 10: "${@:2}"; }
  case $discipline in
    # --8<-- [start:disciplines]
    pfifo_fast) queue "$1" pfifo_fast ;;
    pfifo) queue "$1" pfifo limit "$FIFO_PACKETS" ;;
    bfifo) queue "$1" bfifo limit "$FIFO_BYTES" ;;
    red)
      queue "$1" red limit "$RED_LIMIT_BYTES" min "$RED_MIN_BYTES" max "$RED_MAX_BYTES" \
        avpkt "$RED_AVPKT_BYTES" burst "$RED_BURST_PACKETS" probability "$RED_PROBABILITY_RATIO" \
        "${bandwidth[@]}" "${ecn[@]}"
      ;;
    codel) queue "$1" codel "${ecn[@]}" "${noecn[@]}" ;;
    fq_codel) queue "$1" fq_codel "${ecn[@]}" "${noecn[@]}" ;;
    pie) queue "$1" pie "${ecn[@]}" "${noecn[@]}" ;;
    fq) queue "$1" fq ;;
    cake) queue "$1" cake unlimited ;;
    # --8<-- [end:disciplines]
    *) die "no such discipline here: $discipline" ;;
  esac
}

watch() {
  if same_side "$SELF" "$RECEIVER"; then
    announce_ready
    return
  fi
  sample_queue "$(iface_to "$(far_end)")" "$SAMPLE_INTERVAL_S" "$OUT/queue.txt" &
  until_told $!
}

run_phase "${1:-}" prepare watch
