"""Optimisers that break their contract, each in its own way."""

import contextlib
import ctypes
import os
import random
import sys
import time
import types
from collections.abc import Mapping
from enum import Enum

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
    def ask(self):
        raise RuntimeError(f"in process {os.getpid()} ")


class Nonsense(Good):
    def ask(self):
        return "a configuration"


class OutOfBounds(Good):
    def ask(self):
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


class Loops(Good):
    """Goes on for ever, whatever is raised."""

    def tell(self, config, loss):
        while True:
            try:
                sum(range(1000))
            except BaseException:
                continue


class HoldsTheLock(Good):
    """Is in compiled code for ever, and lets no other thread run."""

    def ask(self):
        ctypes.PyDLL(None).sleep(1000)


class Dies(Good):
    def ask(self):
        os.kill(os.getpid(), 9)


class Crashes(Good):
    def ask(self):
        ctypes.string_at(0)


class NoSuper(Good):
    def __init__(self, *, space, rng, **settings):
        self.space, self.rng = space, rng


class WrongFallbacks(Good):
    def prepare(self):
        self.fallbacks = "many"


class OwnError(BaseException):
    def __str__(self) -> str:
        raise RuntimeError("nothing to say")


class RaisesOwn(Good):
    def ask(self):
        raise OwnError


class Interrupts(Good):
    def ask(self):
        raise KeyboardInterrupt


class ShallowStack(Good):
    def tell(self, config, loss):
        sys.setrecursionlimit(60)


class BreaksClock(Good):
    def tell(self, config, loss):
        time.perf_counter = time.sleep


class PatchesNumPy(Good):
    def tell(self, config, loss):
        np.random.default_rng = np.sum


class PatchesSpace(Good):
    def tell(self, config, loss):
        type(self.space).sample = lambda space, rng: {}


class Vandal(Good):
    """Changes everything that can be reached from what it was handed."""

    def prepare(self):
        self.number = 0

    def tell(self, config, loss):
        self.number += 1
        if self.number == 3:  # its own last suggestions are of no interest
            vandalise([self.space, self.history, self.context, config, self.rng])


def vandalise(things) -> None:
    """Change all that is reached through attributes, items and arrays."""
    stack, seen = list(things), {}
    while stack:
        thing = stack.pop()
        if id(thing) in seen or isinstance(thing, type | types.ModuleType | str | bytes | Enum):
            continue
        seen[id(thing)] = thing
        stack += _parts(thing)
        for change in (_spoil_array, _spoil_container, _spoil_attributes):
            with contextlib.suppress(Exception):
                change(thing)


def _parts(thing):
    if isinstance(thing, Mapping):
        return [*thing.keys(), *thing.values()]
    if isinstance(thing, list | tuple | set | frozenset):
        return list(thing)
    slots = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
    names = [*getattr(thing, "__dict__", ()), *slots, "base", "bit_generator", "conditions"]
    return [getattr(thing, name) for name in names if getattr(thing, name, None) is not None]


def _spoil_array(thing) -> None:
    if isinstance(thing, np.ndarray):
        thing.setflags(write=True)
        thing[...] = 0


def _spoil_container(thing) -> None:
    if isinstance(thing, dict | list | set):
        thing.clear()


def _spoil_attributes(thing) -> None:
    if not isinstance(thing, dict | list | set | np.ndarray | np.random.Generator):
        for name in (*getattr(thing, "__dict__", ()), *getattr(type(thing), "__slots__", ())):
            object.__setattr__(thing, name, None)


class SharesState(Good):
    asked: list[int] = []  # noqa: RUF012  that is the point

    def ask(self):
        self.asked.append(1)
        return super().ask() if len(self.asked) % 13 else self.space.sample(self.rng.spawn(1)[0])


class GlobalRandom(Good):
    def ask(self):
        return self.space.configs(self.space.decode(_point(self.space.dimension)))[0]


class IgnoresSeed(Good):
    def prepare(self):
        import numpy as np

        self.rng = np.random.default_rng()


def _point(dimension: int):
    import numpy as np

    return np.array([[random.random() for _ in range(dimension)]])
