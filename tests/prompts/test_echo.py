from pathlib import Path

import prompts
from prompts.echo import is_echo, may_become_echo

LINES = [
    line
    for file in Path(prompts.__file__).parent.glob("*.md")
    for line in file.read_text("utf-8").splitlines()
]


def test_each_line_of_a_prompt_is_recognised_with_other_case_and_marks():
    for line in LINES:
        if len(line.split()) > 2 and "{" not in line:
            assert is_echo(line.upper().strip(" #-")), line


def test_what_people_say_is_no_echo_though_it_has_single_words_of_a_prompt():
    for said in ("tea", "memories", "", "…", "I see the last messages.", "Where: in Lyon"):
        assert not is_echo(said)


def test_the_beginning_of_a_rule_waits_and_anything_else_does_not():
    rule = next(line for line in LINES if len(line.split()) > 8)
    words = rule.split()
    assert may_become_echo(" ".join(words[:4]))
    assert not may_become_echo("Good morning, Ana")
    assert not may_become_echo("")
