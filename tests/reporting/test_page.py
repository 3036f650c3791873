import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpobench_ordered.reporting import Report, ReportInput
from hpobench_ordered.reporting.page.coverage import coverage
from hpobench_ordered.reporting.page.formats import Table, latex, latex_text, markdown
from hpobench_ordered.reporting.page.leaderboard import leaderboard
from hpobench_ordered.reporting.page.provenance import duration, timing_table
from hpobench_ordered.reporting.page.render import as_json
from hpobench_ordered.reporting.page.view import first_view
from hpobench_ordered.reporting.scoring import ranges, score_benchmarks

VOID = {"meta", "input", "br", "img", "link"}


class Page(HTMLParser):
    """What is on a page: elements with their attributes, and texts by the element they are in."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self._open[-1] if self._open else "", data))

    def within(self, tag: str) -> list[str]:
        return [text for where, text in self.texts if where == tag]

    def finished(self) -> bool:
        return not self._open


@pytest.fixture(scope="module")
def page(page_report: Report) -> Page:
    return Page(page_report.page.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def boards(page_input: ReportInput) -> list[dict]:
    scored, _ = score_benchmarks(page_input.trials, page_input.overview.runs)
    return leaderboard(scored, coverage(page_input.overview.runs), {})


def test_the_page_is_well_formed_and_names_no_address(page: Page) -> None:
    assert page.finished()
    for tag, attributes in page.elements:
        assert tag not in {"link", "iframe", "object", "embed", "base", "img"}
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            if name in {"src", "href", "xlink:href", "action", "data"}:
                assert not re.match(r"[a-z]+:|//", value or ""), (tag, value)
    (style,) = page.within("style")
    assert "url(" not in style
    assert "@import" not in style


def test_links_lead_to_what_is_there(page: Page, page_report: Report) -> None:
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids))
    links = [a["href"] for tag, a in page.elements if tag == "a"]
    assert len(links) > 50
    for link in links:
        if link.startswith("#"):
            assert link[1:] in ids
        else:
            assert (page_report.page.parent / unquote(link)).is_file(), link


def test_the_policy_allows_the_own_script_alone(page: Page) -> None:
    (policy,) = (
        a["content"] for t, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"
    )
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    scripts = [text for text in page.within("script") if not text.startswith("{")]
    digest = base64.b64encode(hashlib.sha256("".join(scripts).encode()).digest()).decode()
    assert rules["script-src"] == f"'sha256-{digest}'"


def test_names_messages_and_tracebacks_are_text(page: Page, page_input: ReportInput) -> None:
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"b", "i", "u", "s", "img"}
    assert sum(tag == "script" for tag, _ in page.elements) == 2
    hostile = sorted(set(page_input.trials["method"]))
    (name,) = (name for name in hostile if "<img" in name)
    assert name in page.within("th")
    (failure,) = page_input.overview.failures
    assert failure.message in page.within("p")
    assert failure.traceback in page.within("pre")
    assert "<s>fast</s>" in page.within("td")


def test_the_numbers_of_the_page_are_json(page: Page) -> None:
    (text,) = (text for text in page.within("script") if text.startswith("{"))
    assert not re.search(r"[<>&\u2028\u2029]", text)
    data = json.loads(text)
    assert [board["trials"] for board in data["boards"]] == [6, 4]


@given(st.text())
def test_json_within_a_script(text: str) -> None:
    written = as_json({text: text})
    assert not re.search(r"[<>&\u2028\u2029]", written)
    assert json.loads(written) == {text: text}


def test_means_of_one_benchmark_are_those_of_its_scores(
    boards: list[dict], page_input: ReportInput
) -> None:
    scored, _ = score_benchmarks(page_input.trials, page_input.overview.runs)
    by_name = {(b["name"], e["name"]): e for b in boards for e in b["benchmarks"]}
    assert len(by_name) == len(scored) == 4
    for item in scored:
        entry = by_name[item.protocol, item.benchmark]
        for name in ("score", "normalised regret", "rank", "regret over trials"):
            for trial in range(1, item.last_trial + 1):
                expected = item.over_tasks(name, trial).mean
                found = [row[trial - 1] for row in entry["measures"][name]["mean"]]
                np.testing.assert_allclose(found, expected, rtol=1e-4)
                for over in ("seeds", "tasks"):
                    lower, upper = entry["measures"][name][over]
                    for a, mean in enumerate(found):
                        assert lower[a][trial - 1] <= mean <= upper[a][trial - 1]


def test_a_group_is_the_plain_mean_of_its_benchmarks(boards: list[dict]) -> None:
    (first, second) = boards
    assert [group["name"] for group in first["groups"]] == ["all", "othpo"]
    assert second["groups"] == []
    everything, suite = first["groups"]
    assert "cts" in suite["methods"]
    assert "cts" not in everything["methods"]
    for group in first["groups"]:
        entries = [first["benchmarks"][place] for place in group["benchmarks"]]
        for name, found in group["measures"].items():
            for method in group["methods"]:
                own = [e["measures"][name]["mean"][e["methods"].index(method)] for e in entries]
                place = group["methods"].index(method)
                np.testing.assert_allclose(
                    found["mean"][place], np.mean(own, axis=0), rtol=2e-4, atol=1e-9
                )
    # Seed 1 counts on two of the three benchmarks, so that no seed is a sample of all.
    assert everything["measures"]["rank"]["seeds"][0][0][0] is None
    assert everything["measures"]["rank"]["tasks"][0][0][0] is not None
    assert suite["measures"]["rank"]["seeds"][0][0][0] is not None


def test_wins_are_those_of_a_count_by_hand(boards: list[dict], page_input: ReportInput) -> None:
    entry = next(e for e in boards[0]["benchmarks"] if e["name"].startswith("newsvendor"))
    trials = page_input.trials
    own = trials[(trials["benchmark"] == "newsvendor@1") & (trials["trial"] <= 3)]
    own = own[own["protocol"].str.startswith("ordered") & (own["task"] > 0)]
    best = own.groupby(["method", "seed", "task"])["loss"].min().unstack("method")
    won = (best.lt(best["cts"], axis=0)).sum()
    place = entry["methods"].index("cts")
    assert entry["losses"][place][2] == won.sum()
    assert entry["wins"][place][2] == best.gt(best["cts"], axis=0).sum().sum()
    assert entry["ties"][place][2] == 0


def test_a_method_that_is_not_compared_everywhere_is_shown_unranked(boards: list[dict]) -> None:
    view = first_view(boards[0])
    *ranked, last = view.rows
    assert last.method == "cts"
    assert last.note == ("unranked: on 2 of 3 benchmarks; finished own@1 (forest): 1 of 4 seeds")
    assert not any(row.is_unranked for row in ranked)
    scores = [float(row.cells[0].text.replace("\u2212", "-")) for row in ranked]
    assert scores == sorted(scores)
    failed = {row.method: row.cells[-2] for row in view.rows}
    assert failed["bo"].text == "0 of 12"
    assert failed["cts"].interval == "3 missing"
    assert {row.cells[-2].text for row in ranked} == {"0 of 12", "1 of 12"}


def test_without_random_search_the_leaderboard_says_so(page_input: ReportInput) -> None:
    trials = page_input.trials[page_input.trials["method"] != "random-search"]
    scored, _ = score_benchmarks(trials)
    board = leaderboard(scored, coverage(trials[:0].assign(state="done")), {})[0]
    view = first_view({**board, "methods": list(scored[0].methods)})
    assert view.sorted_by == "normalised regret"
    assert view.notes[0].startswith("Normalised score: on 0 of 3 benchmarks (the normalised score")


def test_failures_are_all_there(page: Page, page_report: Report) -> None:
    assert "Of 64 planned runs: 60 done, 1 failed, 3 missing." in " ".join(page.within("p"))
    table = pd.read_csv(page_report.page.parent / "tables" / "failures.csv")
    assert list(table["reason"]) == ["raised"]
    runs = pd.read_csv(page_report.page.parent / "tables" / "experiment.csv")
    assert runs["state"].value_counts().to_dict() == {"done": 60, "missing": 3, "failed": 1}
    counts = pd.read_csv(page_report.page.parent / "tables" / "coverage.csv")
    assert counts[["done", "failed", "running", "missing"]].sum().tolist() == [60, 1, 0, 3]


def table(*cells: str) -> Table:
    return Table("t", cells[0], cells, [cells, cells], 1, pd.DataFrame())


@given(st.lists(st.text(st.characters(codec="utf-8")), min_size=1, max_size=4))
def test_markdown_has_as_many_cells_as_it_should(cells: list[str]) -> None:
    lines = markdown(table(*cells)).split("\n")
    assert len(lines) == 4 + 3
    for line in (lines[0], *lines[2:4]):
        free = re.sub(r"\\.", "", line)
        assert free.count("|") == len(cells) + 1
        assert "<" not in free


@given(st.text(st.characters(codec="utf-8")))
def test_latex_has_no_commands_but_its_own(text: str) -> None:
    written = latex_text(text)
    for own in (r"\\(text[a-z]+|dots)\{\}", r"\\[&%$#_{},]", r"\$(\\pm|-|\\cdot)\$"):
        written = re.sub(own, "", written)
    assert not re.search(r"[\\&%$#_{}~^]", written)


def test_latex_of_a_table() -> None:
    written = latex(Table("t", "5 % of a_b", ("x & y", "n"), [("ü", "1 ± 2")], 1, pd.DataFrame()))
    assert "\\caption{5 \\% of a\\_b}\n  \\label{tab:t}\n" in written
    assert r"\begin{tabular}{lr}" in written
    assert r"x \& y & n \\" in written
    assert r"ü & 1 $\pm$ 2 \\" in written
    assert [written.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule")] == [1, 1, 1]


def test_latex_of_wrapped_and_of_the_best_cells() -> None:
    cells = [("long text", "1"), ("b", "2 µs"), ("\u2013", "1\u202f000")]
    shown = Table("t", "c", ("x", "n"), cells, 1, pd.DataFrame(), wrapped=(0,), best={(1, 1)})
    written = latex(shown)
    assert r"\begin{tabular}{p{0.60\linewidth}r}" in written
    assert r"b & \textbf{2 \textmu{}s} \\" in written
    assert r"-- & 1\,000 \\" in written
    assert written.count("textbf") == 1
    assert written.isascii()


def test_tables_in_print_are_labelled_and_their_captions_short(page_report: Report) -> None:
    paths = sorted((page_report.page.parent / "tables").glob("*.tex"))
    assert len(paths) > 10
    for path in paths:
        written = path.read_text(encoding="utf-8")
        assert f"\\label{{tab:{path.stem}}}" in written
        (caption,) = re.findall(r"^  \\caption\{(.*)\}$", written, re.MULTILINE)
        assert len(re.findall(r"[.:] [A-Z]", caption)) <= 2, caption
        best = path.stem.startswith(("leaderboard", "summary"))
        assert (r"\textbf{" in written) == best, path.stem


def test_the_leaderboard_as_a_file_is_numbers(boards: list[dict], page_report: Report) -> None:
    board = boards[0]
    (path,) = (page_report.page.parent / "tables").glob("leaderboard-ordered*.csv")
    table = pd.read_csv(path).set_index(["group", "trial", "method"]).sort_index()
    text = table.select_dtypes(exclude="number").columns
    assert list(text) == ["protocol"]
    assert set(table["protocol"]) == {board["name"]}
    assert len(table) == (2 + 3) * 6 * 4
    for group in (*board["groups"], *board["benchmarks"]):
        for measure, found in group["measures"].items():
            name = measure.replace(" ", "_")
            for a, method in enumerate(group["methods"]):
                row = table.loc[(group["name"], 4, method)]
                assert row[name] == pytest.approx(found["mean"][a][3], nan_ok=True)
                for over in ("seeds", "tasks"):
                    for side, end in zip(("lower", "upper"), found[over], strict=True):
                        expected = np.nan if end[a][3] is None else end[a][3]
                        assert row[f"{name}_{side}_{over}"] == pytest.approx(expected, nan_ok=True)
    everything = table.loc["all", 6]
    assert everything.loc["cts", ["rank", "wins"]].isna().all()
    assert everything["planned"].to_dict() == dict.fromkeys(board["methods"], 12)
    assert everything["failed"].sum() == 1
    assert everything.loc["bo", "seconds_per_suggestion"] == pytest.approx(0.5 / 18)
    contests = everything.loc["bo", ["wins", "ties", "losses"]].sum()
    own = [table.loc[(b["name"], 6, "bo")] for b in board["benchmarks"]]
    assert contests == sum(row[["wins", "ties", "losses"]].sum() for row in own)


def test_files_of_tables_hold_numbers(page_report: Report) -> None:
    for path in (page_report.page.parent / "tables").glob("*.csv"):
        if path.stem in {"failures", "sessions"}:
            continue
        table = pd.read_csv(path)
        text = set(table.select_dtypes(exclude="number").columns)
        known = {"benchmark", "surrogate", "protocol", "method", "other", "task", "measure"}
        assert text <= known | {"group", "state"}, path.name


def test_the_leaderboard_comes_first_and_what_is_missing_before_it(page_report: Report) -> None:
    text = page_report.page.read_text(encoding="utf-8")
    sections = re.findall(r'<section id="([a-z]+)', text)
    assert sections[:2] == ["leaderboard", "coverage"]
    assert sections[-2:] == ["run", "files"]
    listed = re.findall(r'<li><a href="#([a-z]+)', text)
    assert [name for name in listed if name in sections] == sections
    alert = text.index('class="alert"')
    assert text.index('<section id="leaderboard">') < alert < text.index('<table id="lb">')
    assert "Not finished, of 64 runs: 1 failed, 3 missing." in text


def test_settings_that_say_nothing_are_not_shown(page: Page) -> None:
    shown = [text for tag, text in page.texts if tag not in {"script", "style"}]
    assert any("ordered, 6 trials" in text for text in shown)
    assert not any("tasks=None" in text for text in shown)


def test_why_a_measure_is_not_available() -> None:
    index = pd.MultiIndex.from_product(
        [["random-search"], range(2), range(2), range(1, 4)],
        names=["method", "seed", "task", "trial"],
    )
    trials = pd.DataFrame(index=index).reset_index()
    trials = trials.assign(loss=trials["trial"], value=trials["trial"], regret=np.nan, fallbacks=0)
    trials = trials.assign(benchmark="x@1", surrogate="table", protocol="ordered()", task_name="t")
    scored, _ = score_benchmarks(trials)
    board = leaderboard(scored, coverage(trials.assign(state="done")), {})[0]
    assert first_view(board).notes == (
        "Normalised score: not available (no method ends better than random search).",
        "Normalised regret: not available (no best value is known).",
        "Regret over trials: not available (no best value is known).",
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(4.2e-7, "0.42 µs"), (5.4e-4, "540 µs"), (0.0123, "12.3 ms"), (7.0, "7 s"), (3e4, "8.33 h")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@given(st.sets(st.integers(0, 60), min_size=1))
def test_ranges_name_every_number_once(numbers: set[int]) -> None:
    found = []
    for part in ranges(numbers).split(", "):
        first, _, last = part.partition(" to ")
        found += range(int(first), int(last or first) + 1)
    assert found == sorted(numbers)
    assert ranges([4, 1, 2, 3, 9]) == "1 to 4, 9"


def test_times_of_methods(page_input: ReportInput) -> None:
    shown = {row[0]: row[1:] for row in timing_table(page_input.timings).rows}
    assert shown["bo"] == ("16", "288", "27.8 ms", "8 s", "16 s")
