"""Answer `GET /v1/models`, and `POST /v1/embeddings` with the configured embedder."""

import base64
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from agent.errors import BadInput
from agent.surfaces.http.authentication import Authenticated, Pet
from agent.surfaces.http.errors import not_found
from agent.surfaces.http.limits import Id
from agent.surfaces.http.openai_api.completion import CHARACTERS_PER_TOKEN, MODEL, example
from agent.surfaces.http.routes import api_routes
from memory.text import storable

router = api_routes(tag="models", any_query=True)


class ModelJson(TypedDict):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelList(TypedDict):
    object: Literal["list"]
    data: list[ModelJson]


ONE = ModelJson(id=MODEL, object="model", created=0, owned_by="hachi")


@router.get("/v1/models")
async def list_models(_: Authenticated) -> ModelList:
    """List the models. There is one."""
    return ModelList(object="list", data=[ONE])


@router.get("/v1/models/{model}")
async def get_model(model: str, _: Authenticated) -> ModelJson:
    """Describe a model. The status is 404 for any other name than `hachi`."""
    if model != MODEL:
        raise not_found("model")
    return ONE


Text = Annotated[str, Field(min_length=1, max_length=100_000)]


class EmbeddingJson(TypedDict):
    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class EmbeddingList(TypedDict):
    object: Literal["list"]
    data: list[EmbeddingJson]
    model: str
    usage: dict[str, int]


class EmbeddingRequest(BaseModel):
    """Texts to embed."""

    model_config = ConfigDict(extra="forbid") | example({"input": "a walk by the sea"})

    input: Text | Annotated[list[Text], Field(min_length=1, max_length=512)]
    model: Id | None = Field(default=None, description="Any value; the configured embedder answers.")
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: int | None = Field(default=None, description="If set, the dimension of the embedder.")
    user: Id | None = None


@router.post("/v1/embeddings")
async def create_embedding(asked: EmbeddingRequest, _: Authenticated, pet: Pet) -> EmbeddingList:
    """Embed texts with the embedder that searches use. Vectors have length 1."""
    embedder = pet.components.embedder
    if asked.dimensions not in (None, embedder.dimension):
        raise BadInput(f"dimensions: {embedder.name} makes vectors of {embedder.dimension}")
    texts = [asked.input] if isinstance(asked.input, str) else asked.input
    vectors = await embedder.embed([storable(text) for text in texts])
    packed = asked.encoding_format == "base64"
    data = [
        EmbeddingJson(object="embedding", index=at, embedding=_packed(vector) if packed else vector.tolist())
        for at, vector in enumerate(vectors)
    ]
    count = sum(-(-len(text) // CHARACTERS_PER_TOKEN) for text in texts)
    usage = {"prompt_tokens": count, "total_tokens": count}
    return EmbeddingList(object="list", data=data, model=embedder.name, usage=usage)


def _packed(vector: Any) -> str:
    """Return the vector as base64 of little-endian 4-byte floats."""
    return base64.b64encode(vector.astype("<f4").tobytes()).decode()
