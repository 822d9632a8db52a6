"""A circuit breaker: leaves a server that keeps failing alone for a while, then lets one call try again."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Literal

log = logging.getLogger("hachi.breaker")

FAILURES = 3
"""After so many failures in a row a breaker opens, unless it is told otherwise."""
FIRST_PAUSE = timedelta(seconds=2)
"""How long it stays open at first; each failed probe doubles it."""
ABOUT_THE_REQUEST = frozenset({400, 409, 413, 422})
"""HTTP statuses of a server that works and refuses one request."""
LONGEST_PAUSE = timedelta(minutes=1)

State = Literal["closed", "open", "half-open"]


class CircuitOpen(Exception):
    """The call was not made, because the last ones failed."""

    def __init__(self, message: str, until: datetime) -> None:
        super().__init__(message)
        self.until = until
        """When another call may be tried."""


def retry_at(error: BaseException | None) -> datetime | None:
    """When to try again, if the error comes from an open breaker; None if the call itself failed."""
    while error is not None:
        if isinstance(error, CircuitOpen):
            return error.until
        error = error.__cause__
    return None


def _utc_now() -> datetime:
    return datetime.now(UTC)


def _text(error: Exception) -> str:
    return str(error) or type(error).__name__


class Breaker:
    """Guards the calls of one server, from one thread.

    Closed, it lets every call through. After several failures in a row it opens and refuses calls for a
    pause. Then it is half-open: one call goes through as a probe, the others are still refused. If the probe
    succeeds, the breaker closes; if not, the next pause is twice as long, up to `LONGEST_PAUSE`.
    """

    def __init__(
        self, name: str, clock: Callable[[], datetime] = _utc_now, failures: int | None = None
    ) -> None:
        self.name = name
        self._most = failures or FAILURES
        self._clock = clock
        self._failures = 0
        self._pause = FIRST_PAUSE
        self._opened_at: datetime | None = None
        self._probing = False
        self._reason = ""

    @property
    def state(self) -> State:
        if self._opened_at is None:
            return "closed"
        # A clock that was set back must not keep the breaker open.
        waiting = timedelta(0) <= self._clock() - self._opened_at < self._pause
        return "open" if waiting else "half-open"

    def check(self) -> None:
        """Raise CircuitOpen if a call would be refused now."""
        now, opened_at = self._clock(), self._opened_at
        if opened_at is not None and (self._probing or self.state == "open"):
            until = max(opened_at + self._pause, now + FIRST_PAUSE)
            raise CircuitOpen(f"{self._reason} (not tried again before {until:%H:%M:%S} UTC)", until)

    @contextmanager
    def calling(self, blame: Callable[[Exception], str | None] = _text) -> Iterator[None]:
        """Make a call in the block. `blame` returns the reason of a failure of the server, and None for an
        exception with which the server has answered. Raises CircuitOpen if no call may be made now."""
        self.check()
        probing = self._opened_at is not None
        self._probing = self._probing or probing
        try:
            yield
        except Exception as error:
            if reason := blame(error):
                self._failed(reason, probing)
            else:
                self._answered()
            raise
        else:
            self._answered()
        finally:
            if probing:
                self._probing = False

    def _failed(self, reason: str, probing: bool) -> None:
        self._failures += 1
        self._reason = reason
        if probing:
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
        elif self._failures != self._most:  # below, or a call that began before the breaker opened
            return
        else:
            log.warning("the %s is left alone for a while: %s", self.name, reason)
        self._opened_at = self._clock()

    def _answered(self) -> None:
        if self._opened_at is not None:
            log.info("the %s answers again", self.name)
        self._failures, self._pause, self._opened_at = 0, FIRST_PAUSE, None
