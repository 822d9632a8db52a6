"""Searches the index; while it is away or behind, the newest rows beside it."""

import logging
from collections.abc import Callable

from memory.errors import IndexUnavailable
from memory.index import Index, Question, Ranked, Rankings
from memory.index.rows import RowSearch
from memory.index.schema import LANES

log = logging.getLogger("hachi.index")


class Searching:
    def __init__(self, index: Index, rows: RowSearch, behind: Callable[[], str | None]) -> None:
        """`behind` returns why rows are not in the index yet; None if they are."""
        self._index = index
        self._rows = rows
        self._behind = behind
        self._told: str | None = None

    async def search(self, question: Question) -> Rankings:
        """The rankings of the index. If it is away or behind, those of the newest rows are merged into what it
        found, and `without_index` says why."""
        found, why = Rankings(), None
        try:
            found = await self._index.search(question)
        except IndexUnavailable as error:
            why = str(error)
        self._tell(why)
        why = why or self._behind()
        return _merged(found, await self._rows.search(question), question.limit, why) if why else found

    def _tell(self, why: str | None) -> None:
        """Log once that searches go without the index, and once that they have it again."""
        if why and not self._told:
            log.warning("searching the newest rows of the database instead of the index: %s", why)
        elif self._told and not why:
            log.info("the index answers again")
        self._told = why


def _merged(index: Rankings, rows: Rankings, limit: int, why: str) -> Rankings:
    lanes: dict[str, tuple[Ranked, ...]] = {}
    for name in LANES:
        hits = {hit.id: hit for found in (rows, index) for hit in getattr(found, name)}
        lanes[name] = tuple(sorted(hits.values(), key=lambda hit: -hit.score)[:limit])
    return Rankings(**lanes, without_index=why)
