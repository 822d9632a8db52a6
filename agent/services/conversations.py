"""Messages of conversations, export and import: `pet.conversations`."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator

from agent.services.forgetting import ForgetService
from agent.services.transfer.export import export_person, export_place
from agent.services.transfer.read_import import ImportReceipt, ParsedImport, checked_import, speaks_for
from agent.services.transfer.store_messages import read_messages, store_messages
from agent.types import TurnRequest
from agent.types.arguments import (
    Argument,
    Instant,
    Limit,
    Name,
    Page,
    ShortText,
    ShortTexts,
    Text,
    User,
    Where,
    async_function,
    listed,
    place_of,
)
from agent.types.checks import checks_arguments
from agent.types.meanings import audience_of
from memory.audience import owners_of
from memory.errors import NotFound
from memory.facts.bulk import remember_many
from memory.forgetting.hiding import replace_messages, reword
from memory.index.worker import Progress
from memory.records import Conversation, ForgetCandidate, Forgotten, Message
from memory.sql.hidden import hidden_in
from memory.sql.jobs.deliveries import Deliveries, Sent, note_origins
from memory.sql.jobs.job import POSTS
from memory.text import storable

if TYPE_CHECKING:
    from agent.wiring.components import Components

log = logging.getLogger("hachi.conversations")


@checks_arguments
@dataclass(frozen=True)
class ConversationService:
    parts: "Components"
    forgetting: ForgetService

    @property
    def deliveries(self) -> Deliveries:
        """Return the messages of chat platforms, with the posts that answer them."""
        return self.parts.deliveries

    async def messages(
        self,
        *,
        user: User,
        place: Where = None,
        limit: Limit = 20,
        before: ShortText | None = None,
        conversation: ShortText | None = None,
    ) -> list[Message]:
        """Return messages that the user may read in the place, newest first: of all conversations or of one.
        With `before`, only those older than the message with this id."""
        audience = await self.parts.links.audience(user, place_of(place))
        return await self.parts.transcript.page(audience, limit, before, conversation)

    async def message(self, id: ShortText, *, user: User) -> Message:
        """Return the user's message with this id, or its first eight characters. Raises NotFound."""
        return await self.parts.links.as_teller(user, lambda one: self.parts.transcript.find_message(id, one))

    async def forget(self, id: ShortText, *, user: User) -> Forgotten:
        """Forget one of the user's messages, the reply to it, and the memories that rest on no other message.
        Raises NotFound for another person's message."""
        return await self.forgetting.forget("message", id, user)

    async def preview_forget(self, id: ShortText, *, user: User) -> ForgetCandidate:
        """Return what `forget` would remove along with this message. Changes nothing."""
        return await self.forgetting.preview("message", id, user)

    async def forget_conversation(self, id: ShortText, *, user: User) -> Forgotten:
        """Forget the user's messages in a conversation, the replies to them, and the memories that rest on no
        other messages. Other people's messages stay. Raises NotFound if none is the user's."""
        return await self.forgetting.forget("conversation", id, user)

    async def keep_asked(self, reply: ShortText, *, user: User) -> None:
        """Dismiss the question in a reply about what to forget (`Message.asks`). Nothing is forgotten."""
        await self.parts.transcript.dismiss(reply, user)

    async def forget_sent(self, origin: ShortText) -> Forgotten | None:
        """Forget the message with this id on a chat platform, when its author has deleted it there. Returns
        None if it is not stored, or forgotten already."""
        await self.deliveries.forget(origin, self.parts.clock())
        await self.forgetting.forget_quotes(origin)
        with suppress(NotFound):  # the platform may report a deletion twice
            if sent := await self.parts.transcript.sent_as(origin):
                return await self.forget(sent[0], user=sent[1])
        return None

    async def sent(self, origin: ShortText) -> Sent | None:
        """Return the message with this id on a chat platform, with its reply and the reply's posts; None if
        it is not stored, for example because it was never delivered."""
        return await self.deliveries.sent([origin])

    async def posted(self, reply: ShortText, posts: ShortTexts) -> None:
        """Store the ids of the posts that show a reply on a chat platform."""
        await self.deliveries.answered([], self.parts.clock(), reply, [*posts])

    async def delete_forgotten(
        self, prefix: ShortText, delete: Annotated[Callable[[str], Awaitable[None]], Argument(async_function)]
    ) -> None:
        """Call `delete` with the id of each post that shows a forgotten reply, for ids that begin with
        `prefix`. A post for which it raises is tried again later."""
        now, deliveries = self.parts.clock(), self.deliveries
        for job in await deliveries.queue.claim_of([POSTS], prefix, now):
            try:
                if not await deliveries.stands(reply := str(job.about)):
                    # The platform reports this deletion like a person's.
                    for post in await deliveries.forget_posts(reply, job.payload["posts"]):
                        await delete(post)
                await deliveries.queue.done(job)
            except Exception as error:
                log.warning("the posts of reply %s are not deleted yet: %s", job.about, error)
                await deliveries.queue.failed(job, str(error), now)

    async def reword(self, sent: Sent, text: Text, *, again: bool) -> None:
        """Replace the text of a message that its author edited on a chat platform. With `again` the reply is
        replaced too: the turn that answers the message again stores the new text."""
        old, reply = sent.message, sent.reply
        async with self.parts.database.write(lock=owners_of(sent.user, sent.place)) as connection:
            now, replies = self.parts.clock(), {reply.id} if reply else set()
            if again:
                await replace_messages(connection, {old.id, *replies}, sent.user, now)
                return
            new = await reword(
                connection,
                self.parts.transcript,
                old,
                storable(text),
                sent.user,
                sent.place,
                now,
                answers=replies,
            )
            await note_origins(connection, new.id, sent.origins)

    async def export(self, *, user: User) -> dict[str, Any]:
        """Return everything that `pet.people.erase` would delete, as plain JSON values. `linked` has the
        exports of linked accounts. `import_` reads the export, without `linked`."""
        c, linked = self.parts, await self.parts.links.of(user)
        whole, *others = [
            await export_person(c.database, c.store, c.documents, c.clock(), one) for one in (user, *linked)
        ]
        return whole | ({"linked": others} if others else {})

    async def export_place(self, place: Where, *, user: User) -> dict[str, Any]:
        """Return the memories and messages of a place, each with its user, without those of places around or
        inside it. `import_` reads the messages."""
        return await export_place(self.parts.database, self.parts.store, self.parts.clock(), place, user)

    async def import_(
        self,
        parsed: ParsedImport,
        *,
        user: User,
        place: Where = None,
        progress: Progress | None = None,
        for_others: bool = False,
    ) -> ImportReceipt:
        """Store the result of `parse_import`. Calls `progress` for each row. Returns how many rows are new.
        Rows that were forgotten since are skipped, and so are facts whose evidence was forgotten. Raises
        BadInput if the file does not say whose a message is, if the place differs, or for other people's
        messages unless `for_others` is set."""
        where = checked_import(parsed, user, place_of(place), for_others)
        # Messages first, because memories name them as evidence.
        messages = await self.import_messages(parsed.messages, user=user, place=where, progress=progress)
        stated = {origin.message_id or "" for _, origin in parsed.memories}
        gone = await hidden_in(self.parts.database, stated)
        facts = [
            (new_memory, origin) for new_memory, origin in parsed.memories if origin.message_id not in gone
        ]
        decisions = await remember_many(self.parts.writer, facts, progress)
        new = sum(decision.action in ("add", "replace") for decision in decisions)
        await self.parts.sync.try_to_catch_up()
        return ImportReceipt(messages, new)

    def others_in(self, parsed: ParsedImport, *, user: User, place: Where = None) -> list[str]:
        """Return the other people to whom the import attributes messages."""
        return speaks_for(parsed, user, place_of(place))

    async def written_since(self, moment: Instant, *, user: User) -> int:
        """Return how many messages the user has written since then, in private and in places."""
        return await self.parts.transcript.written_since(user, moment)

    async def exists(self, conversation: ShortText, *, user: User, place: Where = None) -> bool:
        """Return whether the conversation has a message that the user may read there."""
        return bool(await self.parts.transcript.last(conversation, audience_of(user, place), 1))

    async def import_messages(
        self,
        messages: Annotated[Sequence[Mapping[str, Any]], BeforeValidator(listed)],
        *,
        user: User,
        place: Where = None,
        conversation: Name | None = None,
        progress: Progress | None = None,
    ) -> int:
        """Store the messages in order, index them, and return how many are new. In a place, a message may
        name its own `user` and `conversation`. If one message is invalid, none is stored. Messages that were
        imported before, or forgotten since, are skipped."""
        target = TurnRequest("", user, self.parts.clock(), place_of(place), conversation)
        read = await read_messages(messages, target)
        for speaker in {target.user, *(one.user for one in read)}:
            await self.parts.erasure.finished(speaker)
        c = self.parts
        new = await store_messages(c.database, c.transcript, read, target, progress)
        await c.sync.try_to_catch_up()
        return new

    async def get(self, id: ShortText, *, user: User, place: Where = None) -> Conversation:
        """Return one conversation, with its summary. Raises NotFound if it is not readable there."""
        audience = await self.parts.links.audience(user, place_of(place))
        for found in await self.parts.summaries.conversations(audience, self.parts.clock(), 1, id=id):
            return found
        raise NotFound(f"no conversation {id!r} here; `hachi conversations list` shows the ids")

    async def list(
        self, *, user: User, place: Where = None, limit: Limit = 100, cursor: ShortText | None = None
    ) -> Page[Conversation]:
        """Return the conversations that the user may read in the place, from every client; the one with the
        newest message comes first. A private conversation has the user's messages and the replies to them.
        `cursor` is the `next` of the previous page."""
        audience, now = await self.parts.links.audience(user, place_of(place)), self.parts.clock()
        found = await self.parts.summaries.conversations(audience, now, limit + 1, before=cursor)
        return Page(found[:limit], found[limit - 1].newest if len(found) > limit else None)
