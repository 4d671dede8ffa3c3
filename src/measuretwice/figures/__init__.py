"""Drawing runs."""
