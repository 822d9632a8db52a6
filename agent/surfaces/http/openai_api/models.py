"""Answer `GET /v1/models`."""

from typing import Literal

from typing_extensions import TypedDict

from agent.surfaces.http.authentication import Authenticated
from agent.surfaces.http.errors import not_found
from agent.surfaces.http.openai_api.completion import MODEL
from agent.surfaces.http.routes import api_routes

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
