"""Embeddings from OpenAI, or from any server with the same API (Ollama, vLLM, LM Studio, Mistral …)."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from memory.errors import EmbedderUnavailable
from memory.index.embedders import CAUTIOUS, Thresholds
from memory.index.embedders.vectors import normalised, readable, zeros

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from openai import AsyncOpenAI, OpenAIError

DIMENSIONS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}
THRESHOLDS = {"text-embedding-3-small": Thresholds(dedupe=0.85, recall=0.5)}

MOST_TEXTS = 2048
"""A request, as OpenAI has it."""
LONGEST = 12_000
"""Bytes of one text: within OpenAI's 8,192 tokens in every script, at up to two tokens in three bytes."""
MOST_BYTES = 400_000
"""A request, within OpenAI's 300,000 tokens by the same reckoning."""
TIMEOUT = 20.0
"""Seconds that one attempt may take."""
DEADLINE = 60.0
"""Seconds that one request may take, the attempts and the pauses between them included."""
RETRIES = 3
"""After the first attempt, on 408, 409, 429, 5xx and no connection; the pauses grow, or are the server's."""


class OpenAIEmbedder:
    """Made by `OpenAIEmbedder.open`, which learns the dimension of a model that is not well known."""

    def __init__(self, model: str, client: "AsyncOpenAI", dimension: int = 0) -> None:
        self.name = f"openai:{model}"
        self.dimension = dimension
        self.thresholds = THRESHOLDS.get(model, CAUTIOUS)
        self._model = model
        self._client = client

    @classmethod
    async def open(
        cls,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        client: "AsyncOpenAI | None" = None,
    ) -> "OpenAIEmbedder":
        """`client` takes the place of one made from the key and the address."""
        embedder = cls(model, client or _client(model, api_key, base_url), DIMENSIONS.get(model, 0))
        try:
            if not embedder.dimension:
                embedder.dimension = len((await embedder._request(["how long is a vector?"]))[0])
        except BaseException:
            await embedder.close()
            raise
        return embedder

    async def embed(self, texts: Sequence[str]) -> "list[NDArray[np.float32]]":
        # A blank text is an error to OpenAI, and would be one to the whole request.
        asked = [at for at, text in enumerate(texts) if text.strip()]
        vectors = [zeros(self.dimension) for _ in texts]
        for part in _requests([(at, readable(texts[at], LONGEST)) for at in asked]):
            answers = await self._request([text for _, text in part])
            for (at, _), vector in zip(part, normalised(answers), strict=True):
                vectors[at] = vector
        return vectors

    async def close(self) -> None:
        await self._client.close()

    async def _request(self, texts: list[str]) -> list[list[float]]:
        from openai import OpenAIError

        try:
            async with asyncio.timeout(DEADLINE):
                answer = await self._client.embeddings.create(
                    model=self._model, input=texts, encoding_format="float"
                )
        except (OpenAIError, TimeoutError) as error:
            raise EmbedderUnavailable(self._what_to_do(error)) from error
        rows = [entry.embedding for entry in sorted(answer.data or [], key=lambda entry: entry.index)]
        lengths = {len(row) for row in rows}
        if len(rows) != len(texts) or lengths != {self.dimension or max(lengths, default=0)}:
            expected = f"{len(texts)} vectors of {self.dimension or 'one'} length"
            raise EmbedderUnavailable(
                f"the embedder {self.name} at {self._client.base_url} answered with {len(rows)} vectors of "
                f"lengths {sorted(lengths)} instead of {expected}; choose another in HACHI_EMBEDDER"
            )
        return rows

    def _what_to_do(self, error: "OpenAIError | TimeoutError") -> str:
        import openai

        where = f"the embedder {self.name} at {self._client.base_url}"
        match error:
            case openai.AuthenticationError() | openai.PermissionDeniedError():
                return f"{where} refuses the key; set OPENAI_API_KEY to one it accepts"
            case openai.NotFoundError():
                return f"{where} does not exist; choose another model in HACHI_EMBEDDER"
            case openai.RateLimitError():
                return f"{where} is too busy or out of quota; try again later or raise the limit there"
            case openai.APIConnectionError() | openai.InternalServerError() | TimeoutError():
                return f"{where} does not answer; check OPENAI_BASE_URL and the network"
        return f"{where} does not take the request ({self._reason(error)}); see HACHI_EMBEDDER"

    def _reason(self, error: Exception) -> str:
        first = (str(error).splitlines() or [""])[0][:200]
        return first.replace(self._client.api_key, "***") if self._client.api_key else first


def _client(model: str, api_key: str | None, base_url: str | None) -> "AsyncOpenAI":
    from openai import AsyncOpenAI

    if not api_key and not base_url:
        raise EmbedderUnavailable(
            f"the embedder openai:{model} needs OPENAI_API_KEY, or OPENAI_BASE_URL of a server without keys"
        )
    return AsyncOpenAI(
        api_key=api_key or "none", base_url=base_url or None, timeout=TIMEOUT, max_retries=RETRIES
    )


def _requests(texts: list[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    """In parts that one request takes each."""
    part: list[tuple[int, str]] = []
    size = 0
    for at, text in texts:
        length = len(text.encode())
        if part and (len(part) == MOST_TEXTS or size + length > MOST_BYTES):
            yield part
            part, size = [], 0
        part.append((at, text))
        size += length
    if part:
        yield part
