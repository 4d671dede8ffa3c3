"""A class's submissions: unpacked, read, marked."""
