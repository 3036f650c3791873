"""Whether finished runs of a user's method are resumed, or run again after a change."""

import functools
import importlib
import shutil
import sys
import textwrap
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from user_project import FILES, SUM_OF_NUMBERS, run_python, write_project

import hpobench_ordered as hbo
from hpobench_ordered.experiment.job import FailedRun, FinishedRun, perform_in_child
from hpobench_ordered.experiment.plan import plan
from hpobench_ordered.experiment.user_methods.identity import identify_method
from hpobench_ordered.runtime.child import Children
from hpobench_ordered.tuning import as_method_spec

METHOD = "mine_of_user:Mine"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with the files of a method, which is on the path of imports."""
    folder = tmp_path / "project"
    write_project(folder)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(folder), str(folder / "site-packages"), *sys.path])
    yield folder
    forget_modules_of_user()


def forget_modules_of_user() -> None:
    """Let this process import the modules again, as a new process would."""
    importlib.invalidate_caches()
    for name in list(sys.modules):
        if "_of_user" in name:
            del sys.modules[name]


def run_method(method: object = METHOD, *, workers: int = 1) -> tuple[int, int]:
    """Make one run in a store of the working folder.

    Returns:
        The number of finished runs in the store, and the first price that the method suggested.
    """
    results = hbo.run(
        benchmarks=["newsvendor"],
        methods=[method],
        seeds=[0],
        protocol=hbo.Ordered(trials=1, tasks=1),
        folder="results",
        workers=workers,
        progress=False,
    )
    first_trial = results.frame(configurations=True).iloc[0]
    return len(results.store.keys()), int(first_trial["config.price_0"])


def replace_in_file(name: str, old: str, new: str) -> dict[str, str]:
    """The text of a file of the project after a change, by its name."""
    assert old in FILES[name]
    return {name: FILES[name].replace(old, new)}


CHANGES = {
    "constant": replace_in_file("mine_of_user.py", "CONSTANT = 1", "CONSTANT = 2"),
    "body": replace_in_file("mine_of_user.py", "+ self.extra", "+ self.extra + 1"),
    "default": replace_in_file("mine_of_user.py", "extra=0", "extra=1"),
    "helper": replace_in_file("helper_of_user.py", "= FURTHER", "= FURTHER + 1"),
    "imported by the helper": replace_in_file("further_of_user.py", "1", "2"),
    "imported by its package": replace_in_file("package_of_user/sibling.py", "1", "2"),
    "imported in a function": replace_in_file("late_of_user.py", "1", "2"),
    "user's module in place of an installed one": {"installed_of_user.py": "NUMBER = 2\n"},
}
"""Files of the project after a change, after which the first price is one higher.

The last one adds a file, which stays.
"""


@pytest.mark.slow
def test_changed_method_is_run_again(project):
    """One file after another is changed, and then as before, while the next one is changed.

    They are the method's own and what they import. Each change needs a run of its own.
    """
    assert run_method() == (1, SUM_OF_NUMBERS)

    for number_of_runs, (name, change) in enumerate(CHANGES.items(), start=2):
        forget_modules_of_user()
        write_project(project, change)

        assert run_method() == (number_of_runs, SUM_OF_NUMBERS + 1), name


@pytest.mark.slow
def test_comment_and_other_version_of_package_count(project):
    """What does not change the suggestions counts, too, as nothing tells that it does not."""
    run_method()

    write_project(project, {"mine_of_user.py": FILES["mine_of_user.py"] + "# a comment\n"})
    assert run_method() == (2, SUM_OF_NUMBERS)

    name = "site-packages/installed-1.0.dist-info/METADATA"
    write_project(project, replace_in_file(name, "Version: 1.0", "Version: 1.1"))
    assert run_method() == (3, SUM_OF_NUMBERS)


@pytest.mark.slow
def test_unchanged_method_is_resumed(project):
    """Neither a file that it does not import nor the number of processes matters."""
    run_method()
    (project / "unrelated_of_user.py").write_text("VALUE = 1\n")

    assert run_method(workers=2) == (1, SUM_OF_NUMBERS)


@pytest.mark.slow
def test_moved_method_is_resumed(project, monkeypatch):
    """The folder of the method's files is moved, and imported from where it is now."""
    run_method()
    forget_modules_of_user()
    moved = Path(shutil.move(project, project.with_name("elsewhere")))

    paths = [path.replace(str(project), str(moved)) for path in sys.path]
    monkeypatch.setattr(sys, "path", paths)

    assert run_method() == (1, SUM_OF_NUMBERS)


@pytest.mark.slow
def test_method_changed_back_is_resumed(project):
    """A file is changed that is imported only while the method runs; then it is as before."""
    run_method()
    write_project(project, replace_in_file("late_of_user.py", "1", "2"))
    assert run_method() == (2, SUM_OF_NUMBERS + 1)

    write_project(project)

    assert run_method() == (2, SUM_OF_NUMBERS)


