"""Looks up, adds, changes and forgets memories for the person they belong to: `pet.memories`."""

from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator
from typing_extensions import Unpack

from agent.errors import BadInput
from agent.services.forgetting import ForgetService
from agent.services.listing import ListService
from agent.types.arguments import (
    Content,
    FewLimit,
    Importance,
    Instant,
    Limit,
    MemoryId,
    Moment,
    Name,
    Page,
    Query,
    ShortText,
    Subjects,
    Ttl,
    Type,
    User,
    Where,
    listed,
    place_of,
)
from agent.types.checks import checks_arguments
from agent.types.labels import account_labels
from agent.types.meanings import (
    HOW_STATED,
    MemoryChanges,
    audience_of,
    bound_of,
    new_memory_of,
    place_of_correction,
    position_of,
    require_consent,
)
from memory.audience import Place
from memory.errors import NotFound
from memory.facts.bulk import remember_many
from memory.facts.candidate import Provenance
from memory.facts.history import History
from memory.index import KINDS
from memory.records import (
    DEFAULT_IMPORTANCE,
    Decision,
    ForgetCandidate,
    ForgetKind,
    Forgotten,
    Hit,
    HitKind,
    Memory,
    MemoryUpdate,
    NewMemory,
)
from memory.text.ttl import describe
from tools.failures import TryAgain
from tools.lookup import Reader, find, newest

if TYPE_CHECKING:
    from agent.wiring.components import Components


