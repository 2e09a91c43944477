"""A headless Chromium that keeps account of what a page asks for and complains of."""
import contextlib
import json
import time

from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from monitoring_files import Failed

WAIT_SECONDS = 30
WIDE, NARROW = (1280, 900), (360, 740)
FLAGS = ("--headless=new", "--no-sandbox", "--disable-background-networking", "--disable-component-update", "--no-first-run",
         "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
# Keeps in window.upcoming what a page has still to do by itself: its timers, and its requests without an answer.
FOLLOW = """
window.upcoming = {timers: new Set(), requests: 0};
const {setTimeout: set, clearTimeout: clear, fetch: ask} = window;
window.setTimeout = (call, ...rest) => {
  const timer = set((...given) => { upcoming.timers.delete(timer); call(...given); }, ...rest);
  upcoming.timers.add(timer);
  return timer;
};
window.clearTimeout = timer => { upcoming.timers.delete(timer); clear(timer); };
window.fetch = (...given) => {
  ++upcoming.requests;
  return ask(...given).finally(() => --upcoming.requests);
};
"""


class Browser:
    """One window. Numbers of requests and complaints are those since the last `open`."""

    def __init__(self, driver):
        self.driver = driver
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": FOLLOW})
        self._requests, self._complaints = [], []

    def open(self, url: str, size: tuple = WIDE, dark: bool = False) -> None:
        self.take_logs()
        self._requests, self._complaints = [], []
        self.resize(size)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
        self.driver.get(url)

    def resize(self, size: tuple) -> None:
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size == NARROW})

    def take_logs(self) -> None:
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                self._requests.append(message["params"]["request"])
        self._complaints += [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list:
        """Returns {url, method, headers, …} of each request."""
        self.take_logs()
        return self._requests

    def complaints(self) -> list:
        """Returns what the console says: errors, and breaches of the policy."""
        self.take_logs()
        return self._complaints

    def run(self, script: str, *arguments):
        return self.driver.execute_script(script, *arguments)

    def run_module(self, script: str):
        """Runs the body of an asynchronous function, and returns its result."""
        found = self.driver.execute_async_script(
            f"const done = arguments[0]; (async () => {{ {script} }})().then(value => done({{value}}), "
            "error => done({error: String(error)}));")
        if "error" in found:
            raise Failed(found["error"])
        return found.get("value")

    def upcoming(self) -> tuple:
        """Returns the numbers of the page's timers, and of its requests without an answer."""
        return tuple(self.run("return [upcoming.timers.size, upcoming.requests]"))

    def by_id(self, name: str):
        return self.driver.find_element(By.ID, name)

    def text(self, name: str) -> str:
        return self.by_id(name).text

    def shown(self, name: str) -> bool:
        return self.by_id(name).is_displayed()

    def fill(self, name: str, text: str) -> None:
        place = self.by_id(name)
        place.clear()
        place.send_keys(text)

    def press(self, *keys) -> None:
        webdriver.ActionChains(self.driver).send_keys(*keys).perform()

    def tab(self) -> None:
        self.press(Keys.TAB)

    def move_to(self, element) -> None:
        webdriver.ActionChains(self.driver).move_to_element(element).perform()

    def cells(self, table: str) -> list:
        """Returns the texts of a table's rows, whose first is its head."""
        return self.run("return [...document.querySelectorAll(`#${arguments[0]} tr`)].map(row => "
                        "[...row.children].map(cell => cell.textContent))", table)

    def wait(self, condition, what: str):
        """Polls until `condition` returns something true, which it returns."""
        end = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < end:
            with contextlib.suppress(WebDriverException):
                if result := condition():
                    return result
            time.sleep(0.05)
        raise Failed(f"{what} did not happen; the page says: {self.driver.find_element(By.TAG_NAME, 'body').text[:1500]}")

    def picture(self, path, whole: bool = True) -> None:
        """Takes a picture of the whole page, or of what a window of this size shows."""
        height = self.run("return document.documentElement.scrollHeight") if whole else None
        size = self.run("return [innerWidth, innerHeight]")
        if whole:
            self.resize((size[0], min(height, 6000)))
        self.driver.save_screenshot(str(path))
        self.resize(tuple(size))


@contextlib.contextmanager
def browser():
    options = Options()
    for flag in FLAGS:
        options.add_argument(flag)
    options.accept_insecure_certs = True
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
    try:
        yield Browser(driver)
    finally:
        driver.quit()
