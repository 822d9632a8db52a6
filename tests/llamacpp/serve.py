"""llama.cpp's HTTP server with one model, until it is ended: `serve.py MODEL PORT '{"n_ctx": 4096, …}'`.

Runs in the environment that `make test-llamacpp` makes. One thread: on busy cores it is the fastest number.
"""

import json
import signal
import sys
from pathlib import Path

import xllamacpp

model, port, given = sys.argv[1:]
options = json.loads(given)
parameters = xllamacpp.CommonParams()
parameters.model.path = model
parameters.port = int(port)
parameters.use_jinja = True
parameters.model_alias = {"smol"}
parameters.n_parallel = options.pop("slots", 1)
parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
parameters.sampling.seed = 7
if template := options.pop("template", None):
    parameters.chat_template = (Path(__file__).parent / template).read_text(encoding="utf-8")
for name, value in options.items():
    setattr(parameters, name, value)
server = xllamacpp.Server(parameters)
signal.pause()
