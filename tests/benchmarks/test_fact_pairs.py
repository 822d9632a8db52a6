"""The benchmark of fact pairs grades what remembering would do, and fails on harm."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def pair(existing: str, new: str, ok: list[str], harmful: list[str]) -> dict[str, Any]:
    def said(text: str, day: int) -> dict[str, Any]:
        return {"content": text, "subjects": ["ana"], "created_at": f"2026-11-{day:02}T09:00:00+00:00"}

    return {
        "id": "p", "lang": "en", "relation": "made up", "existing": said(existing, 1), "new": said(new, 2),
        "ok": ok, "harmful": harmful,
    }  # fmt: skip


SAME = pair("Ana plays the cello.", "ana plays the cello", ["ignored"], [])
APART = pair("Ana has 2 cats.", "Ana keeps bees in Ghent.", ["added"], ["ignored", "replaced"])


def graded(run: Callable[..., tuple[int, Any]], folder: Path, *pairs: dict[str, Any]) -> tuple[int, Any]:
    file = folder / "pairs.jsonl"
    file.write_text("\n".join(map(json.dumps, pairs)) + "\n")
    return run("fact_pairs", file)


def test_right_outcomes_pass(run: Callable[..., tuple[int, Any]], tmp_path: Path) -> None:
    code, result = graded(run, tmp_path, SAME, APART)
    assert code == 0
    assert {key: result[key] for key in ("ok", "missed", "harmful", "passed")} == {
        "ok": 2, "missed": 0, "harmful": 0, "passed": True,
    }  # fmt: skip
    assert [found["outcome"] for found in result["pairs"]] == ["ignored", "added"]


def test_one_harmful_outcome_fails(run: Callable[..., tuple[int, Any]], tmp_path: Path) -> None:
    code, result = graded(run, tmp_path, SAME, APART | {"ok": ["ignored"], "harmful": ["added"]})
    assert code == 1
    assert result["harmful"] == 1


def test_too_many_misses_fail_where_a_model_rules(
    run: Callable[..., tuple[int, Any]], tmp_path: Path
) -> None:
    code, result = graded(run, tmp_path, SAME, SAME | {"ok": ["added"]})
    assert code == 1
    assert (result["missed"], result["passed"]) == (1, True), "without a model it is only reported"
    assert (result["ruled"]["missed"], result["ruled"]["passed"]) == (1, False)
