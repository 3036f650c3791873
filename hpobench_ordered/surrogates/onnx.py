"""Surrogate that is a published ONNX network, evaluated by onnxruntime.

Notation:
    n   number of configurations
    d   number of hyperparameters of the search space
    a   number of categorical inputs of the network
    b   number of continuous inputs of the network
    m   most choices of a categorical input
    t   number of tasks

Values must not depend on the batch. onnxruntime's element-wise logarithms and exponentials take
four numbers at a time and round the remaining ones differently, so every batch, even a single
configuration, is padded to a multiple of `GROUP` rows. Matrix products sum in the same order for
any number of rows only on one thread, so a session has one thread; large batches are cut into
blocks, which several threads evaluate.
"""

import math
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered._typing import FloatArray, Value
from hpobench_ordered.data.extras import import_extra
from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.surrogates.base import check_task

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

GROUP = 4
"""Batches are padded to a multiple of this many rows, a register of element-wise kernels."""
BLOCK = 256
"""Rows evaluated at once: enough for the matrix products, few enough for the cache."""
INACTIVE = "#na#"
"""Name of an inactive categorical in YAHPO's encoding; an inactive number is 0."""
THREADS_VARIABLE = "OMP_NUM_THREADS"
"""Environment variable of the limit of threads that joblib sets in its workers."""

Encoding = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Layout:
    """Names of a network's input and output columns."""

    categorical: tuple[str, ...]
    continuous: tuple[str, ...]
    targets: tuple[str, ...]


