"""Embeddings from OpenAI, or from any server with the same API (Ollama, vLLM, LM Studio, Mistral …)."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import TYPE_CHECKING

from memory.errors import EmbedderUnavailable
from memory.index.embedders import thresholds_of
from memory.index.embedders.vectors import embed_texts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from openai import AsyncOpenAI, OpenAIError

DIMENSIONS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}
DIMENSIONS |= {"mistral-embed": 1024}

MAX_TEXTS = 2048
"""The most texts in one request: OpenAI's limit."""
MAX_TEXT_BYTES = 12_000
"""The most bytes of one text: under OpenAI's 8,192 tokens in any script, at up to 2 tokens per 3 bytes."""
MAX_REQUEST_BYTES = 400_000
"""The most bytes of one request: below OpenAI's 300,000 tokens, at the same rate."""
DEADLINE = 20.0
"""Seconds that one request may take, with retries and pauses: less than the limit of a tool."""
TRUSTED = 20
"""After this many full requests, a server that was slow gets larger ones."""
RETRIES = 3
"""How often a request is repeated on 408, 409, 429, 5xx and connection errors, with growing pauses."""


class OpenAIEmbedder:
    """An embedder behind an HTTP API. Create it with `OpenAIEmbedder.open`."""

    def __init__(self, model: str, client: "AsyncOpenAI", dimension: int) -> None:
        self.name = f"openai:{model}"
        self.dimension = dimension
        self.thresholds = thresholds_of(self.name)
        self._model = model
        self._client = client
        self._most = MAX_TEXTS
        """The most texts in one request: halved if one takes too long, doubled after `TRUSTED` full ones."""
        self._full = 0
        """Full requests that were answered since the last change."""

    @classmethod
    async def open(
        cls,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        client: "AsyncOpenAI | None" = None,
    ) -> "OpenAIEmbedder":
        """Open the embedder. If the model is not in `DIMENSIONS`, embed a text to learn its dimension.
        `client` replaces the one made from the key and the URL."""
        embedder = cls(model, client or _client(model, api_key, base_url), DIMENSIONS.get(model, 0))
        try:
            if not embedder.dimension:
                embedder.dimension = len((await embedder._request(["how long is a vector?"]))[0])
        except BaseException:
            await embedder.close()
            raise
        return embedder

    async def embed(self, texts: Sequence[str]) -> "list[NDArray[np.float32]]":
        return await embed_texts(texts, self.dimension, MAX_TEXT_BYTES, self._requests)

    async def close(self) -> None:
        await self._client.close()

    async def _requests(self, texts: list[str]) -> list[list[float]]:
        """Send as many requests as needed, with half as many texts if the server is too slow."""
        from openai import APITimeoutError

        rows: list[list[float]] = []
        while left := texts[len(rows) :]:
            part = next(_split(left, self._most))
            try:
                rows += await self._request(part)
                self._full += len(part) == self._most
                if self._full >= TRUSTED:
                    self._most, self._full = min(2 * self._most, MAX_TEXTS), 0
            except EmbedderUnavailable as error:
                if len(part) == 1 or not isinstance(error.__cause__, TimeoutError | APITimeoutError):
                    raise
                self._most, self._full = len(part) // 2, 0
        return rows

    async def _request(self, texts: list[str]) -> list[list[float]]:
        from openai import OpenAIError

        try:
            async with asyncio.timeout(DEADLINE):
                answer = await self._client.embeddings.with_raw_response.create(
                    model=self._model, input=texts, encoding_format="float"
                )
        except (OpenAIError, TimeoutError) as error:
            raise EmbedderUnavailable(self._advice(error)) from error
        rows = _rows(answer.content)
        lengths = {len(row) for row in rows}
        if len(rows) != len(texts) or lengths != {self.dimension or max(lengths, default=0)}:
            raise EmbedderUnavailable(
                f"the embedder {self.name} at {self._client.base_url} answered with {len(rows)} vectors of "
                f"lengths {sorted(lengths)} instead of {len(texts)} vectors of {self.dimension or 'one'} "
                "length; choose another in HACHI_EMBEDDER"
            )
        return rows

    def _advice(self, error: "OpenAIError | TimeoutError") -> str:
        import openai

        where = f"the embedder {self.name} at {self._client.base_url}"
        match error:
            case openai.AuthenticationError() | openai.PermissionDeniedError():
                return f"{where} rejects the key; set OPENAI_API_KEY to one it accepts"
            case openai.NotFoundError():
                return f"{where} does not exist; choose another model in HACHI_EMBEDDER"
            case openai.RateLimitError():
                return f"{where} is too busy or out of quota; try again later or raise the limit there"
            case openai.APIConnectionError() | openai.InternalServerError() | TimeoutError():
                return f"{where} does not answer; check OPENAI_BASE_URL and the network"
        reason = (str(error).splitlines() or [""])[0][:200].replace(self._client.api_key or "\0", "***")
        return f"{where} rejects the request ({reason}); see HACHI_EMBEDDER"


def _client(model: str, api_key: str | None, base_url: str | None) -> "AsyncOpenAI":
    from openai import AsyncOpenAI

    return AsyncOpenAI(
        api_key=api_key or "none", base_url=base_url or None, timeout=DEADLINE, max_retries=RETRIES
    )


def _rows(answer: bytes) -> list[list[float]]:
    """Return the vectors in an answer, if any. The client's own parser takes 2 ms for 1,536 numbers."""
    with suppress(ValueError, TypeError, KeyError, AttributeError):
        entries = sorted(json.loads(answer).get("data") or [], key=itemgetter("index"))
        return [entry["embedding"] for entry in entries]
    return []


def _split(texts: list[str], most: int) -> Iterator[list[str]]:
    """Split the texts into batches that each fit one request."""
    part: list[str] = []
    size = 0
    for text in texts:
        length = len(text.encode())
        if part and (len(part) == most or size + length > MAX_REQUEST_BYTES):
            yield part
            part, size = [], 0
        part.append(text)
        size += length
    yield part
