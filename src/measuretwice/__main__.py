"""`python -m measuretwice` is the command that ./lab hands over to."""

import signal

if __name__ == "__main__":
    # Ctrl-C while the modules are read: nothing has begun, so there is nothing to say.
    at_first = signal.getsignal(signal.SIGINT)
    if at_first is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from measuretwice.cli.main import main

    signal.signal(signal.SIGINT, at_first)
    main()
