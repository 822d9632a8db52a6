"""Health, readiness and the metrics."""

from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from scripted_server import Call, Say, ScriptedServer, answer

from memory.errors import IndexUnavailable, StoreUnavailable

WANTED = {
    f"memory_{name}"
    for name in (
        "replacement_rate dedup_rate extraction_count extraction_success extraction_errors "
        "saved_count retrieved_count"
    ).split()
} | {"retrieval_hit_rate"}


async def metrics(site: Any) -> dict[str, float]:
    answer = await site.client.get("/metrics", headers=await site.headers(admin=True))
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = text_string_to_metric_families(answer.text)
    samples = [sample for family in families for sample in family.samples]
    assert all(sample.labels.keys() <= {"le"} for sample in samples), "no label names a person"
    return {sample.name: sample.value for sample in samples}


async def test_readiness_names_the_part_that_is_away(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    site = await serve()
    assert (await site.client.get("/healthz")).json() == {"status": "ok"}
    ready = await site.client.get("/readyz")
    assert (ready.status_code, ready.json()["status"]) == (200, "ready")
    for part, where, fault in (
        ("record", (site.pet.components.database, "revision"), StoreUnavailable("/a/secret/path")),
        ("index", (site.pet.components.sync.engine, "count"), IndexUnavailable("/a/secret/path")),
    ):

        async def away(fault: Exception = fault) -> None:
            raise fault

        with monkeypatch.context() as patch:
            patch.setattr(*where, away)
            answer = await site.client.get("/readyz")
            assert (await site.client.get("/healthz")).status_code == 200
        assert answer.status_code == 503
        assert answer.json()["checks"] == {"record": "ok", "index": "ok", "model": "ok"} | {part: "away"}


async def test_metrics_have_their_names_and_count_decisions_and_searches(serve: Any, clock: Any) -> None:
    site = await serve()
    assert set(await metrics(site)) >= WANTED

    rome = "Ana lives in Rome"
    replaced: str | None = None
    for text in (rome, f"{rome} with Bo", f"{rome} with Bo", "Ana keeps ferrets"):
        told = await site.pet.remember(text, user="ana", subjects=["ana"], replaces=replaced)
        replaced = told.id if text == rome else None
        clock.advance(seconds=1)
    headers = await site.headers("ana")
    for query in ("ferrets", "ferrets"):
        await site.client.get(f"/api/users/ana/memories/search?query={query}", headers=headers)
    await site.client.get("/api/users/ben/memories/search?query=boats", headers=await site.headers("ben"))

    found = await metrics(site)
    assert found["memory_total_count"] == 3, "without a person's name"
    assert found["memory_replacement_rate"] == 0.25
    assert found["memory_dedup_rate"] == 0.25
    assert found["memory_saved_count"] == 3
    assert found["retrieval_hit_rate"] == 0, "no model has searched"
    assert found["memory_retrieved_count"] >= 2


async def test_metrics_count_turns_and_extractions(serve: Any, server: ScriptedServer) -> None:
    site = await serve(
        openai_base_url=server.url, openai_api_key="sk-1", model="tiny", api="chat", consolidate="model"
    )
    await site.pet.remember("Ana keeps ferrets", user="ana", importance=0.4)
    search = Call("search_memories", {"query": "ferrets", "kind": "memory"})
    vain = Call("search_memories", {"query": "zeppelin", "kind": "summary"})
    server.script(search, answer("Ana keeps two."), vain, answer("Hm."), answer("Oh."))
    server.script_consolidations(Say("{}"), Say("no JSON at all"))
    for user, text, stream in (
        ("ana", "how many ferrets?", False),
        ("ana", "I have sold one of them", True),
        ("ben", "I keep two boats", False),
    ):
        await site.say(text, await site.headers(user), stream=stream)
        await site.pet.settle()

    found = await metrics(site)
    assert found["retrieval_hit_rate"] == 0.5, "the second search found nothing"
    assert found["memory_retrieved_count"] == 3
    before = found["memory_retrieved_count"]
    await site.pet.remember("Ana paints", user="ana", importance=0.9)
    server.script(answer("Hi."))
    await site.say("hi", await site.headers("ana"))
    assert (await metrics(site))["memory_retrieved_count"] == before + 1, "the fact in the prompt"
    assert found["hachi_turn_seconds_count"] == 3
    extractions = [found[f"memory_extraction_{name}"] for name in ("count", "success", "errors")]
    assert extractions == [4, 2, 2], "what cannot be read is asked again once"
