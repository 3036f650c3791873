"""More than a hundred methods that break something, by what they do when they are asked."""

from hpobench_ordered import Method

PATCHES = """
json.dumps = lambda *a, **k: "broken"
json.loads = lambda *a, **k: None
json.dumps = None
pickle.dumps = lambda *a, **k: b"broken"
pickle.dumps = None
pickle.loads = None
pickle.Pickler = None
hashlib.sha256 = None
hashlib.sha256 = lambda *a: 1 / 0
pathlib.Path.read_bytes = lambda self: b""
pathlib.Path.write_bytes = lambda self, data: 0
pathlib.Path.mkdir = None
pathlib.Path.exists = lambda self: False
pathlib.Path = None
os.replace = lambda *a: None
os.fsync = None
os.listdir = lambda *a: []
os.getpid = lambda: 1
os.kill = None
os.write = None
os.path.join = lambda *a: "/"
os.environ.clear()
io.BytesIO = None
builtins.open = None
builtins.print = None
builtins.sorted = lambda *a, **k: []
builtins.len = lambda x: 0
builtins.isinstance = lambda *a: True
builtins.range = None
builtins.dict = list
builtins.Exception = OSError
builtins.__import__ = None
time.perf_counter = time.sleep
time.perf_counter = lambda: float("nan")
time.monotonic = lambda: 0
time.monotonic = lambda: float("inf")
time.time = None
time.sleep = None
math.isfinite = None
math.nan = 0
random.seed(0); random.random = lambda: 0
random.Random = None
struct.pack = None
struct.Struct.pack = None
threading.Thread = None
threading.Lock = None
threading.RLock = None
queue.SimpleQueue = None
queue.SimpleQueue.get = None
subprocess.Popen = None
traceback.format_exception = None
warnings.warn = None
signal.signal = None
faulthandler.enable = None
faulthandler.cancel_dump_traceback_later()
copy.deepcopy = None
functools.lru_cache = None
importlib.import_module = None
logging.disable(100)
np.asarray = lambda *a, **k: None
np.empty = None
np.array = None
np.isfinite = None
np.sum = np.prod
np.random.default_rng = np.sum
np.random.Generator = None
np.random.seed(0)
np.ndarray = list
np.float64 = int
np.seterr(all="raise")
np.concatenate = None
np.array_equal = lambda *a, **k: False
sys.modules.clear()
sys.modules.pop("numpy")
sys.modules["json"] = None
sys.path.clear()
sys.argv.clear()
sys.meta_path.clear()
sys.stdout.close()
sys.stderr.close()
sys.stdin.close()
sys.stdout = None
sys.stderr = None
sys.setrecursionlimit(60)
sys.setswitchinterval(1000)
sys.setprofile(lambda *a: 1 / 0)
sys.settrace(lambda *a: 1 / 0)
sys.exit()
sys.excepthook = None
gc.disable(); gc.freeze()
type(self.space).sample = None
type(self.space).row = lambda space, config: None
type(self).__mro__[1].ask = None
hpobench_ordered.Task.evaluate_row = lambda task, row: 0.0
hpobench_ordered.Task.evaluate_row = None
runner.optimise = None
runner.run_cell = None
job.perform = None
child._send = None
child._reply.stream.close()
child._reply.stream.write(b"garbage"); child._reply.stream.flush()
child._reply.stream.write(b"\\x81" + bytes(8)); child._reply.stream.flush()
child._reply.call = 99
os.close(0)
os.closerange(3, 100)
os.dup2(1, 0)
os.chdir("/")
os.umask(0o777)
os.nice(5)
os.fork()
os._exit(0)
os._exit(3)
os.abort()
os.kill(os.getpid(), signal.SIGKILL)
os.kill(os.getpid(), signal.SIGTERM)
os.kill(os.getpid(), signal.SIGINT)
os.kill(os.getpid(), signal.SIGSTOP)
signal.signal(signal.SIGALRM, signal.SIG_IGN); time.sleep(1000)
signal.signal(signal.SIGABRT, signal.SIG_IGN); time.sleep(1000)
signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64)); time.sleep(1000)
faulthandler.cancel_dump_traceback_later(); faulthandler.disable(); time.sleep(1000)
time.sleep(1000)
ctypes.PyDLL(None).sleep(1000)
ctypes.string_at(0)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
resource.setrlimit(resource.RLIMIT_CPU, (1, 1)); [None for _ in iter(int, 1)]
[None for _ in iter(int, 1)]
input()
sys.stdin.read()
print("x" * 10_000_000)
threading.Thread(target=time.sleep, args=(1000,)).start()
subprocess.Popen(["sleep", "1000"], start_new_session=True)
atexit.register(time.sleep, 1000)
raise KeyboardInterrupt
raise SystemExit(3)
raise GeneratorExit
raise StopIteration
raise MemoryError
raise Strange
raise RecursionError
raise hpobench_ordered.errors.MethodError("mine")
raise hpobench_ordered.errors.StoreError("mine")
raise hpobench_ordered.errors.BenchmarkFailedError("mine")
raise child.ChildDiedError("mine")
raise child.StepTimeoutError("mine", 1.0, "")
"""
IMPORTS_FOR_STATEMENTS = """
import atexit, builtins, copy, ctypes, faulthandler, functools, gc, hashlib, importlib, io, json
import logging, math, os, pathlib, pickle, queue, random, resource, signal, struct, subprocess, sys
import threading, time, traceback, warnings
import numpy as np
import hpobench_ordered
from hpobench_ordered.experiment import job, runner
from hpobench_ordered.runtime import child

class Strange(BaseException):
    def __str__(self):
        raise RuntimeError("nothing to say")
    def __reduce__(self):
        raise RuntimeError("not to be pickled")
"""


class Misbehaving(Method):
    """Suggests at random, and does something bad at the second suggestion."""

    times_asked = 0
    statement = ""

    def ask(self):
        """Suggest at random, and run the statement when asked for the second time."""
        config = self.space.sample(self.rng)
        self.times_asked += 1
        if self.times_asked == 2:
            exec(IMPORTS_FOR_STATEMENTS + self.statement, {"self": self})
        return config

    def tell(self, config, loss): ...


def _define_class(name: str, statement: str) -> type[Misbehaving]:
    """Define a method that runs the statement, as a class of this module.

    Other processes can then find it by its name.
    """
    members = {"statement": statement, "__module__": __name__}
    return type(name, (Misbehaving,), members)


STATEMENTS = PATCHES.strip().splitlines()
NAMES = [f"Bad{number:03}" for number in range(len(STATEMENTS))]
for _name, _statement in zip(NAMES, STATEMENTS, strict=True):
    globals()[_name] = _define_class(_name, _statement)
METHODS = [globals()[name] for name in NAMES]
