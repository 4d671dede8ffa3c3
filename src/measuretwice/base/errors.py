"""The one error a person sees: what is wrong and how to fix it, in one line."""


class UserError(Exception):
    """A mistake that its reader can fix.

    The message is one line that says what is wrong and what to do. `exit_code` is 2 for
    wrong usage and unusable input, 1 for something that failed while it ran.
    """

    def __init__(self, message: str, exit_code: int = 2) -> None:
        super().__init__(" ".join(message.split()))
        self.exit_code = exit_code
