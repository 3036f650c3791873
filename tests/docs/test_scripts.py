"""Scripts behind the documentation's numbers and figures can be imported as the package is now."""

import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
SCRIPTS = sorted([*DOCS.glob("experiments/*.py"), *DOCS.glob("images/*.py")])


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_script_can_be_imported(script):
    """A script that uses a name which the package no longer has fails at its imports.

    Its main part, which may take hours, does not run under another name than `__main__`.
    """
    pytest.importorskip("jax", reason="some scripts need the extra neural")

    names = runpy.run_path(str(script), run_name="imported")

    assert names["__doc__"]
