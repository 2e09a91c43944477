"""Checks of who can use the page: with a keyboard, on a narrow screen, by names and contrast, with tokens, without REST or models."""
import hashlib
import urllib.error
import urllib.request

from selenium.webdriver.common.keys import Keys

import page_browser
from monitoring_files import Failed, run
from page_load import number
from page_try import choose, numbers, send

LEAST_CONTRAST = 4.5  # of text, by WCAG 2 AA
MOST_STOPS = 80

# Where the focus is: a name, whether it is seen, and whether it is marked.
FOCUS = """
    const at = document.activeElement, box = at.getBoundingClientRect(), style = getComputedStyle(at);
    return {name: at.id || at.textContent.trim(), body: at === document.body,
      seen: box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
      marked: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2};"""

# Elements without a name for those who hear the page, and pictures without one.
NAMELESS = """
    const named = at => at.getAttribute('aria-label') || at.getAttribute('aria-labelledby') || at.textContent.trim() ||
      (at.labels && at.labels.length);
    return [...document.querySelectorAll('input, select, textarea, button, a, [role=img], [role=region], [role=group]')]
      .filter(at => !named(at)).map(at => at.outerHTML.slice(0, 80));"""

# The least contrast of any text that is shown, with that text.
CONTRAST = """
    const parts = colour => colour.match(/[\\d.]+/g).map(Number);
    const light = colour => {
      const [r, g, b] = parts(colour).slice(0, 3).map(part => part / 255)
        .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = at => {
      for (; at; at = at.parentElement) {
        const colour = getComputedStyle(at).backgroundColor, alpha = parts(colour)[3];
        if (alpha === undefined || alpha > 0) return colour;
      }
    };
    let least = [21, ''];
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walk.nextNode(); node; node = walk.nextNode()) {
      const at = node.parentElement;
      if (!node.textContent.trim() || !at.checkVisibility() || at.closest('#tip, noscript')) continue;
      const style = getComputedStyle(at), ink = light(at.ownerSVGElement ? style.fill : style.color), paper = light(behind(at));
      const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
      if (contrast < least[0]) least = [contrast, node.textContent.trim().slice(0, 40)];
    }
    return least;"""


def walk(place, until: str) -> list:
    """Presses Tab until the focus is at `until`, and returns the names of all stops."""
    stops = []
    for _ in range(MOST_STOPS):
        place.browser.tab()
        focus = place.browser.run(FOCUS)
        stops.append(focus["name"])
        if focus["body"] or not (focus["seen"] and focus["marked"]):
            raise Failed(f"the focus after {stops[-2:]} cannot be seen: {focus}")
        if focus["name"] == until:
            return stops
    raise Failed(f"Tab does not lead to {until}: {stops}")


def check_keyboard(place, shared) -> str:
    """With nothing but keys: to the form, a model, an answer, another head, its numbers."""
    browser = place.browser
    place.open(shared)
    browser.wait(lambda: browser.shown("try-form"), "the form")
    browser.wait(lambda: browser.by_id("input").get_attribute("value"), "an example")
    stops = walk(place, "send")
    wanted = ["Skip to the load", "Try it", "Load", "Models", "model", "input", "layer", "send"]
    if [stop for stop in stops if stop in wanted] != wanted:
        raise Failed(f"stops: {stops}")
    browser.run("document.activeElement.blur(); scrollTo(0, 0)")
    place.open(shared)
    browser.wait(lambda: browser.by_id("input").get_attribute("value"), "an example")
    browser.tab()
    browser.press(Keys.ENTER)  # skips to the load
    walk(place, "pause")
    place.open(shared)
    browser.wait(lambda: browser.by_id("input").get_attribute("value"), "an example")
    walk(place, "model")
    browser.press("t")
    browser.wait(lambda: browser.by_id("model").get_attribute("value") == "tiny", "another model")
    browser.wait(lambda: browser.by_id("input").get_attribute("value") == "1, 2, 3, 4", "its example")
    walk(place, "send")
    browser.press(Keys.ENTER)
    browser.wait(lambda: browser.shown("answer"), "an answer")
    walk(place, "head 2")
    browser.press(Keys.SPACE)
    if "head 2" not in browser.text("head-title"):
        raise Failed(f"{browser.text('head-title')} is shown")
    walk(place, "Probabilities")
    browser.press(Keys.ENTER)
    browser.wait(lambda: browser.shown("numbers"), "the numbers")
    if len(numbers(place)) != 4:
        raise Failed("they are not those of 4 tokens")
    return f"{len(stops)} stops to the button, all seen and marked"


