"""What every other package may use: errors, files, locks, text."""

# All randomness of a run starts from a number from 0 to this, so that four bytes with a sign hold each.
LAST_SEED = 2**31 - 1
# Between groups of three digits: lines don't break there.
THIN = "\u202f"


def in_groups(text: str) -> str:
    """A number's digits with thin spaces between groups of three, where it has more than four of them."""
    whole, point, part = text.partition(".")
    if len(whole.lstrip("-")) <= 4:
        return text
    return f"{int(whole):,}".replace(",", THIN) + point + part
