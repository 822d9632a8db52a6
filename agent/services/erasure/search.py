"""Searches the bytes of all files for an erased person, and removes what SQLite and Qdrant Edge keep of rows
and points that were deleted: free pages, write-ahead logs and old segments."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from agent.services.erasure import byte_search
from agent.services.home import hachis_files
from memory.audience import user_key
from memory.erasure.person.listing import SHORTEST_SOUGHT
from memory.erasure.person.personal_data import live
from memory.erasure.person.receipt import ErasureProgress, Remainder
from memory.errors import IndexUnavailable, StoreUnavailable
from memory.index import Index
from memory.sql.engine import Database

MOST_TEXTS = 20
"""How many texts of the person (the longest ones) are searched for."""
MOST_IDS = 50
LONGEST = 48
"""Characters of a text that are searched for. A longer one may be cut in two by the end of a page."""
SHORTEST_ID = 6
"""A shorter id of a user occurs in many words, so it is searched for only as an owner key."""


@dataclass(frozen=True)
class FileSearch:
    home: Path
    databases: Sequence[Database]
    """That of memory, and that of traces if it is another one."""
    indexes: Mapping[str, Index]
    """By the name of their folder in `home`."""

    async def search(self, progress: ErasureProgress) -> list[Remainder]:
        """Return the files that hold something of the person after a second try to remove it. A file that
        Hachi did not write is expected: it may be a copy that somebody made."""
        texts, ids = await self.texts(progress), _id_bytes(progress.index_ids + progress.chunk_ids)
        found = await asyncio.to_thread(self._holding, texts, ids)
        if progress.resumed:
            found += self._database_files()
        if found:
            left = await self._clean(found, progress.user)
            found = await asyncio.to_thread(self._holding, texts, ids)
        else:
            left = []
        own = set(hachis_files(self.home)).union(self._database_files())
        again = "its files still hold something of theirs; stop what else uses them, and run it again"
        other = "Hachi did not write this file; delete it if it is a copy"
        return left + [
            Remainder(self._name(path), 1, again if path in own else other, path not in own) for path in found
        ]

    async def texts(self, progress: ErasureProgress) -> list[bytes]:
        """What to search for in any file: pieces of the person's texts, their owner key and their id, without
        those that are part of what others keep."""
        longest = sorted(progress.sought, key=lambda text: (-len(text), text))[:MOST_TEXTS]
        pieces = {piece for text in longest if len(piece := _piece(text)) >= SHORTEST_SOUGHT}
        names = {user_key(progress.user)} | ({progress.user} if len(progress.user) >= SHORTEST_ID else set())
        async with self.databases[0].read() as connection:
            kept = await live(connection, pieces | names)
        return sorted(text.encode("utf-8", "surrogatepass") for text in (pieces | names) - kept)

    async def _clean(self, found: Collection[Path], user: str) -> list[Remainder]:
        """Rewrite the indexes and databases that still hold something."""
        left = []
        for name, index in self.indexes.items():
            if any((self.home / name) in path.parents for path in found):
                try:
                    await index.remove(await index.owned_by(user_key(user)))
                    await index.compact()
                except IndexUnavailable as error:
                    left.append(Remainder(name, 1, f"run it again once this works: {error}", False))
        if set(self._database_files()) & set(found):
            for database in self.databases:
                try:
                    await database.vacuum()
                except StoreUnavailable as error:
                    left.append(Remainder("free pages", 1, f"run it again once this works: {error}", False))
        return left

    def _holding(self, texts: Sequence[bytes], ids: Sequence[bytes]) -> list[Path]:
        files = {path for path in (*self.home.rglob("*"), *self._database_files()) if path.is_file()}
        indexed = {self.home / name for name in self.indexes}
        asked = {
            "texts": [text.hex() for text in texts],
            "ids": [id.hex() for id in ids],
            "files": [(str(path), not indexed.isdisjoint(path.parents)) for path in sorted(files)],
        }
        command = [sys.executable, "-I", byte_search.__file__]
        done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, check=False)
        if done.returncode:
            why = (done.stderr.splitlines() or ["no reason given"])[-1]
            raise StoreUnavailable(f"the files of {self.home} could not be searched: {why}; run it again")
        return [Path(path) for path in json.loads(done.stdout)]

    def _database_files(self) -> Iterator[Path]:
        for database in self.databases:
            if database.sqlite:
                yield from (Path(f"{database.where}{ending}") for ending in ("", "-wal"))

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self.home) if path.is_relative_to(self.home) else path)


def _piece(text: str) -> str:
    """The longest part of the text that is the same in plain text and within JSON, cut to `LONGEST`."""
    return max((part.strip() for part in re.split(r'["\\\x00-\x1f]', text)), key=len)[:LONGEST]


def _id_bytes(ids: Sequence[str]) -> list[bytes]:
    """The ids as the index stores them."""
    return [form for id in ids[:MOST_IDS] for form in (id.encode(), UUID(id).bytes)]
