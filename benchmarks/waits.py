"""How long does somebody else wait while `hachi serve` reads what one person sends?

    python benchmarks/waits.py [--only PART] [--offline] [--all]

Sends each text, list and free object of the OpenAPI document, in six kinds and five sizes, to a server of its
own with a scripted model. Another person asks for /healthz and their memories all the while. Prints the
longest wait of each field beyond that beside a plain message. Exit 1 where one exceeds `LIMIT`, and in three
more tries.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle, product
from pathlib import Path
from statistics import median
from typing import Any, ClassVar
from urllib.parse import quote
from urllib.request import urlopen

LIMIT = 0.050
"""Seconds."""
SIZES = (1_000, 30_000, 100_000, 1_000_000, 3_900_000)
PIECES = {"letters": "a", "spaces": " ", "quotes": '"', "tags": "<!-- ", "brackets": "[", "nested": '[{"a":'}
MARK = '"@@"'
Json = dict[str, Any]
Fill = Callable[[str, int], str]
"""Writes JSON of a kind, of about so many characters."""
Request = tuple[str, str, str, str, Fill]
"""A field; the method, address and body of its request, one of them with a mark; what fills the mark."""
Made = tuple[str, str, bytes, dict[str, str]]
"""Method, address, body and headers."""


def text(kind: str, size: int) -> str:
    return json.dumps((PIECES[kind] * (size // len(PIECES[kind]) + 1))[:size])


def free(kind: str, size: int) -> str:
    if kind == "nested":  # as a schema, twice the work for each level
        return '{"allOf":[' * (size // 44) + "{}" + '],"unevaluatedProperties":false}' * (size // 44)
    if kind == "letters":
        return '{"properties":{' + ",".join(f'"a{n}":{{"type":"array"}}' for n in range(size // 26)) + "}}"
    return '{"a":[' + "[]," * (size // 3) + "[]]}" if kind == "brackets" else f'{{"a":{text(kind, size)}}}'


def sample(schema: Json, parts: Json) -> Any:
    schema = parts[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    given = schema.get("examples") or schema.get("enum") or [schema.get("const", schema.get("example"))]
    if given[0] is not None or "anyOf" in schema:
        return given[0] if given[0] is not None else sample(schema["anyOf"][0], parts)
    if schema.get("type") == "object":
        return {name: sample(schema["properties"][name], parts) for name in schema.get("required", ())}
    return [sample(schema["items"], parts)] if schema.get("type") == "array" else "a"


def places(schema: Json, parts: Json, name: str = "") -> Iterator[tuple[str, Any, Fill]]:
    """Yield each place of a schema, with a value that has a mark there and with what fills it."""
    schema = parts[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    for one in schema.get("anyOf", ()):
        yield from places(one, parts, name)
    if schema.get("type") == "string" and "const" not in schema:
        yield name, MARK[1:-1], text
    elif schema.get("type") == "array":
        each = json.dumps(sample(schema["items"], parts))
        yield name + "[]", MARK[1:-1], lambda _, size: f"[{each}{f',{each}' * (size // (len(each) + 1))}]"
        for inner, value, fill in places(schema["items"], parts, name + "[]"):
            yield inner, [value], fill
    elif "properties" in schema:
        for part, field in schema["properties"].items():
            for inner, value, fill in places(field, parts, f"{name}.{part}"):
                yield inner, sample(schema, parts) | {part: value}, fill
    elif schema.get("type") == "object":
        yield name + "{}", MARK[1:-1], free


def requests(document: Json) -> Iterator[Request]:
    for address, methods in document["paths"].items():
        plain = address.replace("{user}", "eve").replace("{sessionId}", "eve")
        for method, operation in methods.items():
            about = f"{method.upper()} {address}"
            for one in (one for one in operation.get("parameters", ()) if one["in"] != "header"):
                asked = f"?{one['name']}={MARK}" if one["in"] == "query" else ""
                marked = address.replace(f"{{{one['name']}}}", MARK) + asked
                yield f"{about} {one['name']}", method, marked, "", text
            for kind, body in operation.get("requestBody", {}).get("content", {}).items():
                for name, value, fill in places(body["schema"], document["components"]["schemas"]):
                    if kind == "application/json":
                        yield about + f" {name}", method, plain, json.dumps(value), fill
                    for ending in () if kind == "application/json" else ("md", "html", "pdf", "txt"):
                        yield f"{about} .{ending}", method, plain.replace("{name}", f"a.{ending}"), "@@", text
    for name in ("x-openwebui-user-id", "x-openwebui-user-name", "x-openwebui-chat-id"):
        yield name, "get", "/api/users/eve/tasks", name, text


def made(request: Request, kind: str, size: int) -> Made:
    """Make it before the clock starts, since this keeps the program that measures busy."""
    _, method, address, body, fill = request
    content, headers = fill(kind, size), {"x-openwebui-user-id": "eve", "content-type": "application/json"}
    if body.startswith("x-"):
        headers, body = {body: json.loads(content)}, ""
    raw = body == "@@"
    said = body.replace(MARK, content)
    if raw:
        said = "%PDF-1.4\n" * address.endswith("pdf") + json.loads(content)
    address = address.replace(MARK, quote(json.loads(content))) if MARK in address else address
    return method.upper(), address.replace("{", "%7B"), said.encode(), headers


def send(port: int, method: str, address: str, said: bytes, headers: dict[str, str]) -> int:
    """Send it, and return the status; 0 where the server closed the connection."""
    with suppress(OSError, HTTPException), closing(HTTPConnection("127.0.0.1", port, timeout=120)) as server:
        server.request(method, address, said or None, headers)
        return server.getresponse().status
    return 0


class Scripted(BaseHTTPRequestHandler):
    """Answers as a model would."""

    MESSAGE: ClassVar = {"role": "assistant", "content": '{"message": "I see.", "memories": []}'}
    CHOICES: ClassVar = [{"index": 0, "message": MESSAGE, "finish_reason": "stop"}]
    WHOLE: ClassVar = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": CHOICES}

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(self.WHOLE).encode())

    def log_message(self, *_: Any) -> None:
        """Nothing."""


class Other(threading.Thread):
    """Another person, who asks without end."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.port, self.longest, self.asked = port, 0.0, 0

    def run(self) -> None:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=300)
        with suppress(OSError, HTTPException):  # the server has been ended
            for address in cycle(("/healthz", "/api/users/ada/memories?limit=1")):
                began = time.perf_counter()
                connection.request("GET", address)
                connection.getresponse().read()
                self.longest, self.asked = max(self.longest, time.perf_counter() - began), self.asked + 1
                time.sleep(0.001)

    def wait_during(self, work: Callable[[], Any]) -> float:
        """The longest wait while this is done, and for two questions more."""
        self.longest = 0.0
        work()
        until = self.asked + 3
        while self.asked < until and self.is_alive():
            time.sleep(0.001)
        return self.longest