@pytest.mark.slow
def test_arguments_and_names_count(project):
    """Methods are others if they have another argument, class or file; the same ones resume."""
    mine_of_user = importlib.import_module("mine_of_user")
    renamed = FILES["mine_of_user.py"].replace("class Mine", "class Renamed")
    write_project(project, {"renamed_of_user.py": renamed, "copy_of_user.py": renamed})

    partials = [functools.partial(mine_of_user.Mine, extra=extra) for extra in (1, 2, 1)]
    methods: list[Any] = [as_method_spec(partial, name="mine") for partial in partials]
    methods += ["renamed_of_user:Renamed", "copy_of_user:Renamed"]

    assert [run_method(method) for method in methods] == [(1, 6), (2, 7), (2, 6), (3, 5), (4, 5)]


@pytest.mark.slow
def test_lambda_is_run_again(project):
    """A lambda has no name by which it could be imported from its file."""
    mine_of_user = importlib.import_module("mine_of_user")
    method = as_method_spec(lambda space, rng: mine_of_user.Mine(space, rng, 1), name="mine")

    assert run_method(method) == (1, SUM_OF_NUMBERS + 1)
    assert run_method(method) == (2, SUM_OF_NUMBERS + 1)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_files_count_and_not_the_session(project, monkeypatch, workers):
    """A module is patched in the session, which changes nothing; then its file is edited."""
    mine_of_user = importlib.import_module("mine_of_user")
    monkeypatch.setattr(mine_of_user, "CONSTANT", 20)
    assert run_method(mine_of_user.Mine, workers=workers) == (1, SUM_OF_NUMBERS)

    write_project(project, CHANGES["constant"])

    assert run_method(mine_of_user.Mine, workers=workers) == (2, SUM_OF_NUMBERS + 1)


@pytest.mark.slow
def test_new_process_refuses_files_edited_meanwhile(project):
    """A file is edited: a process that loaded it before makes the run, a new process fails."""
    with closing(Children()) as old_children, closing(Children()) as new_children:
        (cell,) = plan(
            benchmarks=["newsvendor"],
            methods=[METHOD],
            seeds=[0],
            protocol=hbo.Ordered(trials=1, tasks=1),
            identify=lambda spec: identify_method(spec, old_children),
        )
        write_project(project, CHANGES["helper"])

        reply_of_old = perform_in_child(cell, None, old_children)
        reply_of_new = perform_in_child(cell, None, new_children)

    assert isinstance(reply_of_old, FinishedRun)
    assert isinstance(reply_of_new, FailedRun)
    assert "its files changed while it ran: helper_of_user.py" in str(reply_of_new.error)


PROGRAM = """
import hpobench_ordered as hbo
from helper_of_user import HELPER

class InProgram:
    bonus = 1

    def __init__(self, space, rng): ...

    def ask(self):
        return {"price_0": self.bonus, "price_1": HELPER, "price_2": 0}

    def tell(self, config, loss): ...

result = hbo.run(
    benchmarks=["newsvendor"], methods=[InProgram], seeds=[0],
    protocol=hbo.Ordered(trials=1, tasks=1), folder="results", progress=False,
)
print(len(result.store.keys()))
"""
"""Runs the method that it defines, and prints the number of finished runs in the store."""


@pytest.mark.slow
def test_program_resumes_until_its_method_changes(tmp_path):
    """The program has no `if __name__ == "__main__":`; then it and what it imports are changed."""
    write_project(tmp_path, {"program": PROGRAM})
    assert run_python(tmp_path, "program") == "1\n"
    assert run_python(tmp_path, "program") == "1\n"

    write_project(tmp_path, {"program": PROGRAM.replace("bonus = 1", "bonus = 2")})
    assert run_python(tmp_path, "program") == "2\n"

    write_project(tmp_path, {"program": PROGRAM} | CHANGES["helper"])
    assert run_python(tmp_path, "program") == "3\n"


@pytest.mark.slow
def test_typed_class_is_run_again(tmp_path):
    """A class that was typed, as in a notebook, has no file: nothing tells if it has changed."""
    write_project(tmp_path)

    assert run_python(tmp_path, standard_input=PROGRAM) == "1\n"
    assert run_python(tmp_path, standard_input=PROGRAM) == "2\n"


@pytest.mark.slow
def test_class_of_script_works_in_pool_of_user(tmp_path):
    """A class of a script can be run in a user's process pool, whose script is `__mp_main__`."""
    (tmp_path / "script.py").write_text(
        textwrap.dedent("""
            import multiprocessing
            import hpobench_ordered as hbo

            class Mine:
                def __init__(self, space, rng):
                    self.space, self.rng = space, rng

                def ask(self):
                    return self.space.sample(self.rng)

                def tell(self, config, loss): ...

            def count_trials(seed):
                protocol = hbo.LeaveOneOut(trials=2)
                results = hbo.run(
                    benchmarks=["forrester"], methods=[Mine], seeds=[seed], protocol=protocol
                )
                return len(results.frame()), set(results.frame()["method"])

            if __name__ == "__main__":
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    print(pool.map(count_trials, [0]))
        """)
    )

    assert run_python(tmp_path, "script.py") == "[(20, {'Mine'})]\n"
