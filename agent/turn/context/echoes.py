"""Collect the sentences of our own prompt, to find them in answers, which should not repeat them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from agent.turn.output.answer import ANSWER_SCHEMA
from prompts import read
from prompts.echo import rendered_sentences
from tools.registry import TOOLS, Tool


def our_sentences(texts: Iterable[str], tools: Iterable[Tool] = TOOLS) -> frozenset[str]:
    """Return the sentences of the texts, without what they quote, and of the descriptions of tools and of the
    answer's schema."""
    return frozenset().union(*map(rendered_sentences, texts), _described((*tools,)))


@lru_cache(maxsize=8)
def _described(tools: tuple[Tool, ...]) -> frozenset[str]:
    described = [ANSWER_SCHEMA.json_schema()]
    described += [{"description": tool.description, "parameters": tool.schema} for tool in tools]
    return frozenset().union(*map(rendered_sentences, _descriptions(described)))


def our_texts(messages: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """Return our own texts in a turn's prompt: the system message, and the part before the question."""
    label = read("question").partition("{{")[0]
    asked = next((one for one in reversed(messages) if one.get("role") == "user"), {"content": ""})["content"]
    text = asked if isinstance(asked, str) else asked[0]["text"]
    return str(messages[0]["content"]), str(text.rpartition(label)[0])


def _descriptions(schema: Any) -> Iterator[str]:
    """Yield the descriptions in a JSON schema."""
    if isinstance(schema, Mapping) and isinstance(schema.get("description"), str):
        yield schema["description"]
    inner = schema.values() if isinstance(schema, Mapping) else schema if isinstance(schema, list) else ()
    for part in inner:
        yield from _descriptions(part)
