"""Where a trial runs: in the virtual kernel, on the machine's own, on nodes by ssh."""
