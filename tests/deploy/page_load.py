"""Checks of what the page shows of the server's load, models and memory."""
import contextlib
import json
import pathlib
import re
import subprocess
import time
import urllib.request

from monitoring_files import Failed
from ports import free_port

SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.M)
LABEL = re.compile(r'(\w+)="([^"]*)"')


def scrape(server) -> dict:
    """Returns {name: [(labels, value)]} of /metrics."""
    with urllib.request.urlopen(server.url + "metrics", timeout=30) as answer:
        text = answer.read().decode()
    series = {}
    for name, labels, value in SAMPLE.findall(text):
        series.setdefault(name, []).append((dict(LABEL.findall(labels)), float(value)))
    return series


def total(series: dict, name: str, **wanted) -> float:
    return sum(value for labels, value in series.get(name, []) if wanted.items() <= labels.items())


def number(text: str) -> float:
    """The number that a text of the page begins with; 0 for none."""
    found = re.match(r"[\d,.]+", text)
    return float(found.group().replace(",", "")) if found else 0


def quantile(share: float, buckets: list) -> float:
    """Prometheus' histogram_quantile of [(bound, count up to it)]."""
    rank = share * buckets[-1][1]
    below, least = 0, 0.0
    for bound, upto in buckets:
        if upto >= rank:
            return least if bound == float("inf") else least + (bound - least) * (rank - below) / (upto - below)
        below, least = upto, bound
    raise AssertionError("no bucket has the rank")


