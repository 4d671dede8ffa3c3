#!/usr/bin/env bash
# What a node is set to, and what it has counted so far: the tools' own words, one file each.
#
#     snapshot.sh before|after FOLDER
#
# 'before' also notes what does not change during a run: addresses, offloads, sysctls.
set -euo pipefail
when=$1 out=$2

tc -j -s qdisc show >"$out/qdisc.$when.json"
ip -j -s link show >"$out/link.$when.json"
nstat -az -j >"$out/nstat.$when.json" 2>/dev/null
mapfile -t lines </proc/net/softnet_stat
printf '%s\n' "${lines[@]}" >"$out/softnet_stat.$when.txt"

if [[ $when == before ]]; then
  ip -j addr show >"$out/addr.json"
  ip route show >"$out/route.txt"
  for interface in /sys/class/net/*; do
    interface=${interface##*/}
    [[ $interface == lo ]] || ethtool -k "$interface"
  done >"$out/offloads.txt"
  for key in net/ipv4/tcp_{timestamps,sack,rmem,wmem,no_metrics_save,congestion_control,mem} \
    net/ipv4/ip_forward net/core/{rmem_max,wmem_max,default_qdisc}; do
    if [[ -r /proc/sys/$key ]]; then
      printf '%s = %s\n' "${key//\//.}" "$(</proc/sys/"$key")"
    fi
  done >"$out/sysctl.txt"
fi
