"""Stop calls to a server that keeps failing, and let one call try again later.

Requests count, not the attempts of a request. While several people use the server, the failures of one person
do not open the breaker, because the fault may be in that person's requests.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

log = logging.getLogger("hachi.breaker")

FAILURES = 3
"""By default a breaker opens after this many failed requests in a row …"""
PEOPLE = 2
"""… from this many people, if as many are active. One is enough if a single failure opens it."""
ACTIVE = timedelta(minutes=5)
"""How long a person counts as active after a call."""
FIRST_PAUSE = timedelta(seconds=2)
"""How long it stays open at first; each failed probe doubles it."""
ABOUT_THE_REQUEST = frozenset({400, 409, 413, 422})
"""HTTP statuses of a server that works and refuses one request."""
LONGEST_PAUSE = timedelta(minutes=1)

State = Literal["closed", "open", "half-open"]


class NotNow(Exception):
    """The call was not made."""

    def __init__(self, message: str, until: datetime, seconds: float | None = None) -> None:
        super().__init__(message)
        self.until, self.seconds = until, seconds
        """The time, and the seconds, until another call may be tried."""


class CircuitOpen(NotNow):
    """The last calls failed."""


def retry_at(error: BaseException | None) -> datetime | None:
    """Return when to try again if the breaker refused the call; None if the call itself failed."""
    while error is not None:
        if isinstance(error, NotNow):
            return error.until
        error = error.__cause__
    return None


@dataclass(frozen=True, eq=False, slots=True)
class Request:
    """A request, which may make several calls."""

    person: str | None


_request: ContextVar[Request | None] = ContextVar("request", default=None)


@contextmanager
def calls_for(person: str | None) -> Iterator[None]:
    """Count the calls in the block as one request of this person. Other calls are requests of nobody."""
    token = _request.set(Request(person))
    try:
        yield
    finally:
        _request.reset(token)


def utc_now() -> datetime:
    return datetime.now(UTC)


def _text(error: Exception) -> str:
    return str(error) or type(error).__name__


class Breaker:
    """Guards the calls of one server, from one thread.

    After several failed requests in a row it opens and refuses calls for a pause; then one probe goes
    through. If that fails, the next pause is twice as long, up to `LONGEST_PAUSE`, and twice that for whoever
    probed, so that somebody else may go first.
    """

    def __init__(
        self, name: str, clock: Callable[[], datetime] = utc_now, failures: int | None = None
    ) -> None:
        self.name = name
        self._most = failures or FAILURES
        self.clock = clock
        self.answered = 0
        """How many calls the server has answered."""
        self._failures: set[Request] = set()
        """The requests that failed since the last answer, at most as many as open the breaker …"""
        self._failed_for: set[str | None] = set()
        """… and the people of all failed requests."""
        self._seen: dict[str | None, datetime] = {}
        """The time of each person's last call, oldest first."""
        self._probed_by: str | None = None
        self._pause = FIRST_PAUSE
        self._opened_at: datetime | None = None
        self._probing = False
        self._reason = ""

    @property
    def state(self) -> State:
        if self._opened_at is None:
            return "closed"
        # A clock that was set back must not keep the breaker open.
        waiting = timedelta(0) <= self.clock() - self._opened_at < self._pause
        return "open" if waiting else "half-open"

    def check(self) -> None:
        """Raise CircuitOpen if a call would be refused now."""
        request, now, opened_at = _request.get(), self.clock(), self._opened_at
        if opened_at is None:
            return
        goes_last = request and request.person == self._probed_by and len(self._active()) > 1
        ends = opened_at + self._pause * (2 if goes_last else 1)
        if self._probing or opened_at <= now < ends:
            until = max(ends, now + FIRST_PAUSE)
            why = f"{self._reason} (not tried again before {until:%H:%M:%S} UTC)"
            raise CircuitOpen(why, until, (until - now).total_seconds())

    @contextmanager
    def calling(self, blame: Callable[[Exception], str | None] = _text) -> Iterator[None]:
        """Make a call in the block. `blame` returns the reason of a failure of the server; None if it has
        answered. Raises CircuitOpen."""
        self.check()
        request = _request.get() or Request(None)
        self._seen.pop(request.person, None)
        self._active()[request.person] = self.clock()
        probing = self._opened_at is not None
        self._probing = self._probing or probing
        try:
            yield
        except Exception as error:
            if reason := blame(error):
                self._failed(request, reason, probing)
            else:
                self._answered()
            raise
        else:
            self._answered()
        finally:
            if probing:
                self._probing = False

    def _failed(self, request: Request, reason: str, probing: bool) -> None:
        self._reason = reason
        if probing:
            self._pause, self._probed_by = min(2 * self._pause, LONGEST_PAUSE), request.person
        elif self._opened_at is not None or not self._enough(request):
            return  # it began before the breaker opened, or there are too few failures
        else:
            log.warning("the %s is left alone for a while: %s", self.name, reason)
        self._opened_at = self.clock()

    def _enough(self, request: Request) -> bool:
        """Return whether this failed request and those before it open the breaker."""
        if len(self._failures) < self._most:
            self._failures.add(request)
        self._failed_for.add(request.person)
        people = min(self._most, PEOPLE, len(self._active()))
        return len(self._failures) == self._most and len(self._failed_for) >= people

    def _active(self) -> dict[str | None, datetime]:
        now = self.clock()
        while self._seen and abs(now - next(iter(self._seen.values()))) >= ACTIVE:
            del self._seen[next(iter(self._seen))]
        return self._seen

    def _answered(self) -> None:
        self.answered += 1
        if self._opened_at is not None:
            log.info("the %s answers again", self.name)
        self._failures, self._failed_for, self._probed_by = set(), set(), None
        self._pause, self._opened_at = FIRST_PAUSE, None
