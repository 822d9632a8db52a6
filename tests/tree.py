"""Write the tree of docs/architecture.md, with a module's first sentence: `python -m tests.tree`."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "architecture.md"
PACKAGES = ("hachi", "agent", "tools", "memory", "prompts")
BLOCK = re.compile(r"(?<=## The tree\n\n```\n).*?(?=```)", re.DOTALL)
WIDTH, SHORT, LONGEST = 34, 25, 120
"""Characters."""


def _lines(folder: Path, depth: int) -> Iterator[str]:
    """Yield a line for a folder, for its modules and for the folders in it."""
    yield _line(f"{folder.name}/", folder / "__init__.py", depth)
    for path in sorted(folder.iterdir(), key=lambda path: (path.is_dir(), path.name)):
        if path.suffix == ".py" and path.name != "__init__.py":
            yield _line(path.stem, path, depth + 1)
        elif (path / "__init__.py").exists():
            yield from _lines(path, depth + 1)
        elif path.suffix == ".md":
            yield f"{'  ' * (depth + 1)}{path.name}"


def _line(name: str, module: Path, depth: int) -> str:
    return f"{'  ' * depth + name:<{WIDTH}}{_sentence(module)}".rstrip()


def _sentence(module: Path) -> str:
    """Return the first sentence of the module, and where that is short the second one too."""
    text = ast.get_docstring(ast.parse(module.read_text("utf-8"))) or ""
    sentences = re.split(r"(?<=\.) ", " ".join(text.split()))
    said = " ".join(sentences[: 2 if len(sentences[0]) < SHORT else 1]).rstrip(".:")
    return said if len(said) <= LONGEST else said[:LONGEST].rsplit(" ", 1)[0] + " …"


if __name__ == "__main__":
    lines = [line for name in PACKAGES for line in _lines(ROOT / name, 0)]
    tree = "\n".join([*lines, f"{'tests/':<{WIDTH}}mirrors the above", ""])
    PAGE.write_text(BLOCK.sub(lambda _: tree, PAGE.read_text("utf-8"), count=1), "utf-8")
