from datetime import UTC, datetime

import pytest

from agent.turn.context.echoes import our_sentences, our_texts
from agent.turn.context.prompt import PromptContext, build_messages_for_model
from agent.turn.output.answer import ANSWER_SCHEMA
from memory.audience import Place
from prompts.echo import is_echo, may_become_echo
from tools.registry import TOOLS

NOW = datetime(2026, 11, 23, 9, tzinfo=UTC)
SHOWN = PromptContext(
    NOW, "Ana", Place(), (), "I live in Lyon.\nNow: noon", persona="You are Nox. Be brief.", summary="Tea."
)
OURS = our_sentences(our_texts(build_messages_for_model(SHOWN)))


@pytest.mark.parametrize(
    "text",
    [
        "You are Nox.",
        "## This conversation",
        "## Conversation summary",
        "Now: Monday 23 November 2026, 09:00:00 UTC",
        "Where: a private conversation",
        TOOLS[0].description.splitlines()[0],
        "bracketed id of the memory it corrects or completes",
        ANSWER_SCHEMA.json_schema()["properties"]["memories"]["description"],
    ],
)
def test_what_we_write_into_a_request_is_ours(text):
    assert is_echo(text, OURS)
    assert may_become_echo(text[:-2], OURS)


@pytest.mark.parametrize("text", ["I live in Lyon.", "Now: noon", "Tea.", "Ana keeps bees"])
def test_what_people_said_is_theirs(text):
    assert not is_echo(text, OURS)
