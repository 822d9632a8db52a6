"""The errors a caller sees, as a tree.

    HachiError                    anything below; its text is one line that says what to do
    ├── SettingsError             a setting cannot be read or does not fit the others
    ├── BadInput                  what was handed in cannot be used
    └── ModelError                the language model
        ├── ModelUnavailable      it does not answer: network, time-out, 5xx, too many requests
        ├── ModelRejected         it answers and refuses: key, model name, request
        └── AnswerMisfit          its answer does not have the form that a client asked for

`memory.errors.MemoryFault` is a tree of its own, since memory knows nothing of the agent: catch `FAULTS`.
"""

from memory.errors import MemoryFault


class HachiError(Exception):
    """The text is one line that a person can act on."""

    trace_id: str | None = None
    """The turn in which it happened, for looking it up afterwards."""


class SettingsError(HachiError):
    pass


class BadInput(HachiError):
    pass


class ModelError(HachiError):
    pass


class ModelUnavailable(ModelError):
    pass


class ModelRejected(ModelError):
    pass


class AnswerMisfit(ModelError):
    pass


FAULTS = (HachiError, MemoryFault)
"""Everything a caller of `Companion` need catch."""
