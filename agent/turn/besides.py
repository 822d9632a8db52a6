"""Add to what an account may read in private: what its linked accounts may read, and the places where the
person wrote and, as the platform or program says, can still read."""

import logging
from dataclasses import replace

from agent.errors import BadInput
from agent.types import TurnRequest
from agent.types.options import Reads
from memory.people.links import Links

log = logging.getLogger("hachi.turn")


async def with_besides(links: Links, request: TurnRequest, reads: Reads | None, *, on: bool) -> TurnRequest:
    """Return the request with these rights to read, by one statement; `on` is the operator's setting.
    Raises BadInput if `reads` is passed where it may not be used."""
    given = bool(reads) and not callable(reads)
    if given and not on:
        raise BadInput("reads: set HACHI_READ_PLACES=true to read other places in private")
    if given and not request.place.private:
        raise BadInput("reads: other places are read only in private; leave out `reads` or `place`")
    if request.user is None or not request.place.private:
        return request
    if not (on and reads):
        accounts = await links.audience(request.user, request.place)
        return replace(request, linked=accounts.besides)
    linked, wrote = await links.with_places(request.user)
    try:
        may = await reads(wrote) if callable(reads) else {one: str(one) for one in wrote if one in reads}
    except Exception as error:
        log.warning("no place is read in private, since the platform does not say which: %s", error)
        may = {}
    return replace(request, linked=linked, reads={one.key: may[one] for one in wrote if one in may})
