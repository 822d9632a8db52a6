"""The two ways in which a tool does not succeed. Both texts are read by the model."""


class TryAgain(Exception):
    """The call was wrong; the text says what to change."""


class ToolFailed(Exception):
    """The call was right and it did not work; trying again will not help."""
