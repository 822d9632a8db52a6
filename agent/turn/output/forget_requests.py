"""Finds what a person may mean when they ask in words to forget something.

The model names it in its answer; nothing is forgotten until the person confirms. Only what this person told
is found, and only what may be read where they ask.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from agent.types import ReceivedMessage
from memory.audience import user_key
from memory.erasure.repetition import Words, asks, asks_to_forget, words
from memory.errors import MemoryFault
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
TOLD: frozenset[Kind] = frozenset({"memory", "message"})


@dataclass(frozen=True)
class ForgetRequests:
    recall: Recall
    transcript: Transcript

    async def candidates(
        self, texts: Sequence[str], received: ReceivedMessage
    ) -> tuple[ForgetCandidate, ...] | None:
        """Return the facts and messages of this person that match one of the texts, best first; None if there
        is no text.

        A candidate contains at least half of the words of a text; a message does so without its questions and
        requests to forget. It is left out where a listed fact came from it, since it is forgotten with it.
        """
        user = received.request.user
        if not texts or user is None:
            return None
        try:
            return await self._candidates(texts, user, received)
        except MemoryFault as error:
            log.warning("what is to be forgotten was not searched for: %s", error)
            return ()

    async def _candidates(
        self, texts: Sequence[str], user: str, received: ReceivedMessage
    ) -> tuple[ForgetCandidate, ...]:
        found: dict[str, Hit] = {}
        person = words(f"{user} {received.request.author or ''}")
        for text in texts:
            hits = await self.recall.search(
                text, received.request.audience, limit=SEARCHED, kinds=TOLD, exclude={str(received.id)}
            )
            found |= {hit.id: hit for hit in hits if _about(text, _stated(text, hit), person)}
        own = await self.transcript.written_by(user, [hit.id for hit in found.values() if not hit.memory])
        told = [hit for hit in found.values() if hit.id in own or _told_by(user, hit)]
        return tuple(
            ForgetCandidate(
                hit.id,
                "memory" if hit.memory else "message",
                hit.content,
                hit.created_at,
                asked_in=str(received.id),
            )
            for hit in _without_sources(sorted(told, key=lambda hit: (hit.memory is None, -hit.score)))
        )[:MOST]


def without_forgotten(drafts: Sequence[Draft], texts: Sequence[str]) -> tuple[Draft, ...]:
    """Return the drafts without those that state again what is to be forgotten."""
    asked = [words(text) for text in texts]
    return tuple(d for d in drafts if not any(text and text <= words(d.content) for text in asked))


def _about(text: str, content: str, person: Words) -> bool:
    """Whether the content has half of the words of the text. The person's names count only where the text
    says nothing else: they begin most of their facts."""
    asked, said = words(text), words(content)
    asked = asked - person or asked
    return bool(asked) and 2 * len(asked & said) >= len(asked)


def _stated(text: str, hit: Hit) -> str:
    """What the hit states: of a message, neither questions nor requests to forget."""
    if hit.memory:
        return hit.content
    told = (sentence for sentence in sentences(hit.content) if not asks(sentence))
    return " ".join(s for s in told if asks_to_forget(text) or not asks_to_forget(s))


def _told_by(user: str, hit: Hit) -> bool:
    return hit.memory is not None and user_key(user) in tellers(hit.memory.owners, hit.memory.user_id)


def _without_sources(hits: Sequence[Hit]) -> list[Hit]:
    sources = {hit.memory.message_id for hit in hits if hit.memory}
    return [hit for hit in hits if hit.memory or hit.id not in sources]
