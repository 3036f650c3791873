"""Modules import each other in one direction, and rooms only import those below them."""

import ast
from collections.abc import Container, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import hpobench_ordered

FOLDER_OF_PACKAGE = Path(hpobench_ordered.__file__).parent
PACKAGE = "hpobench_ordered"

FLOORS = (
    ("_typing", "_html", "_wording"),
    ("errors",),
    ("space", "runtime"),
    ("data",),
    ("surrogates",),
    ("benchmarks", "methods", "analysis"),
    ("experiment",),
    ("reporting",),
    ("tuning", "testing"),
    ("generation",),
    ("papers",),
    ("cli",),
    ("__main__",),
)
"""Rooms from the lowest floor up: a room may import those of lower floors, and itself."""


def find_modules() -> dict[str, Path]:
    """Find all modules of the package: the path of each file by the module's dotted name.

    Some subpackages lie beside the package's folder, in which there are links to them.
    """
    files = list(FOLDER_OF_PACKAGE.rglob("*.py"))
    for folder in FOLDER_OF_PACKAGE.iterdir():
        has_modules = folder.name != "artifacts"  # which has many files, all of them data
        if folder.is_symlink() and has_modules:
            files.extend(folder.rglob("*.py"))  # the first `rglob` does not follow links

    path_of_module = {}
    for path in files:
        parts = path.relative_to(FOLDER_OF_PACKAGE).with_suffix("").parts
        dotted_name = ".".join([PACKAGE, *parts]).removesuffix(".__init__")
        path_of_module[dotted_name] = path
    return path_of_module


def iter_imported_names(path: Path) -> Iterator[str]:
    """Iterate over the dotted names that a module's file imports, such as "numpy.random".

    Imports inside functions and imports for types alone are among them.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def find_room(module: str) -> str:
    """Find the room of a module, its first name inside the package.

    It is "space" for `hpobench_ordered.space.parameters`, and "" for the package itself and for
    modules of other libraries.
    """
    _, _, name_inside_package = module.partition(f"{PACKAGE}.")
    room, _, _ = name_inside_package.partition(".")
    return room


def number_floors() -> dict[str, int]:
    """The floor of every room, by the room's name; 0 is the lowest."""
    floor_of_room = {}
    for floor, rooms in enumerate(FLOORS):
        for room in rooms:
            floor_of_room[room] = floor
    return floor_of_room


def find_upward_imports() -> set[tuple[str, str]]:
    """Find which modules import which higher rooms: pairs such as ("space.parameters", "core")."""
    floor_of_room = number_floors()
    upward_imports = set()
    for module, path in find_modules().items():
        if module == PACKAGE:
            continue  # the package itself offers the names of all rooms

        own_room = find_room(module)
        own_floor = floor_of_room[own_room]
        for imported_name in iter_imported_names(path):
            imported_room = find_room(imported_name)
            if imported_room in ("", own_room):
                continue  # another library, or the same room
            if floor_of_room[imported_room] >= own_floor:
                name_inside_package = module.removeprefix(f"{PACKAGE}.")
                upward_imports.add((name_inside_package, imported_room))
    return upward_imports


def test_every_room_has_a_floor():
    """Every subpackage, a room, has its place in the order of rooms, `FLOORS`."""
    rooms = {find_room(module) for module in find_modules()}
    rooms.remove("")  # the package itself

    assert rooms == number_floors().keys()


def test_rooms_import_downwards_only():
    assert find_upward_imports() == set()


def test_no_module_imports_whole_package():
    """`import hpobench_ordered` inside the package would be a circle."""
    importing = [
        module for module, path in find_modules().items() if PACKAGE in iter_imported_names(path)
    ]

    assert importing == []


def find_imported_modules(path: Path, modules: Container[str]) -> set[str]:
    """Find which of some modules a file imports, as a whole or only a name of them."""
    imported_modules = set()
    for name in iter_imported_names(path):
        module_of_name, _, _ = name.rpartition(".")
        for module in (name, module_of_name):
            if module in modules:
                imported_modules.add(module)
                break
    return imported_modules


def test_modules_are_found():
    """The other tests would pass without any."""
    assert len(find_modules()) > 150


def test_imports_form_no_circle():
    """No module imports itself by way of others, not even inside of functions."""
    path_of_module = find_modules()
    imports_of_module = {}
    for module, path in path_of_module.items():
        imports_of_module[module] = find_imported_modules(path, path_of_module) - {module}

    try:
        TopologicalSorter(imports_of_module).prepare()
    except CycleError as error:
        _, circle = error.args
        raise AssertionError(f"imports in a circle: {' -> '.join(circle)}") from None
