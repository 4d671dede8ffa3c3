"""`python -m measuretwice` is the command that ./lab hands over to."""

from measuretwice.cli.main import main

if __name__ == "__main__":
    main()
