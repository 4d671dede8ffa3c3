#!/usr/bin/env bash
# A trial on this machine's own kernel, undone whatever happens to it.
#
#     guard.sh PREFIX SCRIPT LOG      run SCRIPT; when it ends, or our standard input does, undo
#     guard.sh --undo PREFIX          only undo: what a killed guard left
#
# SCRIPT makes network namespaces whose names begin with PREFIX. Undoing ends all that runs in
# them, removes them, and puts back what belongs to the whole machine: the default qdisc, and root's
# traces, which are the kernel's own wherever tracefs is mounted.
set -u
default_qdisc=/proc/sys/net/core/default_qdisc
kept=default_qdisc # in /run, behind PREFIX: what it was
traces=traces      # the same: those that were there before
tracing=/sys/kernel/tracing

# in_traces COMMAND ARGUMENT...: run it where the kernel's traces stand, also where only a run had tracefs mounted.
in_traces() {
  # shellcheck disable=SC2016 # the inner shell's
  local inside='cd "$0/instances" && exec "$@"'
  if [[ -d $tracing/instances ]]; then
    bash -c "$inside" "$tracing" "$@"
  else
    unshare --mount --propagation private bash -c "mount -t tracefs none \"\$0\" && $inside" "$tracing" "$@"
  fi 2>/dev/null
}

undo() {
  local namespace pids trace
  for namespace in /run/netns/"$1"*; do
    [[ -e $namespace ]] || continue
    namespace=${namespace##*/}
    # Until none is left: one may be starting another.
    while pids=$(ip netns pids "$namespace" 2>/dev/null) && [[ -n $pids ]]; do
      # shellcheck disable=SC2086 # numbers, each a word of its own
      kill -KILL $pids 2>/dev/null
      sleep 0.05
    done
    ip netns delete "$namespace"
  done
  if [[ -s /run/$1$kept ]]; then
    [[ $(<"$default_qdisc") == "$(<"/run/$1$kept")" ]] || cat "/run/$1$kept" >"$default_qdisc"
  fi
  if [[ -e /run/$1$traces ]]; then
    in_traces ls | while read -r trace; do
      grep -qxF -- "$trace" "/run/$1$traces" || in_traces rmdir "$trace"
    done
  fi
  rm -f "/run/$1$kept" "/run/$1$traces"
}

if [[ $1 == --undo ]]; then
  undo "$2"
  exit
fi
prefix=$1 script=$2 log=$3
trap : INT TERM HUP
if ((EUID == 0)); then
  cat "$default_qdisc" >"/run/$prefix$kept"
  in_traces ls >"/run/$prefix$traces"
fi

setsid bash "$script" >"$log" 2>&1 </dev/null &
running=$!
# Our standard input is a pipe that whoever started us holds open, and writes nothing to.
exec 3<&0
{
  read -r _ <&3
  kill -KILL -- "-$running"
} 2>/dev/null &
reader=$!
while :; do
  wait "$running"
  status=$?
  # A signal ends the waiting, not the script.
  kill -0 "$running" 2>/dev/null || break
done
kill "$reader" 2>/dev/null

undo "$prefix"
exit "$status"
