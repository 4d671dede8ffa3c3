"""A run's folder: archived, and read back."""
