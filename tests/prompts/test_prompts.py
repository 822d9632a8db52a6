"""Prompts are files with named places, rendered strictly."""

import json
import re
from pathlib import Path
from typing import get_args

import pytest

import agent
import prompts
from agent.background.consolidation.answer import ITEMS
from agent.turn.output.answer import ANSWER_SCHEMA
from memory.people.profile_entries import FIELDS, field_named
from memory.records import TaskStatus
from prompts import read, render

NAMES = sorted(path.stem for path in Path(prompts.__file__).parent.glob("*.md"))

PLACES = {name: {*re.findall(r"\{\{(\w+)\}\}", read(name))} for name in NAMES}


def test_each_prompt_renders_with_its_places_filled_and_asks_for_each():
    for name, places in PLACES.items():
        text = render(name, **{place: f"<{place}>" for place in places})
        assert text == text.strip() != ""
        assert "{{" not in text
        assert all(f"<{place}>" in text for place in places)
        for place in places:
            values = dict.fromkeys(places - {place}, "x")
            with pytest.raises(KeyError, match=rf"prompt '{name}': no value for \['{place}'\]"):
                render(name, **values)


def test_each_prompt_is_used():
    house = Path(agent.__file__).parent
    asked_for = {
        re.sub(r"\{[^}]*\}", r"\\w+", asked)
        for path in house.rglob("*.py")
        for asked in re.findall(r"\b(?:read|render)\(\s*f?['\"]([^'\"]+)['\"]", path.read_text())
    }
    assert [name for name in NAMES if not any(re.fullmatch(asked, name) for asked in asked_for)] == []


def test_consolidation_asks_for_fields_that_there_are():
    text = render("consolidation", **dict.fromkeys(PLACES["consolidation"], ""))
    [keys] = re.findall(r"Keys: (.*?)\. An empty", text)
    named = re.findall(r"`(\w+)`", keys)

    assert {field_named(key) for key in named} == set(FIELDS) - {"memory_summary"}
    for name in ITEMS:
        assert f'"{name}": []' in text
        assert f"- `{name}`:" in text
    for status in get_args(TaskStatus):
        assert f'"{status}"' in text


def test_data_is_said_to_be_data_wherever_it_is_quoted():
    for name in ("assistant", "judge", "consolidation", "consolidation_citations", "person"):
        assert re.search(r"\b(?:data|information)\b", read(name)), name


def test_a_value_without_a_place_is_named():
    with pytest.raises(KeyError, match=r"last_call.*no place for \['mood'\]"):
        render("last_call", mood="good")


def test_a_value_that_looks_like_a_place_is_left_as_it_is():
    text = render("setting", now="{{where}}", reminders="", where=r"\1 {{now}}", here="")

    assert "Now: {{where}}" in text
    assert r"Where: \1 {{now}}" in text


def test_an_unknown_prompt_is_no_prompt():
    with pytest.raises(FileNotFoundError):
        read("no such prompt")


def test_the_assistant_knows_its_tools_and_the_form_of_its_answer():
    text = read("assistant")

    for tool in ("search_memories", "get_recent_memories", "search_knowledge", "remember", "update_task"):
        assert f"`{tool}`" in text
    for key in ("message", "memories", "content", "subjects", "ttl", "type", "importance"):
        assert f'"{key}"' in text


def test_the_example_of_an_answer_has_every_field_and_no_words():
    [example] = [line for line in read("assistant").splitlines() if line.startswith("{")]
    answer = json.loads(example)
    properties = ANSWER_SCHEMA.json_schema()["properties"]

    assert answer.keys() == properties.keys()
    [memory] = answer["memories"]
    assert memory.keys() == properties["memories"]["items"]["properties"].keys()
    assert {answer["message"], memory["content"], *memory["subjects"]} == {"…"}
    assert answer["forget"] == []


def test_no_example_of_a_prompt_can_be_taken_for_an_answer_or_an_id():
    for name in NAMES:
        for words in re.findall(r'"(?:message|content|text|forget)": \[?"([^"]*)"', read(name)):
            assert words == "…", name
        assert not re.search(r"\b(?=\w*\d)[0-9a-f]{8}\b", read(name)), name
