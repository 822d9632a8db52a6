"""Stands for the package of this name: its server without a model. A message that holds `crash` ends it."""

import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

ANSWER = json.dumps({"message": "Hello from the file.", "memories": []})
PROPS = {
    "total_slots": 1,
    "default_generation_settings": {"n_ctx": 4096},
    "chat_template_caps": {"supports_tools": True},
}


class CommonParams(SimpleNamespace):
    def __init__(self):
        super().__init__(
            model=SimpleNamespace(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace()
        )


class Server:
    def __init__(self, params):
        content = Path(params.model.path).read_bytes()
        if b"slow" in content:
            time.sleep(1.5)
        if b"damaged" in content:
            print("0.07.482 E gguf_init: the tensor data is cut off", file=sys.stderr, flush=True)
            raise RuntimeError("Failed to init server, please check the input params.")
        Handler.key, Handler.name = params.api_keys[0], params.model.path
        server = ThreadingHTTPServer(("127.0.0.1", params.port), Handler)
        self.listening_address = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()


class Handler(BaseHTTPRequestHandler):
    key = name = ""

    def log_message(self, *_):
        """Nothing is logged."""

    def do_GET(self):
        models = {"data": [{"id": self.name, "owned_by": "llamacpp"}]}
        self._send(PROPS if self.path == "/props" else models)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        if "crash" in body:
            os._exit(9)
        if self.path == "/completion":
            self._send({"timings": {"predicted_per_second": 50.0}})
        elif json.loads(body).get("stream"):
            pieces = [{"delta": {"content": ANSWER[:20]}}, {"delta": {"content": ANSWER[20:]}}]
            chunks = [*pieces, {"delta": {}, "finish_reason": "stop"}]
            lines = "".join(f"data: {json.dumps({'choices': [one]})}\n\n" for one in chunks)
            self._send_text(f"{lines}data: [DONE]\n\n", "text/event-stream")
        else:
            message = {"role": "assistant", "content": ANSWER}
            self._send({"choices": [{"message": message, "finish_reason": "stop"}]})

    def _send(self, body):
        self._send_text(json.dumps(body), "application/json")

    def _send_text(self, text, kind):
        allowed = self.headers.get("authorization") == f"Bearer {self.key}"
        self.send_response(200 if allowed else 401)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(text.encode()) if allowed else 0))
        self.end_headers()
        self.wfile.write(text.encode() if allowed else b"")
