"""Classification data sets of OpenML tasks as numeric arrays.

Nominal columns are one-hot coded, binary ones as a single column of 0 and 1; choices and classes
are in ascending order. A missing number is replaced by its column's median; a missing choice counts
as a separate choice. The Monk's problems are made from their rules.
"""

import io
import itertools
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray, IntArray
from hpobench_ordered.data.identity import hash_arrays
from hpobench_ordered.data.remote import RemoteFile
from hpobench_ordered.data.task_data import DataKind, TaskData
from hpobench_ordered.errors import ArtifactError

if TYPE_CHECKING:
    import pandas as pd

MONKS_SEED = 0
MONKS_VALUES = (3, 3, 2, 3, 4, 2)
"""Number of values of each attribute of the Monk's problems."""
MONKS_TRAINING_SIZES = (124, 169, 122)
"""Number of training examples of each Monk's problem."""
MONKS_NOISE = 0.05
"""Share of the third problem's training examples with the wrong class."""
MONKS_TASKS = ("3492", "3493", "3494")
"""OpenML tasks of the Monk's problems 1, 2 and 3."""

FOLDER = "openml"
"""Cache folder of the published data sets."""

_MISSING_CHOICE = "missing value"


@dataclass(frozen=True)
class ClassificationData:
    """A data set to classify.

    Attributes:
        name: OpenML's name.
        x: Inputs, shape (n, p).
        y: Codes 0, 1, ... of the classes, shape (n,).
        digest: Hash of inputs and classes.
        description: Source and preprocessing of the data.
    """

    name: str
    x: FloatArray
    y: IntArray
    digest: str
    description: str


@dataclass(frozen=True, slots=True)
class PublishedDataSet:
    """A data set that OpenML publishes.

    Attributes:
        name: OpenML's name.
        number: OpenML's number of the data set.
        examples: Number of examples, n.
        columns: Number of columns after coding, p.
        largest: Number of examples of the largest class.
    """

    name: str
    number: int
    examples: int
    columns: int
    largest: int

    def read(self, content: bytes) -> ClassificationData:
        """Read the data set from the bytes of the published parquet file, and code it as numbers.

        Raises:
            ArtifactError: Its sizes are not those of the published file.
        """
        import pandas as pd

        frame = pd.read_parquet(io.BytesIO(content))
        inputs = frame.iloc[:, :-1]
        classes = frame.iloc[:, -1]  # the last column
        data = code_data(self.name, inputs, classes, f"OpenML data set {self.number}")

        rows_of_classes = np.bincount(data.y)
        sizes = (*data.x.shape, int(rows_of_classes.max()))
        expected_sizes = (self.examples, self.columns, self.largest)
        if sizes != expected_sizes:
            raise ArtifactError(
                f"{self.name} must have (examples, columns when coded, examples of the largest "
                f"class) = {expected_sizes}, but got {sizes}"
            )
        return data

    def check(self, content: bytes) -> None:
        """Raise `ArtifactError` or `ValueError` if the content is not the published file."""
        self.read(content)

    def describe_file(self, task: str) -> RemoteFile:
        """Describe the file that OpenML publishes; its name in the cache begins with the task."""
        # OpenML has a folder for ten thousand data sets each, such as 0000/0031 for number 31.
        folder = f"{self.number // 10_000:04d}/{self.number:04d}"
        return RemoteFile(
            name=f"{FOLDER}/{task}_{self.name}.pq",
            url=f"https://data.openml.org/datasets/{folder}/dataset_{self.number}.pq",
            sha256=None,  # OpenML publishes no hash, so the content is checked
            check=self.check,
        )


PUBLISHED = {
    "3": PublishedDataSet("kr-vs-kp", 3, 3_196, 38, 1_669),
    "31": PublishedDataSet("credit-g", 31, 1_000, 59, 700),
    "37": PublishedDataSet("diabetes", 37, 768, 8, 500),
    "49": PublishedDataSet("tic-tac-toe", 50, 958, 27, 626),
    "3913": PublishedDataSet("kc2", 1_063, 522, 21, 415),
    "3917": PublishedDataSet("kc1", 1_067, 2_109, 21, 1_783),
    "3918": PublishedDataSet("pc1", 1_068, 1_109, 21, 1_032),
    "9946": PublishedDataSet("wdbc", 1_510, 569, 30, 357),
    "9952": PublishedDataSet("phoneme", 1_489, 5_404, 5, 3_818),
    "10093": PublishedDataSet("banknote-authentication", 1_462, 1_372, 4, 762),
    "10101": PublishedDataSet("blood-transfusion-service-center", 1_464, 748, 4, 570),
}
"""Data sets of the bundled flows by OpenML task, except the Monk's problems."""
FILES = {task: published.describe_file(task) for task, published in PUBLISHED.items()}


@lru_cache(maxsize=len(PUBLISHED) + len(MONKS_TASKS))
def read_task_data(task: str) -> TaskData | None:
    """Read all examples of an OpenML task, as used in cross-validation; None for unknown tasks.

    Raises:
        NotFetchedError: The data set must be fetched first.
        ArtifactError: The file is not the published one.
    """
    if task in MONKS_TASKS:
        problem = MONKS_TASKS.index(task) + 1
        data = make_monks_problem(problem)
    elif task in PUBLISHED:
        # If the file is missing, the error says to fetch this benchmark, which has all these files.
        path = FILES[task].open_path("openml-svm")
        data = PUBLISHED[task].read(path.read_bytes())
    else:
        return None
    return TaskData(data.x, data.y.astype(np.float64), DataKind.CLASSIFICATION)


