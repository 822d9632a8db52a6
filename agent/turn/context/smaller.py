"""Shorten a prompt for a small window: first the history, then passages, then facts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agent.turn.context.prompt import PromptContext, messages_of


def fitted(prompt: PromptContext, most: int | None) -> PromptContext:
    """Return the prompt with at most `most` characters, or the smallest possible one."""
    while most is not None and size_of(messages_of(prompt)) > most and (less := _less(prompt)) != prompt:
        prompt = less
    return prompt


def size_of(messages: Sequence[Mapping[str, Any]]) -> int:
    """Return the characters of the messages, without pictures."""
    return sum(len(_text(message)) for message in messages)


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    parts = content if isinstance(content, list) else [message if content is None else {"text": content}]
    names = ("text", "arguments", "output")
    return "".join(str(part[name]) for part in parts for name in names if name in part)


def _less(prompt: PromptContext) -> PromptContext:
    if prompt.history:
        return replace(prompt, history=prompt.history[(len(prompt.history) + 1) // 2 :])
    if prompt.knowledge:
        label, *passages = prompt.knowledge.split("\n\n")
        shown = [label, *passages[: len(passages) // 2]]
        return replace(prompt, knowledge="\n\n".join(shown) if len(shown) > 1 else "")
    facts = prompt.known.long_term_facts
    return replace(prompt, known=replace(prompt.known, long_term_facts=facts[: len(facts) // 2]))
