"""What a trace holds of a model call is what the model's server received, and what it answered."""

import json
import zlib

from scripted_server import Asked, Call, answer

from agent.models.wire.out import UNSAID
from agent.tracing.trace import Trace
from memory.process.spans import Span

STEPS = (
    [Call("search_memories", {"query": "tea"}, id="same"), Call("get_recent_memories", {}, id="same")],
    Call("remember", '{"content": "Ana drinks jasmine tea", }'),
    Call("search_memories", {"query": "tea"}),
    Call("search_memories", {"query": "tea again"}),
    answer("Jasmine tea, as ever: 茶 😀"),
)


def agrees(call: Span, asked: Asked, trace: Trace) -> None:
    request = call.data["request"]
    assert request["system"] == asked.system
    assert set(request["tools"]) == set(asked.tools)
    for name in request["tools"]:
        told = trace.made_by["tools"][name]
        assert told["description"] == asked.tools[name]["description"]
        assert told["parameters"] == asked.tools[name]["parameters"]
    items = request["input"]
    if asked.path.endswith("/responses"):
        assert items == asked.json["input"]
        return
    said = [(item["role"], item["content"]) for item in items if item.get("type", "message") == "message"]
    sent = [(one["role"], one["content"]) for one in asked.json["messages"][1:] if one["role"] != "tool"]
    assert said == [pair for pair in sent if pair[1] not in ("", UNSAID)]
    kinds = [item.get("type") for item in items]
    assert kinds.count("function_call") == len(asked.call_ids)
    calls = [item for item in items if item.get("type") == "function_call"]
    made = [
        call["function"] for message in asked.json["messages"] for call in message.get("tool_calls") or ()
    ]
    assert [(call["name"], call["arguments"]) for call in calls] == [
        (call["name"], call["arguments"]) for call in made
    ]
    assert [call["call_id"] for call in calls] == asked.call_ids
    results = [item["output"] for item in items if item.get("type") == "function_call_output"]
    assert results == asked.results


async def test_each_request_and_answer_is_what_the_server_received_and_sent(
    pet_at, some_way, server, last, rows
):
    pet = await pet_at(some_way)
    server.script(answer("Hello!"), *STEPS)
    await some_way.ask(pet, "hello", user="ana")

    await some_way.ask(pet, "is it the Lapsang Souchong?", user="ana")

    trace = await last(pet)
    calls = list(trace.spans("call"))
    assert len(calls) == 5
    for call, asked in zip(calls, server.asked[1:], strict=True):
        agrees(call, asked, trace)
    first, second, *_, final = calls
    assert [item["call_id"] for item in first.data["output"]] == ["same", "same"], "before it is repaired"
    assert [item["arguments"] for item in second.data["output"]] == [
        '{"content": "Ana drinks jasmine tea", }'
    ]
    [message] = final.data["output"]
    assert json.loads(message["content"][0]["text"])["message"] == "Jasmine tea, as ever: 茶 😀"
    assert final.data["usage"] == {"input": 10, "output": 5, "cached": 0}

    [row] = rows("SELECT body FROM trace_bodies WHERE trace_id = ?", trace.id)
    stored = zlib.decompress(row["body"]).decode()
    system = first.data["request"]["system"]
    assert stored.count(json.dumps(system, ensure_ascii=False)) == 1, "what calls share is stored once"
    assert stored.count("Lapsang") == 4, (
        "as it came in, in the context, in the first call, in what is decided"
    )


async def test_a_search_names_its_candidates_and_why_each_was_left_out(pet_at, first_way, server, last):
    pet = await pet_at(first_way)
    for number in range(4):
        await pet.remember(f"Ana's cat number {number} likes tuna", user="ana", subjects=["ana"])
    await pet.remember("The parliament of Norway is called Storting", user="ana")
    secret = await pet.remember("Ben's cat likes tuna", user="ben")
    server.script(Call("search_memories", {"query": "cat tuna", "limit": 2}), answer("Two."))

    await pet.respond("zzz", user="ana")

    trace = await last(pet)
    [search] = trace.spans("search")
    told = search.data["candidates"]
    left_out = [one for one in told if "left_out" in one]
    assert left_out
    assert not any("content" in one for one in left_out)
    for one in left_out:
        rests = one["left_out"] == "the model sees it already"
        assert await pet.traces.showing([one["id"]], "mickael") == rests, (
            "on what was left out the trace rests not"
        )
    await pet.traces.add_skipped_texts(trace, pet.clock())
    left = {one.get("content", one["id"]): one.get("left_out") for one in told}
    cats = [why for content, why in left.items() if content.startswith("Ana's cat")]
    found = [id for id, _ in search.data["found"]]
    assert [one["id"] for one in told if "left_out" not in one] == found
    assert len(found) == 2
    assert cats.count("below the first 2") + cats.count(None) + cats.count("the model sees it already") == 4
    assert secret.id not in str(search.data), "what may not be read was not even looked at"
    assert search.data["query"] == "cat tuna"
    assert search.data["audience"] == ["global", "user:ana"]
    ranked = [one["score"] for one in told if "score" in one]
    assert ranked == sorted(ranked, reverse=True)
    assert {"dense", "words"} & set(told[0]["lanes"])


async def test_a_search_of_documents_names_its_candidates(pet_at, first_way, server, last):
    pet = await pet_at(first_way, knowledge_first=True)
    await pet.documents.add("tea.md", "# Tea\n\nJasmine tea is steeped for three minutes.", user="ana")
    server.script(answer("Three minutes."))
    await pet.respond("how long is jasmine tea steeped?", user="ana")
    [documents] = (await last(pet)).spans("documents")
    [candidate] = documents.data["candidates"]
    assert candidate["source"] == "tea.md"
    assert [id for id, _ in documents.data["found"]] == [candidate["id"]]
