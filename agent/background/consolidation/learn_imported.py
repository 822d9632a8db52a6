"""Learn from imported conversations: consolidate them one after the other, oldest first.

It has its own limit of calls and does not count against the person's daily calls. Consolidated messages are
covered by a summary, so a run continues where an earlier one stopped.
"""

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import timedelta
from math import ceil
from typing import Any

from agents import ModelResponse
from agents.models.interface import Model
from openai.types.responses import ResponseCompletedEvent
from sqlalchemy import func, select

from agent.background.consolidation.apply import Overtaken
from agent.background.consolidation.consolidate import Consolidation, UnreadableAnswer
from agent.background.consolidation.reader import MESSAGES, MOST_MESSAGES
from agent.errors import BadInput
from agent.types import Usage
from agent.types.budget import BYTES_A_TOKEN
from memory.audience import user_key
from memory.process.spans import new_id
from memory.sql.jobs.job import Job
from memory.sql.messages.message_rows import is_visible
from memory.sql.messages.summaries import CONSOLIDATE, consolidation_subject, heard_by
from memory.sql.tables import active_conversations, messages

log = logging.getLogger("hachi.consolidation")

EVERY = 1_000_000_000
"""The most messages of a conversation that are read: so many that none is skipped."""
PROMPT_TOKENS, ANSWER_TOKENS = 2_000, 400
"""Estimated tokens that a call reads besides the messages, and writes. Measured: 1,950 and 130, with a
scripted model that returns three short facts a call, in 20 conversations of 50 messages. Real models write
more."""


@dataclass(frozen=True, slots=True)
class LearningCost:
    """The conversations to learn from, and the estimated cost."""

    conversations: int
    messages: int
    calls: int
    input: int
    """Tokens that the model reads …"""
    output: int
    """… and writes."""
    model: str


@dataclass(frozen=True, slots=True)
class LearningResult:
    conversations: int
    """The number of conversations that were consolidated completely."""
    facts: int
    """The number of facts that are new or newly worded."""
    calls: int
    usage: Usage
    """The tokens that the model's server counted; zeros if it did not."""
    remaining: LearningCost
    """What remains: over the limit, or because answers were unreadable."""


class CallsMade(Exception):
    """A run has used up its calls."""


@dataclass
class _Counted(Model):
    """Counts the calls and tokens of a run, and raises CallsMade instead of more than `most` calls."""

    inner: Model
    most: int
    calls: int = 0
    usage: Usage = field(default_factory=Usage)

    async def get_response(self, *args: Any, **options: Any) -> ModelResponse:
        self._begin()
        answer = await self.inner.get_response(*args, **options)
        self._count(answer.usage)
        return answer

    async def stream_response(self, *args: Any, **options: Any) -> AsyncGenerator[Any]:
        self._begin()
        async with aclosing(self.inner.stream_response(*args, **options)) as events:  # type: ignore[type-var]
            async for event in events:
                if isinstance(event, ResponseCompletedEvent):
                    self._count(event.response.usage)
                yield event

    def _begin(self) -> None:
        if self.calls >= self.most:
            raise CallsMade
        self.calls += 1

    def _count(self, used: Any) -> None:
        if used:
            self.usage = Usage(self.usage.input + used.input_tokens, self.usage.output + used.output_tokens)


@dataclass(frozen=True)
class Learning:
    consolidation: Consolidation

    async def preview(self, user: str) -> LearningCost:
        """Return the conversations to learn from, and the cost. Raises BadInput if no model consolidates."""
        model, waiting = self._model.name, await self._waiting(user)
        calls = sum(
            max(ceil(one.messages / MOST_MESSAGES), ceil(one.characters / MESSAGES.characters))
            for one in waiting
        )
        read = sum(one.characters for one in waiting) // BYTES_A_TOKEN
        return LearningCost(
            conversations=len(waiting),
            messages=sum(one.messages for one in waiting),
            calls=calls,
            input=read + calls * PROMPT_TOKENS,
            output=calls * ANSWER_TOKENS,
            model=model,
        )

    @property
    def _model(self) -> Any:
        if self.consolidation.model is None:
            raise BadInput("no model consolidates here: set up one, and HACHI_CONSOLIDATE=model")
        return self.consolidation.model

    async def run(
        self, user: str, calls: int, progress: Callable[[int], None] | None = None
    ) -> LearningResult:
        """Consolidate the private conversations of the user, in at most `calls` model calls. Calls `progress`
        with the number of messages after each call. A conversation with unreadable answers is skipped. Raises
        ModelError if the model is unavailable; what was learned before stays."""
        counted = _Counted(self._model.model, calls)
        consolidation = replace(
            self.consolidation,
            model=replace(self._model, model=counted),
            calls=replace(self.consolidation.calls, per_day=0),  # its own limit counts
            writer=replace(self.consolidation.writer, due=None),
            reader=replace(self.consolidation.reader, most_behind=EVERY, answered_within=timedelta()),
        )
        facts, completed = 0, 0
        for conversation, *_ in await self._waiting(user):
            job = Job(new_id(), CONSOLIDATE, user, {"conversation": conversation, "place": []}, 1)
            job = replace(job, about=consolidation_subject(conversation, user_key(user)))
            while waits := await self._waiting(user, conversation):
                with self.consolidation.parts.recorder.work(job):
                    try:
                        decisions = await consolidation.extract_and_save(job)
                    except Overtaken:  # messages were added or forgotten meanwhile
                        continue
                    except UnreadableAnswer as error:
                        log.warning("%s of %s was learned from in part: %s", conversation, user, error)
                        break
                    except CallsMade:
                        return LearningResult(
                            completed, facts, counted.calls, counted.usage, await self.preview(user)
                        )
                facts += sum(decision.action in ("add", "replace") for decision in decisions)
                if progress:
                    remaining = await self._waiting(user, conversation)
                    progress(waits[0].messages - sum(one.messages for one in remaining))
            else:
                completed += 1
        return LearningResult(completed, facts, counted.calls, counted.usage, await self.preview(user))

    async def _waiting(self, user: str, conversation: str | None = None) -> list[Any]:
        """Return the private conversations with messages that no summary covers, the oldest first: rows of
        (conversation, messages, characters)."""
        active, owner = active_conversations.c, user_key(user)
        covered = select(active.covered).where(
            active.conversation_id == messages.c.conversation_id, active.owner == owner
        )
        query = (
            select(
                messages.c.conversation_id,
                func.count().label("messages"),
                func.sum(func.length(messages.c.text)).label("characters"),
            )
            .where(
                heard_by() == owner,
                messages.c.seq > func.coalesce(covered.scalar_subquery(), 0),
                messages.c.user_id == user,
                is_visible(),
            )
            .group_by(messages.c.conversation_id)
            .order_by(func.min(messages.c.sent_at))
        )
        if conversation is not None:
            query = query.where(messages.c.conversation_id == conversation)
        return [*(await self.consolidation.parts.database.rows(query))]
