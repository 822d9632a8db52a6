"""Change the product in one small place at a time, and count the changes that no test notices.

    python -m tests.mutants FOLDER [--count 200] [--seed 1] [--seconds 120]

First all tests run once to note which of them reach which line; FOLDER keeps that. Then each mutant runs the
tests that reach its line, in a copy of the checkout. Results are kept in FOLDER/results.jsonl, and a run that
was stopped goes on where it was. The same seed and code draw the same mutants. A mutant is killed if a test
fails or takes longer than the limit. Exit 0; the share is for comparison.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from coverage import CoverageData
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from tests.mutants.sites import Site, sites

PACKAGES = ("agent", "memory", "tools", "prompts")
MOST_TESTS = 60
"""Tests that a mutant runs, drawn from those that reach its line."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=120.0)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    reached = lines_reached(given.folder.resolve())
    copy = given.folder.resolve() / "copy"
    results = given.folder / "results.jsonl"
    done = {tuple(row["site"]) for row in kept(results)}
    drawn = draw(reached, given.count, given.seed)
    with Progress(console=Console(stderr=True)) as progress:
        for site in progress.track(drawn, description="mutants"):
            if site.key not in done:
                row = {"site": site.key, "became": site.text, "end": run(site, reached, copy, given.seconds)}
                with results.open("a") as file:
                    file.write(json.dumps(row) + "\n")
    report(kept(results))
    return 0


def lines_reached(folder: Path) -> dict[str, dict[int, list[str]]]:
    """The tests that reach each line of each file of the product, by a run of all tests that are not slow."""
    data = folder / "reached.coverage"
    if not data.exists():
        environment = os.environ | {"COVERAGE_FILE": str(data)}
        command = [sys.executable, "-m", "pytest", "-q", "--numprocesses=2", "-m", "not slow", "--cov"]
        left_out = [f"--ignore=tests/{name}" for name in ("benchmarks", "stories", "campaign", "clients")]
        subprocess.run([*command, "--cov-context=test", "--cov-report=", *left_out], env=environment)
    read = CoverageData(str(data))
    read.read()
    here = f"{Path.cwd()}{os.sep}"
    return {
        file.removeprefix(here): {
            line: [test.partition("|")[0] for test in tests if test]
            for line, tests in read.contexts_by_lineno(file).items()
        }
        for file in read.measured_files()
    }


def draw(reached: dict[str, dict[int, list[str]]], count: int, seed: int) -> list[Site]:
    """Mutants on lines that a test reaches: coverage already tells of the others."""
    files = sorted(path for package in PACKAGES for path in Path(package).rglob("*.py"))
    every = [
        site
        for path in files
        if "versions" not in path.parts
        for site in sites(path)
        if reached.get(site.path, {}).get(site.line)
    ]
    return random.Random(seed).sample(every, min(count, len(every)))


def run(site: Site, reached: dict[str, dict[int, list[str]]], copy: Path, seconds: float) -> str:
    """``killed``, ``late`` or ``survived``."""
    shutil.rmtree(copy, ignore_errors=True)
    for name in (*PACKAGES, "hachi", "tests", "examples", "benchmarks", "docs"):
        shutil.copytree(
            name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules", ".venv")
        )
    for file in ("pyproject.toml", "README.md"):
        shutil.copy(file, copy / file)
    (copy / site.path).write_text(site.changed())
    tests = sorted(set(reached[site.path][site.line]))
    if len(tests) > MOST_TESTS:
        tests = random.Random(0).sample(tests, MOST_TESTS)
    chosen = copy / "chosen.txt"
    chosen.write_text("\n".join(tests))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n0", "--no-cov", "-p", "no:cacheprovider"]
    environment = os.environ | {"PYTHONPATH": str(copy)}
    try:
        ended = subprocess.run(
            [*command, f"@{chosen}"], cwd=copy, env=environment, timeout=seconds, capture_output=True
        )
    except subprocess.TimeoutExpired:
        return "late"
    return "survived" if ended.returncode == 0 else "killed"


def kept(results: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []


def report(rows: list[dict[str, Any]]) -> None:
    survived = [row for row in rows if row["end"] == "survived"]
    table = Table("file", "line", "became", title="survived")
    for row in sorted(survived, key=lambda row: row["site"]):
        table.add_row(row["site"][0], str(row["site"][1]), row["became"][:80])
    console = Console()
    console.print(table)
    console.print(f"{len(rows) - len(survived)} of {len(rows)} killed")


if __name__ == "__main__":
    sys.exit(main())
