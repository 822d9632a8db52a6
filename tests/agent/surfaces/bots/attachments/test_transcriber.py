"""The server that hears recordings: which one it is, which key it gets, and what it may answer."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from agent.surfaces.bots.attachments.attachment import Unreadable
from agent.surfaces.bots.attachments.transcriber import AWAY, NO_WORDS, OPENAI, OPENAI_MODEL, Transcriber
from hachi import Settings


@pytest.mark.parametrize(
    ("settings", "heard_by"),
    [
        ({}, None),
        ({"openai_api_key": "sk-1"}, (OPENAI_MODEL, OPENAI, "sk-1")),
        ({"openai_api_key": "sk-1", "transcriber": "off"}, None),
        ({"openai_api_key": "sk-1", "openai_base_url": "http://a.test/v1"}, None),
        (
            {"openai_api_key": "sk-1", "openai_base_url": "http://a.test/v1", "transcriber": "whisper"},
            ("whisper", "http://a.test/v1", "sk-1"),
        ),
        (
            {"openai_api_key": "sk-1", "transcriber": "whisper@http://b.test/v1"},
            ("whisper", "http://b.test/v1", "none"),
        ),
        ({"transcriber": "w@http://b.test/v1", "transcriber_key": "k"}, ("w", "http://b.test/v1", "k")),
        (
            {
                "openai_base_url": "http://a.test/v1",
                "transcriber": "whisper-1@openai",
                "transcriber_key": "k",
            },
            ("whisper-1", OPENAI, "k"),
        ),
        ({"model": "/m.gguf", "transcriber": "whisper"}, None),
    ],
)
def test_the_settings_name_it_and_the_models_key_goes_to_the_models_server_alone(
    settings: dict[str, Any], heard_by: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.types.model_address.find_spec", lambda _: True)
    monkeypatch.setattr("agent.types.model_address.servable", lambda file: file)
    there = Transcriber.of(Settings.model_construct(**{**Settings().model_dump(), **_secret(settings)}))
    assert (there and (there.model, there.base_url, there.key)) == heard_by


def _secret(settings: dict[str, Any]) -> dict[str, Any]:
    from pydantic import SecretStr

    return {name: SecretStr(one) if name.endswith("key") else one for name, one in settings.items()}


class Server:
    """Answers each request with the next of its answers."""

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.asked: list[dict[str, Any]] = []
        self.url = ""

    async def transcribe(self, request: web.Request) -> web.StreamResponse:
        form = await request.post()
        file: Any = form["file"]
        self.asked.append({"name": file.filename, "data": file.file.read(), "model": form["model"]})
        file.file.close()
        self.asked[-1]["key"] = request.headers["authorization"]
        given = self.answers.pop(0)
        if given == "hang":
            await asyncio.sleep(30)
        if given == "flood":
            response = web.StreamResponse()
            await response.prepare(request)
            for _ in range(100):
                await response.write(b'{"text": "' + b"x" * 100_000)
            return response
        if isinstance(given, int):
            return web.json_response({"error": {"message": "no"}}, status=given)
        return web.Response(text=given)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    here, app = Server(), web.Application()
    app.router.add_post("/v1/audio/transcriptions", here.transcribe)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    here.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    yield here
    await runner.cleanup()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (json.dumps({"text": " Buy milk. "}), (" Buy milk. ", None)),
        (json.dumps({"text": "Buy milk.", "duration": 3.2}), ("Buy milk.", 3.2)),
        (json.dumps({"text": "Hi", "usage": {"type": "duration", "seconds": 4}}), ("Hi", 4.0)),
        ("Buy milk.\n", ("Buy milk.\n", None)),
    ],
)
async def test_it_is_sent_the_recording_and_its_words_are_read(
    server: Server, given: str, words: Any
) -> None:
    server.answers = [given]
    assert await Transcriber("whisper", server.url, "k", 5.0).hear(b"OggS", "voice") == words
    asked = {"name": "voice.ogg", "data": b"OggS", "model": "whisper", "key": "Bearer k"}
    assert server.asked == [asked]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (['{"text": ""}'], NO_WORDS),
        (['{"text": " \\n"}'], NO_WORDS),
        (["<html>"], "cannot be read"),
        (['{"words": 1}'], "cannot be read"),
        (["[" * 100_000], "cannot be read"),
        (["flood"], "too long"),
        (["hang"], AWAY),
        ([503, 503], AWAY),
        ([400], "refuses it"),
    ],
)
async def test_whatever_goes_wrong_has_one_reason(server: Server, given: list[Any], reason: str) -> None:
    server.answers = given
    with pytest.raises(Unreadable, match=reason):
        await Transcriber("whisper", server.url, "k", 1.0).hear(b"OggS", "voice.ogg")


async def test_a_server_that_is_away_and_an_empty_recording_have_a_reason() -> None:
    nobody = Transcriber("whisper", "http://127.0.0.1:9/v1", "k", 5.0)
    with pytest.raises(Unreadable, match=AWAY):
        await nobody.hear(b"OggS", "voice.ogg")
    with pytest.raises(Unreadable, match="it is empty"):
        await nobody.hear(b"", "voice.ogg")
