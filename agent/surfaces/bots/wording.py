"""Longer answers of the commands, in words."""

from collections.abc import Iterator
from typing import Any

from agent.settings import Settings
from agent.surfaces.bots.answers import Answer, Item
from memory.erasure.person import Erased
from memory.people.profile import UserContext

FACTS = 7


def privacy_items(settings: Settings) -> tuple[Item, ...]:
    """What is kept, who may read it, where it goes."""
    if settings.offline:
        where = "Nothing of it leaves the machine I run on."
    else:
        at = "" if settings.openai_base_url else " at OpenAI"
        where = f"To answer, I send what I need of it to the model {settings.chosen_model}{at}."
    return (
        Item(
            "What you write to me and what I answer; facts I take from it, each with how long it holds; a "
            "summary of each conversation; your tasks. What is not written to me I do not keep.",
            label="What I keep",
        ),
        Item(
            "What you tell me in private comes up only in private with you. What you tell me in a channel "
            "comes up in that channel, and in private with you.",
            label="Who may read it",
        ),
        Item(where, label="Where it goes"),
        Item(
            "/memories shows what I remember and takes it away, /context and /tasks show the rest, and "
            "/forget-me takes away everything, everywhere.",
            label="What you can do",
        ),
    )


def erasure_answer(receipt: Erased) -> Answer:
    """What went, and what is left."""
    went = tuple(Item(str(count), label=kind) for kind, count in receipt.removed.items())
    left = tuple(Item(f"{found.count}, {found.why}", label=f"left: {found.kind}") for found in receipt.left)
    if not receipt.verified:
        return Answer("Not everything is gone yet; ask again, or tell whoever runs me.", went + left)
    return Answer("Everything I kept of you is gone." if went else "I kept nothing of you.", went + left)


def context_items(known: UserContext) -> tuple[Item, ...]:
    """What is known of a person, a line each; what is not known is left out."""
    return tuple(_items(known))


def _items(known: UserContext) -> Iterator[Item]:
    for part in (known.profile, known.preferences):
        for name, value in part:
            if text := _text(value):
                yield Item(text, label=name.replace("_", " "))
    if known.conversation_themes:
        yield Item(_text(known.conversation_themes), label="themes")
    if known.memory_summary:
        yield Item(known.memory_summary, label="in short")
    if known.open_tasks:
        yield Item("; ".join(task.description for task in known.open_tasks[:FACTS]), label="open tasks")
    for fact in known.long_term_facts[:FACTS]:
        yield Item(fact.content, label="fact")


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "; ".join(value) if isinstance(value, tuple) else str(value or "")
