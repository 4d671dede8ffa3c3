"""Looking at runs: raw files made readable, two runs side by side, any run over time. No verdicts."""
