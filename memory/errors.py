"""The errors of memory, as a tree.

MemoryFault                 anything below; its text says what to do
├── StoreUnavailable        the database cannot be opened, read or written
├── IndexUnavailable        the index cannot be reached or opened
├── EmbedderUnavailable     the embedder is unknown, not installed or does not answer
└── NotFound                no such memory or task for this audience
"""


class MemoryFault(Exception):
    """The base of memory errors. Its text is one line that a person can act on."""


class StoreUnavailable(MemoryFault):
    pass


class IndexUnavailable(MemoryFault):
    pass


class EmbedderUnavailable(MemoryFault):
    pass


class NotFound(MemoryFault):
    pass
