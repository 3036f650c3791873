"""JAX as the methods use it: double precision, one thread, nothing compiled twice.

JAX's settings are changed only during a call, so that other users of JAX keep their own. The only
exception is the number of threads, which JAX reads once per process, when its CPU is first used.
With several threads, sums are split differently, so that the last digits of results differ.
"""

import os
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from hpobench_ordered.data.remote import cache_folder
from hpobench_ordered.errors import MissingExtraError

_numpy_state = np.random.get_state()  # noqa: NPY002  a module of JAX draws when it is imported
try:
    import jax
    from jax.experimental.compilation_cache import compilation_cache
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in {"jax", "jaxlib"}:
        raise
    raise MissingExtraError("jax", extra="neural", purpose="a method with a network") from error
finally:
    np.random.set_state(_numpy_state)  # noqa: NPY002

__all__ = ["call", "count_programs", "jax", "place"]

THREADS_VARIABLE = "NPROC"
"""Environment variable from which XLA takes the number of its threads."""
ASYNCHRONOUS_OPTION = "jax_cpu_enable_async_dispatch"
"""JAX's setting whether programs run in a separate thread."""
CACHE_SUBFOLDER = "jax"
"""Folder of compiled programs, in the package's cache folder."""

_programs: dict[Hashable, Any] = {}


def call(function: Callable[..., Any], *arrays: Any, static: tuple[Hashable, ...] = ()) -> Any:
    """Evaluate function(*static, *arrays) by JAX, in double precision, on one thread.

    The first call in a process with a function, its static arguments, and shapes and types of
    arrays compiles a program; later calls with the same use it again.

    Args:
        function: A function that JAX can trace, defined at the top of a module: a function made
            anew in each call would be compiled in each call.
        arrays: Its arrays; use `place` for arrays that stay the same from call to call.
        static: Leading arguments that are compiled into the program.

    Returns:
        What the function returns, with JAX's arrays.
    """
    shapes_and_types = tuple((array.shape, np.dtype(array.dtype).char) for array in arrays)
    program_key = (function, static, shapes_and_types)
    with jax.enable_x64(True), jax.default_device(_start_cpu()):
        if program_key not in _programs:
            _programs[program_key] = _compile(function, arrays, static)
        program = _programs[program_key]
        return program(*arrays)


def place(array: np.ndarray[Any, Any]) -> Any:
    """Copy an array to JAX's device, in double precision, so that calls need not copy it again."""
    with jax.enable_x64(True):
        return jax.device_put(array, _start_cpu())


def count_programs() -> int:
    """Count the programs compiled, or read from the disk, in this process.

    There is one for each function, its static arguments, and shapes and types of arrays.
    """
    return len(_programs)


def _compile(function: Callable[..., Any], arrays: Any, static: tuple[Hashable, ...]) -> Any:
    """Compile function(*static, *arrays) for the shapes and types of these arrays.

    Returns:
        JAX's program, a function of arrays alone: the static arguments are compiled into it.
    """
    static_positions = tuple(range(len(static)))  # they come first
    jitted = jax.jit(function, static_argnums=static_positions)
    with _cache_on_disk():
        return jitted.lower(*static, *arrays).compile()


@cache
def _start_cpu() -> Any:
    """Return JAX's CPU, started with only the caller's thread unless JAX was used before.

    With several threads, the last digits of results would depend on how sums are split. JAX reads
    two settings when its CPU is first used: the number of threads, an environment variable, and
    whether programs run in a thread of their own, an option. Both are restored afterwards.
    """
    threads_before = os.environ.get(THREADS_VARIABLE)
    asynchronous_before = jax.config.values[ASYNCHRONOUS_OPTION]
    os.environ[THREADS_VARIABLE] = "1"
    jax.config.update(ASYNCHRONOUS_OPTION, False)
    try:
        return jax.local_devices(backend="cpu")[0]
    finally:
        jax.config.update(ASYNCHRONOUS_OPTION, asynchronous_before)
        os.environ.pop(THREADS_VARIABLE)
        if threads_before is not None:
            os.environ[THREADS_VARIABLE] = threads_before


@contextmanager
def _cache_on_disk() -> Iterator[None]:
    """Let JAX keep programs that it compiles in this context on the disk, for later processes.

    Nothing is changed if the user has configured a cache, or if the folder cannot be written to.
    """
    folder = cache_folder() / CACHE_SUBFOLDER
    settings = {
        "jax_compilation_cache_dir": str(folder),
        "jax_persistent_cache_min_compile_time_secs": 0.0,  # also what compiles fast
        "jax_persistent_cache_min_entry_size_bytes": -1,  # also what is small
    }
    settings_before = {name: getattr(jax.config, name) for name in settings}
    user_has_cache = settings_before["jax_compilation_cache_dir"] is not None
    if user_has_cache or not _make_writable_folder(folder):
        yield
        return

    _change_cache_settings(settings)
    try:
        yield
    finally:
        _change_cache_settings(settings_before)


def _change_cache_settings(settings: dict[str, Any]) -> None:
    """Change settings of JAX's cache of compiled programs.

    Args:
        settings: Their new values by their names.
    """
    for name, value in settings.items():
        jax.config.update(name, value)
    # JAX decides at the first use of its cache whether and where to keep programs. After a reset it
    # decides again, by the new settings.
    compilation_cache.reset_cache()


def _make_writable_folder(folder: Path) -> bool:
    """Make the folder if it does not exist, and return whether it is writable."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)
