"""The command `check` prints its verdict last, whatever the method does."""

import pytest
from click.testing import CliRunner

from hpobench_ordered.cli import app

pytestmark = pytest.mark.slow

SOURCE_OF_METHODS = """
import os, warnings
import hpobench_ordered as hbo

class Noisy(hbo.Method):
    def ask(self):
        warnings.warn("noise")
        return self.space.sample(self.rng)
    def tell(self, config, loss): ...

class Ends(Noisy):
    def ask(self):
        os._exit(0)
"""


@pytest.fixture
def file_of_methods(tmp_path):
    """A file with two methods: Noisy, which warns "noise", and Ends, which ends its process."""
    path = tmp_path / "mine.py"
    path.write_text(SOURCE_OF_METHODS)
    return path


def test_conforming_method_passes_without_noise(file_of_methods):
    """What the method warns of is not shown; the verdict is the last line."""
    result = CliRunner().invoke(app, ["check", f"{file_of_methods}:Noisy"])

    *_, last_line = result.output.splitlines()
    assert result.exit_code == 0
    assert "survives degenerate input" in last_line
    assert "noise" not in result.output


def test_method_that_ends_process_fails(file_of_methods):
    """The method ends the process it is asked in; the command survives and says so."""
    result = CliRunner().invoke(app, ["check", f"{file_of_methods}:Ends"])

    assert result.exit_code != 0
    assert "ends or crashes its process" in str(result.exception)
    assert "noise" not in result.output


def test_run_checks_method_first(file_of_methods, tmp_path):
    """The command `run` fails as `check` does: the method ends its process when it is asked."""
    arguments = ["run", "--method", f"{file_of_methods}:Ends", "--output", str(tmp_path)]

    result = CliRunner().invoke(app, arguments)

    assert "ends or crashes its process" in str(result.exception)
