"""What servers of models answer and refuse reaches a client of `hachi serve` as the API has it."""

import json
from typing import Any

import pytest
from wire_corpus import Case, cases, forget_what_was_learned

KINDS = {
    ("error" in one.input, "cut" in one.input): one
    for one in cases()
    if one.api == "chat" and not one.settings
}
"""An answer, one that was cut off, and a refusal. The rest is tested in `tests/agent/models/wire`."""
ANSWER = json.dumps({"message": "Green tea.", "memories": []})


def _read(body: str) -> tuple[str, list[str], bool]:
    """Return the text, why it ended, and whether there is an error, of either API."""
    lines = [line.removeprefix("data: ") for line in body.splitlines() if line.startswith(("data: {", "{"))]
    pieces: list[Any] = [json.loads(line) for line in lines]
    responses = [piece.get("response", piece) for piece in pieces if _is_response(piece)]
    choices = [choice for piece in pieces for choice in piece.get("choices", ())]
    texts = [_said(choice).get("content") or "" for choice in choices]
    texts += [part["text"] for one in responses for item in one["output"] for part in item.get("content", ())]
    ends = [choice["finish_reason"] for choice in choices if choice["finish_reason"]]
    ends += [{"completed": "stop", "incomplete": "length"}.get(one["status"], "error") for one in responses]
    failed = any(piece.get("error") or piece.get("type") == "error" for piece in (*pieces, *responses))
    return "".join(texts), ends, failed


def _is_response(piece: dict[str, Any]) -> bool:
    """Whether a piece is a whole response, or the event that ends a stream with one."""
    ends = ("response.completed", "response.incomplete", "response.failed")
    return piece.get("object") == "response" or piece.get("type") in ends


def _said(choice: dict[str, Any]) -> dict[str, Any]:
    return dict(choice.get("delta") or choice.get("message") or {})


def _is_right(case: Case, body: str) -> bool:
    text, ends, error = _read(body)
    if "error" in case.input:
        return error
    return case.reply in text and ends == ["length" if case.input.get("cut") else "stop"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
async def test_each_kind_is_served(scripted, model, path, stream):
    headers, wrong = await scripted.headers("ana"), dict[str, str]()
    asked: dict[str, Any] = {"model": "hachi", "stream": stream}
    asked |= {"input": "which tea?", "messages": [{"role": "user", "content": "which tea?"}]}
    asked.pop("input" if "chat" in path else "messages")
    try:
        for case in KINDS.values():
            await forget_what_was_learned(scripted.pet)
            case.script(model, ANSWER)
            answered = (await scripted.client.post(path, json=asked, headers=headers)).text
            if not _is_right(case, answered):
                wrong[case.name] = answered
    finally:
        model.aside, model.refuses = lambda _: None, lambda _: None
    assert wrong == {}
