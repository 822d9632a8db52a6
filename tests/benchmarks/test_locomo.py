"""The benchmark of recall runs on a made-up conversation."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from agent.services.memories import MemoryService

LINES = [
    "I adopted a tortoise called Walter last week.",
    "How lovely! What does he eat?",
    "Dandelions, mostly. And I finally sold my old motorbike.",
    "My sister opened a bakery in Ghent.",
    "The choir sings in the cathedral on Sunday.",
]
MESSAGES = [
    {"id": f"m{n}", "author": "Ana" if n % 2 else "Ben", "text": text, "sent_at": f"1:0{n} pm on 8 May, 2023"}
    for n, text in enumerate(LINES)
]


def conversation(folder: Path, question: str, evidence: str) -> Path:
    asked = [
        {"question": question, "evidence": [evidence], "category": 4},
        {"question": "Who has no evidence?", "evidence": ["elsewhere"], "category": 5},
    ]
    file = folder / "made-up.json"
    file.write_text(json.dumps({"messages": MESSAGES, "questions": asked}))
    return file


def test_found_evidence_reaches_the_bar(run: Callable[..., tuple[int, Any]], tmp_path: Path) -> None:
    conversation(tmp_path, "Who opened a bakery in Ghent?", "m3")
    code, result = run("locomo", tmp_path)
    assert code == 0
    assert result["rankers"]["hachi"] == {
        "recall@5": 1.0, "recall@10": 1.0, "recall@20": 1.0, "hit@10": 1.0, "questions": 1,
    }  # fmt: skip
    assert set(result["rankers"]) == {"hachi", "BM25 alone", "vectors alone"}
    assert set(result["categories"]) == {"one message"}
    assert result["result"]["seen"] == 1.0
    assert 0 < result["result"]["tokens"] <= result["result"]["most"] < 1_200


def test_what_stands_after_the_first_1200_tokens_of_a_result_is_not_seen(
    script: Callable[[str], ModuleType],
) -> None:
    share_seen = script("locomo").share_seen
    assert share_seen('{"a": "one \\"two\\""}', ['one "two" ', "three"]) == 0.5
    assert share_seen("far " * 1_190 + "the boat", ["the boat"]) == 1.0
    assert share_seen("far " * 1_200 + "the boat", ["the boat"]) == 0.0


def test_evidence_that_is_not_found_misses_the_bar(
    script: Callable[[str], ModuleType], run: Callable[..., tuple[int, Any]],
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    async def nothing(*_: Any, **__: Any) -> list[Any]:
        return []

    monkeypatch.setattr(MemoryService, "search", nothing)
    code, result = run("locomo", conversation(tmp_path, "Who opened a bakery in Ghent?", "m3"))
    assert code == 1
    assert result["rankers"]["hachi"]["recall@10"] == 0.0
    assert result["rankers"]["BM25 alone"]["recall@10"] == 1.0


def test_times_are_read_as_the_data_set_writes_them(script: Callable[[str], ModuleType]) -> None:
    sent_at = script("locomo").sent_at
    assert sent_at("1:56 pm on 8 May, 2023") == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert sent_at("2023-05-08T13:56:00") == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


def test_a_folder_without_conversations_is_a_usage_error(
    script: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.argv", ["locomo", str(tmp_path)])
    assert script("locomo").main() == 2
