"""The errors of memory, and `HachiError`, the root of all; `agent.errors` has the rest.

HachiError
└── MemoryFault
    ├── StoreUnavailable
    ├── IndexUnavailable
    ├── EmbedderUnavailable
    ├── NotFound
    └── NotOpen
"""

from memory.text import one_line


def how_to_install(extra: str) -> str:
    """Return how to install an extra. The package index has another project of Hachi's name."""
    return f"run pip install -e '.[{extra}]' in the clone of Hachi, or pip install 'FILE.whl[{extra}]'"


class HachiError(Exception):
    """Any error of Hachi. Its text is one line that a person can act on."""

    status = 500
    """The matching HTTP status."""
    code = "internal_error"
    """A name for programs; the HTTP API sends it."""
    retryable = False
    """Whether the same call may succeed later."""
    retry_after: float | None = None
    """Seconds to wait before a retry, if known."""
    trace_id: str | None = None
    """The id of the turn that failed."""

    def __init__(self, told: str = "") -> None:
        super().__init__(one_line(told))


class MemoryFault(HachiError):
    """Reading or writing memory failed."""


class StoreUnavailable(MemoryFault):
    """The database cannot be opened, read or written."""

    status, code, retryable = 503, "record_unavailable", True


class IndexUnavailable(MemoryFault):
    """The Qdrant server cannot be reached."""

    status, code, retryable = 503, "index_unavailable", True


class EmbedderUnavailable(MemoryFault):
    """The embedder is unknown, not installed or does not answer."""

    status, code, retryable = 503, "embedder_unavailable", True


class NotFound(MemoryFault):
    """This audience has no such memory, message or task."""

    status, code = 404, "not_found"


class NotOpen(MemoryFault):
    """The companion is closed, or belongs to another event loop."""

    code = "not_open"
