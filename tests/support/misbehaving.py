"""A dozen methods that break something, by what they do at their second suggestion."""

import ctypes
import json
import multiprocessing
import os
import random
import subprocess
import sys
import threading
import time

import numpy as np

from hpobench_ordered import Method


class Misbehaving(Method):
    """Suggests at random, and misbehaves at the second suggestion."""

    times_asked = 0

    def ask(self):
        """Suggest at random, and misbehave when asked for the second time."""
        self.times_asked += 1
        if self.times_asked == 2:
            self.misbehave()
        return self.space.sample(self.rng)

    def misbehave(self): ...

    def tell(self, config, loss): ...


class Raises(Misbehaving):
    def misbehave(self):
        raise RuntimeError("out of ideas")


class Exits(Misbehaving):
    def misbehave(self):
        sys.exit(3)


class EndsItsProcess(Misbehaving):
    def misbehave(self):
        os._exit(0)


class Crashes(Misbehaving):
    def misbehave(self):
        ctypes.string_at(0)


class Hangs(Misbehaving):
    def misbehave(self):
        time.sleep(1000)


class HoldsTheLock(Misbehaving):
    """Sleeps in compiled code that holds the interpreter's lock, so that no other thread runs."""

    def misbehave(self):
        ctypes.PyDLL(None).sleep(1000)


class SuggestsNonsense(Misbehaving):
    def ask(self):
        return {"nonsense": float("nan")}


class Allocates(Misbehaving):
    """Allocates more memory than any machine has."""

    def misbehave(self):
        np.ones(2**50)


class Prints(Misbehaving):
    """Prints a megabyte, and reads an answer."""

    def misbehave(self):
        print("x" * 1_000_000)
        input()


class ClosesFiles(Misbehaving):
    def misbehave(self):
        sys.stdout.close()
        sys.stdin.close()
        os.closerange(3, 100)


class Forks(Misbehaving):
    """Goes on in two processes."""

    def misbehave(self):
        os.fork()


class LeavesProcesses(Misbehaving):
    """Starts processes and a thread that never end."""

    def misbehave(self):
        multiprocessing.get_context("fork").Process(target=time.sleep, args=(1000,)).start()
        subprocess.Popen(["sleep", "1000"])
        threading.Thread(target=time.sleep, args=(1000,)).start()


class ChangesGlobalState(Misbehaving):
    """Changes global random state, the folder, the path and functions of other modules."""

    def misbehave(self):
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002
        os.chdir("/")
        sys.path.clear()
        json.dumps = None
        np.random.default_rng = np.sum


METHODS_THAT_FAIL = [
    Raises,
    Exits,
    EndsItsProcess,
    Crashes,
    Hangs,
    HoldsTheLock,
    SuggestsNonsense,
    Allocates,
    Prints,
    ClosesFiles,
]
"""Methods whose own runs fail."""
METHODS = [*METHODS_THAT_FAIL, Forks, LeavesProcesses, ChangesGlobalState]
