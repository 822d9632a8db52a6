"""The benchmark of documents runs on two made-up ones."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def test_the_file_that_answers_is_found(run: Callable[..., tuple[int, Any]], tmp_path: Path) -> None:
    folder, questions = tmp_path / "docs", tmp_path / "questions.jsonl"
    folder.mkdir()
    (folder / "tea.md").write_text("# Tea\n\nGreen tea is brewed at 80 degrees.\n")
    (folder / "boats.md").write_text("# Boats\n\nA kayak has one seat.\n")
    questions.write_text(json.dumps({"question": "How hot is green tea brewed?", "file": "tea.md"}) + "\n")
    code, result = run("knowledge", folder, questions)
    assert code == 0
    assert (result["files"], result["unread"]) == (2, 0)
    assert result["halves"]["all"]["Hachi"] == {"recall@5": 1.0, "recall@10": 1.0, "questions": 1}
