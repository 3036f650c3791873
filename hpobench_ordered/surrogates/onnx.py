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
from hpobench_ordered.data.surrogate import check_task
from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.space import SearchSpace

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

GROUP = 4
"""Batches are padded to a multiple of this many rows, a register of element-wise kernels."""
BLOCK = 256
"""Rows evaluated at once: enough for the matrix products, few enough for the cache."""
INACTIVE = "#na#"
"""Name of an inactive categorical in YAHPO's encoding; an inactive number is 0."""
FIXED = -1
"""Stands for the column of an input that is not tuned."""
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
    """One output column of a published network, for the tasks of one benchmark.

    An input of the network is either a hyperparameter or fixed. The column of an input is that of
    the hyperparameter in coded values, or `FIXED`.

    Attributes:
        model: The network, as in an ONNX file.
        target: Column of the network's output that is the objective.
        categorical_columns: Column of each categorical input, (a,).
        categorical_codes: The network's code of each choice of a categorical input and, last, the
            code for an inactive or fixed input, (a, m + 1).
        continuous_columns: Column of each continuous input, (b,).
        fixed_numbers: For each task the values of fixed continuous inputs; those of the other
            inputs are not used, (t, b).
    """

    model: bytes
    target: int
    categorical_columns: NDArray[np.int64]
    categorical_codes: NDArray[np.int32]
    continuous_columns: NDArray[np.int64]
    fixed_numbers: NDArray[np.float32]
    _session: "InferenceSession | None" = field(default=None, init=False)  # started when needed

    def __post_init__(self) -> None:
        """Collect what is known of each input of the network, for single configurations.

        These are plain lists, with which one configuration is coded faster than with arrays.
        """
        # For each categorical input: its column, and its codes.
        self._categorical_inputs = list(
            zip(self.categorical_columns.tolist(), self.categorical_codes.tolist(), strict=True)
        )
        # For each task and continuous input: its column, and its fixed number.
        columns = self.continuous_columns.tolist()
        self._continuous_inputs = []
        for fixed_numbers in self.fixed_numbers.tolist():
            self._continuous_inputs.append(list(zip(columns, fixed_numbers, strict=True)))

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
        placeholders = dict.fromkeys(space.names, [0.0] * n_tasks)  # replaced when predicting
        values_of_tasks = {**placeholders, **constants, **varied}
        fixed_numbers = [values_of_tasks[name] for name in layout.continuous]  # (b, t)
        return cls(
            model,
            target=layout.targets.index(target),
            categorical_columns=_find_columns(layout.categorical, space),
            categorical_codes=_code_choices(space, layout.categorical, encoding, fixed),
            continuous_columns=_find_columns(layout.continuous, space),
            fixed_numbers=np.array(fixed_numbers, np.float32).T,
        )

    def predict(self, values: FloatArray, task: int) -> FloatArray:
        """Predict the objective of many configurations, shape (n, d) to (n,).

        They are padded to a multiple of `GROUP` rows, as onnxruntime rounds those of an incomplete
        group differently, and cut into blocks of `BLOCK` rows, which several threads evaluate.
        """
        n_tasks = len(self._continuous_inputs)
        check_task(task, n_tasks)
        n = len(values)
        n_padded = math.ceil(n / GROUP) * GROUP
        x_cat = np.zeros((n_padded, len(self.categorical_columns)), dtype=np.int32)
        x_cont = np.zeros((n_padded, len(self.continuous_columns)), dtype=np.float32)
        self._write_inputs(x_cat[:n], x_cont[:n], values, task)

        inputs_of_blocks = []
        for start in range(0, n_padded, BLOCK):
            rows = slice(start, start + BLOCK)
            inputs_of_blocks.append({"x_cat": x_cat[rows], "x_cont": x_cont[rows]})
        outputs_of_blocks = self._evaluate_blocks(inputs_of_blocks)
        no_rows = np.zeros(0)  # so that there is something to join if there are no blocks
        padded_outputs = np.concatenate([no_rows, *outputs_of_blocks])
        return padded_outputs[:n]

    def predict_one(self, row: FloatArray, task: int) -> float:
        """Predict one configuration, shape (d,); equals `predict(row[None], task)[0]` exactly.

        The configuration becomes the network's inputs as in `_write_inputs`, but with plain
        numbers, which are faster for a single one.
        """
        n_tasks = len(self._continuous_inputs)
        check_task(task, n_tasks)
        values = row.tolist()  # NaN where inactive

        categorical = []
        for column, codes in self._categorical_inputs:
            if column == FIXED or math.isnan(values[column]):
                categorical.append(codes[-1])  # the code for a fixed or inactive input
            else:
                index_of_choice = int(values[column])
                categorical.append(codes[index_of_choice])

        continuous = []
        for column, fixed_number in self._continuous_inputs[task]:
            if column == FIXED:
                continuous.append(fixed_number)
            elif math.isnan(values[column]):
                continuous.append(0.0)  # YAHPO passes 0 for an inactive number
            else:
                continuous.append(values[column])

        # The row is repeated `GROUP` times, since onnxruntime rounds an incomplete group of rows
        # differently: the result must be that of the configuration in any batch.
        x_cat = np.array([categorical] * GROUP, dtype=np.int32)
        x_cont = np.array([continuous] * GROUP, dtype=np.float32)
        inputs = {
            "x_cat": x_cat.reshape(GROUP, len(categorical)),
            "x_cont": x_cont.reshape(GROUP, len(continuous)),
        }
        return float(self._evaluate(inputs)[0])

    def _write_inputs(
        self, x_cat: NDArray[np.int32], x_cont: NDArray[np.float32], values: FloatArray, task: int
    ) -> None:
        """Write the network's inputs for configurations into two arrays.

        A categorical input is the network's code of the choice, or its code for an inactive or
        fixed input. A continuous input is the number, 0 if it is inactive, or a fixed number.

        Args:
            x_cat: Receives the categorical inputs, (n, a).
            x_cont: Receives the continuous inputs, (n, b).
            values: Configurations, NaN where inactive, (n, d).
            task: Index of the task, which has fixed numbers of its own.
        """
        for k, column in enumerate(self.categorical_columns):
            codes = self.categorical_codes[k]  # of each choice and, last, for inactive or fixed
            x_cat[:, k] = codes[-1]
            if column != FIXED:
                is_active = ~np.isnan(values[:, column])
                indices_of_choices = values[is_active, column].astype(np.int64)
                x_cat[is_active, k] = codes[indices_of_choices]

        x_cont[:] = self.fixed_numbers[task]
        is_tuned = self.continuous_columns != FIXED
        numbers = values[:, self.continuous_columns[is_tuned]]
        x_cont[:, is_tuned] = np.nan_to_num(numbers, nan=0.0)

    def _evaluate_blocks(self, inputs: list[dict[str, NDArray[Any]]]) -> list[NDArray[Any]]:
        """Evaluate the network on each block of rows, on several threads if there are several.

        `inputs` and the result, values of the target, have an item for each block.
        """
        n_threads = min(len(inputs), _count_available_threads())
        if n_threads <= 1:
            return [self._evaluate(block) for block in inputs]
        self._get_session()  # starts it before the threads, each of which would start one
        with ThreadPoolExecutor(n_threads) as pool:
            return list(pool.map(self._evaluate, inputs))

    def _evaluate(self, inputs: dict[str, NDArray[Any]]) -> NDArray[Any]:
        """Evaluate the network on n rows, a multiple of `GROUP`, and return the target's values.

        Args:
            inputs: The arrays "x_cat" and "x_cont", which have a row for each configuration.

        Returns:
            Predicted values of the target, (n,).
        """
        session = self._get_session()
        all_outputs = None  # instead of a list of names
        outputs = session.run(all_outputs, inputs)
        values_of_targets = np.asarray(outputs[0])  # the only output has a column for each target
        return values_of_targets[:, self.target]

    def _get_session(self) -> "InferenceSession":
        """Return the session that evaluates the network; the first call in a process starts it."""
        if self._session is None:
            self._session = _start_session(
                self.model, len(self.categorical_columns), len(self.continuous_columns)
            )
        return self._session

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: all attributes but the session, which cannot be pickled.

        A process that unpickles the surrogate starts a session at its first prediction.
        """
        return {**self.__dict__, "_session": None}


def check_network(model: bytes, layout: Layout) -> None:
    """Check that bytes are a network with the inputs of a layout, by starting a session with it.

    Raises:
        ArtifactError: The bytes are no network, or the network has other inputs.
    """
    _start_session(model, len(layout.categorical), len(layout.continuous))


def _start_session(network: bytes, n_categorical: int, n_continuous: int) -> "InferenceSession":
    """Start a session of onnxruntime, which evaluates a network.

    Args:
        network: The network, as in an ONNX file.
        n_categorical: Number of categorical inputs that it must have.
        n_continuous: Number of continuous inputs that it must have.

    Raises:
        ArtifactError: The network cannot be read, or has other inputs.
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
        inputs = session.get_inputs()
    except Exception as error:  # onnxruntime's errors share no other base class
        raise ArtifactError(f"the network cannot be read: {error}") from None

    # The first axis is that of configurations.
    shapes = {tensor.name: tuple(tensor.shape[1:]) for tensor in inputs}
    expected_shapes = {"x_cat": (n_categorical,), "x_cont": (n_continuous,)}
    if shapes != expected_shapes:
        raise ArtifactError(f"the network has inputs {shapes} instead of {expected_shapes}")
    return session


