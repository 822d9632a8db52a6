"""Copies an embedded index into new files.

Edge marks removed points as deleted, and keeps their payloads, ids and vectors in its segments and its
write-ahead log, also after a flush and an optimisation. A copy has none of them, and nothing has to be
embedded again.

The copy is made in `COPYING`, a folder inside that of the index. Once it is complete, the folder is renamed
to `COPIED`, and its files take the places of the old ones. `settle` completes an interrupted exchange.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qdrant_edge import EdgeShard

COPYING, COPIED = "copying", "copied"
PARTS = ("edge_config.json", "segments", "temp_segments", "wal")
"""The files and folders that Edge creates in its folder. A rebuild deletes only these."""
PAGE = 64
"""Points that are copied before the event loop gets a turn: some 5 ms."""


def copy_points(old: "EdgeShard", new: "EdgeShard") -> Iterator[None]:
    """Copy every point; yields after each `PAGE`. Points that are written or removed meanwhile must be in
    both."""
    from qdrant_edge import Point, ScrollRequest, UpdateOperation

    after: Any = None
    while True:
        request = ScrollRequest(offset=after, limit=PAGE, with_payload=True, with_vector=True)
        records, after = old.scroll(request)
        points = [Point(record.id, record.vector or {}, record.payload) for record in records]
        if points:
            new.update(UpdateOperation.upsert_points(points))
        yield
        if after is None:
            return


def settle(folder: Path) -> None:
    """Put a complete copy, if there is one, in the place of the index in `folder`, which must be closed."""
    copied = folder / COPIED
    if not copied.is_dir():
        return
    for part in PARTS:
        if (copied / part).exists():
            delete(folder / part)
            (copied / part).rename(folder / part)
    delete(copied)


def delete(part: Path) -> None:
    """Delete a file, a folder with all that is in it, or a link; nothing if it is not there."""
    if part.is_dir() and not part.is_symlink():
        shutil.rmtree(part)
    else:
        part.unlink(missing_ok=True)
