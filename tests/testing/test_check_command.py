"""The command `check` prints its verdict last, whatever the method does."""

import pytest
from click.testing import CliRunner

from hpobench_ordered.cli import app

pytestmark = pytest.mark.slow

SOURCE = """
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
def module(tmp_path):
    """The file of two methods: Noisy, which warns "noise", and Ends, which ends its process."""
    path = tmp_path / "mine.py"
    path.write_text(SOURCE)
    return path


def test_conforming_method_passes_without_noise(module):
    """What the method warns of is not shown; the verdict is the last line."""
    result = CliRunner().invoke(app, ["check", f"{module}:Noisy"])

    *_, last_line = result.output.splitlines()
    assert result.exit_code == 0
    assert "survives degenerate input" in last_line
    assert "noise" not in result.output


def test_method_that_ends_process_fails(module):
    result = CliRunner().invoke(app, ["check", f"{module}:Ends"])

    assert result.exit_code != 0
    assert "ends or crashes its process" in str(result.exception)
    assert "noise" not in result.output


def test_run_checks_method_first(module, tmp_path):
    """The method ends its process whenever it is asked."""
    arguments = ["run", "--method", f"{module}:Ends", "--output", str(tmp_path)]

    result = CliRunner().invoke(app, arguments)

    assert "ends or crashes its process" in str(result.exception)
