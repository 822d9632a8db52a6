"""Find the memories and messages that a person may mean when they ask in words to forget something.

The model's answer describes them, and a search finds them, among this person's statements that may be read
where they ask. Nothing is forgotten until the person confirms.
"""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import product

from agent.types import ReceivedMessage
from memory.audience import Audience, user_key
from memory.errors import MemoryFault
from memory.facts.compare import normalise, within
from memory.index import Kind
from memory.index.bm25 import stems
from memory.records import ForgetCandidate, ForgetKind, Hit
from memory.search.recall import Recall
from memory.sql.memories.store import tellers
from memory.sql.messages.transcript import Transcript

log = logging.getLogger("hachi.turn")

MOST_ASKED = 5
"""The most candidates that a person is asked about."""
SEARCHED = 20
NEAR_SHARE_OF_BEST = 0.5
"""The least share of the best hit's score, for hits that a text may mean and for related hits."""
NEAR_BY_A_WORD, RARE = 0.44, 3
"""A hit that shares a rare word with the forgotten text (in at most `RARE` hits) is offered from this lower
share on. In 120 invented forgettings in eight languages this offers 118 of 128 related statements, and 28
unrelated ones. With only `NEAR_SHARE_OF_BEST` it is 82 and 10; with 0.44 for every hit it is 118 and 44."""
TOLD: frozenset[Kind] = frozenset({"memory", "message"})


@dataclass(frozen=True)
class ForgetRequests:
    recall: Recall
    transcript: Transcript
    preview: Callable[[ForgetCandidate, str], Awaitable[ForgetCandidate]]
    """Adds to this person's candidate what would be forgotten with it."""

    async def candidates(
        self, texts: Sequence[str], received: ReceivedMessage, before: Sequence[str]
    ) -> tuple[ForgetCandidate, ...] | None:
        """Return what this person may mean by one of the texts of an answer. None if there is no text, or if
        neither the message nor the exchange `before` it mentions what was found. The reply to this request
        counts as one that is forgotten too."""
        request = received.request
        if not texts or request.user is None:
            return None
        try:
            found = await self.matching(texts, request.person, request.user, str(received.id))
            words = frozenset[int]().union(*map(stems, [request.text, *before]))
            if not found and not words & stems(" ".join(texts)):
                return None
            meant = await self._spoken_of(found, received, words)
            if found and not meant:
                return None
            found = meant
        except MemoryFault as error:
            log.warning("what is to be forgotten was not searched for: %s", error)
            return ()
        return tuple(replace(one, replies=one.replies + 1) for one in found)

    async def matching(
        self, texts: Sequence[str], audience: Audience, user: str, asked_in: str = ""
    ) -> tuple[ForgetCandidate, ...]:
        """Return the facts and messages of this person, in private of their linked accounts too, that match
        one of the texts, facts first, then the best. If any match a text word for word, only those are
        returned. A single fact is sure."""
        found: dict[str, tuple[Hit, bool, str]] = {}
        for text, account in product(texts, (user, *audience.besides.values())):
            told = await self._told(text, account, audience, {asked_in})
            near = _without_sources(_worded_so(told, text) or _near(told))
            facts = [hit for hit in near if hit.memory]
            only = (facts or near)[0] if len(facts or near) == 1 else None
            found |= {hit.id: (hit, hit is only, account) for hit in near}
        best = sorted(found.values(), key=lambda one: (one[0].memory is None, -one[0].score))[:MOST_ASKED]
        named = [(_candidate(hit, asked_in, sure), account) for hit, sure, account in best]
        return tuple([await self.preview(candidate, account) for candidate, account in named])

    async def _spoken_of(
        self, named: Sequence[ForgetCandidate], received: ReceivedMessage, words: frozenset[int]
    ) -> tuple[ForgetCandidate, ...]:
        """Return the candidates that share one of the `words` of the message and the exchange before it, or
        that a search for the message finds. The person did not ask for any other."""
        request = received.request
        if all(words & stems(one.content) for one in named):
            return tuple(named)
        near = set[str]()
        for account in (str(request.user), *request.linked.values()):
            hits = await self._told(request.text, account, request.person, {str(received.id)})
            near |= {hit.id for hit in _near(hits)}
        return tuple(one for one in named if one.id in near or words & stems(one.content))

    async def related(
        self, named: ForgetCandidate, user: str, audience: Audience
    ) -> tuple[ForgetCandidate, ...]:
        """Return this person's facts and messages related to the named one: what a search for its text finds
        besides it, best first. Call this before it is forgotten, since its score is the measure."""
        told = _without_sources(await self._told(named.content, user, audience))
        shared = {hit.id: stems(named.content) & stems(hit.content) for hit in told}
        found = Counter(word for words in shared.values() for word in words)
        near = [*_near(told)]
        near += [
            hit
            for hit in _near(told, NEAR_BY_A_WORD)
            if hit not in near and any(found[word] <= RARE for word in shared[hit.id])
        ]
        return tuple(_candidate(hit) for hit in near if hit.id != named.id)

    async def _told(
        self, text: str, user: str, audience: Audience, exclude: Collection[str] = ()
    ) -> list[Hit]:
        """Return the hits of a search for the text that this person stated."""
        hits = await self.recall.search(
            text, audience, limit=SEARCHED, kinds=TOLD, exclude=exclude, by_itself=True
        )
        own = await self.transcript.written_by(user, [hit.id for hit in hits if not hit.memory])
        return [hit for hit in hits if hit.id in own or _told_by(user, hit)]


def _near(hits: Sequence[Hit], share: float = NEAR_SHARE_OF_BEST) -> list[Hit]:
    return [hit for hit in hits if hit.score >= share * hits[0].score]


def _worded_so(hits: Sequence[Hit], text: str) -> list[Hit]:
    """Return the hits that are the text word for word; if none is, those that contain it or are contained in
    it."""
    asked, words = normalise(text), {hit.id: normalise(hit.content) for hit in hits}
    same = [hit for hit in hits if words[hit.id] == asked]
    return same or [hit for hit in hits if within(asked, words[hit.id]) or within(words[hit.id], asked)]


def _without_sources(hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits without the messages from which a fact among them came: they are forgotten with it."""
    sources = {hit.memory.message_id for hit in hits if hit.memory}
    return [hit for hit in hits if hit.id not in sources]


def _candidate(hit: Hit, asked_in: str = "", sure: bool = False) -> ForgetCandidate:
    kind: ForgetKind = "memory" if hit.memory else "message"
    return ForgetCandidate(hit.id, kind, hit.content, hit.created_at, asked_in, sure)


def _told_by(user: str, hit: Hit) -> bool:
    return hit.memory is not None and user_key(user) in tellers(hit.memory.owners, hit.memory.user_id)