@dataclass(eq=False, repr=False)
class OnnxSurrogate:
    """One output column of a published network, for the tasks of one benchmark."""

    model: bytes
    target: int  # column of the output
    cat_source: NDArray[np.int64]  # column of `values` of each categorical input, or -1, (a,)
    cat_codes: NDArray[np.int32]  # of each choice and, last, if inactive or fixed, (a, m + 1)
    cont_source: NDArray[np.int64]  # column of `values` of each continuous input, or -1, (b,)
    cont_fixed: NDArray[np.float32]  # other continuous inputs of each task, (t, b)
    _session: "InferenceSession | None" = field(default=None, init=False)

    def __post_init__(self) -> None:
        """List where each input of the network comes from, for single configurations.

        These are plain lists, with which one configuration is coded faster than with arrays.
        """
        # Of each categorical input: its column of the values, or -1 if fixed, and its codes.
        self._cat_plan = list(zip(self.cat_source.tolist(), self.cat_codes.tolist(), strict=True))

        # Of each task, for each continuous input: its column, or -1 and then the fixed value.
        columns = self.cont_source.tolist()
        self._cont_plans = []
        for fixed_values in self.cont_fixed.tolist():
            self._cont_plans.append(list(zip(columns, fixed_values, strict=True)))

    @classmethod
    def for_space(
        cls,
        model: bytes,
        *,
        space: SearchSpace,
        layout: Layout,
        encoding: Encoding,
        fixed: Mapping[str, Value],
        varied: Mapping[str, Sequence[float]],
        target: str,
    ) -> Self:
        """Match a network's columns with a search space.

        Args:
            model: The network.
            space: Hyperparameters that can be tuned.
            layout: The network's columns and targets.
            encoding: Code of each choice of the network's categorical columns.
            fixed: Values of columns that are the same for all tasks.
            varied: Values of columns that differ between tasks, one a task.
            target: The target to predict.

        Raises:
            ArtifactError: The columns are not those of space, `fixed` and `varied` together.
        """
        names = {*space.names, *fixed, *varied}
        columns = {*layout.categorical, *layout.continuous}
        if names != columns or target not in layout.targets:
            raise ArtifactError(
                f"search space and network do not belong together: {sorted(names ^ columns)} are "
                f"in only one of them, or target {target!r} is not in {list(layout.targets)}"
            )
        n_tasks = len(next(iter(varied.values()))) if varied else 1
        constants = {name: [value] * n_tasks for name, value in fixed.items()}
        placeholders = dict.fromkeys(space.names, [0.0] * n_tasks)  # overwritten when predicting
        values_of_tasks = {**placeholders, **constants, **varied}
        cont_values = [values_of_tasks[name] for name in layout.continuous]
        column_in_space = {name: column for column, name in enumerate(space.names)}
        return cls(
            model,
            target=layout.targets.index(target),
            cat_source=np.array([column_in_space.get(name, -1) for name in layout.categorical]),
            cat_codes=_code_choices(space, layout.categorical, encoding, fixed),
            cont_source=np.array([column_in_space.get(name, -1) for name in layout.continuous]),
            cont_fixed=np.array(cont_values, np.float32).T,
        )

    def predict(self, values: FloatArray, task: int) -> FloatArray:
        """Predict the objective of many configurations, shape (n, d) to (n,).

        They are padded to a multiple of `GROUP` rows, as onnxruntime rounds those of an incomplete
        group differently, and cut into blocks of `BLOCK` rows, which several threads evaluate.
        """
        check_task(task, len(self._cont_plans))  # one plan a task
        n = len(values)
        n_padded = math.ceil(n / GROUP) * GROUP
        x_cat = np.zeros((n_padded, len(self.cat_source)), dtype=np.int32)
        x_cont = np.zeros((n_padded, len(self.cont_source)), dtype=np.float32)
        self._fill(x_cat[:n], x_cont[:n], values, task)

        blocks = [slice(start, start + BLOCK) for start in range(0, n_padded, BLOCK)]
        inputs = [{"x_cat": x_cat[rows], "x_cont": x_cont[rows]} for rows in blocks]
        outputs = self._run_blocks(inputs)
        no_rows = np.zeros(0)  # so that an empty batch can be joined, too
        return np.concatenate([no_rows, *outputs])[:n]

    def predict_one(self, row: FloatArray, task: int) -> float:
        """Predict one configuration, shape (d,); equals `predict(row[None], task)[0]` exactly.

        An input of the network is a hyperparameter, whose value is in a column of `row`, NaN if
        inactive, or is fixed and has the column -1. `_cat_plan` has the column and the codes of
        each categorical input: a code for each choice and, last, the one of an inactive or fixed
        input. `_cont_plans` has, for each task, the column and the fixed value of each continuous
        input; of a hyperparameter the fixed value is not used.
        """
        check_task(task, len(self._cont_plans))  # one plan a task
        values = row.tolist()
        is_active = [not math.isnan(value) for value in values]

        categorical = []
        for column, codes in self._cat_plan:
            is_tunable = column >= 0
            if is_tunable and is_active[column]:
                choice = int(values[column])  # its index
                categorical.append(codes[choice])
            else:
                categorical.append(codes[-1])

        continuous = []
        for column, fixed in self._cont_plans[task]:
            is_tunable = column >= 0
            if is_tunable:
                continuous.append(values[column] if is_active[column] else 0.0)  # as YAHPO does
            else:
                continuous.append(fixed)

        # `GROUP` equal rows: onnxruntime rounds an incomplete group of rows differently, and the
        # result shall be that of the configuration in any batch.
        x_cat = np.array([categorical] * GROUP, dtype=np.int32)
        x_cont = np.array([continuous] * GROUP, dtype=np.float32)
        inputs = {
            "x_cat": x_cat.reshape(GROUP, len(categorical)),
            "x_cont": x_cont.reshape(GROUP, len(continuous)),
        }
        return float(self._run(inputs)[0])

    def _fill(
        self, x_cat: NDArray[np.int32], x_cont: NDArray[np.float32], values: FloatArray, task: int
    ) -> None:
        """Code values as the network's inputs, and write them to two arrays.

        An input of the network is a hyperparameter or fixed. `cat_source` (a,) and `cont_source`
        (b,) have the column of `values` of each categorical and continuous input, -1 for a fixed
        one. A row of `cat_codes` (a, choices + 1) has the code of each choice of an input and, in
        the last column, the code that it has where it is inactive or fixed. `cont_fixed` (tasks, b)
        has the values of fixed continuous inputs; those of the others are not used.

        Args:
            x_cat: Codes of the network's categorical inputs, (n, a).
            x_cont: Its continuous inputs, (n, b).
            values: Configurations, NaN where inactive, (n, d).
            task: Index of the task, which fixes some of the continuous inputs.
        """
        sources = zip(self.cat_source, self.cat_codes, strict=True)
        for k, (column, codes) in enumerate(sources):
            x_cat[:, k] = codes[-1]  # stays where the input is inactive or fixed
            is_tunable = column >= 0
            if is_tunable:
                is_active = ~np.isnan(values[:, column])
                choices = values[is_active, column].astype(np.int64)  # their indices
                x_cat[is_active, k] = codes[choices]

        x_cont[:] = self.cont_fixed[task]
        is_number_tunable = self.cont_source >= 0
        numbers = values[:, self.cont_source[is_number_tunable]]
        # The network is given 0 for an inactive number.
        x_cont[:, is_number_tunable] = np.nan_to_num(numbers, nan=0.0)

    def _run_blocks(self, inputs: list[dict[str, NDArray[Any]]]) -> list[NDArray[Any]]:
        """Evaluate the network on each block of rows, on several threads if there are several."""
        n_threads = min(len(inputs), _available_threads())
        if n_threads <= 1:
            return [self._run(block) for block in inputs]
        self._ready_session()  # before the threads, which would each start one
        with ThreadPoolExecutor(n_threads) as pool:
            return list(pool.map(self._run, inputs))

    def _run(self, inputs: dict[str, NDArray[Any]]) -> NDArray[Any]:
        """Evaluate the network on a multiple of `GROUP` rows, to values of the target, (n,).

        `inputs` are the arrays "x_cat" and "x_cont", which have a row for each configuration.
        """
        session = self._ready_session()
        all_outputs = session.run(None, inputs)  # None: no names of outputs, so all
        output = np.asarray(all_outputs[0])  # a network has only one
        return output[:, self.target]

    def _ready_session(self) -> "InferenceSession":
        """Return the session that evaluates the network; the first call in a process starts it."""
        if self._session is None:
            self._session = _start(self.model, len(self.cat_source), len(self.cont_source))
        return self._session

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: all but the session."""
        # Sessions do not pickle: the other process starts its own at its first prediction.
        return {**self.__dict__, "_session": None}


def check_network(model: bytes, layout: Layout) -> None:
    """Check that bytes are a network with the inputs of a layout, by starting it.

    Raises:
        ArtifactError: They are not.
    """
    _start(model, len(layout.categorical), len(layout.continuous))


def _start(network: bytes, n_categorical: int, n_continuous: int) -> "InferenceSession":
    """Start a session of onnxruntime, which evaluates a network.

    Args:
        network: The network, as in an ONNX file.
        n_categorical: Number of categorical inputs that it must have.
        n_continuous: Number of continuous inputs that it must have.

    Raises:
        ArtifactError: It cannot be read, or has other inputs.
    """
    onnxruntime = import_extra(
        "onnxruntime", package="onnxruntime", extra="onnx", purpose="a published network"
    )
    options = onnxruntime.SessionOptions()
    # On one thread sums are in the same order for any number of rows.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors only, no warnings of unused weights
    try:
        session: InferenceSession = onnxruntime.InferenceSession(
            network, options, providers=["CPUExecutionProvider"]
        )
        inputs = {tensor.name: tuple(tensor.shape[1:]) for tensor in session.get_inputs()}
    except Exception as error:  # onnxruntime's errors share no other base class
        raise ArtifactError(f"the network cannot be read: {error}") from None
    expected = {"x_cat": (n_categorical,), "x_cont": (n_continuous,)}
    if inputs != expected:
        raise ArtifactError(f"the network has inputs {inputs} instead of {expected}")
    return session


def _code_choices(
    space: SearchSpace, names: Sequence[str], encoding: Encoding, fixed: Mapping[str, Value]
) -> NDArray[np.int32]:
    """Find the network's codes of each choice of its categorical inputs, (a, m + 1).

    A row has the codes of the input's choices, at most m, in the order of the space and, in the
    last column, that of an inactive input; a fixed input has its own code throughout.

    Args:
        space: The search space.
        names: Names of the a categorical inputs.
        encoding: The network's code of each choice, by input.
        fixed: Values of inputs that are not tuned.
    """
    codes_of_inputs: list[list[int]] = []
    for name in names:
        # The last one is that of an inactive input, which YAHPO's encoding names `INACTIVE`.
        choices = [fixed[name]] if name in fixed else [*space[name].choices, INACTIVE]
        try:
            codes_of_inputs.append([encoding[name][str(choice)] for choice in choices])
        except KeyError as error:
            raise ArtifactError(f"the encoding of {name!r} does not know {error}") from None

    width = max((len(codes) for codes in codes_of_inputs), default=1)
    table = np.zeros((len(names), width), dtype=np.int32)
    for row, codes in zip(table, codes_of_inputs, strict=True):
        # The code of an inactive input is in the last column, too, of rows with fewer choices.
        row[:] = codes[-1]
        row[: len(codes)] = codes
    return table


def _available_threads() -> int:
    """Count the threads that this process may use: joblib's limit in its workers, or all cores.

    joblib sets the limit as the environment variable OMP_NUM_THREADS (`THREADS_VARIABLE`).
    """
    limit = os.environ.get(THREADS_VARIABLE, "")
    if limit.isdigit() and int(limit) > 0:
        return int(limit)
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
