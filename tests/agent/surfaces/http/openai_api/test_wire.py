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
    """Return the text, why it ended, and whether there is an error."""
    lines = [line.removeprefix("data: ") for line in body.splitlines() if line and "[DONE]" not in line]
    pieces: list[Any] = [json.loads(line) for line in lines]
    choices = [choice for piece in pieces for choice in piece.get("choices", ())]
    texts = [_said(choice).get("content") or "" for choice in choices]
    ends = [choice["finish_reason"] for choice in choices if choice["finish_reason"]]
    return "".join(texts), ends, any("error" in piece for piece in pieces)


def _said(choice: dict[str, Any]) -> dict[str, Any]:
    return dict(choice.get("delta") or choice.get("message") or {})


def _is_right(case: Case, body: str) -> bool:
    text, ends, error = _read(body)
    if "error" in case.input:
        return error
    return case.reply in text and ends == ["length" if case.input.get("cut") else "stop"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_each_kind_is_served(scripted, model, stream):
    headers, wrong = await scripted.headers("ana"), dict[str, str]()
    try:
        for case in KINDS.values():
            await forget_what_was_learned(scripted.pet)
            case.script(model, ANSWER)
            answered = (await scripted.say("which tea?", headers, stream=stream)).text
            if not _is_right(case, answered):
                wrong[case.name] = answered
    finally:
        model.aside, model.refuses = lambda _: None, lambda _: None
    assert wrong == {}
