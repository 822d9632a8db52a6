"""Compare the lines of each package with what `budget.toml` allows it: `python -m tests.budget`."""

import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def count_lines(package: Path) -> int:
    """Return how many lines the Python files of `package` have, blank ones and comments included."""
    files = (file for file in package.rglob("*.py") if not installed(file.relative_to(package)))
    return sum(len(file.read_bytes().splitlines()) for file in files)


def installed(file: Path) -> bool:
    """Return whether a file is in an environment that tests of clients have made."""
    return bool({".venv", "node_modules"}.intersection(file.parts))


def over_budget(root: Path, allowed: Mapping[str, int]) -> list[str]:
    """Return a line for each package under `root` that has more lines than it may have."""
    counts = {name: count_lines(root / name) for name in allowed}
    return [
        f"{name} has {counts[name]:,} lines and may have {lines:,}: take {counts[name] - lines:,} out of it, "
        "or raise its number in tests/budget.toml and say in the commit what they buy"
        for name, lines in allowed.items()
        if counts[name] > lines
    ]


if __name__ == "__main__":
    over = over_budget(ROOT, tomllib.loads((ROOT / "tests/budget.toml").read_text("utf-8"))["lines"])
    print("\n".join(over) or "every package is within its budget of lines")
    sys.exit(bool(over))