@checks_arguments
@dataclass(frozen=True)
class MemoryService(ListService):
    parts: "Components"
    forgetting: ForgetService

    async def search(
        self,
        query: Query,
        *,
        user: User,
        place: Where = None,
        limit: Limit = 10,
        subjects: Subjects = (),
        since: Moment = None,
        until: Moment = None,
        author: ShortText = "",
        kind: HitKind | None = None,
        cursor: ShortText | None = None,
    ) -> Page[Hit]:
        """Search facts, messages and summaries, best first; without a query return the newest. `subjects`
        selects facts with one of these tags, `since` and `until` the time of the statement, `author` the
        person who made it, by name or id. Only the author "hachi" finds Hachi's replies. `cursor` is the
        `next` of the previous page."""
        start, zone = position_of(cursor), await self._zone(user, place) if since or until else UTC
        found = await self.parts.recall.look(
            query,
            await self._audience(user, place),
            limit=start + limit + 1,
            subjects=subjects,
            kinds=frozenset({kind}) if kind else KINDS,
            since=bound_of(since, zone),
            until=bound_of(until, zone, end=True),
            author=author,
            zone=zone,
        )
        more = len(found.hits) > start + limit
        return Page(found.hits[start : start + limit], str(start + limit) if more else None)

    async def excerpts(
        self,
        query: Query = "",
        *,
        user: User,
        place: Where = None,
        limit: FewLimit = 10,
        subjects: Subjects = (),
        since: ShortText | None = None,
        until: ShortText | None = None,
        author: ShortText | None = None,
        kind: HitKind | None = None,
    ) -> dict[str, Any]:
        """Return the result of the tool `search_memories` for a model: hits with excerpts of conversations,
        and times in the person's zone. `since` and `until` are dates."""
        reader, narrowed = await self._reader(user, place), {"since": since, "until": until, "author": author}
        try:
            return await find(reader, query, limit, subjects=subjects, kind=kind, **narrowed)
        except TryAgain as error:
            raise BadInput(str(error)) from error

    async def newest(self, *, user: User, place: Where = None, limit: FewLimit = 10) -> dict[str, Any]:
        """Return the newest facts, as the tool `get_recent_memories` returns them to a model."""
        return await newest(await self._reader(user, place), limit)

    async def _reader(self, user: User, place: Where) -> Reader:
        zone, audience = await self._zone(user, place), await self._audience(user, place)
        labelled = replace(audience, besides=account_labels(audience.besides))
        return Reader(self.parts.recall, labelled, zone, message_ids=True)

    async def remember(
        self,
        content: Content,
        *,
        user: User,
        subjects: Subjects = (),
        ttl: Ttl = None,
        type: Type = "fact",
        importance: Importance = DEFAULT_IMPORTANCE,
        replaces: MemoryId | None = None,
        place: Where = None,
        said_at: Instant | None = None,
        everybody: bool = False,
        author: Name | None = None,
    ) -> Decision:
        """Remember one fact. It is stored when this returns. `said_at` is when it was stated, if not now.
        With `everybody`, all users may read it. `author` is the user's display name, as in `respond`. Raises
        BadInput for a value that cannot be used."""
        new_memory = NewMemory(content, (*subjects,), ttl, type, importance, replaces)
        return await self._note(new_memory, user, place_of(place), said_at, everybody, author)

    async def _note(
        self,
        new_memory: NewMemory,
        user: str,
        where: Place,
        said_at: datetime | None = None,
        everybody: bool = False,
        author: str | None = None,
    ) -> Decision:
        await self.parts.erasure.finished(user)
        await require_consent(self.parts.places, user, where)
        if author is not None:
            await self.parts.transcript.note_name(user, author, where)
        origin = Provenance(
            user,
            said_at or self.parts.clock(),
            where,
            source="note",
            stated_now=said_at is None,
            everybody=everybody,
        )
        [decision] = await self.parts.writer.remember([new_memory], origin)
        return decision

    async def remember_many(
        self,
        facts: Annotated[Sequence[Mapping[str, Any]], BeforeValidator(listed)],
        *,
        user: User,
        place: Where = None,
    ) -> list[Decision]:
        """Remember many facts at once, each a mapping with `content` and, as for `remember`, `subjects`,
        `ttl`, `type` and `importance`. The decisions are the same as for single calls; without a model it
        stores thousands a second. All are stored when this returns. Raises BadInput, before anything is
        stored, for a value that cannot be used."""
        new_memories = [new_memory_of(**fact) for fact in facts]
        await self.parts.erasure.finished(user)
        origin = Provenance(user, self.parts.clock(), place_of(place), source="note", stated_now=True)
        decisions = await remember_many(
            self.parts.writer, [(new_memory, origin) for new_memory in new_memories]
        )
        await self.parts.sync.try_to_catch_up()
        return decisions

    async def update(
        self,
        id: MemoryId,
        content: Content,
        *,
        user: User,
        place: Where = None,
        **changes: Unpack[MemoryChanges],
    ) -> Decision:
        """Correct a memory: a new one replaces it, and the old one stays in the history. `changes` are the
        arguments of `remember` that differ from the old memory's. In a place, raises NotFound unless the user
        alone stated it there."""
        audience = await self._audience(user, place)
        old = await self.parts.store.get(id, audience, self.parts.clock())
        user = self.parts.links.teller(old, user, audience)
        left = old.expires_at and old.expires_at - self.parts.clock()
        if changes.get("ttl", "") is None:
            changes["ttl"] = "never"
        fields: dict[str, Any] = {
            "subjects": old.subjects,
            "ttl": describe(left) if left else None,
            "type": old.type,
            "importance": old.importance,
            **changes,
        }
        stated = {name: fields.pop(name) for name in HOW_STATED if name in fields}
        new_memory = NewMemory(content, replaces=old.id, for_good=True, **fields)
        return await self._note(new_memory, user, place_of_correction(old, user, place_of(place)), **stated)

    async def forget(
        self,
        id: MemoryId,
        *,
        user: User,
        place: Where = None,
        kind: ForgetKind = "memory",
        asked_in: ShortText = "",
    ) -> Forgotten:
        """Forget a memory for every reader, with its cascade: the memories that it replaced, the user's
        messages that state it, and Hachi's replies that answered these or repeat it. Another `kind` forgets a
        message (with the facts that rest on no other message), an entry of the profile, or a task. The
        message `asked_in`, which asks for it, is forgotten too. The receipt lists what was forgotten, what
        else is offered, and until when `undo_forget` can restore it. Memories of other people who stated the
        same stay. Raises NotFound for what the user did not state, or may not read in the place."""
        id = await self._readable(id, kind, user, place)
        return await self.forgetting.forget(kind, id, user, place_of(place), asked_in)

    async def preview_forget(
        self,
        id: MemoryId,
        *,
        user: User,
        place: Where = None,
        kind: ForgetKind = "memory",
        asked_in: ShortText = "",
    ) -> ForgetCandidate:
        """Return what `forget` would remove along with it: the messages, whole, and the number of replies.
        Changes nothing."""
        id = await self._readable(id, kind, user, place)
        return await self.forgetting.preview(kind, id, user, place_of(place), asked_in)

    async def _readable(self, id: str, kind: ForgetKind, user: User, place: Where) -> str:
        """Return the full id. Raises NotFound for a memory that may not be read in the place."""
        return id if kind != "memory" else (await self.get(id, user=user, place=place)).id

    async def find_to_forget(
        self, words: Query, *, user: User, place: Where = None
    ) -> tuple[ForgetCandidate, ...]:
        """Search the user's statements for these words: candidates for `forget_confirmed`. Changes
        nothing."""
        return await self.parts.forget_requests.matching([words], await self._audience(user, place), user)

    async def forget_confirmed(
        self,
        candidates: Annotated[Sequence[ForgetCandidate], BeforeValidator(listed)],
        *,
        user: User,
        place: Where = None,
    ) -> list[Forgotten]:
        """Forget the candidates of `Reply.forget` that the person confirmed, and the messages that asked for
        it. Returns a receipt for each, except for those that were forgotten along with another one."""
        receipts: list[Forgotten] = []
        for candidate in candidates:
            with suppress(NotFound):  # forgotten with another candidate
                at: dict[str, Any] = {"user": user, "place": place, "kind": candidate.kind}
                receipts.append(await self.forget(candidate.id, asked_in=candidate.asked_in, **at))
        return await self.forgetting.offered(receipts)

    async def undo_forget(self, id: MemoryId, *, user: User) -> Forgotten:
        """Restore what was forgotten, by the receipt's `undo_id` or its first eight characters. Returns what
        was restored. Raises NotFound once it is purged."""
        return await self.forgetting.undo(id, user)

    async def make_private(self, id: MemoryId, *, user: User, place: Where = None) -> Memory:
        """Withdraw from a place what the user stated there: the memory, the messages that state it and the
        replies to them become readable only for the user. Raises NotFound if the memory belongs to no place,
        or somebody else stated it too."""
        memory = await self.get(id, user=user, place=place)
        await self.forgetting.make_private(memory, user)
        return memory

    async def history(self, id: MemoryId, *, user: User, place: Where = None) -> list[MemoryUpdate]:
        """Return the replacements that involve this memory, oldest first: what replaced what, when and why.
        In a place, only those made for that place."""
        return await History(self.parts.database).of(id, await self._audience(user, place))

    async def undo(self, id: MemoryId, *, user: User, place: Where = None) -> MemoryUpdate:
        """Undo the last replacement that involves this memory: the older one is restored. In private this
        applies only to the user; in a place, to the place and the user, unless somebody else also stated the
        memory that would be superseded. Raises NotFound if there is nothing that the user can undo."""
        past, now = History(self.parts.database), self.parts.clock()

        def undo(account: str) -> Awaitable[MemoryUpdate]:
            return past.undo(id, audience_of(account, place), account, now)

        private = place_of(place).private
        update = await (self.parts.links.as_teller(user, undo) if private else undo(user))
        self.parts.sync.wake()
        return update
