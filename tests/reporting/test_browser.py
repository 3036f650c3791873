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
from hpobench_ordered.reporting.write import ReportInput, write_report

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
DRIVER = shutil.which("chromedriver")
AXE = find_spec("axe_playwright_python")
"""A package with a copy of axe-core, the only part of it that is used; None without it."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None or DRIVER is None, reason="chromium and chromedriver are not installed"
    ),
]

CHROMIUM_OPTIONS = "headless no-sandbox disable-gpu no-first-run disable-background-networking "
CHROMIUM_OPTIONS += "disable-component-update disable-sync"
"""Options of Chromium that keep it from showing a window or asking for anything by itself."""
PAGE_IS_READY = "return document.documentElement.dataset.ready === 'true'"
"""A script of JavaScript: whether the page's own script has shown everything."""
MOST_SECONDS = 2.0
"""Limit of the time until the page with forty methods is shown."""
MOST_BYTES = 1_500_000
"""Limit of the file of the page with forty methods."""
MOST_PAGES = 15
"""Limit of the pages of paper that the page with forty methods is printed on."""
NO_PART_IS_MISSING = "return document.querySelector('#missing').textContent === ''"
"""A script: whether the page says of no part, a file with results, that it is missing."""
OPEN_ALL_DETAILS = "for (const node of document.querySelectorAll('details')) node.open = true"
"""A script that shows all parts of the page that can be folded away."""
CAPTION_CONTAINS = "return document.querySelector('#lb-about').textContent.includes(arguments[0])"
"""A script: whether the caption of the leaderboard, which says what it shows, has a text."""
WIDE = 1400
"""Pixels across the window of a computer."""
NARROW = 390
"""Pixels across the screen of a phone."""
SECONDS_TO_DRAW = 0.3
"""After a choice the page needs less time than this to draw its chart and to write its address."""


class Browser:
    """A browser in which the page of a report, at this address, can be opened and used."""

    def __init__(self, driver: Any, address: str) -> None:
        self.driver = driver
        self.address = address

    def open(self, *, width: int = WIDE, view: str = "") -> None:
        """Open the page, with a view as the end of its address, and wait until it has shown all.

        A window is `width` pixels wide; a narrow one counts as the screen of a phone.
        """
        is_phone = width < 600
        screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": is_phone}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        address = f"{self.address}#{view}" if view else self.address
        # An empty page comes between: a change after "#" alone would not load the page anew.
        self.driver.get("about:blank")
        self.driver.get(address)
        self.wait(PAGE_IS_READY)

    def set_system_scheme(self, scheme: str) -> None:
        """Let the system prefer "light" or "dark" pages, as its user may choose; "" for neither."""
        features = []
        if scheme:
            features.append({"name": "prefers-color-scheme", "value": scheme})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def wait(self, condition: str, *arguments: object) -> None:
        """Wait until a script, with these arguments, returns true; an error after 20 seconds."""
        end = time.monotonic() + 20
        while not self.run(condition, *arguments):
            assert time.monotonic() < end, condition
            time.sleep(0.01)

    def run(self, script: str, *arguments: object) -> Any:
        """Run a script of JavaScript in the page, with these `arguments`; what it returns."""
        return self.driver.execute_script(script, *arguments)

    def press(self, selector: str) -> None:
        """Click on the first element that the selector of CSS fits."""
        self.driver.find_element("css selector", selector).click()

    def choose(self, selector: str, value: str) -> None:
        """Set a control: a list to the option that has this text, another one to the text itself.

        The page's own script gets the events of a control that its user changes.
        """
        self.run(
            "const node = document.querySelector(arguments[0]), value = arguments[1];"
            "const option = [...(node.options ?? [])].find((item) => item.textContent === value);"
            "node.value = option ? option.value : value;"
            "for (const kind of ['input', 'change'])"
            " node.dispatchEvent(new Event(kind, {bubbles: true}))",
            selector,
            value,
        )

    def read_column(self, heading: str) -> list[str]:
        """Read a column of the leaderboard by its heading, from the top, without small print."""
        headings = self.run(
            "return [...document.querySelectorAll('#lb thead th')].map((cell) => cell.textContent)"
        )
        return self.run(
            "return [...document.querySelectorAll('#lb tbody tr')].map((row) => {"
            " const cell = row.cells[arguments[0]].cloneNode(true);"
            " cell.querySelector('small')?.remove(); return cell.textContent })",
            headings.index(heading),
        )

    def read_caption(self) -> str:
        """Read the caption of the leaderboard: what it shows, and of how many methods."""
        return self.run("return document.querySelector('#lb-about').textContent")

    def read_controls(self) -> dict[str, str]:
        """Read what all controls are set to, by their ids."""
        return self.run(
            "const controls = document.querySelectorAll('.controls select, .controls input');"
            "return Object.fromEntries([...controls].map((node) =>"
            " [node.id, node.type === 'checkbox' ? String(node.checked) : node.value]))"
        )

    def read_view(self) -> str:
        """Read the end of the address, after "#", which says what the page shows."""
        time.sleep(SECONDS_TO_DRAW)
        return self.run("return location.hash.slice(1)")

    def read_curves(self) -> str:
        """Read the curves as they are drawn: the paths of all lines in one text."""
        return self.run(
            "return [...document.querySelectorAll('#chart path')]"
            ".map((path) => path.getAttribute('d')).join()"
        )


