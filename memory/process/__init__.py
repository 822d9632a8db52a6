"""The running process: recording of spans, circuit breakers, and its identity among other processes."""
