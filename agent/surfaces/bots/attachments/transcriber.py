"""Transcribe recordings with a server that has OpenAI's API for transcriptions."""

import asyncio
import json
import logging
from dataclasses import dataclass
from typing import Any

import openai

from agent.models.choice.providers import PROVIDERS, base_url_of, provider_of
from agent.settings import Settings
from agent.surfaces.bots.attachments.attachment import Unreadable
from agent.types.model_address import ModelAddress

log = logging.getLogger("hachi.bots")

OPENAI = "https://api.openai.com/v1"
OPENAI_MODEL = "gpt-4o-mini-transcribe"
OFF = "off"
MOST_ANSWER = 1_000_000
"""Bytes of a server's answer: many hours of speech."""
AWAY = "the transcriber does not answer; send it again later"
NO_WORDS = "no words are recognised in it"


@dataclass(frozen=True, slots=True)
class Transcriber:
    model: str
    base_url: str
    key: str
    timeout: float

    @classmethod
    def of(cls, settings: Settings) -> "Transcriber | None":
        """Return the transcriber that the settings name, else OpenAI's if OpenAI serves the model, else
        None."""
        here = base_url_of(settings)
        is_openai = not settings.offline and provider_of(settings) is PROVIDERS["openai"]
        written = settings.transcriber or (OPENAI_MODEL if is_openai else OFF)
        name, base_url, provider = ModelAddress.parse(written)
        where = base_url or (PROVIDERS[provider].base_url if provider else here)
        key = settings.transcriber_key or (settings.openai_api_key if where == here else None)
        if name == OFF or (where is None and key is None):
            return None
        return cls(name, where or OPENAI, key.get_secret_value() if key else "none", settings.model_timeout)

    async def hear(self, data: bytes, name: str) -> tuple[str, float | None]:
        """Return the words, and how many seconds they take if the server tells. Raises Unreadable."""
        if not data:
            raise Unreadable("it is empty")
        try:
            async with asyncio.timeout(self.timeout):
                answer = await self._ask(data, name)
        except (openai.OpenAIError, TimeoutError, OSError) as error:
            log.warning("a recording is not heard: %s: %s", type(error).__name__, str(error)[:300])
            refused = isinstance(error, openai.BadRequestError | openai.UnprocessableEntityError)
            raise Unreadable("the transcriber refuses it" if refused else AWAY) from error
        words, seconds = _words_of(answer)
        if not words.strip():
            raise Unreadable(NO_WORDS)
        return words, seconds

    async def _ask(self, data: bytes, name: str) -> bytes:
        client = openai.AsyncOpenAI(api_key=self.key, base_url=self.base_url, max_retries=1)
        # servers tell the format by the ending of the name
        named = name if "." in name else f"{name or 'recording'}.ogg"
        async with (
            client,
            client.audio.transcriptions.with_streaming_response.create(
                file=(named, data), model=self.model, response_format="json", timeout=self.timeout
            ) as response,
        ):
            answer = bytearray()
            async for piece in response.iter_bytes(65_536):
                answer += piece
                if len(answer) > MOST_ANSWER:
                    raise Unreadable("the answer of the transcriber is too long")
        return bytes(answer)


def _words_of(answer: bytes) -> tuple[str, float | None]:
    """Return the words of an answer, in JSON or as text, and the seconds that it names."""
    text = answer.decode(errors="replace")
    try:
        body: Any = json.loads(text)
    except (ValueError, RecursionError):
        body = None if text.lstrip().startswith(("<", "{", "[")) else {"text": text}
    if not isinstance(body, dict) or not isinstance(body.get("text"), str):
        raise Unreadable("the answer of the transcriber cannot be read")
    usage: Any = body.get("usage")
    lengths = (body.get("duration"), usage.get("seconds") if isinstance(usage, dict) else None)
    return body["text"], next(
        (float(one) for one in lengths if isinstance(one, int | float) and one >= 0), None
    )
