import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.turn.output.answer import FALLBACK, FALLBACK_NOTED, Answer, parse_answer
from agent.turn.output.stream import MessageStream
from memory.records import Draft


def contents(raw: str) -> list[str]:
    return [draft.content for draft in parse_answer(raw).memories]


@pytest.mark.parametrize(
    "message",
    [
        'She calls it "a disaster" and laughs.',
        '"Soon" was the word.',
        'He said "maybe", then "never", and left.',
        'The last word is "yes"',
        "First line\n\n- one\n- two",
        "Use {{name}} or {city}, never [x], and mind the } there",
        "Half a sample: {'a', 'b'",
        "A // is no comment, nor is # here, see https://example.org/a",
    ],
)
@pytest.mark.parametrize(
    "after",
    [
        '", "memories": ["Owns a boat"],}',
        '", "memories": [\n"Owns a boat"]',
        '",\n "memories": ["Owns a boat"]}',
    ],
)
def test_quotes_braces_and_newlines_of_a_sentence_stay_in_it(message, after):
    answer = parse_answer('{"message": "' + message + after + " ok")
    assert answer.message == message
    assert [draft.content for draft in answer.memories] == ["Owns a boat"]


def test_quotes_inside_a_memory_stay_in_it():
    raw = '{"message": "Ok.", "memories": [{"content": "Calls it "Rex", a dog"}, {"content": "Says "hm""}]}'
    assert contents(raw) == ['Calls it "Rex", a dog', 'Says "hm"']


def test_escapes_are_read_and_unknown_ones_left():
    raw = r"""{'message': 'A\tb \'c\' \x41 \u00e9 \ud83c\udf66 \U0001F366 \q \
end', 'memories': []}"""
    assert parse_answer(raw).message == "A\tb 'c' A é 🍦 🍦 \\q end"
    assert parse_answer('{"message": "over \\UFFFFFFFF\\u12').message == "over \\UFFFFFFFF"


def test_memories_without_words_are_acknowledged():
    raw = 'Here is my answer in JSON:\n{"message": "", "memories": ["Owns a boat"]}'
    assert parse_answer(raw) == Answer(FALLBACK_NOTED, (Draft("Owns a boat"),))


def test_control_characters_and_halves_of_characters_are_not_shown():
    raw = '{"message": "Ti\x07! \x1b[1mBold\x1b[0m\\u0000 \\ud83c and\r\nnext \ud83c\udf66", '
    raw += '"memories": ["A\x08 b"]}'
    assert parse_answer(raw) == Answer("Ti! Bold  and\nnext 🍦", (Draft("A b"),))


def test_what_was_cut_is_not_remembered():
    whole = (
        '{"message": "Hi.", "memories": ["Owns a boat", {"content": "A cat", "subjects": [], "ttl": "7d", '
    )
    assert contents(whole[: whole.index("boat") + 2]) == []
    assert contents(whole[: whole.index("cat") + 2]) == ["Owns a boat"]
    assert contents(whole[: whole.index('"ttl"')]) == ["Owns a boat"]
    assert contents(whole[: whole.index("7d") + 1]) == ["Owns a boat"]
    assert contents(whole) == ["Owns a boat", "A cat"]


@pytest.mark.parametrize(
    "written",
    [
        '"memories": ["One thing"], "memories": ["Two things"]',
        '"memories": {"fact": "One thing"}, "memories": {"fact": "Two things"}',
        '"memories": ["One thing", "Two things"], "memories": null',
        '"Memories": ["One thing"], "memories": ["Two things"]',
    ],
)
def test_lists_of_one_name_are_one_list(written):
    assert contents('{"message": "a", ' + written + "}") == ["One thing", "Two things"]


FIELDS = {
    "importance": {
        ("0.8", '"0.8"', '"0,8"'): 0.8,
        ("8", "1.7"): 1.0,
        ("-1", '"high"', "null", "NaN", "Infinity", "1e999", "true", "[]", "9" * 500): 0.5,
    },
    "ttl": {
        ('"7d"',): "7d",
        ("null", '""', '"none"', "true", "[1]"): None,
        ("86400",): "86400",
        ("-3",): "-3",
    },
    "subjects": {
        ('["Cat", "cat ", "#Home"]', '"Cat, home"', '[["Cat"], ["home", 4, null]]'): ("cat", "home"),
        ("null", '[" ", "none"]', '{"a": 1}'): (),
    },
    "type": {('"Insight"',): "insight", ('"preferences"',): "preference", ('"rumour"', "3"): "fact"},
    "replaces": {('"m-17"',): "m-17", ("null",): None},
}


