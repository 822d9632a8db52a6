"""Markdown is taken apart along its structure, and says what its source says."""

from hypothesis import given
from hypothesis import strategies as st

from memory.documents.formats.markdown import parse

PAGE = """\
# The *kettle* and `tea`

Heat the water
to 80 degrees.

- green tea
  - sencha
- black tea

```python
# no heading

brew()
```

| leaf | minutes |
| --- | --- |
| sencha | 2 |

## Care {#care}

> Never in the
> dishwasher.

    descale()

<div>kept</div>

<!-- not for readers -->

---
"""


def test_each_part_of_a_page_is_a_block_of_its_kind() -> None:
    assert [(block.kind, block.text) for block in parse(PAGE).blocks] == [
        ("heading", "The kettle and tea"),
        ("text", "Heat the water\nto 80 degrees."),
        ("list", "- green tea\n  - sencha\n- black tea"),
        ("code", "```python\n# no heading\n\nbrew()\n```"),
        ("table", "| leaf | minutes |\n| --- | --- |\n| sencha | 2 |"),
        ("heading", "Care"),
        ("text", "> Never in the\n> dishwasher."),
        ("code", "    descale()"),
        ("text", "<div>kept</div>"),
    ]


def test_the_title_is_the_first_heading_of_the_first_level_or_named_by_the_front_matter() -> None:
    assert parse(PAGE).title == "The kettle and tea"
    assert parse("## Only a part\n\ntext").title == ""
    parsed = parse("---\ntitle: 'Making tea'\ndate: 2026-01-01\n---\n# Tea\n\nBoil.")
    assert parsed.title == "Making tea"
    assert [block.text for block in parsed.blocks] == ["Tea", "Boil."]
    assert parse("---\ntags: [a]\n---\n# Tea").title == parse("---\n---\n# Tea").title == "Tea"


def test_a_link_and_an_image_in_a_heading_leave_their_words() -> None:
    [heading] = parse("# See [the manual](http://x) ![drawing](a.png) **now**<br>").blocks
    assert heading.text == "See the manual drawing now"


@given(st.text())
def test_any_text_is_taken_apart_without_losing_a_line_of_a_paragraph(text: str) -> None:
    parsed = parse(text)
    for block in parsed.blocks:
        assert block.text.strip()
        if block.kind == "heading":
            assert "\n" not in block.text
            assert 1 <= block.level <= 6
