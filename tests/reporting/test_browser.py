"""The page in a browser: Chromium without a window, where it is installed."""

import base64
import json
import re
import shutil
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from reporting_support import made_up_trials
from selenium import webdriver
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.chrome.service import Service

from hpobench_ordered.analysis.leaderboard import leaderboard
from hpobench_ordered.reporting import ReportInput, write_report

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
DRIVER = shutil.which("chromedriver")
AXE = find_spec("axe_playwright_python")
"""A package with a copy of axe-core, the only part of it that is used."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None or DRIVER is None, reason="chromium and chromedriver are not installed"
    ),
]

OPTIONS = "headless no-sandbox disable-gpu no-first-run disable-background-networking "
OPTIONS += "disable-component-update disable-sync"
READY = "return document.documentElement.dataset.ready === 'true'"
MOST_SECONDS, MOST_BYTES, MOST_PAGES = 2.0, 1_500_000, 15


class Browser:
    """A browser with the page in it."""

    def __init__(self, driver: Any, address: str) -> None:
        self.driver = driver
        self.address = address

    def open(self, *, width: int = 1400, view: str = "") -> None:
        """Open the page; `view` is the end of its address, after "#"."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.get("about:blank")
        self.driver.get(f"{self.address}#{view}" if view else self.address)
        self.wait(READY)

    def prefer(self, scheme: str) -> None:
        """Say what the system prefers, "light" or "dark"; "" for nothing."""
        features = [{"name": "prefers-color-scheme", "value": scheme}] * bool(scheme)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def wait(self, condition: str, *arguments: object) -> None:
        end = time.monotonic() + 20
        while not self.run(condition, *arguments):
            assert time.monotonic() < end, condition
            time.sleep(0.01)

    def run(self, script: str, *arguments: object) -> Any:
        return self.driver.execute_script(script, *arguments)

    def press(self, selector: str) -> None:
        self.driver.find_element("css selector", selector).click()

    def choose(self, selector: str, value: str) -> None:
        """Set a control, by the text of an option where it is a list."""
        self.run(
            "const node = document.querySelector(arguments[0]), value = arguments[1];"
            "const option = [...(node.options ?? [])].find((one) => one.textContent === value);"
            "node.value = option ? option.value : value;"
            "for (const kind of ['input', 'change'])"
            " node.dispatchEvent(new Event(kind, {bubbles: true}))",
            selector,
            value,
        )

    def column(self, place: int) -> list[str]:
        """Texts of a column of the leaderboard after the numbers of rows, without small print."""
        return self.run(
            "return [...document.querySelectorAll('#lb tbody tr')].map((row) => {"
            " const cell = row.cells[arguments[0] + 1].cloneNode(true);"
            " cell.querySelector('small')?.remove(); return cell.textContent })",
            place,
        )

    def about(self) -> str:
        """What the leaderboard says it shows."""
        return self.run("return document.querySelector('#lb-about').textContent")

    def selected(self) -> dict[str, str]:
        """What the controls say, by their ids."""
        return self.run(
            "const controls = document.querySelectorAll('.controls select, .controls input');"
            "return Object.fromEntries([...controls].map((node) =>"
            " [node.id, node.type === 'checkbox' ? String(node.checked) : node.value]))"
        )

    def view(self) -> str:
        """The view in the address, after it has had the time to change."""
        time.sleep(0.3)
        return self.run("return location.hash.slice(1)")

    def curves(self) -> str:
        """The curves as they are drawn."""
        return self.run(
            "return [...document.querySelectorAll('#chart path')]"
            ".map((path) => path.getAttribute('d')).join()"
        )


