"""Serve one model file with llama.cpp, until the parent ends. Run as a script.

The parent writes one line of JSON to stdin: what to serve. Once the server listens, the child writes one line
of JSON to stdout: its URL. stdin closes whenever and however the parent ends.
"""

import json
import os
import sys
import threading
import time
from typing import Any


def main() -> None:
    request, output = json.loads(sys.stdin.readline()), os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # llama.cpp writes its log there
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    sys.path.append(request["packages"])
    server = _serve(request)
    print(json.dumps({"url": server.listening_address}), file=output, flush=True)
    parent = os.getppid()
    while os.getppid() == parent:  # other children of the parent may keep our stdin open
        time.sleep(1)
    os._exit(0)


def _serve(request: dict[str, Any]) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = request["file"]
    params.port = 0  # any that is free
    params.api_keys = [request["key"]]
    params.n_parallel = request["slots"]
    params.n_ctx = request["window"] * request["slots"]
    params.use_jinja = True
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = request["threads"]
    params.cache_ram_mib = 512
    params.verbosity = 1
    return xllamacpp.Server(params)


def _end_with_stdin() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