def _find_columns(names: Sequence[str], space: SearchSpace) -> NDArray[np.int64]:
    """Find the column of each input of a network in coded values; `FIXED` if it is not tuned."""
    column_of_name = {name: column for column, name in enumerate(space.names)}
    return np.array([column_of_name.get(name, FIXED) for name in names], dtype=np.int64)


def _code_choices(
    space: SearchSpace, names: Sequence[str], encoding: Encoding, fixed: Mapping[str, Value]
) -> NDArray[np.int32]:
    """Find the network's codes of the choices of its categorical inputs.

    Args:
        space: The search space.
        names: Names of the categorical inputs.
        encoding: The network's code of each choice, by input.
        fixed: Values of inputs that are not tuned.

    Returns:
        A row for each input, which has the code of each choice, in the order of the search space,
        and, in the last column, the code of an inactive input. A fixed input has the code of its
        value in all columns, (a, m + 1).

    Raises:
        ArtifactError: The encoding lacks an input or a choice.
    """
    codes_of_inputs: list[list[int]] = []
    for name in names:
        # YAHPO's encoding lists `INACTIVE` among the choices.
        choices = [fixed[name]] if name in fixed else [*space[name].choices, INACTIVE]
        try:
            codes_of_inputs.append([encoding[name][str(choice)] for choice in choices])
        except KeyError as error:
            raise ArtifactError(f"the encoding of {name!r} does not know {error}") from None

    width = max((len(codes) for codes in codes_of_inputs), default=1)
    table = np.zeros((len(names), width), dtype=np.int32)
    for row, codes in zip(table, codes_of_inputs, strict=True):
        # Inputs with fewer choices than others have their last code in the remaining columns.
        row[:] = codes[-1]
        row[: len(codes)] = codes
    return table


def _count_available_threads() -> int:
    """Count the threads that this process may use: joblib's limit in its workers, or all cores.

    joblib sets the limit as the environment variable OMP_NUM_THREADS (`THREADS_VARIABLE`).
    """
    limit = os.environ.get(THREADS_VARIABLE, "")
    if limit.isdigit() and int(limit) > 0:
        return int(limit)
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
