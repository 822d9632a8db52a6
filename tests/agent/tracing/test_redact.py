"""What is taken out of traces, and what is not."""

import json
import zlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from scripted_server import Call, Fail, ScriptedServer, answer

from agent import Companion
from agent.errors import ModelError
from agent.settings import Settings
from agent.tracing.redact import REDACTED, SECRETS, Redaction
from agent.tracing.setup import redaction_of
from agent.tracing.trace import Trace

PetAt = Callable[..., Awaitable[Companion]]
Looked = Callable[..., Awaitable[Trace]]
Rows = Callable[..., list[dict[str, Any]]]

LONG = "Ab3dEf6hIj9kLm2nOp5qRs8tUv"

EXAMPLES = {
    # its beginning: (a secret, what resembles one)
    "sk-": (f"sk-proj-{LONG}", f"task-{LONG}"),
    "sk_live_": (f"sk_live_{LONG}", "sk_live_ is the prefix"),
    "rk_live_": (f"rk_live_{LONG}", f"park_live_{LONG}"),
    "pk_live_": (f"pk_live_{LONG}", "pk_live_short"),
    "hachi_": (f"hachi_{LONG}", "hachi_model"),
    "hachi-": (f"hachi-{LONG}{LONG}", "hachi-knowledge-0123456789ab"),
    **{f"gh{kind}_": (f"gh{kind}_{LONG}", f"high{kind}_{LONG}") for kind in "opusr"},
    "github_pat_": (f"github_pat_{LONG}", "github_pat_"),
    "glpat-": (f"glpat-{LONG}", "glpat-short"),
    "xox": (f"xoxb-1234567890-{LONG}", "xoxz-1234567890"),
    "xapp-": (f"xapp-1-{LONG}", "xapp-1"),
    "AKIA": ("AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLEANDMORE"),
    "AIza": (f"AIza{LONG}12345678", f"AIza{LONG[:20]}"),
    "eyJ": ("eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.SflKxwRJSMeKKF2Q", "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0"),
    "Bearer ": (f"Bearer {LONG}", "Bearer of good news"),
    "bearer ": (f"bearer  {LONG}", "the bearer is Ana"),
    "-----BEGIN ": (
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAK\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN CERTIFICATE-----\nMIIEow\n-----END CERTIFICATE-----",
    ),
    "://": ("://ana:hunter22@", "https://example.org:8080/@ana"),
}

AROUND = ["{}", "my key is {} ok", "a\n{}\nb", '"{}"', "({})", "\x1b{}"]


@pytest.mark.parametrize("kind", SECRETS)
def test_each_kind_of_secret_goes_wherever_it_stands_and_what_resembles_one_stays(kind: str) -> None:
    secret, harmless = EXAMPLES[kind]
    redaction = Redaction()
    for around in AROUND:
        text, expected = around.format(secret), around.format(REDACTED)
        assert redaction.text(text) == expected
        inside = json.dumps({"content": text})  # as in arguments and results of tools
        assert redaction.text(inside) == json.dumps({"content": expected})
        assert redaction.suspects(json.dumps(inside)), "it is seen in JSON inside JSON"
    assert redaction.text(f"see {harmless} there") == f"see {harmless} there"


def test_the_settings_name_patterns_line_by_line_and_may_keep_known_secrets() -> None:
    settings = Settings(trace_redact=r"\b\d{4} \d{4}" + "\n\n  project \\w+\n^Ana$", trace_content="full")
    redaction = redaction_of(settings)
    assert redaction.text("1234 5678 of project Falcon") == f"{REDACTED} of {REDACTED}"
    assert redaction.text("Ana") == REDACTED
    assert redaction.text(f"sk-{LONG}") == f"sk-{LONG}"


def test_a_key_whose_end_is_missing_goes_to_the_end() -> None:
    assert Redaction().text("see -----BEGIN PRIVATE KEY-----\nMIIEow\nIBAAK") == f"see {REDACTED}"


@pytest.mark.parametrize("part", ["eyJ", "sk-", "://a:", "-----BEGIN ", "Bearer ", "xoxb-", "gho_"])
def test_a_text_made_to_be_slow_is_not(part: str) -> None:
    import time

    began = time.perf_counter()
    Redaction().text(part * (100_000 // len(part)))
    assert time.perf_counter() - began < 2


@pytest.mark.parametrize("content", ["full", "redacted"])
def test_the_settings_own_secrets_go_in_any_case(content: Any) -> None:
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


async def test_a_secret_is_neither_in_the_row_nor_in_the_body(
    pet_at: PetAt, first_way: Any, server: ScriptedServer, last: Looked, rows: Rows
) -> None:
    pet = await pet_at(first_way)
    key = f"sk-proj-{LONG}"
    server.script(Call("remember", {"content": f"Ana's key:\n{key}"}), answer(f"I know {key}."))

    await pet.respond(f"this is mine: {key}", user="ana")

    trace = await last(pet)
    assert LONG not in written(rows)
    assert trace.redacted
    assert (trace.summary.said, trace.summary.reply) == (f"this is mine: {REDACTED}", f"I know {REDACTED}.")
    assert trace.root.data["incoming"]["text"] == f"this is mine: {REDACTED}"


async def test_a_key_that_a_server_says_back_is_not_written(
    pet_at: PetAt, first_way: Any, server: ScriptedServer, last: Looked, rows: Rows
) -> None:
    pet = await pet_at(first_way, openai_api_key="own-key-of-the-house", trace_content="full")
    server.script(Fail(401, "wrong key own-key-of-the-house"))
    with pytest.raises(ModelError):
        await pet.respond("hello", user="ana")

    trace = await last(pet)
    assert "own-key-of-the-house" not in written(rows)
    assert trace.summary.status == "error"


def written(rows: Rows) -> str:
    """All that a reader of the database sees of traces."""
    bodies = [zlib.decompress(row["body"]).decode() for row in rows("SELECT body FROM trace_bodies")]
    return "\n".join([*bodies, str(rows("SELECT * FROM traces"))])
