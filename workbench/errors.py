"""The two ways a command ends early, each reported to the user as one line."""


class BadInput(Exception):
    """What was asked for cannot be done as asked; the message says what to do instead (exit code 2)."""


class RunFailed(Exception):
    """A run stopped before its end; what it had saved is still on disk (exit code 1)."""
