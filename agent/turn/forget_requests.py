"""Finds what a person may mean when they ask in words to forget something.

The model names it in its answer; nothing is forgotten until the person confirms. Only what this person told
is found, and only what may be read where they ask.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from agent.types import ReceivedMessage
from memory.audience import Audience, user_key
from memory.errors import MemoryFault
from memory.forgetting.repeats import Words, words
from memory.index import Kind
from memory.records import Draft, ForgetCandidate, Hit
from memory.search.recall import Recall
from memory.sql.memories import tellers
from memory.sql.messages import Transcript
from memory.text import sentences

log = logging.getLogger("hachi.turn")

MOST = 5
"""The most candidates that a person is asked about."""
SEARCHED = 20
HALF = 0.5
"""Which share of the words of a text a candidate has at least."""
_ASKS = ("?", "？", "؟")
MOST_RELATED = 3
"""The most that a receipt offers."""
TOLD: frozenset[Kind] = frozenset({"memory", "message"})


@dataclass(frozen=True)
class ForgetRequests:
    recall: Recall
    transcript: Transcript
    preview: Callable[[ForgetCandidate, str], Awaitable[ForgetCandidate]]
    """Adds to a candidate of this person what would go with it."""

    async def candidates(
        self, texts: Sequence[str], received: ReceivedMessage
    ) -> tuple[ForgetCandidate, ...] | None:
        """Return what this person may mean by one of the texts of an answer; None if there is no text."""
        request = received.request
        if not texts or request.user is None:
            return None
        try:
            return await self.matching(
                texts, request.user, request.audience, request.author or "", str(received.id)
            )
        except MemoryFault as error:
            log.warning("what is to be forgotten was not searched for: %s", error)
            return ()

    async def matching(
        self, texts: Sequence[str], user: str, audience: Audience, author: str = "", asked_in: str = ""
    ) -> tuple[ForgetCandidate, ...]:
        """Return the facts and messages of this person that match one of the texts, best first.

        A candidate contains all words of a text or, where none does, at least half of them; a message does so
        without its questions. It is left out where a listed fact came from it, since it is forgotten with it.
        """
        found: dict[str, tuple[Hit, bool]] = {}
        person = words(f"{user} {author}")
        for text in texts:
            told = await self._told(text, user, audience, asked_in)
            shares = [(hit, _share(text, _stated(hit), person)) for hit in told]
            least = 1.0 if any(share == 1.0 for _, share in shares) else HALF
            found |= {hit.id: (hit, share == 1.0) for hit, share in shares if share >= least}
        best = sorted(found.values(), key=lambda one: (one[0].memory is None, -one[0].score))
        chosen = [_candidate(hit, asked_in, sure) for hit, sure in _without_sources(best)][:MOST]
        return tuple([await self.preview(candidate, user) for candidate in chosen])

    async def related(self, text: str, user: str, audience: Audience) -> tuple[ForgetCandidate, ...]:
        """Return the facts and messages of this person that a search for the text finds, best first, with at
        least half of its words."""
        person = words(" ".join([user, *(await self.transcript.names([user], audience)).values()]))
        found = await self._told(text, user, audience)
        told = [hit for hit in found if _share(text, hit.content, person) >= HALF]
        best = _without_sources([(hit, False) for hit in told])
        return tuple(_candidate(hit, "", False) for hit, _ in best[:MOST_RELATED])

    async def _told(self, text: str, user: str, audience: Audience, asked_in: str = "") -> list[Hit]:
        """Return what a search for the text finds of what this person told."""
        hits = await self.recall.search(text, audience, limit=SEARCHED, kinds=TOLD, exclude={asked_in})
        own = await self.transcript.written_by(user, [hit.id for hit in hits if not hit.memory])
        return [hit for hit in hits if hit.id in own or _told_by(user, hit)]


def without_forgotten(drafts: Sequence[Draft], texts: Sequence[str]) -> tuple[Draft, ...]:
    """Return the drafts without those that state again what is to be forgotten."""
    asked = [words(text) for text in texts]
    return tuple(d for d in drafts if not any(text and text <= words(d.content) for text in asked))


def _share(text: str, content: str, person: Words) -> float:
    """Return which share of the words of the text the content has. The person's names count only where the
    text says nothing else: they begin most of their facts."""
    asked, said = words(text), words(content)
    asked = asked - person or asked
    return len(asked & said) / len(asked) if asked else 0.0


def _stated(hit: Hit) -> str:
    """What the hit states: of a message, no questions."""
    if hit.memory:
        return hit.content
    return " ".join(one for one in sentences(hit.content) if not one.rstrip("\"'”’») ").endswith(_ASKS))


def _candidate(hit: Hit, asked_in: str, sure: bool) -> ForgetCandidate:
    kind: Literal["memory", "message"] = "memory" if hit.memory else "message"
    return ForgetCandidate(hit.id, kind, hit.content, hit.created_at, asked_in, sure)


def _told_by(user: str, hit: Hit) -> bool:
    return hit.memory is not None and user_key(user) in tellers(hit.memory.owners, hit.memory.user_id)


def _without_sources(found: Sequence[tuple[Hit, bool]]) -> list[tuple[Hit, bool]]:
    sources = {hit.memory.message_id for hit, _ in found if hit.memory}
    return [(hit, sure) for hit, sure in found if hit.memory or hit.id not in sources]
