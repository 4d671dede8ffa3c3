#!/usr/bin/env bash
# Lab 03: the audit's table (audit.csv): of each row with squares, the index recomputed, and as printed.
#
#     bash labs/03-scale/audit.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# --8<-- [start:audit]
awk -F, 'NR > 1 && $6 { print $1, $5 * $5 / $4 / $6, $7 }' audit.csv
# --8<-- [end:audit]
