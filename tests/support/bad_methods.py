"""Optimisers that break their contract, each in its own way."""

import ctypes
import os
import random
import time

from hpobench_ordered import Method


class Good(Method):
    def ask(self):  # type: ignore[no-untyped-def]
        return self.space.sample(self.rng)

    def tell(self, config, loss):  # type: ignore[no-untyped-def]
        pass


class Raises(Good):
    def ask(self):  # type: ignore[no-untyped-def]
        raise RuntimeError("out of ideas")


class Exits(Good):
    def ask(self):  # type: ignore[no-untyped-def]
        raise SystemExit(3)


class Nonsense(Good):
    def ask(self):  # type: ignore[no-untyped-def]
        return "a configuration"


class OutOfBounds(Good):
    def ask(self):  # type: ignore[no-untyped-def]
        config = super().ask()
        name = self.space.names[0]
        return {**config, name: self.space[name].upper + 1}


class Sleeps(Good):
    def ask(self):  # type: ignore[no-untyped-def]
        time.sleep(1000)


class Loops(Good):
    """Goes on for ever, whatever is raised."""

    def tell(self, config, loss):  # type: ignore[no-untyped-def]
        while True:
            try:
                sum(range(1000))
            except BaseException:
                continue


class HoldsTheLock(Good):
    """Is in compiled code for ever, and lets no other thread run."""

    def ask(self):  # type: ignore[no-untyped-def]
        ctypes.PyDLL(None).sleep(1000)


class Dies(Good):
    def ask(self):  # type: ignore[no-untyped-def]
        os.kill(os.getpid(), 9)


class Crashes(Good):
    def ask(self):  # type: ignore[no-untyped-def]
        ctypes.string_at(0)


class LeaksState(Good):
    seen: list[float] = []  # noqa: RUF012  that is the point

    def ask(self):  # type: ignore[no-untyped-def]
        for _ in range(len(self.seen) % 3):
            self.space.sample(self.rng)
        return super().ask()

    def tell(self, config, loss):  # type: ignore[no-untyped-def]
        self.seen.append(loss)


class SharesState(Good):
    asked: list[int] = []  # noqa: RUF012  that is the point

    def ask(self):  # type: ignore[no-untyped-def]
        self.asked.append(1)
        return super().ask() if len(self.asked) % 13 else self.space.sample(self.rng.spawn(1)[0])


class GlobalRandom(Good):
    def ask(self):  # type: ignore[no-untyped-def]
        return self.space.configs(self.space.decode(_point(self.space.dimension)))[0]


class IgnoresSeed(Good):
    def prepare(self):  # type: ignore[no-untyped-def]
        import numpy as np

        self.rng = np.random.default_rng()


def _point(dimension: int):  # type: ignore[no-untyped-def]
    import numpy as np

    return np.array([[random.random() for _ in range(dimension)]])
