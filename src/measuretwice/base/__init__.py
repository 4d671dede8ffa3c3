"""What every other package may use: errors, files, locks, text."""

# All randomness of a run starts from a number from 0 to this, so that four bytes with a sign hold each.
LAST_SEED = 2**31 - 1
