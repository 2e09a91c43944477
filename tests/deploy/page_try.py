"""Checks of the form that tries a model, and of the maps that inspect writes."""
import json
import math
import urllib.request

from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

from monitoring_files import Failed, run

EXAMPLE = [[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]]
LARGEST = [.4683105308, .9820078649, .8805369018]  # of each row of the worked example's probabilities


def post(server, path: str, body: dict) -> dict:
    request = urllib.request.Request(server.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def output(answer: dict, name: str) -> dict:
    return next(one for one in answer["outputs"] if one["name"] == name)


def choose(place, server, model: str, kind: str) -> None:
    """Opens the page and chooses a model whose input is of this kind."""
    place.open(server)
    browser = place.browser
    browser.wait(lambda: browser.shown("try-form"), "the form")
    Select(browser.by_id("model")).select_by_value(model)
    browser.wait(lambda: browser.text("input-label") == kind, f"a field for {kind}")


def send(place) -> None:
    """Sends the form and waits for an answer, or a problem, which fails the check."""
    browser = place.browser
    browser.run("document.getElementById('answer').hidden = true; document.getElementById('facts').textContent = ''")
    browser.by_id("send").click()
    browser.wait(lambda: browser.shown("answer") or browser.text("problem"), "an answer")
    if browser.text("problem"):
        raise Failed(browser.text("problem"))


def numbers(place, table: str = "numbers") -> list:
    """Returns the numbers of a table, without its labels."""
    return [[float(text) for text in row[1:]] for row in place.browser.cells(table)[1:]]


def expect_same(shown: list, wanted: list, width: int) -> None:
    """The numbers that the page shows, to three digits, are those of a tensor's part in REST's answer."""
    rows = [wanted[at:at + width] for at in range(0, len(wanted), width)]
    if len(shown) != len(rows) or any(len(row) != width for row in shown):
        raise Failed(f"{len(shown)} rows instead of {len(rows)}")
    worst = max(abs(a - b) for mine, theirs in zip(shown, rows) for a, b in zip(mine, theirs))
    if worst > 0.000501:
        raise Failed(f"a number is {worst} from REST's answer")


def expect_sums(rows: list) -> None:
    if wrong := [sum(row) for row in rows if abs(sum(row) - 1) > 0.0005 * len(row) + 1e-9]:
        raise Failed(f"rows sum to {wrong}")


def check_text(place, shared) -> str:
    """Who opens the page has a form with a text before them."""
    browser = place.browser
    place.open(shared)
    browser.wait(lambda: browser.shown("try-form") and browser.text("input-label") == "Text", "a field for a text")
    if browser.by_id("model").get_attribute("value") != "words.text" or not browser.run(
            "return document.getElementById('send').getBoundingClientRect().bottom < innerHeight"):
        raise Failed("a model of texts is not offered at the top of the page")
    send(place)
    text = browser.by_id("input").get_attribute("value")
    expect_text(place, shared, text, ["[CLS]", "The", "cat", "sits", "on", "the", "mat", ".", "[SEP]"])
    browser.picture(place.work / "text.png")
    browser.fill("layer", "1")
    for text, labels in (("Größe <b>", None), ("hello  WORLD", ["[CLS]", "hello", "WORLD", "[SEP]"]), ("cats", ["[CLS]", "cat", "s", "[SEP]"])):
        browser.fill("input", text)
        send(place)
        expect_text(place, shared, text, labels)
    Select(browser.by_id("model")).select_by_value("words")
    browser.wait(lambda: browser.text("input-label") == "Token ids", "a field for token ids")
    if "choose words.text" not in problem(place, {"input": "hello world"}):
        raise Failed(f"a text in place of ids is answered by: {browser.text('problem')}")
    browser.fill("input", "2 5 6 3")
    send(place)
    if browser.cells("numbers")[0][1:] != ["2", "5", "6", "3"]:
        raise Failed(f"labels without texts: {browser.cells('numbers')[0]}")
    Select(browser.by_id("model")).select_by_value("words.text")
    browser.wait(lambda: browser.text("input-label") == "Text", "a field for a text")
    place.expect_no_complaints()
    for text, wanted in ((" ", "enter a text"), ("cat " * 80, "at most 64 tokens")):
        if wanted not in problem(place, {"input": text}):
            raise Failed(f"{text!r} is answered by: {browser.text('problem')}")
    return "labelled by its tokens, with its vector; also as ids"


def expect_text(place, shared, text: str, labels) -> None:
    """The page shows what /v2 answers to this text."""
    browser = place.browser
    layer = int(browser.by_id("layer").get_attribute("value"))
    if labels and browser.cells("numbers")[0][1:] != labels:
        raise Failed(f"{text} has the labels {browser.cells('numbers')[0]}")
    answer = post(shared, "v2/models/words/infer", {
        "inputs": [{"name": "text", "datatype": "BYTES", "shape": [1], "data": [text]}],
        "outputs": [{"name": f"attentions.{layer}"}, {"name": "sentence_embedding"}]})
    attention = output(answer, f"attentions.{layer}")
    side = attention["shape"][2]
    expect_same(numbers(place), attention["data"][:side * side], side)
    vector = output(answer, "sentence_embedding")["data"]
    if not browser.text("vector").startswith(f"Vector of {len(vector)} numbers: {vector[0]:.3f}, "):
        raise Failed(browser.text("vector"))


def check_worked_example(place, shared) -> str:
    choose(place, shared, "worked-example", "Hidden states")
    send(place)
    answer = post(shared, "v2/models/worked-example/infer", {
        "inputs": [{"name": "hidden_states", "datatype": "FP32", "shape": [1, 3, 4], "data": [EXAMPLE]}],
        "parameters": {"stage": "context"}, "outputs": [{"name": "context_layer"}, {"name": "attentions"}]})
    shown = numbers(place)
    expect_sums(shown)
    expect_same(shown, output(answer, "attentions")["data"], 3)
    if any(abs(max(row) - wanted) > 0.000501 for row, wanted in zip(shown, LARGEST, strict=True)):
        raise Failed(f"the largest of the rows are {[max(row) for row in shown]}")
    context = output(answer, "context_layer")
    expect_same(numbers(place, "context"), context["data"], context["shape"][2])
    place.expect_no_complaints()
    place.browser.picture(place.work / "worked-example.png")
    return f"largest of each row: {[max(row) for row in shown]}"


def check_sentence(place, shared) -> str:
    choose(place, shared, "mini", "Token ids")
    browser = place.browser
    if browser.by_id("input").get_attribute("value") != "101, 7592, 2088, 102":
        raise Failed("BERT's words are not offered as an example")
    browser.fill("layer", "3")
    send(place)
    answer = post(shared, "v2/models/mini/infer", {
        "inputs": [{"name": "input_ids", "datatype": "INT64", "shape": [1, 4], "data": [101, 7592, 2088, 102]}],
        "outputs": [{"name": "attentions.3"}]})["outputs"][0]
    buttons = browser.driver.find_elements(By.CSS_SELECTOR, "#heads button")
    if len(buttons) != answer["shape"][1]:
        raise Failed(f"{len(buttons)} heads instead of {answer['shape'][1]}")
    for head, button in enumerate(buttons):
        button.click()
        shown = numbers(place)
        expect_sums(shown)
        expect_same(shown, answer["data"][16 * head:16 * (head + 1)], 4)
    labels = browser.run("return [...document.querySelectorAll('#head-map text')].map(text => text.textContent)")
    if sorted(labels) != sorted(2 * ["[CLS]", "hello", "world", "[SEP]"]):
        raise Failed(f"labels of the axes: {labels}")
    expect_colours(place, shown)
    # Without texts the ids are the labels.
    browser.fill("texts", "")
    send(place)
    if browser.cells("numbers")[0][1:] != ["101", "7592", "2088", "102"]:
        raise Failed(f"labels without texts: {browser.cells('numbers')[0]}")
    place.expect_no_complaints()
    return f"{len(buttons)} heads, each row sums to 1, all as REST answers"


def expect_colours(place, shown: list) -> None:
    """Larger probabilities are further along the ramp of colours, of which the largest has the end."""
    found = place.browser.run("""
        return [...document.querySelectorAll('#head-map rect')].map(rect => [Number(rect.dataset.row), Number(rect.dataset.column),
          rect.getAttribute('fill').match(/\\d+/g).map(Number).reduce((sum, part) => sum + part, 0)])""")
    if len(found) != len(shown) ** 2:
        raise Failed(f"{len(found)} cells are drawn")
    cells = sorted((shown[row][column], -brightness) for row, column, brightness in found)
    for (smaller, light), (larger, dark) in zip(cells, cells[1:]):
        if larger - smaller > 0.002 and dark < light:
            raise Failed(f"{larger} is drawn lighter than {smaller}")


def check_long(place, shared) -> str:
    choose(place, shared, "mini", "Token ids")
    browser = place.browser
    for count, labelled in ((40, True), (100, False), (256, False)):
        browser.run("document.getElementById('input').value = arguments[0]", " ".join(str(1000 + i) for i in range(count)))
        browser.fill("texts", "")
        send(place)
        drawn = browser.run("return [document.querySelectorAll('#head-map rect').length, "
                            "document.querySelectorAll('#head-map canvas').length]")
        if drawn != ([count * count, 0] if labelled else [0, 1]):
            raise Failed(f"{count} tokens are drawn as {drawn}")
        if browser.shown("numbers-part"):
            raise Failed(f"the numbers of {count} tokens are offered")
        if count == 40:
            browser.picture(place.work / "labels.png")
    pixel = browser.run("const canvas = document.querySelector('#head-map canvas'); "
                        "return [canvas.width, new Set(canvas.getContext('2d').getImageData(0, 0, 256, 256).data).size]")
    if pixel[0] != 256 or pixel[1] < 10:
        raise Failed(f"a map of 256 tokens has {pixel} of pixels and colours")
    place.expect_no_complaints()
    return "40 tokens with labels, 100 and 256 without"


def problem(place, fields: dict) -> str:
    browser = place.browser
    for name, text in fields.items():
        browser.fill(name, text)
    browser.by_id("send").click()
    return browser.wait(lambda: browser.text("problem"), f"a problem with {fields}")


def check_mistakes(place, shared) -> str:
    choose(place, shared, "tiny", "Token ids")
    found = []
    for fields, wanted in (
            ({"input": "1, two"}, "“two” is not a number. tiny does not accept texts"), ({"input": "1.5"}, "1.5 is not an id"), ({"input": ""}, "enter at least one"),
            ({"input": "1 " * 257}, "at most 256"), ({"input": "1 2", "texts": "a"}, "1 for 2 tokens"),
            ({"input": "1 2", "texts": "", "layer": "-1"}, "at least 0"),
            ({"layer": ""}, "at least 0"), ({"layer": "9"}, "expected 1..2; got 10"), ({"layer": "0", "input": "100"}, "expected 0..99; got 100"),
            ({"input": "1 " * 65}, "65")):
        if place.browser.shown("answer"):
            raise Failed("an answer stays beside a problem")
        said = problem(place, fields)
        if wanted not in said:
            raise Failed(f"{fields} is answered by: {said}")
        found.append(said)
    Select(place.browser.by_id("model")).select_by_value("worked-example")
    place.browser.wait(lambda: place.browser.text("input-label") == "Hidden states", "a field for hidden states")
    said = problem(place, {"input": "1 0 1 0\n1 2 3"})
    if "line 2 has 3 numbers" not in said:
        raise Failed(said)
    place.browser.fill("input", "1 0 1 0; 0 2 0 2")
    send(place)
    return f"{len(found) + 1} of them, and then an answer"


def check_hostile(place, shared) -> str:
    """Texts of tokens are shown as they are."""
    choose(place, shared, "tiny", "Token ids")
    texts = ["<img/src=x>", "</text><script>", "\"'&amp;", "a" * 300]
    place.browser.fill("input", "1 2 3 4")
    place.browser.fill("texts", " ".join(texts))
    send(place)
    if place.browser.cells("numbers")[0][1:] != texts:
        raise Failed(f"{place.browser.cells('numbers')[0]}")
    if place.browser.run("return document.querySelectorAll('#answer img, #answer script').length"):
        raise Failed("a text has become an element")
    drawn = place.browser.run("return [...document.querySelectorAll('#head-map text')].map(text => text.textContent.length)")
    if max(drawn) > 16:
        raise Failed(f"labels of {max(drawn)} letters")
    place.expect_no_complaints()
    return "markup, entities, and 300 letters"


def check_inspect(place, shared) -> str:
    """The page of attendant-client inspect, opened as a file."""
    path = place.work / "inspect.html"
    run(*shared.client(place.client, ["inspect", "--model", "mini", "--token-ids", "101,7592,2088,102", "--html", path,
                                      "--tokens", "[CLS] hello world [SEP]"]))
    browser = place.browser
    browser.open(path.as_uri())
    browser.wait(lambda: browser.driver.find_elements(By.CSS_SELECTOR, "#maps canvas"), "maps")
    browser.driver.find_elements(By.CSS_SELECTOR, "#maps canvas")[5].click()
    labels = browser.run("return [...document.querySelectorAll('#enlarged-map text')].map(text => text.textContent)")
    if sorted(labels) != sorted(2 * ["[CLS]", "hello", "world", "[SEP]"]):
        raise Failed(f"labels of the axes: {labels}")
    cell = browser.driver.find_element(By.CSS_SELECTOR, "#enlarged-map rect[data-row='1'][data-column='2']")
    browser.move_to(cell)
    tip = browser.text("tip")
    if not tip.startswith("hello (1) attends to world (2): 0.") or math.isnan(float(tip.rsplit(" ", 1)[1])):
        raise Failed(f"a cell is explained as: {tip}")
    place.expect_no_complaints()
    browser.picture(place.work / "inspect.png", whole=False)
    return tip
