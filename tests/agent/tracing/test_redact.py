"""What is taken out of traces, and what is not."""

import json
import re
import zlib
from itertools import product
from pathlib import Path

import pytest
from scripted_server import Call, answer

from agent.settings import Settings
from agent.tracing.redact import REDACTED, SECRETS, Redaction, redacted
from agent.tracing.setup import redaction_of

LONG = "Ab3dEf6hIj9kLm2nOp5qRs8tUv"

EXAMPLES = (Path(__file__).parents[2] / "data" / "secrets.jsonl").read_text("utf-8").splitlines()
AROUND = ["{}", "my key is {} ok", "a\n{}\nb", '"{}"', "({})", "\x1b{}"]


def test_each_kind_of_secret_goes_wherever_it_stands_and_what_resembles_one_stays():
    redaction = Redaction()
    for example, around in product(map(json.loads, EXAMPLES), AROUND):
        text, expected = around.format(example["secret"]), around.format(REDACTED)
        assert redaction.text(text) == expected
        inside = json.dumps({"content": text})  # as in arguments and results of tools
        assert redaction.text(inside) == json.dumps({"content": expected})
        assert redaction.suspects(json.dumps(inside)), "it is seen in JSON inside JSON"
        harmless = f"see {example['harmless']} there"
        assert redaction.text(harmless) == harmless


def test_the_settings_name_patterns_line_by_line_and_may_keep_known_secrets():
    settings = Settings(trace_redact=r"\b\d{4} \d{4}" + "\n\n  project \\w+\n^Ana$", trace_content="full")
    redaction = redaction_of(settings)
    assert redaction.text("1234 5678 of project Falcon") == f"{REDACTED} of {REDACTED}"
    assert redaction.text("Ana") == REDACTED
    assert redaction.text(f"sk-{LONG}") == f"sk-{LONG}"


def test_a_link_to_somebodys_pages_goes_at_every_level():
    opens = "[Choose](http://a/enter?link=hachi-link-eyJ3aG8iOiJhbmEifQ.dGhlIHNpZ25hdHVyZQ-_), within"
    left = f"[Choose](http://a/enter?link={REDACTED}), within"
    for level in ("full", "redacted"):
        assert redaction_of(Settings(trace_content=level)).text(opens) == left


def test_every_kind_of_secret_has_an_example():
    begins = [json.loads(line)["begins"] for line in EXAMPLES]
    kinds = [next(part for part, (begin, _) in SECRETS.items() if re.match(begin, one)) for one in begins]
    assert list(dict.fromkeys(kinds)) == list(SECRETS)


def test_a_key_whose_end_is_missing_goes_to_the_end():
    assert Redaction().text("see -----BEGIN PRIVATE KEY-----\nMIIEow\nIBAAK") == f"see {REDACTED}"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("my password=hunter2 works", f"my {REDACTED} works"),
        ("DB_PASSWORD: letmein, ok", f"DB_{REDACTED}, ok"),
        ('{"access_token": "abc12345def"}', '{"access_' + REDACTED + '"}'),
        ("api-key=0123456789", REDACTED),
        ("240 tokens: 18 out; the secret: butter", "240 tokens: 18 out; the secret: butter"),
        ("the token: nothing of it is kept", "the token: nothing of it is kept"),
    ],
)
def test_a_value_under_the_name_of_a_secret_goes_with_it(text, left):
    assert Redaction().text(text) == left


def test_a_text_under_the_name_of_a_secret_goes():
    value = {"arguments": [{"token": "hello-world-1"}], "max_tokens": 8}
    redaction = Redaction()
    patterns = redaction.suspects(json.dumps(value))
    assert redacted(value, patterns) == {"arguments": [{"token": REDACTED}], "max_tokens": 8}


def test_a_text_made_to_be_slow_ends():
    """A pattern that goes back over its text for each character of it would take hours."""
    for part in ("eyJ", "sk-", "://a:", "-----BEGIN ", "Bearer ", "xoxb-", "gho_", "token", "a_"):
        assert Redaction().text(part * (20_000 // len(part)))


@pytest.mark.parametrize("content", ["full", "redacted"])
def test_the_settings_own_secrets_go_in_any_case(content):
    settings = Settings(
        openai_api_key="quite-a-key",  # type: ignore[arg-type]
        database_url='postgresql://hachi:se"cr%40et99@127.0.0.1/hachi',  # type: ignore[arg-type]
        slack_signing_secret="short",  # type: ignore[arg-type]
        trace_content=content,
    )
    out = redaction_of(settings)
    for secret in ("quite-a-key", 'se"cr%40et99', 'se"cr@et99', settings.database_url.get_secret_value()):  # type: ignore[union-attr]
        for told in (secret, json.dumps(secret), json.dumps(json.dumps(secret))):
            assert secret not in out.text(told).replace("\\", "")
            assert REDACTED in out.text(told)
    assert out.text("in short") == "in short"


async def test_a_secret_is_neither_in_the_row_nor_in_the_body(pet_at, first_way, server, last, rows):
    pet = await pet_at(first_way)
    key = f"sk-proj-{LONG}"
    server.script(Call("remember", {"content": f"Ana's key:\n{key}"}), answer(f"I know {key}."))
    await pet.respond(f"this is mine: {key}", user="ana")
    trace = await last(pet)
    bodies = [zlib.decompress(row["body"]).decode() for row in rows("SELECT body FROM trace_bodies")]
    assert LONG not in f"{bodies} {rows('SELECT * FROM traces')}"
    assert trace.redacted
    assert (trace.summary.said, trace.summary.reply) == (f"this is mine: {REDACTED}", f"I know {REDACTED}.")
    assert trace.root.data["incoming"]["text"] == f"this is mine: {REDACTED}"
