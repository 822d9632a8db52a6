import json
import re
from itertools import chain
from pathlib import Path
from time import thread_time
from typing import Any

import pytest
from effort import steps_of
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.turn.output.parse import FALLBACK, FALLBACK_NOTED, parse_answer, well_formed
from agent.turn.output.streamed_text import MessageStream


def lines_of(name: str) -> list[dict[str, Any]]:
    """The objects in a file of JSON lines in `tests/data`."""
    text = (Path(__file__).parents[3] / "data" / name).read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def contents(raw: str) -> list[str]:
    return [draft.content for draft in parse_answer(raw).memories]


def test_each_field_of_a_memory_is_read_in_every_way_it_is_written():
    for case in lines_of("memory_fields.jsonl"):
        read = tuple(case["read"]) if isinstance(case["read"], list) else case["read"]
        for written in case["written"]:
            entry = '{"content": "Has a cat", "' + case["field"] + '": ' + written + "}"
            (draft,) = parse_answer('{"message": "Yes.", "memories": [' + entry + "]}").memories
            assert getattr(draft, case["field"]) == read, written


SOUP = st.lists(
    st.sampled_from(list("{}[]\"':,\\“”’`#/*-\n \r\x00\x1b\ud83c\udf66é4"))
    | st.sampled_from(
        ["message", "memories", "content", "ttl", "null", '"message": "', '"memories": [', "```json\n", "\\u"]
    )
    | st.sampled_from(
        ["<think>", "</think>", "<|im_end|>", "<tool_call>", "//", "/*", '{"', '"}', ' "name": ', "- "]
    )
).map("".join)
WORDS = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\u2028\u2029\ufeff\ufffe\uffff")
)


@settings(deadline=None)
@given(st.text(st.characters()) | SOUP)
def test_whatever_was_written_something_readable_comes_back(raw):
    answer = parse_answer(raw)
    assert answer.message.strip()
    for text in (answer.message, *(draft.content for draft in answer.memories)):
        text.encode()
        assert "\x00" not in text
        assert "\x1b" not in text


@settings(deadline=None)
@given(message=WORDS, facts=st.lists(WORDS), escaped=st.booleans(), indent=st.sampled_from([None, 2]))
def test_noise_around_an_envelope_changes_nothing(message, facts, escaped, indent):
    message, facts = f"m{message}.", [f"f{fact}." for fact in facts]
    value = {"message": message, "memories": [{"content": fact, "ttl": "7d"} for fact in facts]}
    raw = json.dumps(value, ensure_ascii=escaped, indent=indent)
    plain = parse_answer(raw)
    assert plain.message == message
    assert {draft.content for draft in plain.memories} <= set(facts)
    assert parse_answer(f"```json\n{raw}\n```") == plain
    assert parse_answer(f"Here it is:\n{raw}") == plain
    assert parse_answer(f"{raw}\n\nThat is all") == plain


@settings(deadline=None)
@given(message=WORDS, facts=st.lists(WORDS, max_size=4), data=st.data())
def test_an_answer_cut_anywhere_keeps_what_was_whole(message, facts, data):
    facts = [f"Fact {at}{fact}." for at, fact in enumerate(facts)]
    raw = json.dumps(
        {"message": f"m{message}", "memories": [{"content": fact, "ttl": None} for fact in facts]}
    )
    end = data.draw(st.integers(0, len(raw)))
    answer = parse_answer(raw[:end])
    shown = answer.message if answer.message != FALLBACK else ""
    assert f"m{message}".startswith(shown) or shown == f"m{message}".strip(" \n\t\u200b\u2060")
    whole = [fact for fact in facts if raw.index(json.dumps(fact)) + len(json.dumps(fact)) + 14 <= end]
    assert [draft.content for draft in answer.memories][: len(whole)] == whole[: len(answer.memories)]
    assert len(whole) <= len(answer.memories) <= len(whole) + 1
    assert all(draft.content in facts for draft in answer.memories)


def test_a_long_answer_is_repaired_too_and_an_endless_one_begins_at_least():
    facts = [f'Said "yes" {number} times' for number in range(100)]
    raw = json.dumps({"message": 'A "long" story. ' * 1200, "memories": [{"content": f} for f in facts]})
    assert len(raw) > 25_000
    answer = parse_answer(raw.removesuffix("}]}"))
    assert (answer.message, len(answer.memories)) == (('A "long" story. ' * 1200).strip(), 100)
    assert parse_answer(raw[:-3] * 8).message.startswith('A "long" story. A "long"')


HOSTILE = {
    "": [
        *("{", "[", '"', "\\", '{"a":', '{"a":1}', "```json\n", "<think>\n", '{"message":"a"}', "{/*"),
        *("\ud83c", "<|im_end|>", "<tool_call>", "message:\n", '"memories": ['),
    ],
    '{"message": "': ["\\", '"x ', '",', '"}', '{"', '"//'],
    '{"message": ': ["a,"],
    '{"memories": [': ["a,"],
    '{"message": "a", ': ['"memories": {},'],
    '"': ['{\\"message\\":'],
}


