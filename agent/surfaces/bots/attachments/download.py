"""Fetch files from a platform's own hosts, within a limit of bytes and time."""

from collections.abc import Callable, Mapping
from urllib.parse import urljoin, urlsplit

import aiohttp

from agent.surfaces.bots.attachments.attachment import Unreadable

TIMEOUT = aiohttp.ClientTimeout(total=60, sock_connect=10, sock_read=20)
MOST_REDIRECTS = 3
NOT_FETCHED = "it could not be fetched"


def is_at(url: str, hosts: tuple[str, ...], here: str) -> bool:
    """Return whether a URL is at one of these hosts or below it, by https, or where the API is set to be."""
    where, api = urlsplit(url), urlsplit(here)
    if (where.scheme, where.hostname, where.port) == (api.scheme, api.hostname, api.port):
        return True
    return where.scheme == "https" and f".{where.hostname}".endswith(hosts)


async def download(
    url: str, most: int, may_ask: Callable[[str], bool], headers: Mapping[str, str] | None = None
) -> bytes:
    """Return what is at the URL. Each address on the way is one that we `may_ask`; no other one gets the
    headers, or a request. Raises Unreadable, and what aiohttp raises."""
    async with aiohttp.ClientSession(timeout=TIMEOUT) as session:
        for _ in range(MOST_REDIRECTS + 1):
            if not may_ask(url):
                raise Unreadable("it is stored outside the platform")
            async with session.get(url, headers=headers, allow_redirects=False) as answer:
                if answer.status in (301, 302, 303, 307, 308):
                    url = urljoin(url, answer.headers.get("location", ""))
                    continue
                # in place of a file that it does not grant, Slack returns a page
                if answer.status != 200 or answer.content_type == "text/html":
                    raise Unreadable(NOT_FETCHED)
                content = bytearray()
                async for piece in answer.content.iter_chunked(65_536):
                    content += piece
                    if len(content) > most:
                        raise Unreadable(too_large(most))
                return bytes(content)
    raise Unreadable(NOT_FETCHED)


def too_large(most: int) -> str:
    return f"more than {most // 1_000_000} MB" if most >= 1_000_000 else f"more than {most // 1_000} kB"