def make_monks_problem(problem: int) -> ClassificationData:
    """Make Monk's problem 1, 2 or 3 from its rule (Thrun et al. 1991, section 1.1).

    As in OpenML's version, every combination of the attributes occurs once, without noise, followed
    by as many training examples as in the original. The rule does not determine which combinations
    these examples have: they are drawn here, so this part differs from OpenML's.
    """
    import pandas as pd

    if problem not in {1, 2, 3}:
        raise ValueError(f"the Monk's problem must be 1, 2 or 3, but got {problem}")
    values_of_attributes = [range(1, size + 1) for size in MONKS_VALUES]
    combinations = np.array(list(itertools.product(*values_of_attributes)))
    classes = _apply_monks_rule(problem, combinations)

    rng = np.random.default_rng([MONKS_SEED, problem])
    training_size = MONKS_TRAINING_SIZES[problem - 1]
    drawn_rows = rng.choice(len(combinations), training_size, replace=False)
    training_classes = classes[drawn_rows]
    if problem == 3:  # which alone has noise
        training_classes = _flip_random_classes(training_classes, rng)

    names = [f"attr{number}" for number in range(1, len(MONKS_VALUES) + 1)]
    examples = np.concatenate([combinations, combinations[drawn_rows]])
    return code_data(
        f"monks-problems-{problem}",
        pd.DataFrame(examples, columns=names).astype("category"),
        pd.Series(np.concatenate([classes, training_classes])),
        _describe_monks_problem(problem, len(combinations), training_size),
    )


def _flip_random_classes(classes: BoolArray, rng: np.random.Generator) -> BoolArray:
    """Return classes with the wrong value for a share `MONKS_NOISE` of them, chosen at random."""
    number_wrong = int(MONKS_NOISE * len(classes))
    wrong_rows = rng.choice(len(classes), number_wrong, replace=False)
    noisy_classes = classes.copy()
    noisy_classes[wrong_rows] ^= True  # the other class
    return noisy_classes


def _describe_monks_problem(problem: int, n_combinations: int, training_size: int) -> str:
    """Describe how the examples of a Monk's problem were made."""
    text = (
        f"made from the rule of Monk's problem {problem} (Thrun et al. 1991): all "
        f"{n_combinations} combinations and {training_size} training examples; the original "
        "ones cannot be made from the rule, so these are drawn at random without replacement"
    )
    if problem == 3:
        text += f", and {MONKS_NOISE:.0%} of them given the wrong class"
    return text


def _apply_monks_rule(problem: int, attributes: IntArray) -> BoolArray:
    """Decide by the rule of a Monk's problem which examples are positive, (n,).

    Args:
        problem: 1, 2 or 3.
        attributes: Values of the six attributes, which count from 1, (n, 6).
    """
    a1, a2, _, a4, a5, _ = attributes.T
    is_positive: BoolArray
    if problem == 1:
        is_positive = (a1 == a2) | (a5 == 1)
    elif problem == 2:  # exactly two attributes have their first value
        number_of_ones = (attributes == 1).sum(axis=1)
        is_positive = number_of_ones == 2
    else:
        is_positive = ((a5 == 3) & (a4 == 1)) | ((a5 != 4) & (a2 != 3))
    return is_positive


def code_data(
    name: str, inputs: "pd.DataFrame", classes: "pd.Series[Any]", source: str
) -> ClassificationData:
    """Code the inputs and classes of a data set as numbers.

    Args:
        name: Name of the data set.
        inputs: A column for each input, n rows.
        classes: The class of each row, (n,).
        source: Where the data come from, for the description, to which their sizes are added.

    Raises:
        ArtifactError: A class is missing, a number is infinite, or there is nothing to learn.
    """
    import pandas as pd

    if classes.isna().any():
        raise ArtifactError(f"{name} ({source}) has examples without a class")
    class_codes, class_names = pd.factorize(classes, sort=True)
    number_of_inputs = inputs.shape[1]
    if len(class_names) < 2 or number_of_inputs == 0:
        raise ArtifactError(
            f"{name} ({source}) must have at least two classes and one input, but got "
            f"{len(class_names)} classes and {number_of_inputs} inputs"
        )

    columns = [_code_column(inputs.iloc[:, index]) for index in range(number_of_inputs)]
    x = np.concatenate(columns, axis=1)
    if not np.isfinite(x).all():
        raise ArtifactError(f"{name} ({source}) has infinite numbers")

    y = class_codes.astype(np.int64)
    sizes = f"{len(y)} examples, {x.shape[1]} columns, {len(class_names)} classes"
    return ClassificationData(
        name=name,
        x=x,
        y=y,
        digest=hash_arrays(x.astype("<f8"), y.astype("<i8")),
        description=f"{name}: {source}; {sizes}",
    )


def _code_column(column: "pd.Series[Any]") -> FloatArray:
    """Code a column of n values as one or more columns of numbers, (n, 1 or more).

    Numbers stay one column, with the median in place of missing ones. Choices are one-hot coded in
    ascending order, two of them by one column of 0 and 1; a missing choice is a choice of its own.
    """
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
        is_missing = np.isnan(numbers)
        replacement = 0.0 if is_missing.all() else np.median(numbers[~is_missing])
        return np.where(is_missing, replacement, numbers)[:, None]

    texts = column.astype(object).where(column.notna(), _MISSING_CHOICE).astype(str)
    index_of_row, choices = pd.factorize(texts, sort=True)
    is_binary = len(choices) <= 2
    indices_with_column = [1] if is_binary else range(len(choices))
    columns = [(index_of_row == index).astype(np.float64) for index in indices_with_column]
    return np.stack(columns, axis=1)