@pytest.mark.parametrize(
    ("field", "written", "read"),
    [
        (field, one, read)
        for field, values in FIELDS.items()
        for written, read in values.items()
        for one in written
    ],
)
def test_each_field_of_a_memory_is_read_in_every_way_it_is_written(field, written, read):
    raw = '{"message": "Yes.", "memories": [{"content": "Has a cat", "' + field + '": ' + written + "}]}"
    (draft,) = parse_answer(raw).memories
    assert getattr(draft, field) == read


def test_junk_is_not_remembered():
    texts = ['""', '" \\n"', "null", '"..."']
    for junk in (
        *texts,
        '{"content": null}',
        '{"content": "None"}',
        '{"content": 4}',
        '{"subjects": ["a b"]}',
    ):
        assert contents('{"message": "a", "memories": [' + junk + ', "Has a cat"]}') == ["Has a cat"]
        assert contents('{"message": "a", "memories": ' + junk + "}") == []


def test_labelled_lines_are_an_answer_too():
    raw = """message: Did it rain?
memories:
  - content: "Camped: in Wales"
    subjects: [camping, wales]
    ttl: 30d
    type: fact
    importance: 0.4
  - content: Has a red tent
    subjects:
      - tent
      - camping
    ttl: ~
"""
    assert parse_answer(raw) == Answer(
        "Did it rain?",
        (
            Draft("Camped: in Wales", ("camping", "wales"), "30d", "fact", 0.4),
            Draft("Has a red tent", ("tent", "camping")),
        ),
    )
    assert contents(raw.rstrip().removesuffix("    ttl: ~").rstrip()) == ["Camped: in Wales"]
    assert parse_answer(f"```yaml\n{raw}```") == parse_answer(raw)


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
    facts = [f"{at}{fact}." for at, fact in enumerate(facts)]
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


def seconds_to_read(raw: str) -> float:
    started = time.process_time()
    parse_answer(raw).message.encode()
    return time.process_time() - started


@pytest.mark.no_cover  # what counts the lines would be most of the time that is measured
@pytest.mark.parametrize(
    ("opening", "repetitions"),
    [
        (
            "",
            [
                "{",
                "[",
                '"',
                "\\",
                '{"a":',
                '{"a":1}',
                "```json\n",
                "<think>\n",
                '{"message":"a"}',
                "{/*",
                "\ud83c",
            ],
        ),
        ("", ["<|im_end|>", "<tool_call>", "message:\n", '"memories": [']),
        ('{"message": "', ["\\", '"x ', '",', '"}', '{"', '"//']),
        ('{"message": ', ["a,"]),
        ('{"memories": [', ["a,"]),
        ('{"message": "a", ', ['"memories": {},']),
        ("message: a\nmemories:\n", ["- x: y\n"]),
        ('"', ['{\\"message\\":']),
    ],
)
@pytest.mark.slow
def test_hostile_text_takes_linear_time_and_no_recursion(opening, repetitions):
    for one in repetitions:
        times = [seconds_to_read(opening + one * (size // len(one))) for size in (100_000, 400_000)]
        assert times[1] < 9 * times[0] + 0.2, one


OUTPUTS = [
    json.loads(line)
    for line in (Path(__file__).parents[3] / "data" / "model_outputs.jsonl").read_text("utf-8").splitlines()
]


@pytest.mark.parametrize("case", OUTPUTS, ids=[case["id"] for case in OUTPUTS])
def test_recorded_outputs_of_models_give_what_the_user_must_see_and_keep(case):
    answer = parse_answer(case["raw"])
    assert answer.message == case["message"]
    assert [draft.content for draft in answer.memories] == case["memories"]
    if "revised" not in case:  # what was shown first is replaced at the end
        stream = MessageStream()
        shown = "".join(map(stream.feed, case["raw"]))
        assert answer.message.startswith(shown)
        assert stream.close() == answer
