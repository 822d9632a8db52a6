"""Tells what a message states from what its turn was only shown, where a model writes that down again.

An echo has the words of something that a search found in the turn, or of what somebody else told and the
prompt held. It is none where the message itself has these words, and none where the model names the very fact
by its id, on purpose. Whatever a model writes in words of its own counts as stated by the message.
"""

from collections.abc import Iterable

from memory.audience import user_key
from memory.facts.candidate import CandidateFact
from memory.facts.compare import normalise, same_words
from memory.records import Memory


def echoed(candidate: CandidateFact, known: Iterable[Memory] = ()) -> str | None:
    """The text that the turn was shown and the candidate only repeats; None if it repeats none. `known` are
    the memories in the candidate's own words."""
    origin, content = candidate.origin, candidate.draft.content
    if states(origin.said, content):
        return None
    known = list(known)
    named = {one.id for one in known if candidate.corrects(one) and candidate.decides_for(one)}
    found = [hit.content for hit in origin.recalled if hit.id not in named]
    own = user_key(origin.user)
    others = [one for one in known if one.user_id != origin.user and own not in one.owners]
    found += [one.content for one in others if not origin.shown.isdisjoint({one.id, one.message_id})]
    return next((text for text in found if same_words(text, content)), None)


def states(message: str, content: str) -> bool:
    """Whether the message has the words of the fact, as they stand there."""
    return normalise(content) in normalise(message)
