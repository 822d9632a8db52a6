"""Store vectors in the database, so that an index can be filled without embedding again.

A vector is valid while its digest matches the row's text. It is deleted when the row or its text is.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, delete, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.errors import EmbedderUnavailable
from memory.index import Point
from memory.index.embedders import Embedder
from memory.index.rows import IndexRow
from memory.sql.engine import Database
from memory.sql.tables import vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = dict[tuple[str, str], NDArray[np.float32]]

Texts = Mapping[tuple[str, str], str]
"""The texts to embed, by the row's id and the lane: ``dense`` or ``window_dense``."""
AT_ONCE = 500
QUICK = frozenset({"bundled"})
"""Embedders that are so fast that their vectors are computed when needed and not stored."""


async def stored(database: Database, embedder: str, texts: Texts) -> "Vectors":
    """Return the stored vectors of these texts."""
    import numpy as np

    found: Vectors = {}
    ids = sorted({id for id, _ in texts})
    for at in range(0, len(ids), AT_ONCE):
        for row in await database.rows(_STORED, {"embedder": embedder, "ids": ids[at : at + AT_ONCE]}):
            text = texts.get((row.id, row.lane))
            if text is not None and row.digest == _digest(text):
                found[row.id, row.lane] = np.frombuffer(row.vector, dtype=np.float16).astype(np.float32)
    return found


async def store(connection: AsyncConnection, embedder: str, texts: Texts, made: Mapping[Any, Any]) -> None:
    """Store the vectors `made` from these texts, in the caller's transaction."""
    import numpy as np

    rows = [
        {
            "id": id,
            "lane": lane,
            "embedder": embedder,
            "digest": _digest(texts[id, lane]),
            "vector": np.asarray(vector, dtype=np.float16).tobytes(),
        }
        for (id, lane), vector in made.items()
        if vector is not None and embedder not in QUICK
    ]
    if rows:
        await connection.execute(_STORE, rows)


async def points(
    database: Database, embedder: Embedder, index_rows: Sequence[IndexRow]
) -> tuple[list[Point], Texts]:
    """Return the points of these rows, and the texts that are not embedded yet."""
    texts = {(index_row.point.id, "dense"): index_row.text for index_row in index_rows}
    texts |= {(point.id, "window_dense"): window for point, _, window in index_rows if window is not None}
    embedded: dict[tuple[str, str], Any] = {}
    if embedder.name not in QUICK:
        embedded |= await stored(database, embedder.name, texts)
    elif texts:
        with suppress(EmbedderUnavailable):
            embedded |= zip(texts, await embedder.embed(list(texts.values())), strict=True)
    made = [  # `_replace` takes three times as long
        Point(
            *point[:4],
            embedded.get((point.id, "dense")),
            *point[5:9],
            embedded.get((point.id, "window_dense")),
        )
        for point, _, _ in index_rows
    ]
    return made, {key: texts[key] for key in texts if key not in embedded}


async def make(database: Database, embedder: Embedder, texts: Texts) -> None:
    """Embed these texts, and store the vectors. Raises EmbedderUnavailable."""
    if texts:
        made = dict(zip(texts, await embedder.embed(list(texts.values())), strict=True))
        async with database.write() as connection:
            await store(connection, embedder.name, texts, made)


async def embedded(database: Database, embedder: str, ids: Collection[str]) -> list[str]:
    """Return which of these rows have stored vectors by now."""
    if not ids:
        return []
    rows = await database.rows(_STORED, {"embedder": embedder, "ids": list(ids)[:AT_ONCE]})
    return list({row.id for row in rows})


async def forget(database: Database, ids: Sequence[str]) -> None:
    """Delete the vectors of these rows, if there are any."""
    async with database.read() as connection:
        left = list(await connection.scalars(select(vectors.c.id).where(vectors.c.id.in_(ids))))
    if left:
        await database.run(delete(vectors).where(vectors.c.id.in_(left)))


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


_STORED = select(vectors).where(
    vectors.c.id.in_(bindparam("ids", expanding=True)), vectors.c.embedder == bindparam("embedder")
)
_NEW = insert(vectors)
_STORE = _NEW.on_conflict_do_update(
    index_elements=list(vectors.primary_key),
    set_={name: _NEW.excluded[name] for name in ("digest", "vector")},
)
