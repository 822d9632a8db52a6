"""Models and embeddings, with OpenAI's own client."""

from typing import Any

import openai
import pytest


async def test_texts_are_embedded_by_the_embedder_of_searches(site: Any) -> None:
    _, secret = await site.key("ana")
    async with site.openai(secret) as client:
        packed = await client.embeddings.create(model="any", input=["a walk by the sea", "tax returns"])
        plain = await client.embeddings.create(
            model="any", input="a walk by the sea", encoding_format="float"
        )
        with pytest.raises(openai.BadRequestError, match="makes vectors of"):
            await client.embeddings.create(model="any", input="x", dimensions=3)
    [vector] = await site.pet.components.embedder.embed(["a walk by the sea"])
    assert plain.data[0].embedding == pytest.approx(vector.tolist())
    assert packed.data[0].embedding == pytest.approx(vector.tolist())
    assert [one.index for one in packed.data] == [0, 1]
    assert packed.model == site.pet.components.embedder.name
    assert packed.usage.total_tokens > 0
    for body in ({"input": [[1, 2]]}, {"input": []}, {"input": "x", "colour": 1}):
        answer = await site.client.post("/v1/embeddings", json=body, headers=await site.headers("ana"))
        assert answer.status_code == 400
