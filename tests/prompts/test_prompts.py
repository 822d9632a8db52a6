"""Prompts are files with named places, rendered strictly."""

import inspect
import re
from importlib.resources import files
from pathlib import Path

import pytest

import agent
import prompts
from prompts import read, render

NAMES = sorted(path.stem for path in Path(prompts.__file__).parent.glob("*.md"))
PLACE = re.compile(r"\{\{(\w+)\}\}")


@pytest.mark.parametrize("name", NAMES)
def test_each_prompt_renders_with_its_places_filled(name: str) -> None:
    places = set(PLACE.findall(read(name)))

    text = render(name, **{place: f"<{place}>" for place in places})

    assert text == text.strip() != ""
    assert "{{" not in text
    assert all(f"<{place}>" in text for place in places)


@pytest.mark.parametrize("name", NAMES)
def test_each_prompt_is_used(name: str) -> None:
    house = Path(agent.__file__).parent
    sources = [path.read_text() for path in house.rglob("*.py")]

    assert any(re.search(rf"\b(?:read|render)\(\s*['\"]{name}['\"]", source) for source in sources)


@pytest.mark.parametrize("name", NAMES)
def test_each_prompt_is_packaged(name: str) -> None:
    assert files("prompts").joinpath(f"{name}.md").is_file()


def test_a_missing_value_is_named() -> None:
    with pytest.raises(KeyError, match=r"setting.*no value for \['speaker', 'where'\]"):
        render("setting", now="today")


def test_a_value_without_a_place_is_named() -> None:
    with pytest.raises(KeyError, match=r"last_call.*no place for \['mood'\]"):
        render("last_call", mood="good")


def test_a_value_that_looks_like_a_place_is_left_as_it_is() -> None:
    text = render("setting", now="{{speaker}}", speaker="Ana", where=r"\1 {{now}}")

    assert "Now: {{speaker}}" in text
    assert r"Where: \1 {{now}}" in text


def test_an_unknown_prompt_is_no_prompt() -> None:
    with pytest.raises(FileNotFoundError):
        read("no such prompt")


def test_places_may_have_any_name() -> None:
    parameters = inspect.signature(render).parameters

    assert parameters["name"].kind is inspect.Parameter.POSITIONAL_ONLY


def test_the_assistant_knows_its_tools_and_the_form_of_its_answer() -> None:
    text = read("assistant")

    for tool in ("search_memories", "get_recent_memories", "search_knowledge", "remember", "update_task"):
        assert f"`{tool}`" in text
    for key in ("message", "memories", "content", "subjects", "ttl", "type", "importance"):
        assert f'"{key}"' in text
