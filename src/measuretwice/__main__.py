"""`python -m measuretwice` is the command that ./lab hands over to."""

import os
import signal
import sys


def open_standard_streams() -> None:
    """Open those that were closed (`>&-`, some cron jobs): else the next file that is opened becomes one of them."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one
    sys.stdin = sys.stdin or os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)


if __name__ == "__main__":
    open_standard_streams()
    # Ctrl-C while the modules are read: nothing has begun, so there is nothing to say.
    at_first = signal.getsignal(signal.SIGINT)
    if at_first is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        from measuretwice.cli.main import main
    except ModuleNotFoundError as error:
        # Another Python than the one that ./lab has made ready.
        if (error.name or "").startswith("measuretwice"):
            raise
        sys.exit(f"lab: this Python has no {error.name}: start it by ./lab, which has all it needs")

    signal.signal(signal.SIGINT, at_first)
    main()
