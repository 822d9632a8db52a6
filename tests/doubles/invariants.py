"""Assertions that hold whatever a model answers."""

import re
import sqlite3
from collections.abc import Iterable

from llamacpp_server import Exchange

from hachi import Companion, Reply
from memory.sql.jobs.job import MAX_ATTEMPTS
from memory.sql.messages.summaries import CONSOLIDATE
from prompts.echo import is_echo

SYNTAX = re.compile(r'<\|im_(start|end)\|>|</?tool_call>|</?think>|"memories"\s*:|^\s*\{\s*"message"')


def assert_reply(reply: Reply, shown: str | None = None) -> None:
    """Assert that a reply is not blank, shows no syntax and no text of the prompt, and is what the stream
    showed."""
    assert reply.message.strip()
    assert not SYNTAX.search(reply.message), reply.message
    assert not is_echo(reply.message), reply.message
    if shown is not None:
        assert shown == reply.message


async def assert_kept(pet: Companion, user: str, texts: Iterable[str]) -> None:
    """Assert that each message is in the transcript, and that the evidence of each memory is a message of its
    person."""
    messages = await pet.conversations.messages(user=user, limit=100)
    said = {message.id: message.text for message in messages if message.role == "user"}
    assert {*texts} <= {*said.values()}
    for memory in await pet.memories.list(user=user):
        assert memory.message_id in said, memory.content
        assert any(map(str.isalpha, memory.content)), memory.content
        assert not is_echo(memory.content), memory.content
        assert all(len(tag) <= 40 for tag in memory.subjects), memory.subjects
        assert 0 <= memory.importance <= 1


async def assert_nothing_left(pet: Companion) -> None:
    """Assert that all work ends. A consolidation whose answer was cut off is the exception: it is retried,
    not given up."""
    assert await pet.settle(300)
    with sqlite3.connect(pet.settings.home / "hachi.db") as database:
        left = database.execute("SELECT kind, attempts, last_error FROM work").fetchall()
    assert [job for job in left if job[0] != CONSOLIDATE or job[1] >= MAX_ATTEMPTS] == []


def assert_finish_true(reply: Reply, exchange: Exchange) -> None:
    """Assert that a reply counts as cut off if the server says so, and only then."""
    assert reply.cut == (exchange.finish == "length"), (reply.cut, exchange.finish)


def assert_isolated(exchanges: Iterable[Exchange], secret: str, teller: str) -> None:
    """Assert that a secret is only in prompts of the person who told it."""
    for exchange in exchanges:
        if secret in exchange.prompt:
            assert f"{teller}: " in exchange.prompt or f'"{teller}"' in exchange.prompt
