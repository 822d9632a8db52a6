"""The places of a file that can be changed, each with what it becomes."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SWAPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}


@dataclass(frozen=True)
class Site:
    path: str
    line: int
    start: int
    """The first character that is replaced, in the whole file."""
    end: int
    text: str
    """What stands there afterwards."""

    @property
    def key(self) -> tuple[str, int, int, str]:
        return self.path, self.line, self.start, self.text

    def changed(self) -> str:
        """The whole file with the change."""
        source = Path(self.path).read_text()
        return source[: self.start] + self.text + source[self.end :]


def sites(path: Path) -> Iterator[Site]:
    source = path.read_text()
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def position(line: int, column: int) -> int:
        """`ast` counts columns in bytes."""
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    for node in _changeable(ast.parse(source)):
        for text in _becomes(node):
            end = position(node.end_lineno, node.end_col_offset)
            yield Site(str(path), node.lineno, position(node.lineno, node.col_offset), end, text)


def _changeable(tree: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """Every node below, without annotations, docstrings and what stands in f-strings."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.JoinedStr | ast.arguments):
            continue
        if isinstance(child, ast.AnnAssign):
            if child.value is not None:
                yield from _changeable(ast.Expression(child.value))
            continue
        if isinstance(child, ast.expr | ast.stmt):
            yield child
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in child.body:
                yield statement
                yield from _changeable(statement)
        else:
            yield from _changeable(child)


def _becomes(node: ast.expr | ast.stmt) -> Iterator[str]:
    match node:
        case ast.Compare(left, [operator], [right]) if type(operator) in SWAPPED:
            yield f"({ast.unparse(ast.Compare(left, [SWAPPED[type(operator)]()], [right]))})"
        case ast.BoolOp(operator, values):
            other = ast.Or() if isinstance(operator, ast.And) else ast.And()
            yield f"({ast.unparse(ast.BoolOp(other, values))})"
        case ast.UnaryOp(ast.Not(), operand):
            yield f"({ast.unparse(operand)})"
        case ast.Constant(bool(value)):
            yield str(not value)
        case ast.Constant(int(value)) | ast.Constant(float(value)):
            yield str(value + 1)
        case ast.Return(value) if value is not None and not isinstance(value, ast.Constant):
            yield "return None"
        case ast.Expr(ast.Call() | ast.Await()):
            yield "pass"
