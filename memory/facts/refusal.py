"""Refuse facts that are unimportant, too long or expired, or that repeat what the model read in the turn."""

from collections.abc import Iterable, Mapping, Sequence

from memory.audience import user_key
from memory.facts.candidate import CandidateFact
from memory.facts.compare import normalise, same_words, takes_from
from memory.records import MAX_CONTENT, Decision, Memory


def refusal(candidate: CandidateFact, importance_floor: float) -> Decision | None:
    """Return the decision to ignore a fact that is not worth storing; else None."""
    content, importance = candidate.proposed.content, candidate.proposed.importance
    until = candidate.expires_at
    if len(content) > MAX_CONTENT:
        reason = f"longer than {MAX_CONTENT:,} characters; say it as single facts"
        return Decision(content[:200] + " …", "ignore", None, reason)
    if not normalise(content):
        return Decision(content, "ignore", None, "there is nothing in it")
    if importance < importance_floor:
        reason = f"importance {importance:g} is under {importance_floor:g}"
        return Decision(content, "ignore", None, reason)
    if until is not None and until <= candidate.now:
        return Decision(content, "ignore", None, "it had already expired", expires_at=until)
    return None


def echo_of_search(candidate: CandidateFact, verbatim: Mapping[str, Memory]) -> Decision | None:
    """Return the decision to ignore a fact whose words the model read in the turn; None if it is no echo."""
    repeated = echoed(candidate, verbatim.values())
    if repeated is None:
        return None
    verbatim = candidate.still_valid(verbatim)
    readable = next((memory for memory in verbatim.values() if candidate.sees(memory)), None)
    reason = f"only repeats what was found: {repeated!r}"
    return candidate.decision("ignore", readable, reason, target=readable)


def echo_of_memory(candidate: CandidateFact, recalled: Sequence[Memory]) -> Decision | None:
    """Return the decision to ignore a fact that its message does not state and that a stored one says in
    other words. None if there is no such fact, or if the model names it in `replaces`."""
    readable = [memory for memory in recalled if candidate.sees(memory) and not candidate.corrects(memory)]
    if not readable or candidate.proposed.replaces:
        return None
    reason = f"not said in the message, and known: {readable[0].content!r}"
    return candidate.decision("ignore", readable[0], reason, target=readable[0])


def echoed(candidate: CandidateFact, stored: Iterable[Memory]) -> str | None:
    """Return the text, among those that the model read in the turn, that the candidate repeats; else None.

    An echo has the words of a search result, or of another person's fact in the prompt. It is no echo if the
    message has these words, or if the model names the fact by its id. For a search result from another place
    or account, one content word of it that the message lacks is enough.
    """
    origin, content = candidate.origin, candidate.proposed.content
    if states(origin.said, content):
        return None
    elsewhere = (hit.content for hit in origin.found if hit.origin)
    if text := next((text for text in elsewhere if takes_from(text, content, origin.said)), None):
        return text
    stored = list(stored)
    named = {one.id for one in stored if candidate.corrects(one) and candidate.decides_for(one)}
    texts = [hit.content for hit in origin.found if hit.id not in named]
    person = user_key(origin.user)
    by_others = [one for one in stored if one.user_id != origin.user and person not in one.owners]
    texts += [one.content for one in by_others if not origin.shown.isdisjoint({one.id, one.message_id})]
    return next((text for text in texts if same_words(text, content)), None)


def states(message: str, content: str) -> bool:
    """Return whether the message contains the words of the fact."""
    return normalise(content) in normalise(message)
