"""A model and its server in one text: `NAME@https://base/v1`, `NAME@PROVIDER`, or only NAME."""

from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple, get_args

ProviderName = Literal["openai", "mistral", "ollama", "vllm", "llamacpp", "lmstudio", "openrouter"]


class ModelAddress(NamedTuple):
    name: str
    base_url: str | None = None
    provider: str | None = None

    @classmethod
    def parse(cls, written: str) -> "ModelAddress":
        """Parse ``NAME@https://base/v1``, ``NAME@PROVIDER`` or ``NAME``. Raises ValueError."""
        written = written.strip()
        if names_file(written):
            return cls(written)
        for scheme in ("@https://", "@http://"):
            name, at, rest = written.partition(scheme)
            if name and rest:
                return cls(name, f"{at[1:]}{rest}")
        name, _, where = written.rpartition("@")
        if not name:  # a name may begin with @
            return cls(written)
        if where not in get_args(ProviderName):
            raise ValueError(f"after @ stands a base URL or one of {', '.join(get_args(ProviderName))}")
        return cls(name, provider=where)


def names_file(written: str) -> bool:
    """Return whether a model's name is the path of a file."""
    return written.lower().endswith(".gguf") or written.startswith(("/", "~/", "./", "../"))


def servable(file: Path) -> Path:
    """Return the model file if it can be served here. Raises ValueError."""
    try:
        with file.open("rb") as opened:
            magic = opened.read(4)
    except OSError as error:
        raise ValueError(f"{file} cannot be read ({error.strerror})") from error
    if magic != b"GGUF":
        raise ValueError(f"{file} is no GGUF file")
    if find_spec("xllamacpp") is None:
        raise ValueError(f"to serve {file.name} here, run `pip install -e '.[local]'` in the clone")
    return file


def checked(written: str) -> str:
    ModelAddress.parse(written)
    return written
