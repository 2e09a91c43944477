"""Tests of the comparison with other servers: its texts, loops and report, without any server."""
import asyncio
import http.server
import json
import math
import os
import pathlib
import selectors
import sys
import threading
import unittest
import xml.etree.ElementTree

TESTS = pathlib.Path(__file__).parents[2]
sys.path += [str(TESTS / "bench" / "servers"), str(TESTS / "support")]

import load  # noqa: E402
import http_load  # noqa: E402
import process  # noqa: E402
import report  # noqa: E402
import texts  # noqa: E402


class _Clock(selectors.DefaultSelector):
    """Moves its time on instead of waiting."""
    now = 0.0

    def select(self, timeout=None):
        ready = super().select(0)
        if not ready and timeout:
            self.now += timeout
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop whose sleeps take no time; its clock moves on when nothing is left to do."""

    def __init__(self):
        self.clock = _Clock()
        super().__init__(self.clock)

    def time(self) -> float:
        return self.clock.now


def run(make):
    """Returns what the coroutine of make(loop) returns."""
    loop = VirtualTimeLoop()
    try:
        return loop.run_until_complete(make(loop))
    finally:
        loop.close()


def measured(capacity: float, p99: float, extra: dict = {}) -> dict:
    def loop(rate, latency):
        return {"texts_per_s": rate, "p50_ms": latency / 2, "p99_ms": latency, "calls": 100, "failures": {}}

    closed = {"1": loop(capacity / 2, p99 / 2), "8": loop(capacity * 0.9, p99), "32": loop(capacity, p99 * 2)}
    opened = {f"{share * capacity:.6g}": loop(share * capacity, p99 * share) for share in (0.5, 0.8)}
    short = {str(callers): loop(capacity * times, p99) for callers, times in ((1, 1), (8, 2), (32, 3))}
    return {"closed": closed, "short": short, "open": opened | {rate: loop(float(rate), value) for rate, value in extra.items()},
            "capacity": capacity, "memory_bytes": 1e8, "disk_bytes": 2e9, "disk_bytes_for_cpus": 1e9, "ready_s": 2.0,
            "cosine": 0.99999, "settings": "as it comes"}


class Texts(unittest.TestCase):
    def test_a_seed_names_them(self):
        known = texts.sentences()
        self.assertEqual(texts.ragged(known, 50, 3), texts.ragged(known, 50, 3))
        self.assertNotEqual(texts.ragged(known, 50, 3), texts.ragged(known, 50, 4))

    def test_they_are_ragged_and_bounded(self):
        lengths = [len(text.split()) for text in texts.ragged(texts.sentences())]
        self.assertEqual(len(lengths), texts.COUNT)
        self.assertGreater(max(lengths), 5 * sorted(lengths)[len(lengths) // 2])
        self.assertTrue(0 < min(lengths) and max(lengths) <= texts.MOST_WORDS)

    def test_short_ones_have_14_tokens(self):
        short = texts.short()
        self.assertGreater(len(short), 20)
        self.assertEqual({len(ids) for ids in short.values()}, {14})


class Loops(unittest.TestCase):
    def test_a_percentile_counts_failures_as_slowest(self):
        made = load.Load(1, [0.1] * 98, {"refused": 2})
        self.assertEqual(made.percentile(0.5), 0.1)
        self.assertEqual(made.percentile(0.98), 0.1)
        self.assertTrue(math.isinf(made.percentile(0.99)))
        self.assertTrue(math.isinf(load.Load(1).percentile(0.5)))

    def test_a_closed_loop_has_so_many_calls_under_way(self):
        under_way, most = 0, 0

        async def embed(_):
            nonlocal under_way, most
            under_way, most = under_way + 1, max(most, under_way + 1)
            await asyncio.sleep(0.001)
            under_way -= 1

        made = run(lambda _: load.closed_loop(embed, ["a", "b"], 5, 0.1, warm_up=0))
        self.assertEqual(most, 5)
        self.assertAlmostEqual(made.rate, 5000, delta=100)

    def test_an_open_loop_counts_the_wait_for_a_server_that_stands_still(self):
        stood = False

        def stand_still(loop):
            async def embed(_):
                nonlocal stood
                if not stood:
                    stood = True
                    loop.clock.now += 0.3  # nothing else can be sent meanwhile, as with one that blocks its caller

            return load.open_loop(embed, ["a"], 200, 0.4, warm_up=0)

        made = run(stand_still)
        self.assertGreater(made.percentile(0.5), 0.05)
        self.assertAlmostEqual(made.percentile(1), 0.3, delta=0.01)
        self.assertEqual(len(made.latencies), len(list(load.arrivals(200, 0.4, 1))))

    def test_failures_are_told(self):
        async def embed(_):
            await asyncio.sleep(0.001)
            raise ValueError("no")

        made = run(lambda _: load.closed_loop(embed, ["a"], 2, 0.02, warm_up=0))
        self.assertEqual(list(made.failures), ["ValueError: no"])


class _Handler(http.server.BaseHTTPRequestHandler):
    """Answers {"status": …, "headers": …} as it says."""
    protocol_version = "HTTP/1.1"
    connections = 0

    def setup(self):
        type(self).connections += 1
        super().setup()

    def do_POST(self):
        wanted = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(wanted["status"])
        content = b"[1]" * 30000
        for name, value in {"content-length": len(content), **wanted.get("headers", {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        """Nothing."""


class _Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        """The end of a closed loop leaves calls under way."""


def _request(**wanted) -> str:
    body = json.dumps(wanted)
    return f"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}"


@unittest.skipUnless("HTTP_LOAD" in os.environ, "http_load is a target of the build")
class LoadOverHttp(unittest.TestCase):
    def setUp(self):
        class Handler(_Handler):
            """With a count of its own."""

        self._handler = Handler
        self._server = _Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        self.addCleanup(self._server.server_close)
        self.addCleanup(self._server.shutdown)

    def load(self, *requests) -> http_load.HttpLoad:
        return http_load.HttpLoad(pathlib.Path(os.environ["HTTP_LOAD"]), self._server.server_port, list(requests))

    def test_a_closed_loop_keeps_a_connection_for_each_caller(self):
        made = asyncio.run(self.load(_request(status=200)).closed_loop(3, 1, warm_up=0))
        self.assertFalse(made.failures)
        self.assertEqual(made.rate, len(made.latencies))
        self.assertTrue(0 < made.percentile(0.01) <= made.percentile(1) < 1)
        self.assertEqual(self._handler.connections, 3)

    def test_an_open_loop_sends_all_that_is_due(self):
        made = asyncio.run(self.load(_request(status=200)).open_loop(200, 0.3, 1, warm_up=0))
        self.assertEqual(len(made.latencies), len(list(load.arrivals(200, 0.3, 1))))

    def test_failures_are_told(self):
        made = asyncio.run(self.load(_request(status=503)).open_loop(100, 0.1, 1, warm_up=0))
        (why, calls), = made.failures.items()
        self.assertTrue(why.startswith("status 503: [1][1]"), why)
        self.assertEqual(calls, len(list(load.arrivals(100, 0.1, 1))))
        self.assertFalse(made.latencies)

    def test_a_server_may_end_connections(self):
        ends = _request(status=200, headers={"Connection": "close"})
        made = asyncio.run(self.load(ends).open_loop(100, 0.1, 1, warm_up=0))
        self.assertFalse(made.failures)
        self.assertEqual(self._handler.connections, len(made.latencies))

    def test_without_a_server_there_is_an_error(self):
        self._server.server_close()
        with self.assertRaisesRegex(RuntimeError, "connect"):
            asyncio.run(self.load(_request(status=200)).closed_loop(1, 0.1, warm_up=0))


class Figures(unittest.TestCase):
    def test_they_compare_with_the_best_at_its_rate(self):
        found = {"slow": measured(50, 200), "fast": measured(100, 100), "attendant": measured(250, 90, {"80": 20})}
        figures = report.figures(found)
        self.assertEqual(figures["server.over_best.throughput.c32"], 2.5)
        self.assertEqual(figures["server.over_best.throughput.c1"], 2.5)
        self.assertEqual(figures["server.over_best.short.throughput.c8"], 2.5)
        self.assertEqual(figures["server.fast.short.texts_per_s.c32"], 300)
        self.assertEqual(figures["server.over_best.p99.at80"], 20 / (100 * 0.8))
        self.assertEqual(figures["server.fast.p99_ms.half"], 50)

    def test_text_over_ids_is_the_lowest_of_the_ratios(self):
        ours = measured(250, 90) | {"text_over_ids": {"1": 1.2, "8": 0.95, "32": 1.0}}
        figures = report.figures({"attendant": ours})
        self.assertEqual(figures["text.over_ids"], 0.95)
        self.assertEqual(figures["text.over_ids.c1"], 1.2)
        self.assertIn("text.over_ids: 0.950, aim >= 0.93: met", report.table({"attendant": ours}, {}))

    def test_one_other_server_is_not_enough(self):
        found = {"sentence-transformers": measured(90, 100), "fast": measured(100, 100), "slow": {"not_run": "ImportError: x"},
                 "attendant": measured(250, 90, {"80": 20})}
        self.assertFalse([name for name in report.figures(found) if "over_best" in name])
        self.assertIn("slow: not run: ImportError: x", report.table(found, {"cpu": "x"}))

    def test_a_loop_that_failed_has_no_figure(self):
        found = {"fast": measured(100, 100)}
        found["fast"]["closed"]["32"]["p99_ms"] = None
        self.assertNotIn("server.fast.p99_ms.c32", report.figures(found))
        self.assertIn("failed", report.table(found, {}))

    def test_the_plot_is_a_picture_of_its_own(self):
        drawn = xml.etree.ElementTree.fromstring(report.plot({"fast": measured(100, 100), "attendant": measured(250, 90)}))
        self.assertEqual(drawn.tag, "{http://www.w3.org/2000/svg}svg")
        self.assertEqual(len(drawn.findall("{http://www.w3.org/2000/svg}polyline")), 2)


class Disk(unittest.TestCase):
    def test_what_is_for_gpus_is_told_apart(self):
        for name, counts in (("/v/lib/python3.11/site-packages/nvidia/x.so", False),
                             ("/v/triton/lib/python3.11/site-packages/numpy/x.so", True),
                             ("/v/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so", False),
                             ("/v/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so", True)):
            self.assertEqual(process.FOR_GPUS.search(name) is None, counts, name)


if __name__ == "__main__":
    unittest.main()
