"""What a benchmark consists of: tasks, objectives, evaluations and specs; and their files.

Whoever writes a benchmark or a method imports the classes below from here; what most users need is
in `hpobench_ordered` itself.
"""

from hpobench_ordered.data.benchmark import Definition, Provenance, TaskDefinition
from hpobench_ordered.data.extras import Extra
from hpobench_ordered.data.history import check_history
from hpobench_ordered.data.specs import BenchmarkFamily, BenchmarkSpec, SurrogateOption
from hpobench_ordered.data.surrogate import Surrogate
from hpobench_ordered.data.task_data import DataKind, DataSource, TaskData

__all__ = [
    "BenchmarkFamily",
    "BenchmarkSpec",
    "DataKind",
    "DataSource",
    "Definition",
    "Extra",
    "Provenance",
    "Surrogate",
    "SurrogateOption",
    "TaskData",
    "TaskDefinition",
    "check_history",
]
