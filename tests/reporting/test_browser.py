"""The page in a browser: Chromium without a window, where it is installed."""

import json
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

from hpobench_ordered.reporting import Report
from hpobench_ordered.reporting.page.coverage import coverage
from hpobench_ordered.reporting.page.leaderboard import leaderboard
from hpobench_ordered.analysis.scoring import score_benchmarks

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
DRIVER = shutil.which("chromedriver")

pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="chromium and chromedriver are not installed"
)

OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WIDTHS = (1400, 390)


class Browser:
    """A browser with the page in it."""

    def __init__(self, driver: Any, address: str) -> None:
        self.driver = driver
        self.address = address

    def open(self, *, state: str = "", width: int = 1400) -> None:
        self.resize(width)
        self.driver.get("about:blank")  # so that another state is another visit
        self.driver.get(self.address + state)
        self.wait("return location.protocol === 'file:' && document.readyState === 'complete'")

    def wait(self, condition: str, *arguments: object) -> None:
        WebDriverWait(self.driver, 10).until(lambda _: self.run(condition, *arguments))

    def resize(self, width: int) -> None:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def run(self, script: str, *arguments: object) -> Any:
        return self.driver.execute_script(script, *arguments)

    def rows(self) -> list[list[str]]:
        """Texts of the leaderboard, without what is in small print."""
        return self.run(
            "return [...document.querySelectorAll('#lb tbody tr')].map(row => [...row.cells]"
            ".map(cell => cell.firstChild ? cell.firstChild.textContent : ''))"
        )

    def methods(self) -> list[str]:
        return [row[0] for row in self.rows()]

    def press(self, selector: str) -> None:
        self.driver.find_element("css selector", selector).click()

    def choose(self, selector: str, value: str) -> None:
        self.run(
            "const node = document.querySelector(arguments[0]); node.value = arguments[1];"
            "for (const kind of ['input', 'change'])"
            " node.dispatchEvent(new Event(kind, {bubbles: true}))",
            selector,
            value,
        )


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for option in (*OPTIONS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield started
    started.quit()


@pytest.fixture
def browser(driver: Any, page_report: Report) -> Browser:
    opened = Browser(driver, page_report.page.as_uri())
    opened.open()
    return opened


@pytest.fixture(scope="module")
def boards(page_input: Any) -> list[dict[str, Any]]:
    """The numbers of the leaderboard."""
    scored, _ = score_benchmarks(page_input.trials, page_input.overview.runs)
    return leaderboard(scored, coverage(page_input.overview.runs), {})


def test_nothing_is_requested_and_nothing_goes_wrong(driver: Any, browser: Browser) -> None:
    for kind in ("browser", "performance"):
        driver.get_log(kind)  # of what was before
    browser.open()
    browser.press("#theme")
    browser.press("#lb thead th:nth-child(2) button")
    assert driver.get_log("browser") == []
    messages = (json.loads(entry["message"])["message"] for entry in driver.get_log("performance"))
    requested = {
        message["params"]["request"]["url"].partition("#")[0]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    }
    assert requested <= {browser.address, "about:blank"}
    assert browser.run("return performance.getEntriesByType('resource').length") == 0
    assert browser.run("return document.querySelectorAll('img, b, i, u, s').length") == 0


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_is_not_wider_than_the_window(browser: Browser, width: int) -> None:
    browser.open(width=width)
    browser.run(
        "for (const node of document.querySelectorAll('details')) node.open = true;"
        "for (const node of document.querySelectorAll('section, details'))"
        " node.style.contentVisibility = 'visible'"
    )
    assert browser.run("return document.scrollingElement.scrollWidth <= innerWidth")
    assert browser.run("return document.scrollingElement.scrollHeight > 3000")


def test_tables_of_texts_fit_into_a_wide_window(browser: Browser) -> None:
    widths = browser.run(
        "return [...document.querySelectorAll('table.texts')].map(table =>"
        " [table.parentElement.scrollWidth, table.parentElement.clientWidth])"
    )
    assert len(widths) == 2
    assert all(needed <= there for needed, there in widths)


def test_what_repeats_a_figure_is_closed(browser: Browser) -> None:
    closed = (
        "return [...document.querySelectorAll('details:not([open]) a[download]')]"
        ".map(link => link.getAttribute('href'))"
    )
    assert any("/wins-" in link for link in browser.run(closed))


def test_names_of_methods_are_not_broken_in_a_narrow_window(browser: Browser) -> None:
    browser.open(width=390)
    lines = (
        "const node = [...document.querySelectorAll('#lb tbody th')]"
        ".find(th => th.textContent === 'bo');"
        "const heights = (text) => { node.textContent = text;"
        " const range = document.createRange(); range.selectNodeContents(node);"
        " return range.getClientRects().length };"
        "return [heights('optuna.TPESampler'), heights('two words that are longer than a line')]"
    )
    one, several = browser.run(lines)
    assert one == 1
    assert several > 1


def test_the_first_view_is_the_one_without_scripts(driver: Any, browser: Browser) -> None:
    with_scripts = browser.run("return document.querySelector('#lb').innerText")
    notes = browser.run("return document.querySelector('#lb-notes').innerText")
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.open()
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert browser.run("return document.querySelector('#lb').innerText") == with_scripts
    assert browser.run("return document.querySelector('#lb-notes').innerText") == notes
    assert not browser.run("return document.documentElement.classList.contains('js')")
    assert browser.run("return document.querySelectorAll('.static table').length") == 1


def test_a_heading_sorts_the_column(browser: Browser) -> None:
    heading = "#lb thead th:nth-child(4)"  # mean rank
    for order in ("ascending", "descending"):
        browser.press(f"{heading} button")
        ranks = [float(row[3]) for row in browser.rows() if len(row) > 6]
        assert len(ranks) == 3
        assert ranks == sorted(ranks, reverse=order == "descending")
        found = browser.run(
            "return document.querySelector(arguments[0]).getAttribute('aria-sort')", heading
        )
        assert found == order
        assert browser.methods()[-1] == "cts"  # which has no rank
        assert browser.run("return document.querySelectorAll('#lb [aria-sort]').length") == 1
    browser.press("#lb thead th:first-child button")
    assert browser.methods()[1:] == ["bo", "cts", "random-search"]


def test_headings_can_be_reached_and_pressed_by_keyboard(browser: Browser) -> None:
    browser.run("document.querySelector('#lb thead th:nth-child(3) button').focus()")
    for key in (Keys.TAB, Keys.ENTER):
        ActionChains(browser.driver).send_keys(key).perform()
    assert browser.run("return document.activeElement.closest('th').dataset.key") == "rank"
    assert browser.run("return document.querySelector('#lb [aria-sort]').dataset.key") == "rank"


def test_benchmarks_and_trials_choose_the_rows(
    browser: Browser, boards: list[dict[str, Any]]
) -> None:
    entry = next(e for e in boards[0]["benchmarks"] if e["name"] == "xgboost-mnist@1 (forest)")
    browser.choose("#lb-group", "b xgboost-mnist@1 (forest)")
    assert len(browser.rows()) == 4
    for trial in (2, 6):
        browser.choose("#lb-trial", str(trial))
        for row in browser.rows():
            place = entry["methods"].index(row[0])
            expected = entry["measures"]["rank"]["mean"][place][trial - 1]
            assert float(row[3]) == pytest.approx(expected, abs=0.0051)
            contests = [entry[name][place][trial - 1] for name in ("wins", "ties", "losses")]
            assert row[5] == "\u2009/\u2009".join(map(str, contests))
    interval = browser.run("return document.querySelector('#lb small').textContent")
    browser.choose("#lb-interval", "tasks")
    assert browser.run("return document.querySelector('#lb small').textContent") != interval
    browser.choose("#lb-interval", "none")
    assert browser.run("return document.querySelectorAll('#lb td small').length") == 0


def test_any_choice_of_benchmarks_is_averaged(
    browser: Browser, boards: list[dict[str, Any]]
) -> None:
    browser.press("form.controls summary")
    names = ["newsvendor@1 (forest)", "own@1 (forest)"]
    browser.press('#lb-benchmarks input[value="xgboost-mnist@1 (forest)"]')
    entries = [e for e in boards[0]["benchmarks"] if e["name"] in names]
    shown = {row[0]: row for row in browser.rows()}
    for method in ("random-search", "bo"):
        means = [e["measures"]["rank"]["mean"][e["methods"].index(method)][-1] for e in entries]
        assert float(shown[method][3]) == pytest.approx(sum(means) / 2, abs=0.0051)
    assert "unranked: on 1 of 2 benchmarks" in shown["cts"][1]
    assert "No intervals" in browser.run("return document.querySelector('#lb-notes').innerText")


def test_the_address_keeps_the_view(browser: Browser) -> None:
    browser.choose("#lb-protocol", "leave-one-out(trials=4)")
    browser.choose("#lb-trial", "3")
    browser.press("#lb thead th:nth-child(5) button")
    rows = browser.rows()
    state = browser.run("return location.hash")
    assert "protocol=leave-one-out" in state
    browser.open()
    assert browser.rows() != rows
    browser.open(state=state)
    assert browser.rows() == rows
    browser.open(state="#protocol=none&trial=900&sort=none&benchmark=none&order=up")
    assert len(browser.rows()) == 4


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_is_that_of_the_system_until_one_is_chosen(
    driver: Any, browser: Browser, scheme: str
) -> None:
    feature = {"name": "prefers-color-scheme", "value": scheme}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    browser.run("try { localStorage.clear() } catch {}")
    browser.open()
    lightness = (
        "const rgb = getComputedStyle(document.documentElement).backgroundColor.match(/[0-9]+/g);"
        "return Math.max(...rgb.slice(0, 3).map(Number))"
    )
    is_dark = [browser.run(lightness) < 128]
    browser.press("#theme")
    is_dark.append(browser.run(lightness) < 128)
    assert is_dark == ([False, True] if scheme == "light" else [True, False])
    browser.run("try { localStorage.clear() } catch {}")


CONTRAST = """
const parse = (colour) => colour.match(/[0-9.]+/g).map(Number);
const luminance = (rgb) => {
  const [r, g, b] = rgb.slice(0, 3).map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (node) => {
  for (; node; node = node.parentElement) {
    const colour = getComputedStyle(node).backgroundColor;
    if (!/rgba\\(.*, 0\\)/.test(colour)) return colour;
  }
  return 'rgb(255, 255, 255)';
};
let worst = [99, ''];
for (const node of document.querySelectorAll('body *:not(svg, svg *, script, option)')) {
  if (![...node.childNodes].some((c) => c.nodeType === 3 && c.textContent.trim())) continue;
  const a = luminance(parse(getComputedStyle(node).color));
  const b = luminance(parse(behind(node)));
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < worst[0]) worst = [ratio, node.tagName + '.' + node.className];
}
return worst;
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(driver: Any, browser: Browser, scheme: str) -> None:
    feature = {"name": "prefers-color-scheme", "value": scheme}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    browser.open()
    ratio, where = browser.run(CONTRAST)
    assert ratio >= 4.5, where


def test_a_link_opens_what_it_leads_to(browser: Browser) -> None:
    closed = browser.run("return document.querySelector('details.benchmark:not([open])').id")
    browser.run("document.querySelector(`nav a[href='#${arguments[0]}']`).click()", closed)
    browser.wait("return document.getElementById(arguments[0]).open", closed)


def test_printing_shows_everything_in_light_colours(browser: Browser) -> None:
    browser.run("document.documentElement.dataset.theme = 'dark'")
    count = "return document.querySelectorAll('details.benchmark:not([open])').length"
    theme = "return document.documentElement.dataset.theme"
    assert browser.run(count) == 3
    browser.run("dispatchEvent(new Event('beforeprint'))")
    assert (browser.run(count), browser.run(theme)) == (0, "light")
    browser.run("dispatchEvent(new Event('afterprint'))")
    assert (browser.run(count), browser.run(theme)) == (3, "dark")