def main() -> None:
    parser = argparse.ArgumentParser()
    for option in ("--offline", "--all"):
        parser.add_argument(option, action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    model = ThreadingHTTPServer(("127.0.0.1", 0), Scripted)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    with socket.socket() as free_port:
        free_port.bind(("127.0.0.1", 0))
        port = free_port.getsockname()[1]
    with tempfile.TemporaryDirectory() as home:
        given = {"HACHI_HOME": home, "HACHI_EMBEDDER": "bundled", "HACHI_HTTP_RATE": "0"}
        if not options.offline:
            given |= {"OPENAI_BASE_URL": f"http://127.0.0.1:{model.server_port}/v1", "HACHI_MODEL": "m"}
        command = [str(Path(sys.executable).with_name("hachi")), "serve", "--port", str(port)]
        server = subprocess.Popen(command, env=os.environ | given, stdout=subprocess.DEVNULL)
        try:
            sys.exit(measure(port, options.only, shown=options.all))
        finally:
            server.terminate()
            server.wait()


def measure(port: int, only: str, *, shown: bool) -> int:
    """Print the table, and return 1 if somebody waited too long."""
    message = json.dumps({"messages": [{"role": "user", "content": MARK[1:-1]}]})
    said = made(("", "post", "/v1/chat/completions", message, text), "letters", 1_000)
    plain = partial(send, port, *said)
    while plain() != 200:
        time.sleep(0.1)
    other = Other(port)
    other.start()
    usual = median(other.wait_during(plain) for _ in range(20))
    print(f"{1000 * usual:8.0f} ms  beside a plain message; the others are beyond that")
    with urlopen(f"http://127.0.0.1:{port}/openapi.json") as answer:
        document = json.load(answer)
    late, chosen = 0, [one for one in requests(document) if only in one[0]]
    if not chosen:
        sys.exit(f"no field's name contains {only!r}; --all with a part of a path shows them")
    for request in chosen:
        waits = {
            given: other.wait_during(partial(send, port, *made(request, *given)))
            for given in product(PIECES, SIZES)
        }
        worst = max(waits, key=waits.__getitem__)
        again = 3 if waits[worst] - usual > LIMIT else 0
        sending = partial(send, port, *made(request, *worst)) if again else plain
        least = min([waits[worst], *(other.wait_during(sending) for _ in range(again))])
        late |= least - usual > LIMIT
        if shown or least - usual > LIMIT:
            wait = f"{1000 * (least - usual):8.0f} ms"
            print(f"{wait}  {request[0]}: {worst[0]}, {worst[1]:,} characters", flush=True)
    return late


if __name__ == "__main__":
    main()
