"""Documents are cut along their structure: never in code, a table, a sentence or an item that fits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.documents.chunking import HARD_LIMIT, MAX_LENGTH, MIN_TAIL, ChunkText, split_into_chunks
from memory.documents.formats import markdown
from memory.documents.formats.blocks import Block


def texts(*blocks: Block) -> list[str]:
    return [chunk.text for chunk in split_into_chunks(blocks)]


def text(words: int, word: str = "word") -> Block:
    return Block("text", " ".join([word] * words))


def test_what_stands_under_one_heading_shares_a_chunk() -> None:
    source = (
        "Above.\n\n# Tea\n\nBoil.\n\n- cup\n- leaf\n\n## Care\n\nRinse.\n\n# Coffee\n\nGrind.\n\n## Empty"
    )
    assert split_into_chunks(markdown.parse(source).blocks) == [
        ChunkText("", "Above."),
        ChunkText("Tea", "Boil.\n\n- cup\n- leaf"),
        ChunkText("Tea > Care", "Rinse."),
        ChunkText("Coffee", "Grind."),
    ]
    skipping = markdown.parse("### Deep\n\na\n\n# Top\n\nb\n\n#### Deeper\n\nc\n\n## Middle\n\nd").blocks
    headings = [chunk.heading for chunk in split_into_chunks(skipping)]
    assert headings == ["Deep", "Top", "Top > Deeper", "Top > Middle"]


def test_a_full_chunk_begins_another_and_a_short_tail_joins_the_one_before() -> None:
    one, two = text(150, "cups"), text(150, "leaf")
    assert texts(one, two) == [one.text, two.text]
    long, short = text(235), Block("text", "x" * (MIN_TAIL - 1))
    assert texts(long, short) == [f"{long.text}\n\n{short.text}"]
    code = Block("code", "y" * (MAX_LENGTH + 1))
    assert texts(code, short) == [code.text, short.text], "a chunk that is too long does not grow"


@pytest.mark.parametrize(
    "sentence", ["Tea is a drink. ", "茶を飲みます。", "هل تشرب الشاي؟ ", "चाय पीजिए। "], ids=str.strip
)
def test_a_long_paragraph_is_cut_between_sentences_in_every_script(sentence: str) -> None:
    chunks = texts(Block("text", sentence * 300))
    assert len(chunks) > 1
    assert all(chunk.endswith(sentence.strip()[-1]) and len(chunk) <= MAX_LENGTH for chunk in chunks)
    assert "".join("".join(chunks).split()) == "".join((sentence * 300).split())


def test_a_long_sentence_is_cut_between_words_a_long_word_anywhere_and_a_list_between_its_items() -> None:
    assert {word for chunk in texts(text(1000)) for word in chunk.split()} == {"word"}
    chunks = texts(Block("text", "x" * 3000))
    assert "".join(chunks) == "x" * 3000
    assert max(map(len, chunks)) <= MAX_LENGTH
    source = "\n".join(f"- item {n} of many\n  with a second line" for n in range(100))
    chunks = texts(*markdown.parse(source).blocks)
    assert len(chunks) > 1
    assert all(chunk.startswith("- item") and chunk.endswith("second line") for chunk in chunks)
    assert "\n".join(chunks) == source


def test_code_and_tables_stay_whole_below_the_hard_limit_and_a_huge_header_is_not_repeated() -> None:
    code = "```\n" + "x = 1\n" * 500 + "```"
    table = "| a | b |\n| - | - |\n" + "\n".join(["| 1 | 2 |"] * 400)
    chunks = texts(*markdown.parse(f"Before.\n\n{code}\n\n{table}\n\nAfter.").blocks)
    assert {code, table} <= set(chunks)
    chunks = texts(Block("table", f"|{'a' * HARD_LIMIT}|\n| - |\n| 1 |"))
    assert max(map(len, chunks)) <= HARD_LIMIT
    assert "".join(chunks).count("a") == HARD_LIMIT


LINES = [f"value_{n} = {n}" for n in range(2000)]


@pytest.mark.parametrize(
    ("block", "head"),
    [
        (Block("code", "\n".join(LINES)), ""),
        (Block("table", "\n".join(["| n |", "| - |", *LINES])), "| n |\n| - |\n"),
    ],
)
def test_beyond_the_hard_limit_each_part_of_a_table_gets_its_header(block: Block, head: str) -> None:
    chunks = texts(block)
    assert len(chunks) > 2
    assert all(c.startswith(head) and len(c) <= HARD_LIMIT for c in chunks)
    inner = [chunk.removeprefix(head) for chunk in chunks]
    assert [line for part in inner for line in part.split("\n")] == LINES


@given(st.text(max_size=6000))
def test_no_letter_is_lost_and_no_chunk_is_empty_or_endless(source: str) -> None:
    blocks = [block for block in markdown.parse(source).blocks if block.kind != "heading"]
    chunks = texts(*blocks)
    assert all(chunk.strip() and len(chunk) <= HARD_LIMIT + MIN_TAIL for chunk in chunks)
    letters = [c for block in blocks for c in block.text if c.isalnum()]
    assert [c for chunk in chunks for c in chunk if c.isalnum()] == letters
