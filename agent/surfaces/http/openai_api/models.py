"""OpenAI's lists of models, and embeddings by the embedder that is set up."""

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

Text = Annotated[str, Field(min_length=1, max_length=100_000)]


class ModelJson(TypedDict):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelList(TypedDict):
    object: Literal["list"]
    data: list[ModelJson]


class EmbeddingUsage(TypedDict):
    prompt_tokens: int
    total_tokens: int


class EmbeddingJson(TypedDict):
    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class EmbeddingList(TypedDict):
    object: Literal["list"]
    data: list[EmbeddingJson]
    model: str
    usage: EmbeddingUsage


ONE = ModelJson(id=MODEL, object="model", created=0, owned_by="hachi")


class EmbeddingRequest(BaseModel):
    """Texts to embed."""

    model_config = ConfigDict(extra="forbid") | example({"input": "a walk by the sea"})

    input: Text | Annotated[list[Text], Field(min_length=1, max_length=512)]
    model: Id | None = Field(default=None, description="Any; the embedder that Hachi is set up with answers.")
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: int | None = Field(default=None, description="Those of the embedder, where it is given.")
    user: Id | None = None


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


@router.post("/v1/embeddings")
async def create_embedding(asked: EmbeddingRequest, _: Authenticated, pet: Pet) -> EmbeddingList:
    """Embed texts with the embedder that searches use. Vectors have length one."""
    embedder = pet.components.embedder
    texts = [asked.input] if isinstance(asked.input, str) else asked.input
    vectors = await embedder.embed([storable(text) for text in texts])
    if asked.dimensions not in (None, embedder.dimension):
        raise BadInput(f"dimensions: {embedder.name} makes vectors of {embedder.dimension}")
    packed = asked.encoding_format == "base64"
    data = [
        EmbeddingJson(object="embedding", index=at, embedding=_packed(vector) if packed else vector.tolist())
        for at, vector in enumerate(vectors)
    ]
    count = sum(-(-len(text) // CHARACTERS_PER_TOKEN) for text in texts)
    usage = EmbeddingUsage(prompt_tokens=count, total_tokens=count)
    return EmbeddingList(object="list", data=data, model=embedder.name, usage=usage)


def _packed(vector: Any) -> str:
    """Return the vector as little-endian floats of four bytes, in base64."""
    return base64.b64encode(vector.astype("<f4").tobytes()).decode()
