"""The errors of Hachi, and those of memory, as a tree; `agent.errors` has the others.

HachiError                  anything that Hachi raises; its text says what to do
└── MemoryFault             what is remembered
    ├── StoreUnavailable    the database cannot be opened, read or written
    ├── IndexUnavailable    the index cannot be reached or opened
    ├── EmbedderUnavailable the embedder is unknown, not installed or does not answer
    ├── NotFound            no such memory or task for this audience
    └── NotOpen             the companion is closed, or belongs to another event loop
"""

from memory.text import one_line


def how_to_install(extra: str) -> str:
    """Say how to install an extra. By its name the package index has somebody else's project."""
    return f"run pip install -e '.[{extra}]' in the clone of Hachi, or pip install 'FILE.whl[{extra}]'"


class HachiError(Exception):
    """The text is one line that a person can act on."""

    status = 500
    """The HTTP status that says the same."""
    code = "internal_error"
    """A name for programs; the HTTP API sends it."""
    retryable = False
    """Whether the same call may succeed later."""
    retry_after: float | None = None
    """Seconds to wait before that, where it is known."""
    trace_id: str | None = None
    """The turn in which it happened, for looking it up afterwards."""

    def __init__(self, told: str = "") -> None:
        super().__init__(one_line(told))


class MemoryFault(HachiError):
    pass


class StoreUnavailable(MemoryFault):
    status, code, retryable = 503, "record_unavailable", True


class IndexUnavailable(MemoryFault):
    status, code, retryable = 503, "index_unavailable", True


class EmbedderUnavailable(MemoryFault):
    status, code, retryable = 503, "embedder_unavailable", True


class NotFound(MemoryFault):
    status, code = 404, "not_found"


class NotOpen(MemoryFault):
    code = "not_open"
