"""Documents are cut along their structure: never in code, a table, a sentence or an item that fits."""

from hypothesis import given
from hypothesis import strategies as st

from memory.documents.chunking import HARD_LIMIT, MAX_LENGTH, MIN_TAIL, ChunkText, split_into_chunks
from memory.documents.formats import markdown
from memory.documents.formats.blocks import Block


def texts(*blocks: Block) -> list[str]:
    return [piece.text for piece in split_into_chunks(blocks)]


def text(words: int, word: str = "word") -> Block:
    return Block("text", " ".join([word] * words))


def test_paragraphs_under_one_heading_share_a_chunk() -> None:
    assert split_into_chunks(
        markdown.parse("# Tea\n\nBoil.\n\n- cup\n- leaf\n\n## Care\n\nRinse.\n\n# Coffee\n\nGrind.").blocks
    ) == [
        ChunkText("Tea", "Boil.\n\n- cup\n- leaf"),
        ChunkText("Tea > Care", "Rinse."),
        ChunkText("Coffee", "Grind."),
    ]


def test_text_above_the_first_heading_stands_under_none() -> None:
    assert split_into_chunks([Block("text", "Boil.")]) == [ChunkText("", "Boil.")]


def test_a_heading_with_nothing_under_it_makes_no_chunk() -> None:
    assert split_into_chunks([Block("heading", "Tea", level=1)]) == []


def test_a_heading_that_skips_levels_still_lies_in_what_is_above_it() -> None:
    blocks = markdown.parse("### Deep\n\na\n\n# Top\n\nb\n\n#### Deeper\n\nc\n\n## Middle\n\nd").blocks
    assert [piece.heading for piece in split_into_chunks(blocks)] == [
        "Deep",
        "Top",
        "Top > Deeper",
        "Top > Middle",
    ]


def test_more_than_a_chunk_holds_begins_another() -> None:
    one, two = text(150, "cups"), text(150, "leaf")
    assert texts(one, two) == [one.text, two.text]


def test_a_few_words_at_the_end_join_what_is_before_them() -> None:
    long, short = text(235), Block("text", "x" * (MIN_TAIL - 1))
    assert texts(long, short) == [f"{long.text}\n\n{short.text}"]
    code = Block("code", "y" * (MAX_LENGTH + 1))
    assert texts(code, short) == [code.text, short.text], "what is too long already grows no longer"


def test_a_long_paragraph_is_cut_between_its_sentences() -> None:
    sentences = [f"Sentence number {n} is about tea." for n in range(100)]
    pieces = texts(Block("text", " ".join(sentences)))
    assert len(pieces) > 1
    assert " ".join(pieces) == " ".join(sentences)
    assert all(piece.endswith(".") and len(piece) <= MAX_LENGTH for piece in pieces)


def test_sentences_end_in_every_script() -> None:
    for sentence in ("茶を飲みます。", "هل تشرب الشاي؟ ", "चाय पीजिए। "):
        pieces = texts(Block("text", sentence * 300))
        assert len(pieces) > 1
        assert all(piece.endswith(sentence.strip()[-1]) for piece in pieces)


def test_a_sentence_without_end_is_cut_between_words_and_a_word_without_end_anywhere() -> None:
    assert {word for piece in texts(text(1000)) for word in piece.split()} == {"word"}
    pieces = texts(Block("text", "x" * 3000))
    assert "".join(pieces) == "x" * 3000
    assert max(map(len, pieces)) <= MAX_LENGTH


def test_a_long_list_is_cut_between_its_items() -> None:
    source = "\n".join(f"- item {n} of many\n  with a second line" for n in range(100))
    pieces = [piece.text for piece in split_into_chunks(markdown.parse(source).blocks)]
    assert len(pieces) > 1
    assert all(piece.startswith("- item") and piece.endswith("second line") for piece in pieces)
    assert "\n".join(pieces) == source


def test_code_and_tables_stay_whole_though_they_are_long() -> None:
    code = "```\n" + "x = 1\n" * 500 + "```"
    table = "| a | b |\n| - | - |\n" + "\n".join(["| 1 | 2 |"] * 400)
    blocks = markdown.parse(f"Before.\n\n{code}\n\n{table}\n\nAfter.").blocks
    pieces = [piece.text for piece in split_into_chunks(blocks)]
    assert code in pieces
    assert table in pieces


def test_code_beyond_the_limit_is_cut_between_lines_each_part_in_a_fence() -> None:
    lines = [f"value_{n} = {n}" for n in range(2000)]
    pieces = texts(Block("code", "\n".join(["```python", *lines, "```"])))
    assert len(pieces) > 2
    assert all(piece.startswith("```python\n") and piece.endswith("\n```") for piece in pieces)
    assert all(len(piece) <= HARD_LIMIT for piece in pieces)
    assert [line for piece in pieces for line in piece.split("\n")[1:-1]] == lines


def test_a_fence_that_is_never_closed_is_cut_too() -> None:
    pieces = texts(Block("code", "~~~\n" + "x\n" * 5000))
    assert all(piece.startswith("~~~\n") and piece.endswith("\n~~~") for piece in pieces)


def test_indented_code_beyond_the_limit_is_cut_between_lines() -> None:
    source = "\n".join(["    run()"] * 2000)
    pieces = texts(Block("code", source))
    assert "\n".join(pieces) == source


def test_a_table_beyond_the_limit_has_its_head_on_each_part() -> None:
    rows = [f"| {n} | tea |" for n in range(2000)]
    pieces = texts(Block("table", "\n".join(["| n | what |", "| - | - |", *rows])))
    assert len(pieces) > 2
    assert all(piece.startswith("| n | what |\n| - | - |\n|") for piece in pieces)
    assert all(len(piece) <= HARD_LIMIT for piece in pieces)
    assert [row for piece in pieces for row in piece.split("\n")[2:]] == rows


def test_a_table_whose_head_is_huge_does_not_repeat_it() -> None:
    head = "|" + "a" * HARD_LIMIT + "|"
    pieces = texts(Block("table", f"{head}\n| - |\n| 1 |"))
    assert max(map(len, pieces)) <= HARD_LIMIT
    assert "".join(pieces).count("a") == HARD_LIMIT


@given(st.text(max_size=6000))
def test_no_letter_is_lost_and_no_chunk_is_empty_or_endless(source: str) -> None:
    blocks = [block for block in markdown.parse(source).blocks if block.kind != "heading"]
    pieces = texts(*blocks)
    assert all(piece.strip() and len(piece) <= HARD_LIMIT + MIN_TAIL for piece in pieces)
    given_letters = [c for block in blocks for c in block.text if c.isalnum()]
    assert [c for piece in pieces for c in piece if c.isalnum()] == given_letters


@given(st.lists(st.text(st.sampled_from("ab .。\n"), min_size=1, max_size=3000), max_size=4))
def test_long_paragraphs_keep_all_their_letters(paragraphs: list[str]) -> None:
    pieces = texts(*(Block("text", paragraph) for paragraph in paragraphs if paragraph.strip()))
    assert "".join("".join(pieces).split()) == "".join("".join(paragraphs).split())
    assert all(len(piece) <= MAX_LENGTH + MIN_TAIL + 2 for piece in pieces)
