"""An answer is read alike however its bytes arrive, and nothing that arrives raises anything unforeseen."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wire_corpus import Case, cases

from agent.models.wire.errors import ServerError
from agent.models.wire.incoming import Answer, ChatAnswer, ResponsesAnswer, pieces

TEXT = json.dumps({"message": "Grüner Tee 🍵", "memories": []}, ensure_ascii=False)
READ = [case for case in cases() if "error" not in case.input and "status" not in case.input]
BODIES = {case.name: case.raw(True, TEXT).body for case in READ}


async def _bytes(chunks: Sequence[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def _read(chunks: Sequence[bytes], api: str) -> Answer:
    answer = ChatAnswer() if api == "chat" else ResponsesAnswer()
    async for piece in pieces(_bytes(chunks)):
        answer.add(piece)
    answer.end(["search_memories", "get_recent_memories"])
    return answer


def _told(answer: Answer) -> Any:
    return [item.model_dump() for item in answer.items], answer.text, answer.finish, answer.usage


@pytest.mark.parametrize("case", READ, ids=lambda case: case.name)
def test_each_stream_is_read_alike_split_at_every_byte(case: Case):
    body = BODIES[case.name]
    whole = _told(asyncio.run(_read([body], case.api)))
    assert _told(asyncio.run(_read([bytes([byte]) for byte in body], case.api))) == whole
    for at in range(0, len(body), max(1, len(body) // 12)):
        assert _told(asyncio.run(_read([body[:at], body[at:]], case.api))) == whole


@settings(max_examples=60)
@given(st.sampled_from(READ), st.lists(st.integers(1, 60)))
def test_each_stream_is_read_alike_in_pieces_of_any_size(case: Case, sizes: list[int]):
    body, chunks, at = BODIES[case.name], list[bytes](), 0
    for size in sizes:
        chunks.append(body[at : at + size])
        at += size
    read = asyncio.run(_read([*chunks, body[at:]], case.api))
    assert _told(read) == _told(asyncio.run(_read([body], case.api)))


FIELDS = st.sampled_from(
    "choices delta message content tool_calls function name arguments id index type finish_reason usage "
    "error output response item status incomplete_details call_id text thinking reasoning".split()
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=5),
    max_leaves=20,
)


@settings(max_examples=150)
@given(
    st.lists(st.dictionaries(FIELDS, JSON, max_size=5), max_size=4), st.sampled_from(["chat", "responses"])
)
def test_nothing_that_a_server_sends_raises_anything_but_its_error(sent: list[Any], api: str):
    answer = ChatAnswer() if api == "chat" else ResponsesAnswer()
    try:
        for piece in sent:
            answer.add(piece)
        answer.end(["search_memories"])
    except ServerError:
        return
    for item in answer.items:
        assert item.type in ("message", "function_call", "reasoning")
        if item.type == "function_call":
            assert isinstance(item.arguments, str)
            assert isinstance(item.name, str)