def widest(place) -> str:
    """Names what is wider than the screen."""
    return place.browser.run("""
        return [...document.body.querySelectorAll('*')].filter(at => !at.closest('.scroll *') && at.checkVisibility() &&
          at.getBoundingClientRect().right > innerWidth + 1).map(at => at.outerHTML.slice(0, 60)).join('; ')""")


def check_narrow(place, shared) -> str:
    browser = place.browser
    choose(place, shared, "mini", "Token ids")
    browser.resize(page_browser.NARROW)
    send(place)
    widths = browser.run("return [innerWidth, document.documentElement.scrollWidth, document.body.scrollWidth]")
    if widths != 3 * [page_browser.NARROW[0]]:
        raise Failed(f"widths {widths}: {widest(place)}")
    if over := widest(place):
        raise Failed(over)
    # What is wider scrolls within its place, by keys too.
    stuck = browser.run("return [...document.querySelectorAll('.scroll')].filter(at => at.scrollWidth > at.clientWidth && "
                        "at.tabIndex !== 0).map(at => at.id)")
    small = browser.run("return [...document.querySelectorAll('button, input, select, textarea')].filter(at => "
                        "at.checkVisibility() && at.getBoundingClientRect().height < 24).map(at => at.id)")
    if stuck or small:
        raise Failed(f"cannot be scrolled by keys: {stuck}; too small to touch: {small}")
    browser.picture(place.work / "narrow.png")
    for part in ("load", "models-part", "try", "answer"):
        browser.run("document.getElementById(arguments[0]).scrollIntoView()", part)
        browser.picture(place.work / f"narrow-{part}.png", whole=False)
    place.expect_no_complaints()
    return f"{widths[1]} of {widths[0]} pixels"


def check_names_and_contrast(place, shared) -> str:
    browser = place.browser
    found = []
    for dark in (False, True):
        browser.open(shared.url, dark=dark)
        browser.wait(lambda: browser.shown("try-form") and browser.by_id("input").get_attribute("value"), "the form")
        send(place)
        paper = browser.run("return getComputedStyle(document.body).backgroundColor")
        if (paper != "rgb(255, 255, 255)") != dark:
            raise Failed(f"the paper is {paper} in the {'dark' if dark else 'light'}")
        least, text = browser.run(CONTRAST)
        if least < LEAST_CONTRAST:
            raise Failed(f"“{text}” has a contrast of {least:.2f}")
        found.append(f"{least:.1f}")
        browser.picture(place.work / ("dark.png" if dark else "light.png"))
    if nameless := browser.run(NAMELESS):
        raise Failed(f"without a name: {nameless}")
    headings = browser.run("return [...document.querySelectorAll('h1, h2, h3, h4')].map(at => Number(at.tagName[1]))")
    if headings[0] != 1 or any(after > before + 1 for before, after in zip(headings, headings[1:])):
        raise Failed(f"levels of headings: {headings}")
    place.expect_no_complaints()
    return f"least contrast {found[0]} in the light, {found[1]} in the dark"


