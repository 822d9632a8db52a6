"""The two errors of a tool. The model reads the text of both."""


class TryAgain(Exception):
    """The call was wrong; the text says what to change."""


class ToolFailed(Exception):
    """The call was right but failed; trying again will not help."""
