"""Optimisers that break their contract, each in its own way."""

import contextlib
import ctypes
import itertools
import os
import random
import threading
import time
import types
from collections.abc import Mapping
from enum import Enum
from pathlib import Path

import numpy as np

from hpobench_ordered import Method


class Good(Method):
    def ask(self):
        return self.space.sample(self.rng)

    def tell(self, config, loss):
        pass


class Raises(Good):
    def ask(self):
        raise RuntimeError("out of ideas")


class Exits(Good):
    def ask(self):
        raise SystemExit(3)


class SaysWhere(Good):
    """Its error names the process that it is raised in."""

    def ask(self):
        raise RuntimeError(f"in process {os.getpid()} ")


class Nonsense(Good):
    def ask(self):
        return "a configuration"


class OutOfBounds(Good):
    def ask(self):
        """Suggest a value of the first hyperparameter that is above its range."""
        config = super().ask()
        name = self.space.names[0]
        return {**config, name: self.space[name].upper + 1}


class Sleeps(Good):
    def ask(self):
        time.sleep(1000)


class Slow(Good):
    def ask(self):
        time.sleep(0.1)
        return super().ask()


class BusyInThread(Good):
    """Computes for at least 0.02 CPU seconds a suggestion, in a thread of its own."""

    def ask(self):
        """Suggest at random, after computing in another thread."""
        thread = threading.Thread(target=self.compute)
        thread.start()
        thread.join()
        return super().ask()

    def compute(self):
        while time.thread_time() < 0.02:
            pass


class WaitsToBeKilled(Good):
    """The first processes leave their number in a folder and wait; whoever reads it kills them."""

    FOLDER = "FOLDER_OF_WAITING_PROCESSES"  # name of an environment variable
    KILLS = 3

    def ask(self):
        """Wait to be killed, as one of the first `KILLS` processes that ask; later ones suggest.

        A waiting process leaves a file that is named by its id.
        """
        folder = Path(os.environ[self.FOLDER])
        for number in range(self.KILLS):
            # A folder is made by one process only: the others fail here, and do not wait.
            with contextlib.suppress(FileExistsError):
                (folder / f"taken-{number}").mkdir()
                (folder / str(os.getpid())).touch()
                time.sleep(60)
        return super().ask()


class Loops(Good):
    """Never returns from `tell`, and catches whatever is raised in it."""

    def tell(self, config, loss):
        """Loop for ever, also if an exception is raised to interrupt it."""
        while True:
            try:
                sum(range(1000))
            except BaseException:
                continue


class HoldsTheLock(Good):
    """Sleeps in compiled code that holds the interpreter's lock, so that no other thread runs."""

    def ask(self):
        ctypes.PyDLL(None).sleep(1000)


class Dies(Good):
    def ask(self):
        os.kill(os.getpid(), 9)


class NoSuper(Good):
    def __init__(self, *, space, rng, **settings):
        self.space, self.rng = space, rng


class WrongFallbacks(Good):
    def prepare(self):
        self.fallbacks = "many"


class Interrupts(Good):
    def ask(self):
        raise KeyboardInterrupt


class Vandal(Good):
    """Changes everything that can be reached from what it was handed."""

    def prepare(self):
        self.trials_told = 0

    def tell(self, config, loss):
        self.trials_told += 1
        # Runs have three trials. After the last one, this run needs nothing that is changed.
        if self.trials_told == 3:
            vandalise([self.space, self.history, self.context, config, self.rng])


def vandalise(values) -> None:
    """Change all that is reached from these values through attributes, items and arrays.

    Classes, modules, texts and members of enumerations are shared by the whole process and stay.
    """
    never_changed = type | types.ModuleType | str | bytes | Enum
    stack = list(values)
    # By id. The dict also keeps the values alive, as an id may be used again after its value.
    visited = {}

    while stack:
        value = stack.pop()
        if id(value) in visited or isinstance(value, never_changed):
            continue
        visited[id(value)] = value

        # Its parts are listed first: they cannot be reached any more once the value is spoiled.
        stack += _list_parts(value)
        for spoil in (_spoil_array, _spoil_container, _spoil_attributes):
            # Read-only attributes, for instance, cannot be changed.
            with contextlib.suppress(Exception):
                spoil(value)


def _list_parts(value):
    """Items of a container, or values of an object's attributes."""
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)

    names = [*getattr(value, "__dict__", ())]
    for base in type(value).__mro__:
        names += getattr(base, "__slots__", ())
    # Neither `__dict__` nor `__slots__` lists these of arrays, generators and search spaces.
    names += ["base", "bit_generator", "conditions"]

    values_of_attributes = [getattr(value, name, None) for name in names]
    return [part for part in values_of_attributes if part is not None]


def _spoil_array(value) -> None:
    """Set an array to 0, also one that is read-only."""
    if isinstance(value, np.ndarray):
        value.setflags(write=True)
        value[...] = 0


def _spoil_container(value) -> None:
    if isinstance(value, dict | list | set):
        value.clear()


def _spoil_attributes(value) -> None:
    """Set all attributes of an object to None, also those of a frozen dataclass."""
    has_no_attributes = dict | list | set | np.ndarray | np.random.Generator
    if isinstance(value, has_no_attributes):
        return
    names = [*getattr(value, "__dict__", ()), *getattr(type(value), "__slots__", ())]
    for name in names:
        object.__setattr__(value, name, None)


class SharesState(Good):
    """Every 13th suggestion of all runs together is drawn from another generator."""

    suggestion_numbers = itertools.count(1)
    """One counter for all objects of the class, and so for all runs of the process."""

    def ask(self):
        """Suggest at random, from the method's own generator or from another one."""
        is_13th = next(self.suggestion_numbers) % 13 == 0
        if is_13th:
            (other_rng,) = self.rng.spawn(1)
            return self.space.sample(other_rng)
        return super().ask()


class GlobalRandom(Good):
    """Draws from Python's global generator instead of its own."""

    def ask(self):
        unit = np.array([[random.random() for _ in range(self.space.dimension)]])
        return self.space.configs(self.space.decode(unit))[0]
