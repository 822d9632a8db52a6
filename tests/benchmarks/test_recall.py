"""The benchmark of recall runs on made-up conversations."""

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
    {"id": f"m{n}", "author": "Ana" if n % 2 else "Ben", "text": text, "sent_at": "1:00 pm on 8 May, 2023"}
    for n, text in enumerate(LINES)
]
BAKERY = {"question": "Who opened a bakery in Ghent?", "evidence": ["m3"], "category": 4}


@pytest.fixture
def talks(tmp_path: Path) -> Path:
    folder = tmp_path / "talks"
    folder.mkdir()
    asked = [BAKERY, {"question": "Who has no evidence?", "evidence": [], "category": 5}]
    (folder / "made-up.json").write_text(json.dumps({"messages": MESSAGES, "questions": asked}))
    return folder


def test_found_evidence_reaches_the_bar(run: Callable[..., tuple[int, Any]], talks: Path) -> None:
    code, result = run("recall", talks, "--bar", 1)
    assert code == 0
    found = result["talks"]
    assert set(found["rankers"]) == {"hachi", "BM25 alone", "vectors alone"}
    assert found["rankers"]["hachi"]["recall@5"] == found["rankers"]["hachi"]["recall@10"] == 1.0
    assert found["classes"] == {
        "one message": {"hachi": 1.0, "BM25 alone": 1.0, "vectors alone": 1.0, "questions": 1}
    }
    assert set(found["hits where nothing answers"]) == {"far from memory"}
    assert found["seen"] == 1.0


def test_evidence_that_is_not_found_misses_the_bar(
    run: Callable[..., tuple[int, Any]], talks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(*_: Any, **__: Any) -> list[Any]:
        return []

    monkeypatch.setattr(MemoryService, "search", nothing)
    code, result = run("recall", talks, "--bar", 0.5)
    assert code == 1
    assert result["talks"]["rankers"]["hachi"]["recall@10"] == 0.0
    assert result["talks"]["rankers"]["BM25 alone"]["recall@10"] == 1.0


def test_of_talks_with_an_assistant_only_what_the_person_said_is_evidence(
    run: Callable[..., tuple[int, Any]], tmp_path: Path
) -> None:
    said = [
        {"id": n, "role": role, "day": "March-15-2024", "text": text}
        for n, (role, text) in enumerate(zip(("user", "assistant") * 2, LINES, strict=False))
    ]
    asked = [
        {"kind": "extraction", "question": "Whose motorbike was sold?", "evidence": [2]},
        {"kind": "abstention", "question": "Which motorbike is in Ghent?", "evidence": []},
    ]
    (tmp_path / "chat.json").write_text(json.dumps({"messages": said, "questions": asked}))
    _, result = run("recall", tmp_path)
    [found] = result.values()
    assert found["classes"]["extraction"]["hachi"] == 1.0
    assert found["hits where nothing answers"]["abstention"]["BM25 alone"] == 1


def test_cues_are_put_into_the_talks_half_of_them_at_a_time(
    script: Callable[[str], ModuleType], talks: Path, tmp_path: Path
) -> None:
    cues = [{"cue": f"A: I moved to flat {n}.\nB: Nice!", "later": f"A: Home {n}"} for n in range(4)]
    (tmp_path / "cues.json").write_text(json.dumps(cues))
    found = script("recall_sets").read_sets([tmp_path / "cues.json"], [talks], "second")
    [talk] = found["cues"]
    assert [question.text for question in talk.questions] == ["Home 3", "Home 2"]
    texts = {message["id"]: message for message in talk.messages}
    assert {texts[id]["text"] for question in talk.questions for id in question.evidence} == {
        "I moved to flat 2.", "I moved to flat 3."
    }  # fmt: skip
    times = [message["sent_at"] for message in talk.messages]
    assert len(times) == 9
    assert times == sorted(times)


def test_what_stands_after_the_first_1200_tokens_of_a_result_is_not_seen(
    script: Callable[[str], ModuleType],
) -> None:
    share_seen = script("recall").share_seen
    assert share_seen('{"a": "one \\"two\\""}', ['one "two" ', "three"]) == 0.5
    assert share_seen("far " * 1_190 + "the boat", ["the boat"]) == 1.0
    assert share_seen("far " * 1_200 + "the boat", ["the boat"]) == 0.0


def test_neighbours_are_hits_that_follow_each_other(script: Callable[[str], ModuleType]) -> None:
    said = [
        {"id": id, "role": role}
        for id, role in zip("abcd", ("user", "user", "assistant", "user"), strict=True)
    ]
    pairs = script("recall_sets").neighbours(said)
    assert script("recall").share_beside("ab", pairs) == script("recall").share_beside("bd", pairs) == 1.0
    assert script("recall").share_beside("ad", pairs) == 0.0


def test_times_are_read_as_the_data_sets_write_them(script: Callable[[str], ModuleType]) -> None:
    sent_at = script("recall_sets").sent_at
    assert sent_at("1:56 pm on 8 May, 2023") == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert sent_at("March-15-2024") == datetime(2024, 3, 15, tzinfo=UTC)
    assert sent_at("2023-05-08T13:56:00") == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


def test_a_folder_without_conversations_is_a_usage_error(
    script: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.argv", ["recall", str(tmp_path)])
    assert script("recall").main() == 2


def test_a_second_search_counts_what_either_finds(
    run: Callable[..., tuple[int, Any]], tmp_path: Path
) -> None:
    asked = BAKERY | {"question": "Wo ist das Brot her?", "again": "sister opened a bakery"}
    (tmp_path / "talk.json").write_text(json.dumps({"messages": MESSAGES, "questions": [asked]}))
    _, result = run("recall", tmp_path)
    [found] = result.values()
    assert found["again"] == 1.0
