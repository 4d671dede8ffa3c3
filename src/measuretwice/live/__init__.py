"""A lab's network in real time, with shells on its nodes."""
