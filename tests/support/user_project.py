"""The files of a user's method, in each of which a change must be noticed.

The method suggests the sum of numbers that come from its files and from an installed package.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import hpobench_ordered

FILES = {
    "mine_of_user.py": """
from helper_of_user import HELPER
from package_of_user.inner import INNER
import installed_of_user

CONSTANT = 1

class Mine:
    def __init__(self, space, rng, extra=0):
        self.extra = extra

    def ask(self):
        from late_of_user import LATE
        total = CONSTANT + HELPER + INNER + LATE + installed_of_user.NUMBER + self.extra
        return {"price_0": total, "price_1": 0, "price_2": 0}

    def tell(self, config, loss): ...
""",
    "helper_of_user.py": "from further_of_user import FURTHER\nHELPER = FURTHER\n",
    "further_of_user.py": "FURTHER = 1\n",
    "package_of_user/__init__.py": "",
    "package_of_user/inner.py": "from .sibling import SIBLING as INNER\n",
    "package_of_user/sibling.py": "SIBLING = 1\n",
    "late_of_user.py": "LATE = 1\n",
    "site-packages/installed_of_user.py": "NUMBER = 1\n",
    "site-packages/installed-1.0.dist-info/METADATA": (
        "Metadata-Version: 2.1\nName: installed\nVersion: 1.0\n"
    ),
    "site-packages/installed-1.0.dist-info/top_level.txt": "installed_of_user\n",
}
SUM_OF_NUMBERS = 5
"""What the unchanged method suggests as the first price."""


def write_project(folder: Path, changed: Mapping[str, str] | None = None) -> None:
    """Write the files of the method; `changed` has texts of files that replace or join them."""
    for name, text in (FILES | dict(changed or {})).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def run_python(folder: Path, *arguments: str, standard_input: str = "") -> str:
    """Run Python in the folder, where it finds the method's modules; return what it prints."""
    package_root = Path(hpobench_ordered.__file__).parents[1]
    places = [folder, folder / "site-packages", package_root]
    finished = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, places))},
        input=standard_input,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout
