"""Hachi, a companion that remembers: what a program imports.

    from hachi import Companion

    async with Companion.open() as pet:
        reply = await pet.respond("I broke my shoulder", user="mickael")
        print(reply.message)

The names in `hachi` are stable; docs/python.md describes them. The packages `agent`, `tools`, `memory` and
`prompts` are the implementation. `import hachi` loads none of them: a name loads on first use.
"""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hachi.public import *  # noqa: F403

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name.startswith("_") and name != "__all__":
        raise AttributeError(f"module 'hachi' has no attribute {name!r}")
    check_neighbours()
    public = vars(import_module("hachi.public"))
    if name == "__all__":
        return sorted(one for one in public if one[0].isalpha())
    if name not in public:
        raise AttributeError(f"module 'hachi' has no attribute {name!r}")
    return public[name]


def check_neighbours() -> None:
    """Raise ImportError, in one line, if Python finds another package or module under the name of one of
    ours: earlier on the path, already imported, or installed over ours."""
    here = Path(__file__).resolve().parent.parent
    for name in ("agent", "tools", "memory", "prompts"):
        try:
            spec = find_spec(name)
        except ValueError:  # a module created without a spec
            spec = None
        found = Path(spec.origin).resolve() if spec and spec.origin else None
        if found != here / name / "__init__.py":
            where = found or (spec and next(iter(spec.submodule_search_locations or ()), None)) or "nothing"
            what = f"Python finds {where}"
        elif "Hachi" not in found.read_text(encoding="utf-8", errors="replace").partition("\n")[0]:
            what = f"another package has been installed over it in {found.parent}"
        else:
            continue
        raise ImportError(
            f"Hachi needs its own package '{name}' in {here}, but {what}; rename that one, run from another "
            "folder, or give Hachi an environment of its own (docs/python.md, Neighbours)"
        )