def start_driver(profile: Path) -> Any:
    """Start a browser that keeps what it stores in a folder of its own."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for option in (*OPTIONS.split(), f"user-data-dir={profile}"):
        options.add_argument(f"--{option}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service(DRIVER))


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    started = start_driver(tmp_path_factory.mktemp("profile"))
    yield started
    started.quit()


@pytest.fixture(scope="module")
def other_driver(tmp_path_factory):
    """Another browser, which has never seen the page."""
    started = start_driver(tmp_path_factory.mktemp("other-profile"))
    yield started
    started.quit()


@pytest.fixture
def browser(driver, page_report):
    """A wide browser with the page of a report of four methods in it."""
    opened = Browser(driver, page_report.page.as_uri())
    opened.open()
    return opened


def test_page_requests_its_parts_alone(driver, browser, page_report):
    for kind in ("browser", "performance"):
        driver.get_log(kind)  # of what was before
    browser.open()
    for selector, value in (
        ("#benchmark", "own@1 (forest)"),
        ("#measure", "Value"),
        ("#task", "<i>1</i>"),
        ("#trial", "2"),
        ("#protocol", "leave-one-out, 4 trials"),
    ):
        browser.choose(selector, value)
        browser.wait("return document.querySelector('#missing').textContent === ''")
        time.sleep(0.2)
    browser.press("#theme")
    time.sleep(0.3)
    assert driver.get_log("browser") == []
    messages = (json.loads(entry["message"])["message"] for entry in driver.get_log("performance"))
    requested = {
        re.split("[#?]", message["params"]["request"]["url"])[0]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    }
    parts = page_report.page.parent / "report_parts"
    selected = {(parts / f"{name}.js").as_uri() for name in ("0-2", "0-2-tasks", "1-0")}
    assert requested - {"about:blank"} == {browser.address, *selected}
    assert browser.run("return document.querySelectorAll('img, b, i, u, s, em').length") == 0
    assert "leads" in browser.run("return document.querySelector('#verdict').textContent")


def test_headings_sort_by_keyboard(browser):
    heading = "#lb thead th:nth-child(3)"  # mean rank
    for order in ("descending", "ascending"):
        browser.run("document.querySelector(arguments[0] + ' button').focus()", heading)
        ActionChains(browser.driver).send_keys(Keys.ENTER).perform()
        ranks = [float(text) for text in browser.column(1) if text != "\u2013"]
        assert ranks == sorted(ranks, reverse=order == "descending")
        order_of_heading = "return document.querySelector(arguments[0]).getAttribute('aria-sort')"
        assert browser.run(order_of_heading, heading) == order
        assert browser.run("return document.querySelectorAll('#lb [aria-sort]').length") == 1
        assert browser.column(0)[-1] == "cts"  # which has no rank


def test_controls_choose_values_and_curves(browser, page_report):
    of_all_benchmarks = browser.curves()
    browser.choose("#benchmark", "xgboost-mnist@1 (forest)")
    browser.wait("return document.querySelectorAll('#lb tbody tr').length === 4")
    for trial in (2, 6):
        browser.choose("#trial", str(trial))
        board = leaderboard(page_report.benchmarks, trial=trial)
        board = board[board["benchmark"] == "xgboost-mnist@1"].set_index("method")
        ranks = dict(zip(browser.column(0), browser.column(1), strict=True))
        for method, rank in ranks.items():
            assert float(rank) == pytest.approx(board.loc[method, "rank"], abs=0.0051)
    time.sleep(0.2)
    of_benchmark = browser.curves()
    browser.choose("#task", "<i>2</i>")
    browser.wait("return document.querySelector('#lb-about').textContent.includes('<i>2</i>')")
    time.sleep(0.2)
    of_task = browser.curves()
    assert len({of_all_benchmarks, of_benchmark, of_task}) == 3  # each choice draws others


def test_filter_chooses_rows(browser):
    browser.choose("#filter", "RANDOM")
    assert browser.column(0) == ["random-search"]
    assert browser.column(-1) == ["3"]  # its place among all methods
    assert browser.about().endswith("1 of 4 methods")
    browser.choose("#filter", "")
    assert len(browser.column(0)) == 4
    assert browser.about().endswith("4 methods")


SELECTED = (
    ("#benchmark", "xgboost-mnist@1 (forest)"),
    ("#task", "<i>2</i>"),
    ("#measure", "Value"),
    ("#trial", "3"),
    ("#filter", "b"),
)
"""Controls with texts of options or values, none of which a page shows at first."""


def test_address_shows_same_view_elsewhere(browser, other_driver):
    usual = browser.curves()
    for selector, value in SELECTED:
        browser.choose(selector, value)
        time.sleep(0.1)
    browser.press("#lb button[data-key='rank']")
    browser.press("#lb button[data-key='rank']")  # once more: descending
    browser.press("#lb button[data-method='bo']")  # not in colour
    view = browser.view()

    other = Browser(other_driver, browser.address)
    other.open(view=view)

    assert other.about() == browser.about()
    assert "xgboost-mnist@1 (forest); <i>2</i>" in other.about()
    assert "after trial 3 of 6" in other.about()
    assert other.selected() == browser.selected()
    for column in (0, 1, 2):
        assert other.column(column) == browser.column(column)
    assert other.curves() == browser.curves() != usual
    order = "return document.querySelector('#lb [aria-sort]').getAttribute('aria-sort')"
    assert other.run(order) == browser.run(order) == "descending"
    chosen = "return [...document.querySelectorAll('#lb .chosen')].map((row) => row.dataset.method)"
    assert other.run(chosen) == browser.run(chosen)
    assert "bo" not in other.run(chosen)


def test_address_is_plain_to_read(browser):
    browser.choose("#measure", "Score")
    browser.choose("#trial", "2")
    assert browser.view() == "measure=score&trial=2&sort=score"
    browser.choose("#measure", "Normalised regret")
    browser.choose("#trial", "6")
    browser.press("#lb button[data-key='rank']")
    assert browser.view() == "leaderboard"  # the usual view


def test_changed_address_changes_view(browser):
    browser.run("location.hash = 'benchmark=own@1 (forest)&trial=2'")
    browser.wait("return document.querySelector('#lb-about').textContent.startsWith('own@1')")
    assert browser.selected()["trial"] == "2"


def test_unknown_names_in_address_are_ignored(driver, page_report):
    browser = Browser(driver, page_report.page.as_uri())
    browser.open()
    usual = browser.selected()
    names = ("protocol", "benchmark", "task", "measure", "trial", "sort", "order", "methods")
    browser.open(view="&".join(f"{name}=<b>unknown" for name in names))
    assert browser.selected() == usual | {"measure": browser.selected()["measure"]}
    assert len(browser.column(0)) == 4


def test_missing_part_is_named(driver, page_report, tmp_path):
    page = tmp_path / "report.html"  # alone
    shutil.copy(page_report.page, page)
    browser = Browser(driver, page.as_uri())
    browser.open()
    usual = browser.selected()

    browser.choose("#benchmark", "own@1 (forest)")
    browser.wait("return document.querySelector('#missing').textContent !== ''")

    assert "report_parts/0-2.js" in browser.run(
        "return document.querySelector('#missing').textContent"
    )
    assert browser.selected() == usual
    browser.choose("#trial", "2")  # goes on with what is there
    browser.wait("return document.querySelector('#missing').textContent === ''")
    assert "after trial 2 of 6" in browser.about()


def test_clicks_choose_methods(browser):
    count_of_chosen = "return document.querySelectorAll('#lb button[aria-pressed=true]').length"
    focused_method = "return document.activeElement.dataset.method"
    assert browser.run(count_of_chosen) == 4

    browser.press("#lb button[data-method='bo']")

    assert browser.run(count_of_chosen) == 3
    assert browser.run(focused_method) == "bo"

    browser.press("#only")

    assert "bo" not in browser.column(0)


def test_pointer_shows_values(browser):
    browser.choose("#measure", "Mean rank")
    browser.press("#choose-none")
    time.sleep(0.3)
    chart = browser.driver.find_element("css selector", "#chart svg")
    ActionChains(browser.driver).move_to_element(chart).perform()
    tip = browser.run("return document.querySelector('#tip').innerText")
    assert re.search(r"trial [1-6]: [1-4]\.[0-9]{2}", tip)
    method = browser.run("return document.querySelector('#tip strong').textContent")
    button = f"return document.querySelectorAll('#lb button')[{browser.column(0).index(method)}]"
    for _ in range(12):  # from the middle up, until a curve is hit
        ActionChains(browser.driver).click().move_by_offset(0, -15).perform()
        if browser.run("return document.querySelectorAll('#lb .chosen').length"):
            break
    assert browser.run("return document.querySelectorAll('#lb .chosen').length") == 1
    assert browser.run(f"{button} !== undefined")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_theme_follows_system_until_chosen(browser, scheme):
    browser.prefer(scheme)
    browser.open()
    lightness = (
        "const rgb = getComputedStyle(document.documentElement).backgroundColor.match(/[0-9]+/g);"
        "return Math.max(...rgb.slice(0, 3).map(Number))"
    )
    is_dark = [browser.run(lightness) < 128]
    browser.press("#theme")
    is_dark.append(browser.run(lightness) < 128)
    assert is_dark == [scheme == "dark", scheme == "light"]
    browser.prefer("")


@pytest.mark.skipif(AXE is None, reason="axe-playwright-python, with axe-core, is not installed")
@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(driver, browser, scheme, width):
    browser.prefer(scheme)
    browser.open(width=width)
    browser.run("for (const node of document.querySelectorAll('details')) node.open = true")
    assert AXE is not None and AXE.origin is not None
    program = Path(AXE.origin).with_name("axe.min.js").read_text(encoding="utf-8")
    driver.execute_cdp_cmd("Runtime.evaluate", {"expression": program})
    result = driver.execute_async_script("axe.run().then(arguments[0], arguments[0])")
    browser.prefer("")
    violations = [(rule["id"], rule["nodes"][0]["html"]) for rule in result["violations"]]
    assert len(result["passes"]) > 30
    assert violations == []


@pytest.fixture(scope="module")
def report_of_forty_methods(tmp_path_factory):
    """Forty methods on ten benchmarks."""
    methods = ["random-search", *(f"a-method-with-a-name-{n}" for n in range(39))]
    trials = [
        made_up_trials(f"benchmark-{n}@1", trials=25, entropy=n, methods=methods, tasks=12, seeds=3)
        for n in range(10)
    ]
    folder: Path = tmp_path_factory.mktemp("large")
    return write_report(ReportInput(pd.concat(trials, ignore_index=True)), folder)


BOXES_SAY_WHETHER_THEY_SCROLL = (
    "return [...document.querySelectorAll('.scroll')].every((box) =>"
    " getComputedStyle(box, '::before').content.includes('Scroll')"
    " === box.scrollWidth > box.clientWidth)"
)


@pytest.fixture(params=[1400, 390])
def large_browser(driver, report_of_forty_methods, request):
    """A wide and a narrow browser with forty methods in it, after its layout has settled."""
    opened = Browser(driver, report_of_forty_methods.page.as_uri())
    opened.open(width=request.param)
    opened.wait(BOXES_SAY_WHETHER_THEY_SCROLL)
    return opened


def test_scrolling_boxes_say_so(large_browser):
    assert large_browser.run(BOXES_SAY_WHETHER_THEY_SCROLL)


def test_all_rows_are_shown_and_counted(large_browser):
    height_of_box = "const box = document.querySelector('.board'); return box.clientHeight"
    height_of_table = "return document.querySelector('#lb').offsetHeight"
    assert large_browser.column(-1) == [str(number) for number in range(1, 41)]
    assert large_browser.about().endswith("40 methods")
    assert large_browser.run(height_of_box) >= large_browser.run(height_of_table)


def test_reference_is_visible_in_chart(large_browser):
    names_within_chart = (
        "const svg = document.querySelector('#chart svg').getBoundingClientRect();"
        "return [...document.querySelectorAll('#chart .layer_5_marks text')]"
        ".filter((node) => node.getBoundingClientRect().right <= svg.right)"
        ".map((node) => node.textContent)"
    )
    count_of_dots = "return document.querySelectorAll('#chart .layer_4_marks path').length"
    names = large_browser.run(names_within_chart)
    assert len(names) == 6
    assert "random-search" in names
    assert large_browser.run(count_of_dots) == 6


def test_names_in_chart_are_dark(large_browser):
    """Text in the colours of the curves would be too pale."""
    fill = "return getComputedStyle(document.querySelector('#chart .layer_5_marks text')).fill"
    assert large_browser.run(fill) == "rgb(26, 26, 27)"


def test_table_of_many_methods_is_wide(driver, report_of_forty_methods):
    browser = Browser(driver, report_of_forty_methods.page.as_uri())
    browser.open(width=390)
    browser.wait(BOXES_SAY_WHETHER_THEY_SCROLL)
    assert browser.run("return document.querySelector('.board').classList.contains('wide')")


def test_colours_follow_table_until_chosen(driver, report_of_forty_methods):
    browser = Browser(driver, report_of_forty_methods.page.as_uri())
    browser.open()
    coloured_methods = (
        "return [...document.querySelectorAll('#lb button[aria-pressed=true]')]"
        ".map((node) => node.dataset.method)"
    )

    # Colours follow the table, which is sorted by rank at first.
    for key in ("rank", "score", "regret"):
        if key != "rank":
            browser.press(f"#lb button[data-key='{key}']")
        first = browser.column(0)[:5]
        assert browser.run(coloured_methods) == [*first, "random-search"]

    # After a click on the second method its colour is gone, and the others stay.
    browser.press("#lb tbody tr:nth-child(2) button")
    chosen = set(browser.run(coloured_methods))
    browser.press("#lb button[data-key='rank']")
    assert chosen == {first[0], *first[2:], "random-search"}
    assert set(browser.run(coloured_methods)) == chosen


def test_page_of_forty_methods_is_small(report_of_forty_methods):
    assert report_of_forty_methods.page.stat().st_size < MOST_BYTES


def test_forty_methods_fit(large_browser):
    large_browser.run("for (const node of document.querySelectorAll('details')) node.open = true")
    assert large_browser.run("return document.scrollingElement.scrollWidth <= innerWidth")


def test_forty_methods_are_shown_soon(driver, report_of_forty_methods):
    browser = Browser(driver, report_of_forty_methods.page.as_uri())
    milliseconds = []
    for width in (1400, 390, 1400):
        browser.open(width=width)
        ready = "return performance.getEntriesByName('ready')[0].startTime"
        milliseconds.append(browser.run(ready))
    assert min(milliseconds) / 1000 < MOST_SECONDS


def test_forty_methods_are_printed(driver, report_of_forty_methods):
    """On at least three pages of A4, whose sizes are in inches."""
    Browser(driver, report_of_forty_methods.page.as_uri()).open()
    a4 = {"paperWidth": 8.27, "paperHeight": 11.7}

    printed = driver.execute_cdp_cmd("Page.printToPDF", a4)

    pdf = base64.b64decode(printed["data"])
    pages = re.findall(rb"/Type\s*/Page\b", pdf)
    assert 3 <= len(pages) <= MOST_PAGES


def test_page_has_one_family_of_type(browser):
    """All but messages of failures, which are from programs."""
    families = browser.run(
        "const texts = document.querySelectorAll("
        " 'h1, h2, p:not(.message), td, th, a, button, figure svg text');"
        "return [...new Set([...texts].map((node) => getComputedStyle(node).fontFamily))]"
    )
    assert len(families) == 1
    assert families[0].endswith("sans-serif")


@pytest.mark.parametrize("selector", ["#verdict table", "#lb", "#chart", "#run table"])
def test_width_of_page_is_used(driver, report_of_forty_methods, selector):
    browser = Browser(driver, report_of_forty_methods.page.as_uri())
    browser.open(width=1400)
    right = "return document.querySelector(arguments[0]).getBoundingClientRect().right"
    assert 1350 < browser.run(right, selector) <= 1400
