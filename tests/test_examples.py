"""Every example runs as it is, with the network shut, and README shows what is there."""

import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent.parent
EXAMPLES = HERE / "examples"
README = (HERE / "README.md").read_text(encoding="utf-8")

SAYS = {
    "hello": [
        r"You told me on 12 January 2026: “I live in Paris”",
        r"replace: Mickael moved to Lyon \(corrected on purpose\)",
        r"private: 2, in a channel: 0",
        r"expired: \[\"Mickael's train leaves at 9:15\"\]",
        r"left: \[\]",
    ],
    "ten_lines": [
        r"You told me on \d+ \w+ \d{4}: “I broke my shoulder on January 10”",
        r"\d\.\d\d memory: Mickael has the flu",
    ],
    "import_transcript": [
        r"4 messages taken over",
        r"\d\.\d\d 2026-03-02 Ana: The dentist moved me to Friday\.",
    ],
    "own_model": [
        r"No nuts, noted\. And a good trip to Rome!",
        r"add: Ana is allergic to nuts",
        r"add: Ana is in Rome, until \d{4}-\d\d-\d\d",
        r"2 model calls, tools: \['remember'\]",
    ],
}
"""Lines that an example prints, in this order and perhaps with others between them."""


@pytest.fixture
def run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    light_embedder: None,
) -> Callable[..., list[str]]:
    def run(name: str, *arguments: str) -> list[str]:
        monkeypatch.setenv("HACHI_HOME", str(tmp_path / "home"))
        script = EXAMPLES / f"{name}.py"
        monkeypatch.setattr(sys, "argv", [str(script), *arguments])
        runpy.run_path(str(script), run_name="__main__")
        return capsys.readouterr().out.splitlines()

    return run


def test_every_example_is_run_here() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == SAYS.keys()


@pytest.mark.parametrize("name", SAYS)
def test_an_example_says_what_it_promises(run: Callable[..., list[str]], name: str) -> None:
    lines = iter(run(name))
    for promised in SAYS[name]:
        assert any(re.fullmatch(promised, line) for line in lines), promised


def test_a_transcript_of_ones_own_is_taken_over(run: Callable[..., list[str]], tmp_path: Path) -> None:
    transcript = tmp_path / "transcript.json"
    transcript.write_text(
        '[{"author": "Zoé", "text": "My boat is called Pollux.", "sent_at": "2025-05-01T10:00:00+02:00"}]',
        encoding="utf-8",
    )
    said = run("import_transcript", str(transcript), "what is the boat called?")
    assert said[0] == "1 messages taken over"
    assert said[1].endswith("2025-05-01 Zoé: My boat is called Pollux.")


def test_hello_is_the_whole_in_under_50_lines() -> None:
    assert len((EXAMPLES / "hello.py").read_text(encoding="utf-8").splitlines()) < 50


def test_readme_shows_the_ten_lines_as_they_are() -> None:
    [shown] = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert shown == (EXAMPLES / "ten_lines.py").read_text(encoding="utf-8")


def test_the_first_command_of_readme_is_make_chat() -> None:
    first = re.search(r"^```sh\n(.*)$", README, re.MULTILINE)
    assert first is not None
    assert first[1] == "make chat"
