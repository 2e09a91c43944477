"""A raw caller of an overloaded server, in a process of its own: starts a call each 20 ms and prints, as JSON, for each
reason of a refusal the milliseconds from the headers of a call to its trailers; those of other calls as "ended".

    refused_caller.py PORT SECONDS LENGTH WIDTH
"""
import contextlib
import json
import os
import sys
import time

import calls
import http2

EVERY_SECONDS = 0.02
AFTER_SECONDS = 2  # for the last calls


def main(port: int, seconds: float, length: int, width: int) -> None:
    # It shares its core with the generator of the load, which is not to delay its clock.
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    connection = http2.Connection(port, window=1 << 24)
    body = calls.encode_request(1, length, width)
    started, begin = {}, time.monotonic()
    due = begin
    while time.monotonic() < begin + seconds and not connection.closed:
        due += EVERY_SECONDS
        sent = time.monotonic()
        stream = connection.start_call(calls.ENCODE, grpc_timeout="1S")
        started[stream] = sent
        connection.send(stream, http2.message(len(body), body), half_close=True)
        connection.pump(max(0.0, due - time.monotonic()))
    connection.pump(AFTER_SECONDS)
    waits = {"ended": []}
    for stream, (at, block) in connection.ended.items():
        reason = http2.value_of(block, "attendant-reason") or "ended"
        waits.setdefault(reason, []).append(1000 * (at - started[stream]))
    print(json.dumps(waits))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
