#!/usr/bin/env python3
"""Write trials.csv: the sixty trials of the published design.

3 segment sizes x 5 round-trip times x 4 loss probabilities, numbered RTT first, then
segment size, as the reproduction's author numbered them. Loss probabilities are drawn
uniformly in log(p) between 3e-5 and 0.3 (Mathis et al. 1997, section 3.1). Eight of them
are known from the published trials and stand as they are; the other 52 were never
published and are drawn here from one fixed seed, 1997, in order of trial number.

    python3 make_trials.py            write trials.csv beside this file
    python3 make_trials.py --check    exit 1 if trials.csv is not what this file writes
"""

import csv
import io
import math
import random
import sys
from pathlib import Path

SEED = 1997
RTT_MS = (6, 154.5, 303, 451.5, 600)
MSS_BYTES = (536, 1460, 4312)
LOSSES_PER_PAIR = 4
LOSS_RATIO_MIN, LOSS_RATIO_MAX = 3e-5, 0.3
HEADERS_BYTES = 40  # IPv4 and TCP without options
ETHERNET_MTU_BYTES = 1500
PUBLISHED_LOSS_RATIO = {
    3: "0.001591398645",
    5: "0.1566283969",
    7: "0.005730706937",
    8: "0.000186147305",
    9: "0.006217314741",
    11: "0.000233840647",
    17: "0.03774108797",
    53: "0.0000559121270201603",
}


def table() -> str:
    """Return the whole table as CSV text."""
    draw = random.Random(SEED)
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(["trial", "rtt_ms", "mss_bytes", "mtu_bytes", "loss_ratio", "loss_from"])
    trial = 0
    for rtt_ms in RTT_MS:
        for mss_bytes in MSS_BYTES:
            mtu_bytes = max(ETHERNET_MTU_BYTES, mss_bytes + HEADERS_BYTES)
            for _ in range(LOSSES_PER_PAIR):
                trial += 1
                # One draw a trial, used or not: a p that becomes known changes no other.
                drawn = math.exp(draw.uniform(math.log(LOSS_RATIO_MIN), math.log(LOSS_RATIO_MAX)))
                loss_ratio = PUBLISHED_LOSS_RATIO.get(trial, f"{drawn:.6g}")
                origin = "published" if trial in PUBLISHED_LOSS_RATIO else f"drawn, seed {SEED}"
                rows.writerow([trial, rtt_ms, mss_bytes, mtu_bytes, loss_ratio, origin])
    return out.getvalue()


def main() -> int:
    path = Path(__file__).with_name("trials.csv")
    if "--check" in sys.argv[1:]:
        if path.read_text() == table():
            return 0
        print(f"{path.name} is not what make_trials.py writes: run it once more", file=sys.stderr)
        return 1
    path.write_text(table())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
