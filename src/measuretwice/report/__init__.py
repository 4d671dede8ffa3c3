"""What a student hands in."""
