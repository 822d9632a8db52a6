"""Hachi, a companion that remembers.

    from agent import Companion

    async with Companion.open() as pet:
        reply = await pet.respond("I broke my shoulder", user="mickael")
        print(reply.message)

Start reading at `agent/turn/turn.py`: one turn, in five steps.
"""

import importlib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent.companion import Companion
    from agent.settings import Settings
    from agent.types import Reply
    from memory.audience import Place

__all__ = ["Companion", "Place", "Reply", "Settings"]

_HOMES = {
    "Companion": "agent.companion",
    "Place": "memory.audience",
    "Reply": "agent.types",
    "Settings": "agent.settings",
}


def __getattr__(name: str) -> Any:
    """Public names load on first use: `import agent` itself costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'agent' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def _check_neighbours() -> None:
    """Hachi's packages have plain names. Another package of the same name earlier on the path hides ours."""
    here = Path(__file__).resolve().parent.parent
    for name, landmark in (("memory", "records.py"), ("tools", "registry.py"), ("prompts", "assistant.md")):
        spec = importlib.util.find_spec(name)
        places = list(spec.submodule_search_locations or []) if spec else []
        if not any((Path(place) / landmark).exists() for place in places):
            where = places[0] if places else "nowhere"
            raise ImportError(
                f"Hachi needs its own package '{name}' (beside {here / 'agent'}), but Python finds {where}. "
                f"Run from another folder, or remove or rename the other '{name}'."
            )


_check_neighbours()
