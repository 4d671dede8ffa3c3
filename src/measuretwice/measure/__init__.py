"""From what tools printed to named values."""