@pytest.mark.parametrize("size", [500, pytest.param(5_000, marks=pytest.mark.slow)])
def test_hostile_text_takes_linear_time_and_no_recursion(size):
    for opening, repetitions in HOSTILE.items():
        for one in repetitions:
            short, long = (opening + one * (length // len(one)) for length in (size, 4 * size))
            assert steps_of(parse_answer, long) < 6 * steps_of(parse_answer, short), one


RECORDED = lines_of("model_outputs.jsonl")
OUR_JSON = re.compile(r"""\{\s*\\?["'](?:mes|mem|con|tho|nam|rol|ans|rep)""")


def test_recorded_outputs_of_models_give_what_the_user_must_see_and_keep():
    for case in RECORDED:
        answer = parse_answer(case["raw"])
        if (
            "readable" in case
        ):  # a form that nobody asks for: the reply can be read, and may yield no memories
            assert answer.message not in (FALLBACK, FALLBACK_NOTED), case["id"]
            assert not re.search(r"""[{｛]\s*["'“]|["']:""", answer.message), case["id"]
        else:
            assert answer.message == case["message"], case["id"]
            assert [draft.content for draft in answer.memories] == case["memories"], case["id"]
        if "revised" not in case:  # what was shown first is replaced at the end
            shown = "".join(map(MessageStream().feed, case["raw"]))
            assert answer.message.startswith(shown), case["id"]


@pytest.mark.parametrize("step", [17, pytest.param(1, marks=pytest.mark.slow)])
def test_no_cut_of_a_recorded_output_shows_our_json(step):
    for case in RECORDED:
        raw = case["raw"]
        if OUR_JSON.search(parse_answer(raw).message):
            continue  # an example in the reply
        stream = MessageStream()
        for end in range(step, len(raw), step):
            stream.feed(raw[end - step : end])
            for text in (stream.shown, parse_answer(raw[:end]).message):
                assert OUR_JSON.search(text) is None, raw[:end]


SHOWN = ['{"message": "open"} is what it sends', '{"a": 1}', '{"a": {"memories": 1}}', '{"a": [1,']


@pytest.mark.parametrize("message", SHOWN)
def test_json_in_a_message_is_what_was_asked_for_and_is_shown(message):
    raw = json.dumps({"message": message, "memories": ["Has a cat"]})
    for written in (raw, f"```json\n{raw}\n```"):
        answer = parse_answer(written)
        assert (answer.message, contents(written)) == (message, ["Has a cat"])


# With a colon of ASCII: of two faults in one answer the reply may show something.
ENVELOPES = [case["raw"] for case in RECORDED if case["raw"].lstrip().startswith('{"message":')]


@pytest.mark.parametrize("raw", ENVELOPES)
def test_one_mark_too_few_or_too_many_shows_no_json_and_loses_no_whole_memory(raw):
    entries = [*re.finditer(r'\{[^{}]*"ttl"[^{}]*\}', raw if well_formed(raw) else "")]
    for at in (at for at, mark in enumerate(raw) if mark in '",:{}[]'):
        whole = {*chain(*(contents(f"[{one[0]}]") for one in entries if not one.start() <= at < one.end()))}
        for damaged in (raw[:at] + raw[at + 1 :], raw[:at] + raw[at] + raw[at:]):
            answer = parse_answer(damaged)
            assert not answer.message.startswith("{"), damaged
            assert '"memories"' not in answer.message, damaged
            assert whole <= {memory.content for memory in answer.memories}, damaged


@pytest.mark.parametrize(
    "damage",
    ['"}: 0.7}', '": 0].7}', '": 0.7}]}', '": , 0.7}', '": {0.7}', '\\": 0.7}', "\n': 0.7}", '" 0.7}'],
)
def test_a_damaged_memory_costs_neither_the_message_nor_the_others(damage):
    first, second = (
        f'{{"content": "{fact}", "ttl": null, "importance' for fact in ("Has a cat", "Has a dog")
    )
    for raw in (
        f'{{"message": "Hello. \\"Hm?\\"", "memories": [{first}{damage}, {second}": 0.7}}]}}',
        f'{{"memories": [{first}": 0.7}}, {second}{damage}], "message": "Hello. \\"Hm?\\""}}',
    ):
        assert parse_answer(raw).message == 'Hello. "Hm?"', raw
        assert ("Has a dog" if raw.startswith('{"mes') else "Has a cat") in contents(raw), raw


@pytest.mark.parametrize(
    "raw",
    [
        '{"message": "I will ask.", "memories": [], "forget": ["Ben plans to quit"]}',
        '```json\n{"message": "I will ask.", "memories": [], "forget": "Ben plans to quit",}\n```',
        '{"answer": {"message": "I will ask.", "memories": [], "Forget": ["Ben plans to quit", null, 7]}}',
    ],
)
def test_what_a_person_asked_to_forget_is_read(raw):
    answer = parse_answer(raw)
    assert (answer.message, answer.memories, answer.forget) == ("I will ask.", (), ("Ben plans to quit",))


@pytest.mark.parametrize(
    ("opening", "repeated", "end"),
    [
        ('{"message": "', " ", "x"),
        ('{"message": "', "'", "memories"),
        ('{"message": "hi \\"memories', " ", "x"),
        ("```", " ", "x"),
        ("", "{ ", "x"),
    ],
)
def test_what_goes_on_without_an_end_takes_no_longer_than_its_length(opening, repeated, end):
    began = thread_time()
    parse_answer(opening + repeated * 30_000 + end)
    assert thread_time() - began < 1.0
