"""Caches the vectors of an embedder, so that no text is paid for twice."""

import hashlib
import logging
import sqlite3
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from memory.errors import EmbedderUnavailable
from memory.index.embedders.embedder import Embedder

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_BYTES = 16_000_000
"""Bytes of vectors in memory: 15,000 of 256 dimensions, 2,600 of 1,536. Drops the least recently used."""

_SCHEMA = "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID"

log = logging.getLogger(__name__)


class CachedEmbedder:
    """Caches vectors in memory, and also in `file` if given, which several processes may share.

    The file holds hashes of texts and their vectors, from which a text may be guessed, so erasing somebody
    calls `clear`. If the file cannot be used, the embedder works without it.
    """

    def __init__(self, inner: Embedder, file: Path | None = None) -> None:
        self.inner = inner
        self.name = inner.name
        self.dimension = inner.dimension
        self.thresholds = inner.thresholds
        self._recent: OrderedDict[bytes, NDArray[np.float32]] = OrderedDict()
        self._max_vectors = max(1, MAX_BYTES // (4 * inner.dimension))
        self._disk = None if file is None else _open(file)

    async def embed(self, texts: Sequence[str]) -> "list[NDArray[np.float32]]":
        keys = [self._key(text) for text in texts]
        wanted = dict(zip(keys, texts, strict=True))
        found = {key: self._recent[key] for key in wanted if key in self._recent}
        found |= self._read(wanted.keys() - found.keys())
        missing = {key: text for key, text in wanted.items() if key not in found}
        if missing:
            fresh = dict(zip(missing, await self.inner.embed(list(missing.values())), strict=True))
            self._write(fresh)
            found |= fresh
        for key, vector in found.items():
            vector.flags.writeable = False  # several callers share one array
            self._recent[key] = vector
            self._recent.move_to_end(key)
        while len(self._recent) > self._max_vectors:
            self._recent.popitem(last=False)
        return [found[key] for key in keys]

    def clear(self) -> None:
        """Delete all cached vectors. Raises EmbedderUnavailable if the file cannot be cleared."""
        self._recent.clear()
        if self._disk is None:
            return
        try:
            with self._disk:
                self._disk.execute("DELETE FROM vectors")
            self._disk.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            raise EmbedderUnavailable(f"kept embeddings could not be cleared ({error}); try again") from error

    async def close(self) -> None:
        self._recent.clear()
        if self._disk is not None:
            self._disk.close()
            self._disk = None
        await self.inner.close()

    def _key(self, text: str) -> bytes:
        identity = f"{self.name}\0{self.dimension}\0{text}"
        return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).digest()

    def _read(self, keys: Iterable[bytes]) -> "dict[bytes, NDArray[np.float32]]":
        found: dict[bytes, NDArray[np.float32]] = {}
        if self._disk is None:
            return found
        try:
            for key in keys:
                row = self._disk.execute("SELECT vector FROM vectors WHERE key = ?", (key,)).fetchone()
                if row and len(row[0]) == 4 * self.dimension:
                    found[key] = np.frombuffer(row[0], dtype="<f4")
        except sqlite3.Error as error:
            log.warning("kept embeddings could not be read: %s", error)
        return found

    def _write(self, vectors: "Mapping[bytes, NDArray[np.float32]]") -> None:
        if self._disk is None:
            return
        rows = [(key, vector.astype("<f4").tobytes()) for key, vector in vectors.items()]
        try:
            with self._disk:
                self._disk.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
        except sqlite3.Error as error:
            log.warning("embeddings could not be kept: %s", error)


def _open(file: Path) -> sqlite3.Connection | None:
    connection = None
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        connection = sqlite3.connect(file, timeout=1.0)
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "secure_delete=ON"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute(_SCHEMA)
        connection.commit()
    except (sqlite3.Error, OSError) as error:
        log.warning("embeddings are not kept in %s: %s", file, error)
        if connection is not None:
            connection.close()
        return None
    return connection