@contextlib.contextmanager
def loaded(place, server, *commands):
    """Runs load-test of each command while the block runs, and at least until it has begun to be answered."""
    running = [subprocess.Popen([str(part) for part in server.client(place.client, ["load-test", "--warmup", "0", *command])],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for command in commands]
    try:
        place.browser.wait(lambda: total(scrape(server), "attendant_requests_total") > 0, "a first answer")
        yield
    finally:
        for one in running:
            one.kill()
            one.wait()


def check_requests(place, shared) -> str:
    place.open(shared)
    place.browser.wait(lambda: place.browser.by_id("model").get_attribute("value"), "the models in the form")
    urls = [request["url"] for request in place.browser.requests()]
    foreign = [url for url in urls if not url.startswith(shared.url)]
    if foreign or shared.url + "page/page.js" not in urls:
        raise Failed(f"asked for {foreign or urls}")
    place.expect_no_complaints()
    with urllib.request.urlopen(shared.url, timeout=30) as answer:
        policy = answer.headers["Content-Security-Policy"]
    if "unsafe" in policy or "default-src 'none'" not in policy:
        raise Failed(policy)
    # That the policy is kept, and that a breach would be seen here.
    place.browser.run("const made = document.createElement('div'); made.setAttribute('style', 'color: red'); "
                      "document.body.append(made); new Image().src = 'https://example.org/x.png'")
    breaches = place.browser.wait(lambda: [text for text in place.browser.complaints() if "Content Security Policy" in text],
                                  "a complaint of a breach")
    return f"{len(set(urls))} addresses, all of the port; {len(breaches)} deliberate breaches refused"


def check_quiet(place, _shared) -> str:
    with place.server(name="quiet") as server:
        place.open(server)
        if not place.browser.shown("quiet") or place.browser.text("quiet") != "No calls yet.":
            raise Failed("it does not say that there are no calls yet")
        place.browser.wait(lambda: place.browser.text("tile-requests") == "0", "a rate of 0")
        if place.browser.text("tile-p50") != "–" or not place.browser.shown("refusals-none"):
            raise Failed(f"p50 is {place.browser.text('tile-p50')}")
        place.expect_no_complaints()
        place.browser.picture(place.work / "quiet.png")
        return "no calls yet, and no number that would look like one"


def check_arithmetic(place, shared) -> str:
    """The page's modules on text of this file, and on a real scrape, against this file's own arithmetic."""
    place.open(shared)
    buckets = [[0.001, 3], [0.01, 10], [0.1, 40], [float("inf"), 41]]
    text = "\n".join(["# HELP x A text.", r'x{a="q\"\\\n,}",b="2"} 1.5', 'x{b="3"} +Inf', "y 7 1700000000"])
    found = place.browser.run_module(f"""
        const {{parseExposition}} = await import("/page/exposition.js");
        const {{quantile}} = await import("/page/history.js");
        const series = parseExposition({json.dumps(text)});
        const bounds = [0.001, 0.01, 0.1, Infinity], counts = [3, 10, 40, 41];
        return {{label: series.x[0].labels.a, infinite: series.x[1].value === Infinity, y: series.y[0].value,
          quantiles: [0.01, 0.5, 0.9, 0.99, 1].map(share => quantile(share, {{bounds, counts, count: 41}})),
          none: quantile(0.5, {{bounds, counts: [0, 0, 0, 0], count: 0}})}};""")
    wanted = [quantile(share, buckets) for share in (0.01, 0.5, 0.9, 0.99, 1)]
    if found["label"] != 'q"\\\n,}' or not found["infinite"] or found["y"] != 7 or found["none"] is not None:
        raise Failed(str(found))
    if any(abs(one - other) > 1e-12 for one, other in zip(found["quantiles"], wanted, strict=True)):
        raise Failed(f"{found['quantiles']} instead of {wanted}")
    counted = place.browser.run_module("""
        const {parseExposition} = await import("/page/exposition.js");
        const series = parseExposition(await (await fetch("/metrics")).text());
        return Object.values(series).reduce((sum, one) => sum + one.length, 0);""")
    samples = sum(map(len, scrape(shared).values()))
    if abs(counted - samples) > 0.05 * samples:
        raise Failed(f"{counted} samples read of {samples}")
    return f"{len(wanted)} quantiles, {counted} samples"


def check_live(place, shared) -> str:
    browser = place.browser
    place.open(shared)
    commands = (["--model", "tiny", "--rate", "80", "--batch", "4", "--padded", "--lengths", "4..32", "--duration", "60s"],
                ["--model", "mini", "--rate", "5", "--lengths", "16..64", "--duration", "60s"])
    with loaded(place, shared, *commands):
        browser.wait(lambda: 76 <= number(browser.text("tile-requests")) <= 94, "a rate of about 85 requests a second")
        before, begin = scrape(shared), time.monotonic()
        first = browser.text("tile-tokens")
        browser.wait(lambda: browser.text("tile-tokens") != first, "another number of tokens")
        browser.wait(lambda: time.monotonic() - begin > 11, "the end of ten seconds")
        after, seconds = scrape(shared), time.monotonic() - begin
        shown = {name: browser.text(f"tile-{name}") for name in ("requests", "tokens", "p50", "p99", "padding")}
        browser.picture(place.work / "wide.png")
        charts = browser.run("return [...document.querySelectorAll('.charts svg[role=img]')].map(svg => svg.getAttribute('aria-label'))")
    grown = {name: (total(after, f"attendant_{name}") - total(before, f"attendant_{name}")) / seconds
             for name in ("requests_total", "tokens_total")}
    for tile, name in (("requests", "requests_total"), ("tokens", "tokens_total")):
        if abs(number(shown[tile]) - grown[name]) > 0.15 * grown[name]:
            raise Failed(f"{shown[tile]} {tile} a second, and {grown[name]:.1f} by /metrics")
    if not all(shown.values()) or "–" in shown.values() or len(charts) != 7:
        raise Failed(f"{shown}, {charts}")
    memory = {row[0]: row[1] for row in browser.cells("memory")}
    weights = total(after, "attendant_model_bytes", part="weights") / 2 ** 20
    if abs(number(memory["model weights"]) - weights) > 0.01 * weights:
        raise Failed(f"weights are {memory['model weights']}, and {weights:.1f} MiB by /metrics")
    place.expect_no_complaints()
    return ", ".join(f"{name} {value}" for name, value in shown.items())


def check_refusals(place, _shared) -> str:
    with place.server("--model", "mini=synthetic:minilm-l6", "--max-inflight", "8", "--max-queue-requests", "2",
                      name="full") as server:
        place.open(server)
        with loaded(place, server, ["--model", "mini", "--concurrency", "12", "--lengths", "128", "--duration", "60s"]):
            place.browser.wait(lambda: len(place.browser.cells("refusals")) > 1 and number(place.browser.text("tile-refused")) > 0,
                               "a refusal on the page")
        counted = scrape(server)["attendant_refusals_total"]
        wanted = {}
        for labels, value in counted:
            wanted[labels["reason"]] = wanted.get(labels["reason"], 0) + value

        def same() -> bool:
            rows = place.browser.run("return [...document.querySelectorAll('#refusals tbody tr')].map(row => "
                                     "[row.querySelector('b').textContent, row.children[2].textContent])")
            return {name: number(text) for name, text in rows} == wanted

        place.browser.wait(same, f"a table with {wanted}")
        place.expect_no_complaints()
        return ", ".join(f"{name}: {value:.0f}" for name, value in wanted.items())


def check_models(place, shared) -> str:
    place.open(shared)
    series = scrape(shared)
    infos = [labels for labels, _ in series["attendant_model_info"]]
    rows = place.browser.cells("models")[1:]
    if sorted(row[0] for row in rows) != sorted(info["model"] for info in infos):
        raise Failed(f"{rows}")
    for info in infos:
        row = next(row for row in rows if row[0] == info["model"])
        products = total(series, "attendant_cost_flops_per_second", model=info["model"], part="products") / 1e9
        if row[2] != info["family"] or row[3] != info["compute_type"] or abs(number(row[7]) - products) > 0.01 * products:
            raise Failed(f"{row}, and by /metrics {info}, {products:.2f} GFLOP/s")
    return f"{len(rows)} models with compute types and costs"


def check_restart(place, _shared) -> str:
    browser, port = place.browser, str(free_port())
    with place.server("--http-port", port, name="before") as server:
        place.open(server)
        browser.wait(lambda: browser.upcoming() == (1, 0), "a timer for the next request")
        browser.by_id("pause").click()
        browser.wait(lambda: browser.upcoming()[1] == 0, "the answer to a request under way")
        asked = len(browser.requests())
        if browser.upcoming() != (0, 0) or browser.text("pause") != "Resume":
            raise Failed("a paused page goes on asking")
        browser.by_id("pause").click()
        browser.wait(lambda: len(browser.requests()) > asked, "another request")
    browser.wait(lambda: "cannot be reached" in browser.text("status"), "a word of the lost server")
    empty = place.work / "none-yet"
    empty.mkdir(exist_ok=True)
    with place.server("--http-port", port, "--model-repository", empty, name="between"):
        browser.wait(lambda: not browser.text("status") and browser.shown("models-none") and browser.shown("try-none"),
                     "a word of the missing models")
    with place.server("--http-port", port, "--model", "other=worked-example", name="after"):
        browser.wait(lambda: not browser.text("status") and browser.shown("try-form") and [row[0] for row in browser.cells("models")][1:] == ["other"],
                     "the new server")
        browser.wait(lambda: browser.by_id("model").get_attribute("value") == "other", "the new model in the form")
    return "without a reload"