def start_driver(profile: Path) -> Any:
    """Start a browser that keeps what it stores in a folder of its own.

    Its logs have the messages of pages, and all their requests.
    """
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for option in (*CHROMIUM_OPTIONS.split(), f"user-data-dir={profile}"):
        options.add_argument(f"--{option}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service(DRIVER))


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """The browser of most tests; they open their pages in it, one after the other."""
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
    """The page of a report of four methods, open in a wide window."""
    opened = Browser(driver, page_report.page.as_uri())
    opened.open()
    return opened


@pytest.fixture
def used_browser(driver, browser):
    """The page after each of its controls was used once; the logs of the browser begin with it."""
    # To read the logs is to empty them.
    driver.get_log("browser")
    driver.get_log("performance")
    browser.open()

    for selector, value in (
        ("#benchmark", "own@1 (forest)"),
        ("#measure", "Value"),
        ("#task", "<i>1</i>"),
        ("#trial", "2"),
        ("#protocol", "leave-one-out, 4 trials"),
    ):
        browser.choose(selector, value)
        browser.wait(NO_PART_IS_MISSING)
        time.sleep(SECONDS_TO_DRAW)
    browser.press("#theme")
    time.sleep(SECONDS_TO_DRAW)
    return browser


def read_requested_addresses(driver: Any) -> set[str]:
    """Read from the log which addresses the browser requested, without what follows "#" or "?"."""
    addresses = set()
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            url = message["params"]["request"]["url"]
            address, *_ = re.split("[#?]", url)
            addresses.add(address)
    return addresses


@pytest.mark.usefixtures("used_browser")
def test_page_logs_no_errors(driver):
    assert driver.get_log("browser") == []


def test_page_requests_its_parts_alone(driver, used_browser, page_report):
    """The page loads the parts, files with results, of what was chosen, and nothing else.

    A part is named "protocol-benchmark", by their numbers. The benchmark "own" was chosen, one of
    its tasks, and then the other protocol, with its only benchmark.
    """
    parts = page_report.page.parent / "report_parts"
    own = (parts / "0-2.js").as_uri()  # after all benchmarks together, 0-0, and newsvendor, 0-1
    tasks_of_own = (parts / "0-2-tasks.js").as_uri()
    other_protocol = (parts / "1-0.js").as_uri()

    requested = read_requested_addresses(driver)

    empty_page = "about:blank"  # which is opened before any other
    assert requested - {empty_page} == {
        used_browser.address,
        own,
        tasks_of_own,
        other_protocol,
    }


def test_html_in_names_is_text(used_browser):
    """Names in the results hold these elements, such as <i>1</i>; the page itself has none."""
    number_of_elements = "return document.querySelectorAll('img, b, i, u, s, em').length"
    assert used_browser.run(number_of_elements) == 0


def test_page_with_html_in_names_says_who_leads(used_browser):
    """The page goes on to show its results, whatever names they have."""
    text_of_verdict = "return document.querySelector('#verdict').textContent"
    assert "leads" in used_browser.run(text_of_verdict)


def press_enter_on_mean_rank(browser: Browser) -> None:
    """Press Enter on the heading of mean ranks, which turns the order of the leaderboard.

    The leaderboard is sorted by mean ranks at first, in ascending order.
    """
    browser.run("document.querySelector(\"#lb button[data-key='rank']\").focus()")
    ActionChains(browser.driver).send_keys(Keys.ENTER).perform()


def read_known_ranks(browser: Browser) -> list[float]:
    """Read the mean ranks of the leaderboard, from the top, but for a dash in place of one."""
    dash = "\u2013"
    return [float(text) for text in browser.read_column("Mean rank") if text != dash]


def test_headings_sort_by_keyboard(browser):
    """Enter on the heading of a column sorts by it in the opposite order each time."""
    press_enter_on_mean_rank(browser)
    descending = read_known_ranks(browser)
    press_enter_on_mean_rank(browser)
    ascending = read_known_ranks(browser)

    assert descending == sorted(descending, reverse=True)
    assert ascending == sorted(ascending)


def test_heading_tells_order_to_screen_readers(browser):
    """The heading of the sorted column has the attribute aria-sort, and no other heading has."""
    orders = (
        "return [...document.querySelectorAll('#lb [aria-sort]')]"
        ".map((node) => node.getAttribute('aria-sort'))"
    )
    sorted_heading = "return document.querySelector('#lb [aria-sort]').textContent"

    press_enter_on_mean_rank(browser)
    assert browser.run(orders) == ["descending"]
    press_enter_on_mean_rank(browser)
    assert browser.run(orders) == ["ascending"]
    assert browser.run(sorted_heading) == "Mean rank"


@pytest.mark.parametrize("number_of_presses", [1, 2])
def test_method_without_rank_is_last_in_any_order(browser, number_of_presses):
    """The method cts has not finished a benchmark; each press turns the order of the others."""
    for _ in range(number_of_presses):
        press_enter_on_mean_rank(browser)

    *_, last_method = browser.read_column("Method")
    assert last_method == "cts"


@pytest.mark.parametrize("trial", [2, 6])
def test_leaderboard_shows_chosen_ranks(browser, page_report, trial):
    """The page shows the ranks that Python computes for the chosen benchmark and trial."""
    browser.choose("#benchmark", "xgboost-mnist@1 (forest)")
    browser.wait(CAPTION_CONTAINS, "xgboost-mnist@1")
    browser.choose("#trial", str(trial))

    methods = browser.read_column("Method")
    ranks = browser.read_column("Mean rank")

    board = leaderboard(page_report.benchmarks, trial=trial)
    board = board[board["benchmark"] == "xgboost-mnist@1"].set_index("method")
    assert len(methods) == 4
    half_a_digit = 0.0051  # the page shows two decimals; a little more for binary numbers
    for method, rank in zip(methods, ranks, strict=True):
        assert float(rank) == pytest.approx(board.loc[method, "rank"], abs=half_a_digit)


def test_choices_draw_other_curves(browser):
    """The chart shows all benchmarks at first, then the chosen benchmark, then the chosen task."""
    of_all_benchmarks = browser.read_curves()

    browser.choose("#benchmark", "xgboost-mnist@1 (forest)")
    browser.wait(CAPTION_CONTAINS, "xgboost-mnist@1")
    time.sleep(SECONDS_TO_DRAW)
    of_benchmark = browser.read_curves()

    browser.choose("#task", "<i>2</i>")
    browser.wait(CAPTION_CONTAINS, "<i>2</i>")
    time.sleep(SECONDS_TO_DRAW)
    of_task = browser.read_curves()

    different_charts = {of_all_benchmarks, of_benchmark, of_task}
    assert len(different_charts) == 3


def test_filter_chooses_rows(browser):
    """Shown are the methods with the text in their names, in letters of either case."""
    browser.choose("#filter", "RANDOM")

    assert browser.read_column("Method") == ["random-search"]
    assert browser.read_caption().endswith("1 of 4 methods")
    # A shown method keeps its number among all methods.
    assert browser.read_column("No.") == ["3"]


def test_empty_filter_shows_all_rows(browser):
    """A filter is set and then emptied: all four methods are shown again."""
    browser.choose("#filter", "RANDOM")
    browser.choose("#filter", "")

    assert len(browser.read_column("Method")) == 4
    assert browser.read_caption().endswith("4 methods")


CHOICES = (
    ("#benchmark", "xgboost-mnist@1 (forest)"),
    ("#task", "<i>2</i>"),
    ("#measure", "Value"),
    ("#trial", "3"),
    ("#filter", "b"),
)
"""Selectors of controls, and what they are set to: nothing that a page shows at first."""


@pytest.fixture
def two_browsers(browser, other_driver):
    """A browser in which a view was chosen, and another that opened the address of that view.

    The view has the `CHOICES`, ranks in descending order, and the method "bo" without colour.
    """
    for selector, value in CHOICES:
        browser.choose(selector, value)
        time.sleep(SECONDS_TO_DRAW)
    browser.press("#lb button[data-key='rank']")
    browser.press("#lb button[data-key='rank']")  # once more: descending
    browser.press("#lb button[data-method='bo']")  # takes its colour away

    other = Browser(other_driver, browser.address)
    other.open(view=browser.read_view())
    return browser, other


def test_address_keeps_controls(two_browsers):
    """Another browser that opens the address has the same controls, and the same caption."""
    browser, other = two_browsers
    assert other.read_controls() == browser.read_controls()
    assert other.read_caption() == browser.read_caption()
    # As was chosen.
    assert "xgboost-mnist@1 (forest); <i>2</i>" in other.read_caption()
    assert "after trial 3 of 6" in other.read_caption()


def test_address_keeps_rows(two_browsers):
    """The rows and their order, which the heading of the sorted column tells screen readers."""
    browser, other = two_browsers
    order = "return document.querySelector('#lb [aria-sort]').getAttribute('aria-sort')"
    assert browser.run(order) == "descending"
    assert other.run(order) == "descending"
    for heading in ("Method", "Mean rank", "Score"):
        assert other.read_column(heading) == browser.read_column(heading)


def test_address_keeps_coloured_methods(two_browsers):
    """The same methods are in colour: all but bo, whose colour was taken away."""
    browser, other = two_browsers
    coloured = (
        "return [...document.querySelectorAll('#lb .chosen')].map((row) => row.dataset.method)"
    )
    assert other.run(coloured) == browser.run(coloured)
    assert "bo" not in other.run(coloured)


def test_address_keeps_curves(two_browsers):
    """Another browser that opens the address draws the same curves."""
    browser, other = two_browsers
    assert other.read_curves() == browser.read_curves()

    # They are not those that a page shows at first.
    browser.open()
    assert other.read_curves() != browser.read_curves()


def test_address_is_plain_to_read(browser):
    """The address has what was changed: with the measure of the chart, the leaderboard's order."""
    browser.choose("#measure", "Score")
    browser.choose("#trial", "2")

    browser.wait("return location.hash === '#measure=score&trial=2&sort=score'")


def test_first_view_has_plain_address(browser):
    """An address names changes only: going back to the first view removes them from it."""
    browser.choose("#measure", "Score")
    browser.choose("#trial", "2")
    # The address is written a little later, and there is nothing to remove before.
    browser.wait("return location.hash === '#measure=score&trial=2&sort=score'")

    browser.choose("#measure", "Normalised regret")
    browser.choose("#trial", "6")
    browser.press("#lb button[data-key='rank']")  # sorts by mean ranks

    browser.wait("return location.hash === '#leaderboard'")


def test_changed_address_changes_view(browser):
    """A change of the address alone does not load the page anew: its script shows the view."""
    browser.run("location.hash = 'benchmark=own@1 (forest)&trial=2'")

    browser.wait(CAPTION_CONTAINS, "own@1")
    assert browser.read_controls()["trial"] == "2"


def test_unknown_names_in_address_are_ignored(browser):
    """An address may be old: all that it calls by unknown names is as on a newly opened page.

    The measure is the exception: in the place of an unknown one, the first in the list is shown.
    """
    controls_at_first = browser.read_controls()
    names = ("protocol", "benchmark", "task", "measure", "trial", "sort", "order", "methods")

    browser.open(view="&".join(f"{name}=<b>unknown" for name in names))

    controls = browser.read_controls()
    measure_shown = controls["measure"]
    assert controls == controls_at_first | {"measure": measure_shown}
    # No method is hidden.
    assert len(browser.read_column("Method")) == 4


@pytest.fixture
def browser_without_parts(driver, page_report, tmp_path):
    """A copy of the page without its parts, the files with results of single benchmarks."""
    page = tmp_path / "report.html"
    shutil.copy(page_report.page, page)
    opened = Browser(driver, page.as_uri())
    opened.open()
    return opened


def test_missing_part_is_named(browser_without_parts):
    """The page says which file is missing, and goes on to show what it showed before."""
    controls_before = browser_without_parts.read_controls()
    message = "return document.querySelector('#missing').textContent"

    browser_without_parts.choose("#benchmark", "own@1 (forest)")
    browser_without_parts.wait(f"{message} !== ''")

    part_of_own = "report_parts/0-2.js"
    assert part_of_own in browser_without_parts.run(message)
    assert browser_without_parts.read_controls() == controls_before


def test_page_goes_on_after_missing_part(browser_without_parts):
    """A choice that needs no part is shown, and the message is gone."""
    browser_without_parts.choose("#benchmark", "own@1 (forest)")
    browser_without_parts.wait("return document.querySelector('#missing').textContent !== ''")

    browser_without_parts.choose("#trial", "2")
    browser_without_parts.wait(NO_PART_IS_MISSING)

    assert "after trial 2 of 6" in browser_without_parts.read_caption()


def test_click_takes_colour_of_method(browser):
    """All four methods are in colour at first; the clicked button keeps the focus."""
    number_of_coloured = "return document.querySelectorAll('#lb button[aria-pressed=true]').length"
    focused_method = "return document.activeElement.dataset.method"
    assert browser.run(number_of_coloured) == 4

    browser.press("#lb button[data-method='bo']")

    assert browser.run(number_of_coloured) == 3
    assert browser.run(focused_method) == "bo"


def test_methods_without_colour_can_be_hidden(browser):
    """With a checkbox, the table shows only methods in colour, here all but bo."""
    browser.press("#lb button[data-method='bo']")  # takes its colour away
    browser.press("#only")  # shows methods in colour alone

    assert "bo" not in browser.read_column("Method")


@pytest.fixture
def pointed_browser(browser):
    """The page with no method in colour, and the pointer in the middle of the chart of ranks."""
    browser.choose("#measure", "Mean rank")
    browser.press("#choose-none")
    time.sleep(SECONDS_TO_DRAW)
    chart = browser.driver.find_element("css selector", "#chart svg")
    ActionChains(browser.driver).move_to_element(chart).perform()
    return browser


def test_pointer_shows_values(pointed_browser):
    """A tip has the nearest curve's method, its trial, from 1 to 6, and its mean rank, 1 to 4."""
    tip = pointed_browser.run("return document.querySelector('#tip').innerText")
    method = pointed_browser.run("return document.querySelector('#tip strong').textContent")

    assert re.search(r"trial [1-6]: [1-4]\.[0-9]{2}", tip)
    assert method in pointed_browser.read_column("Method")


def test_click_on_curve_chooses_method(pointed_browser):
    """Clicks from the middle of the chart upwards, 15 pixels apart, until a curve is hit."""
    number_of_coloured = "return document.querySelectorAll('#lb .chosen').length"

    for _ in range(12):
        ActionChains(pointed_browser.driver).click().move_by_offset(0, -15).perform()
        if pointed_browser.run(number_of_coloured) > 0:
            break

    assert pointed_browser.run(number_of_coloured) == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_theme_follows_system_until_chosen(browser, scheme):
    """The page has the system's scheme, light or dark; a press of the button changes to the other.

    A page is dark if the brightest part of its background, of red, green and blue, is below 128.
    """
    background = (
        "const rgb = getComputedStyle(document.documentElement).backgroundColor.match(/[0-9]+/g);"
        "return rgb.slice(0, 3).map(Number)"
    )
    browser.set_system_scheme(scheme)
    browser.open()

    is_dark_at_first = max(browser.run(background)) < 128
    browser.press("#theme")
    is_dark_after_press = max(browser.run(background)) < 128

    browser.set_system_scheme("")  # as before, for other tests
    assert is_dark_at_first == (scheme == "dark")
    assert is_dark_after_press == (scheme == "light")


@pytest.mark.skipif(AXE is None, reason="axe-playwright-python, with axe-core, is not installed")
@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(driver, browser, scheme, width):
    """The program axe-core checks the page by rules of accessibility, with all details open."""
    browser.set_system_scheme(scheme)
    browser.open(width=width)
    browser.run(OPEN_ALL_DETAILS)

    driver.execute_cdp_cmd("Runtime.evaluate", {"expression": read_axe()})
    result = driver.execute_async_script("axe.run().then(arguments[0], arguments[0])")

    browser.set_system_scheme("")  # as before, for other tests
    violations = [(rule["id"], rule["nodes"][0]["html"]) for rule in result["violations"]]
    assert violations == []
    # The program did check: the page keeps more than thirty rules.
    assert len(result["passes"]) > 30


def read_axe() -> str:
    """Read the program axe-core from the package that has it."""
    # Tests that need the package are skipped without it; this tells so to checkers of types.
    assert AXE is not None
    assert AXE.origin is not None
    return Path(AXE.origin).with_name("axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def report_of_forty_methods(tmp_path_factory):
    """The report of random search and 39 other methods on ten benchmarks."""
    methods = ["random-search", *(f"a-method-with-a-name-{number}" for number in range(39))]
    trials_of_benchmarks = []
    for number in range(10):
        trials = made_up_trials(
            f"benchmark-{number}@1",
            trials=25,
            entropy=number,  # each benchmark has other losses
            methods=methods,
            tasks=12,
            seeds=3,
        )
        trials_of_benchmarks.append(trials)
    folder: Path = tmp_path_factory.mktemp("large")
    return write_report(ReportInput(pd.concat(trials_of_benchmarks, ignore_index=True)), folder)


BOXES_SAY_WHETHER_THEY_SCROLL = (
    "return [...document.querySelectorAll('.scroll')].every((box) =>"
    " getComputedStyle(box, '::before').content.includes('Scroll')"
    " === box.scrollWidth > box.clientWidth)"
)
"""A script: whether those boxes have a note "Scroll", and no others, that are too narrow."""


@pytest.fixture(params=[WIDE, NARROW])
def large_browser(driver, report_of_forty_methods, request):
    """The page of forty methods in a wide or a narrow window, after its layout has settled."""
    opened = Browser(driver, report_of_forty_methods.page.as_uri())
    opened.open(width=request.param)
    opened.wait(BOXES_SAY_WHETHER_THEY_SCROLL)
    return opened


def test_scrolling_boxes_say_so(large_browser):
    assert large_browser.run(BOXES_SAY_WHETHER_THEY_SCROLL)


def test_all_rows_are_numbered_and_counted(large_browser):
    assert large_browser.read_column("No.") == [str(number) for number in range(1, 41)]
    assert large_browser.read_caption().endswith("40 methods")


def test_all_rows_are_shown(large_browser):
    """The box around the table has the height of the table, so that it need not be scrolled."""
    height_of_box = "return document.querySelector('.board').clientHeight"
    height_of_table = "return document.querySelector('#lb').offsetHeight"
    assert large_browser.run(height_of_box) >= large_browser.run(height_of_table)


def test_reference_is_visible_in_chart(large_browser):
    """The chart names the five best methods and the reference, random search, beside dots.

    A name that ends beyond the right edge of the chart is cut off, and does not count.
    """
    # Marks of the chart's layer 4 are the dots at the ends of curves, those of layer 5 the names.
    names_within_chart = (
        "const svg = document.querySelector('#chart svg').getBoundingClientRect();"
        "return [...document.querySelectorAll('#chart .layer_5_marks text')]"
        ".filter((node) => node.getBoundingClientRect().right <= svg.right)"
        ".map((node) => node.textContent)"
    )
    number_of_dots = "return document.querySelectorAll('#chart .layer_4_marks path').length"

    names = large_browser.run(names_within_chart)

    named_methods = 5 + 1
    assert len(names) == named_methods
    assert "random-search" in names
    assert large_browser.run(number_of_dots) == named_methods


def test_names_in_chart_are_dark(large_browser):
    """The names at the ends of curves: text in the colours of the curves would be too pale."""
    fill = "return getComputedStyle(document.querySelector('#chart .layer_5_marks text')).fill"
    almost_black = "rgb(26, 26, 27)"
    assert large_browser.run(fill) == almost_black


def test_table_too_wide_for_phone_is_marked(driver, report_of_forty_methods):
    """The box around a table that is wider than the screen has the class "wide"."""
    browser = Browser(driver, report_of_forty_methods.page.as_uri())
    browser.open(width=NARROW)
    browser.wait(BOXES_SAY_WHETHER_THEY_SCROLL)

    assert browser.run("return document.querySelector('.board').classList.contains('wide')")


NAMES_OF_COLOURED_METHODS = (
    "return [...document.querySelectorAll('#lb button[aria-pressed=true]')]"
    ".map((node) => node.dataset.method)"
)
"""A script: names of the methods whose buttons in the table are pressed, from the top."""


@pytest.fixture
def wide_browser_of_forty_methods(driver, report_of_forty_methods):
    """The page of forty methods in a wide window, newly opened: it is sorted by mean ranks."""
    browser = Browser(driver, report_of_forty_methods.page.as_uri())
    browser.open()
    return browser


def assert_first_five_are_coloured(browser: Browser) -> None:
    """The first five methods of the table are in colour, and random search, wherever it is."""
    first_five = browser.read_column("Method")[:5]
    assert browser.run(NAMES_OF_COLOURED_METHODS) == [*first_five, "random-search"]


def test_best_methods_are_coloured_at_first(wide_browser_of_forty_methods):
    assert_first_five_are_coloured(wide_browser_of_forty_methods)


@pytest.mark.parametrize("measure", ["score", "regret"])
def test_colours_follow_order_of_table(wide_browser_of_forty_methods, measure):
    """Until the user chooses colours, the first methods in the current order have them."""
    wide_browser_of_forty_methods.press(f"#lb button[data-key='{measure}']")  # sorts by it

    assert_first_five_are_coloured(wide_browser_of_forty_methods)


def test_chosen_colours_stay_in_other_order(wide_browser_of_forty_methods):
    """Once the user took the colour of a method, the order of the table changes no colours."""
    browser = wide_browser_of_forty_methods
    browser.press("#lb button[data-key='regret']")  # sorts by regrets
    first, second, *others = browser.run(NAMES_OF_COLOURED_METHODS)
    browser.press(f"#lb button[data-method='{second}']")  # takes its colour away
    assert set(browser.run(NAMES_OF_COLOURED_METHODS)) == {first, *others}

    browser.press("#lb button[data-key='rank']")  # sorts by mean ranks

    assert set(browser.run(NAMES_OF_COLOURED_METHODS)) == {first, *others}


def test_page_of_forty_methods_is_small(report_of_forty_methods):
    assert report_of_forty_methods.page.stat().st_size < MOST_BYTES


def test_forty_methods_fit(large_browser):
    """The page needs no scrolling to the side, also with all details open."""
    large_browser.run(OPEN_ALL_DETAILS)
    assert large_browser.run("return document.scrollingElement.scrollWidth <= innerWidth")


def test_forty_methods_are_shown_soon(driver, report_of_forty_methods):
    """The fastest of three times counts: other programs may slow down the others."""
    browser = Browser(driver, report_of_forty_methods.page.as_uri())
    time_when_ready = "return performance.getEntriesByName('ready')[0].startTime"

    milliseconds = []
    for width in (WIDE, NARROW, WIDE):
        browser.open(width=width)
        milliseconds.append(browser.run(time_when_ready))

    assert min(milliseconds) / 1000 < MOST_SECONDS


def test_forty_methods_are_printed(driver, report_of_forty_methods):
    """On paper, the page is neither cut off, as on less than three pages, nor blown up."""
    Browser(driver, report_of_forty_methods.page.as_uri()).open()
    a4 = {"paperWidth": 8.27, "paperHeight": 11.7}  # inches

    printed = driver.execute_cdp_cmd("Page.printToPDF", a4)

    pdf = base64.b64decode(printed["data"])
    pages = re.findall(rb"/Type\s*/Page\b", pdf)
    assert 3 <= len(pages) <= MOST_PAGES


def test_page_has_one_family_of_type(browser):
    """All texts are sans-serif but the messages of failures, which are the output of programs."""
    families = browser.run(
        "const texts = document.querySelectorAll("
        " 'h1, h2, p:not(.message), td, th, a, button, figure svg text');"
        "return [...new Set([...texts].map((node) => getComputedStyle(node).fontFamily))]"
    )
    assert len(families) == 1
    assert families[0].endswith("sans-serif")


@pytest.mark.parametrize("selector", ["#verdict table", "#lb", "#chart", "#run table"])
def test_width_of_page_is_used(driver, report_of_forty_methods, selector):
    """The tables and the chart reach to the right margin of a wide page."""
    browser = Browser(driver, report_of_forty_methods.page.as_uri())
    browser.open(width=WIDE)
    right_end = "return document.querySelector(arguments[0]).getBoundingClientRect().right"
    largest_margin = 50  # pixels
    assert WIDE - largest_margin < browser.run(right_end, selector) <= WIDE
