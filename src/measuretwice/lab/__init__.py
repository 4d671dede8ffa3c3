"""A lab's facts: lab.toml, its trials, and the plan of a run."""
