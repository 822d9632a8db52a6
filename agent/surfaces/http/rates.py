"""How often a key may ask: a bucket of tokens each, which fills again steadily."""

from dataclasses import dataclass

MINUTE = 60.0


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class Rates:
    """A minute's worth may be spent at once. `a_minute` of 0 lets everything pass. Each process counts for
    itself."""

    def __init__(self, a_minute: int) -> None:
        self._a_minute = a_minute
        self._buckets: dict[str, _Bucket] = {}

    def spend(self, key: str, now: float) -> float:
        """Take a token; 0.0 where there was one, else the seconds until there is. `now` is in seconds of a
        clock that never goes back."""
        if not self._a_minute:
            return 0.0
        full = float(self._a_minute)
        bucket = self._buckets.setdefault(key, _Bucket(full, now))
        bucket.tokens = min(full, bucket.tokens + (now - bucket.at) * full / MINUTE)
        bucket.at = now
        if bucket.tokens < 1.0:
            return (1.0 - bucket.tokens) * MINUTE / full
        bucket.tokens -= 1.0
        return 0.0
