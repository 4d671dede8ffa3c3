"""Which numbers all randomness of a run may start from."""

# From 0 to this, so that four bytes with a sign hold each.
LAST_SEED = 2**31 - 1
