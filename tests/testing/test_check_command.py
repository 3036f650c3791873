"""The command `check`: its verdict is said, and last, whatever the method does."""

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


@pytest.mark.parametrize(
    ("name", "said"),
    [("Noisy", "survives degenerate input"), ("Ends", "ends or crashes its process")],
)
def test_the_verdict_comes_last(tmp_path, name, said):
    (tmp_path / "mine.py").write_text(SOURCE)
    result = CliRunner().invoke(app, ["check", f"{tmp_path / 'mine.py'}:{name}"])
    last = str(result.exception) if result.exception else result.output.splitlines()[-1]
    assert said in last
    assert (result.exit_code == 0) is (name == "Noisy")
    assert "noise" not in result.output
    if name == "Ends":  # nor does it end `run`, before which it is checked
        words = ["run", "--method", f"{tmp_path / 'mine.py'}:Ends", "--output", str(tmp_path)]
        assert said in str(CliRunner().invoke(app, words).exception)
