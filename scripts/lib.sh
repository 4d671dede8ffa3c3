#!/usr/bin/env bash
# What the labs' node scripts share. Source it; it does nothing by itself.

# die MESSAGE: say what is wrong and how to mend it, and stop.
die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# iface_to ADDRESS: the name of the interface that leads to ADDRESS. Names differ from machine
# to machine (ens7, eth1, enp0s8); addresses are the lab's own.
iface_to() {
  local route
  route=$(ip -o route get "$1") || die "no route to $1: is this the right node, and are its addresses set?"
  [[ $route =~ dev\ ([^ ]+) ]] || die "no interface in: $route"
  printf '%s\n' "${BASH_REMATCH[1]}"
}

# announce_ready: tell whoever started this script in the background that it is ready.
# Without READY_FILE (a person at a terminal) it says so.
announce_ready() {
  if [[ -n ${READY_FILE:-} ]]; then
    : >"$READY_FILE"
  else
    echo "ready"
  fi
}

# pause SECONDS: sleep without starting a program.
pause() {
  # A read with a time limit, from a pipe that nobody writes to.
  [[ -n ${PAUSE_FD:-} ]] || exec {PAUSE_FD}<> <(:)
  read -rt "$1" -u "$PAUSE_FD" || true
}

# wait_until SECONDS COMMAND...: wait for a condition, at most SECONDS.
wait_until() {
  local -i tries=$(($1 * 100))
  shift
  until "$@"; do
    ((tries-- > 0)) || return 1
    pause 0.01
  done
}

# says FILE WORDS: do these words stand in one line of FILE?
says() {
  local line
  [[ -r $1 ]] || return 1
  while read -r line; do
    [[ $line != *"$2"* ]] || return 0
  done <"$1"
  return 1
}

# captures_until_told LOG...: wait until the tcpdumps that were started in the background listen
# (those whose LOG exists), then until they have their packets or we are told to end (SIGTERM).
captures_until_told() {
  local log
  # shellcheck disable=SC2046 # numbers, each a word of its own
  trap 'kill -TERM $(jobs -p) 2>/dev/null; wait || true; exit 0' TERM
  for log in "$@"; do
    [[ -e $log ]] || continue
    wait_until 10 says "$log" 'listening on' || die "tcpdump did not start: see $log"
  done
  announce_ready
  wait
}

# listens PORT: does a TCP server listen here?
listens() {
  [[ -n $(ss -Hltn "sport = :$1") ]]
}

# set_offloads off|on INTERFACE...: segmentation and receive offloads, all four. Few devices can
# switch lro on, so that is only ever switched off.
set_offloads() {
  local state=$1 interface
  local -a features=(tso "$state" gso "$state" gro "$state")
  [[ $state == on ]] || features+=(lro off)
  shift
  for interface in "$@"; do
    ethtool -K "$interface" "${features[@]}" 2>/dev/null ||
      die "ethtool can't set the offloads of $interface to $state: are you root?"
  done
}

# sample_ss ADDRESS SECONDS FILE: the state of every TCP connection to ADDRESS, again and again,
# until this function's process is told to end (SIGTERM). FILE holds ss's own text; before each
# sample stands a line '# t=<Unix time in seconds>'.
#
# With SS_SAMPLER (a program that the virtual kernel brings) the samples are taken from the
# kernel as ss takes them, written raw, and printed by ss once at the end: starting ss anew for
# every sample costs more than the experiment itself.
sample_ss() {
  local address=$1 interval_s=$2 file=$3 sampler_pid
  if [[ -z ${SS_SAMPLER:-} ]]; then
    trap 'exit 0' TERM
    while :; do
      printf '# t=%s000\n' "$EPOCHREALTIME"
      ss -tinOH "dst $address"
      pause "$interval_s"
    done >"$file"
  fi
  "$SS_SAMPLER" --interval "$interval_s" --dst "$address" --out "$file.diag" --times "$file.times" &
  sampler_pid=$!
  # shellcheck disable=SC2064 # the pid is meant as it is now
  trap "kill -TERM $sampler_pid" TERM
  until wait "$sampler_pid"; do
    kill -0 "$sampler_pid" 2>/dev/null || break
  done
  TCPDIAG_FILE="$file.diag" ss -tinOH >"$file.text"
  print_samples "$file.times" "$file.text" >"$file"
  rm -f "$file.diag" "$file.times" "$file.text"
}

# print_samples TIMES TEXT: TEXT, one socket a line, with its '# t=' lines. Each line of TIMES is
# a sample: its Unix time and its number of sockets.
print_samples() {
  awk -v times="$1" '
    # ss pads its lines to one width; the blanks at the end go.
    BEGIN {
      while ((getline sample <times) > 0) {
        split(sample, field, " ")
        print "# t=" field[1]
        for (n = field[2]; n > 0 && (getline line) > 0; n--) {
          sub(/ +$/, "", line)
          print line
        }
      }
    }' "$2"
}

# sample_queue INTERFACE SECONDS FILE: what tc says of an interface's qdiscs, again and again, until
# this function's process is told to end (SIGTERM). FILE holds tc's own JSON, a line a sample;
# before each stands a line '# t=<Unix time in seconds>'.
#
# One tc reads a command a sample: starting tc anew for each costs more than the experiment.
sample_queue() {
  local interface=$1 interval_s=$2 file=$3 told='' to_tc tc_pid
  trap 'told=yes' TERM
  exec {to_tc}> >(exec tc -j -s -batch - >"$file.json")
  tc_pid=$!
  until [[ -n $told ]]; do
    printf '# t=%s000\n' "$EPOCHREALTIME" >>"$file.times"
    printf 'qdisc show dev %s\n' "$interface" >&"$to_tc"
    pause "$interval_s"
  done
  exec {to_tc}>&-
  wait "$tc_pid"
  paste -d '\n' "$file.times" "$file.json" >"$file"
  rm -f "$file.times" "$file.json"
}