def check_without_rest(place, _shared) -> str:
    with place.server("--rest=off", name="without-rest") as server:
        place.open(server)
        place.browser.wait(lambda: place.browser.shown("rest-off"), "a word of it")
        place.browser.wait(lambda: place.browser.cells("models")[1:], "the models")
        if place.browser.shown("try-form") or any("/v2" in request["url"] for request in place.browser.requests()):
            raise Failed("the form is offered, or /v2 asked for")
        place.expect_no_complaints()
        return place.browser.text("rest-off")


def secrets(place) -> tuple:
    """Writes a certificate and tokens; returns the server's flags for them, and a token for each scope."""
    key, certificate, tokens = (place.work / name for name in ("page.key", "page.crt", "page.tokens"))
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "7",
        "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate)
    of_scope = {scope: hashlib.sha256(f"{scope} of the page".encode()).hexdigest() for scope in ("infer", "metrics")}
    tokens.write_text("".join(f"{scope} {hashlib.sha256(token.encode()).hexdigest()}\n" for scope, token in of_scope.items()))
    return ["--tls-cert", key.with_suffix(".crt"), "--tls-key", key, "--token-file", tokens], of_scope


def check_tokens(place, _shared) -> str:
    browser = place.browser
    flags, tokens = secrets(place)
    with place.server("--model", "mini=synthetic:minilm-l6", *flags, name="tokens") as server:
        server.url = f"https://127.0.0.1:{server.http}/"
        place.open(server)
        asked = [request["url"] for request in browser.requests()]
        if not browser.shown("access") or any("metrics" in url or "/v2" in url for url in asked):
            raise Failed("numbers are asked for without a token")
        place.expect_no_complaints()
        for metrics, infer, status, trial in (
                ("wrong", "", "valid bearer token", "valid bearer token"), (tokens["metrics"], "", "", "lacks the scope"), (tokens["infer"], "", "lacks the scope", ""),
                (tokens["metrics"], tokens["infer"], "", "")):
            browser.fill("token-metrics", metrics)
            browser.fill("token-infer", infer)
            browser.press(Keys.ENTER)
            browser.wait(lambda: (status in browser.text("status")) if status else not browser.text("status"), f"“{status}”")
            browser.wait(lambda: (trial in browser.text("try-status")) if trial else browser.shown("try-form"), f"“{trial}”")
        browser.wait(lambda: browser.shown("live") and not browser.text("status") and not browser.text("try-status"), "numbers")
        send(place)
        browser.wait(lambda: number(browser.text("tile-tokens")) >= 0 and browser.cells("models")[1:], "the models")
        kept = browser.run("return [localStorage.length, sessionStorage.length, document.cookie, location.href]")
        if kept != [0, 0, "", server.url]:
            raise Failed(f"the page has stored {kept}")
        shown = [request for request in browser.requests() if "Authorization" in request["headers"]]
        if any(not request["url"].startswith(server.url) for request in shown):
            raise Failed("a token was sent elsewhere")
        if any(token in request["url"] for token in tokens.values() for request in browser.requests()):
            raise Failed("a token is in an address")
        if browser.by_id("token-metrics").get_attribute("type") != "password":
            raise Failed("the token can be read on the screen")
        browser.picture(place.work / "tokens.png", whole=False)
        return f"{len(shown)} requests with a token, over TLS"


def check_without_models(place, _shared) -> str:
    empty = place.work / "no-models"
    empty.mkdir(exist_ok=True)
    with place.server("--model-repository", empty, name="without-models") as server:
        place.open(server)
        place.browser.wait(lambda: place.browser.shown("try-none") and place.browser.shown("models-none"), "a word of it")
        place.expect_no_complaints()
        return place.browser.text("try-none")


def check_off(place, _shared) -> str:
    with place.server("--page=off", name="off") as server:
        for path in ("", "page/page.js", "page/facts.json"):
            try:
                urllib.request.urlopen(server.url + path, timeout=30).close()
            except urllib.error.HTTPError as error:
                if error.code == 404:
                    continue
            raise Failed(f"/{path} is served")
        return "404"
