"""A model and where it is, as one text: `NAME@https://base/v1`, `NAME@PROVIDER`, or NAME alone."""

from typing import Literal, NamedTuple, get_args

ProviderName = Literal["openai", "mistral", "ollama", "vllm", "llamacpp", "lmstudio", "openrouter"]


class ModelAddress(NamedTuple):
    name: str
    base_url: str | None = None
    provider: str | None = None

    @classmethod
    def parse(cls, written: str) -> "ModelAddress":
        """Raises ValueError."""
        written = written.strip()
        for scheme in ("@https://", "@http://"):
            name, at, rest = written.partition(scheme)
            if name and rest:
                return cls(name, f"{at[1:]}{rest}")
        name, _, where = written.rpartition("@")
        if not name:  # some names begin with @
            return cls(written)
        if where not in get_args(ProviderName):
            raise ValueError(f"after @ stands a base URL or one of {', '.join(get_args(ProviderName))}")
        return cls(name, provider=where)


def checked(written: str) -> str:
    ModelAddress.parse(written)
    return written
