"""Drawing runs: each kind of figure in a module of its own, found through `registry`."""
