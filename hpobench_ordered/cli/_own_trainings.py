"""The commands that make benchmarks by training the user's own models."""

import ast
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click

from hpobench_ordered.cli._options import (
    FILE,
    FOLDER,
    Command,
    add_options,
    parse_pairs,
    parse_sizes,
    workers_option,
)
from hpobench_ordered.cli._output import progress_bar, say
from hpobench_ordered.data.local import LOCAL_VARIABLE, local_folder
from hpobench_ordered.generation import custom as making
from hpobench_ordered.generation import retrain as retraining
from hpobench_ordered.generation._retrain.streams import PERIODS
from hpobench_ordered.generation.custom import Custom, Failures, PredictionKind, generate_custom
from hpobench_ordered.generation.retrain import Retrain, generate_retrain

CUSTOM_EXAMPLES = """\b
Examples:
  hpobench-ordered generate custom --name digits-forest \\
      --model sklearn.ensemble:RandomForestClassifier --data sklearn:digits \\
      --sizes 60,92,141,217,332,510,782,1200
      a well-known class has a built-in search space
  hpobench-ordered generate custom --name prices --model my_model:Mine \\
      --data houses.csv --target price --space space.json --set solver=fast \\
      --metric neg_mean_absolute_error --sizes 100,1000,10000 --configs 500
      your class in my_model.py in this folder
  hpobench-ordered run --benchmark digits-forest
      the methods on it; `list`, `info` and hpobench_ordered.load know its name too
"""


RETRAIN_EXAMPLES = """\b
Examples:
  hpobench-ordered generate retrain --name prices-by-month \\
      --model sklearn.ensemble:HistGradientBoostingRegressor --data prices.csv \\
      --time date --every month --window 3
      each month's model is trained on the three months before it
  hpobench-ordered generate retrain --name churn --model my_model:Mine --data churn.csv \\
      --target left --time day --every 5000 --window 1-6 --space space.json --metric roc_auc
      a period is 5000 rows; how many periods to train on is a hyperparameter, `window`
  hpobench-ordered run --benchmark prices-by-month
      the methods on it; `list`, `info` and hpobench_ordered.load know its name too
"""


def parse_window(context: click.Context, option: click.Parameter, text: str) -> tuple[int, int]:
    """Read a number of periods ("3") or a range ("1-6"); gives the least and the most.

    Click calls it for the value of an option, and also passes the context and the option.
    """
    first, _, last = text.partition("-")
    try:
        least = int(first)
        most = int(last) if last else least
    except ValueError:
        least = most = 0  # no number of periods, which is refused below
    if not 1 <= least <= most:
        raise click.BadParameter(f"must be a number or range such as 3 or 1-6, but got {text!r}")
    return least, most


def parse_settings(
    context: click.Context, option: click.Parameter, words: tuple[str, ...]
) -> dict[str, Any]:
    """Read KEYWORD=VALUE words; a value is a Python literal, otherwise text.

    Click calls it for the values of an option, and also passes the context and the option.
    """
    text_of_keyword = parse_pairs(words, "--set", "KEYWORD=VALUE")
    return {keyword: parse_literal(text) for keyword, text in text_of_keyword.items()}


def parse_literal(text: str) -> Any:
    """Read a Python literal, such as 0.5 or None; anything else is text."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


_COMMON_OPTIONS: tuple[Callable[[Command], Command], ...] = (
    click.option("--name", required=True, help="Name of the benchmark."),
    click.option(
        "--model",
        required=True,
        metavar="MODULE:CLASS",
        help="What is trained: a class with fit and predict, or a function that makes one.",
    ),
    click.option(
        "--configs",
        "configurations",
        type=click.IntRange(1),
        default=making.CONFIGURATIONS,
        show_default=True,
        help="Number of random configurations, the same on every task.",
    ),
    click.option(
        "--space",
        type=FILE,
        help="File of the search space in ConfigSpace's JSON; well-known classes have one.",
    ),
    click.option(
        "--set",
        "fixed",
        multiple=True,
        callback=parse_settings,
        metavar="KEYWORD=VALUE",
        help="A keyword of the class that every configuration gets; not tuned then. Repeat.",
    ),
    click.option(
        "--target", metavar="COLUMN", help="Column to be predicted.  [default: the last one]"
    ),
    click.option(
        "--kind",
        type=click.Choice([kind.value for kind in PredictionKind]),
        callback=lambda _, __, text: text and PredictionKind(text),
        help="What is predicted.  [default: told from the model, or else the target]",
    ),
    click.option(
        "--metric",
        help="A scorer of scikit-learn, such as roc_auc or neg_log_loss.  [default: the share of "
        "misclassified rows, or the mean squared error]",
    ),
    click.option(
        "--failures",
        type=click.Choice([failures.value for failures in Failures]),
        callback=lambda _, __, text: Failures(text),
        default=Failures.STOP.value,
        show_default=True,
        help="What becomes of a configuration that cannot be trained: everything stops, or it "
        "has the worst value of its size.",
    ),
    click.option(
        "--seed",
        type=click.IntRange(0),
        default=0,
        show_default=True,
        help="Seed of split, configurations, model and surrogate.",
    ),
    workers_option,
    click.option(
        "--output",
        type=FOLDER,
        help="Folder that gets the artifact, in a folder of its name.  [default: the folder "
        f"of your benchmarks, which {LOCAL_VARIABLE} may name]",
    ),
    click.option("--replace", is_flag=True, help="Replace a benchmark of this name made before."),
)


def common_options(command: Command) -> Command:
    """Add the options shared by `custom` and `retrain`."""
    return add_options(command, _COMMON_OPTIONS)


@click.command(making.COMMAND, epilog=CUSTOM_EXAMPLES)
@common_options
@click.option(
    "--data",
    required=True,
    metavar="FILE",
    help="What it learns from: a .csv, .parquet or .npz file, or sklearn:NAME (breast_cancer, "
    "diabetes, digits, iris, wine).",
)
@click.option(
    "--sizes",
    required=True,
    callback=parse_sizes,
    help="Training-set sizes, such as 60,141,332,782.",
)
@click.option(
    "--validation",
    type=float,
    default=making.VALIDATION_SHARE,
    show_default=True,
    help="Share of the rows that is held out to validate.",
)
def custom(**options: Any) -> None:
    """Make a benchmark of your own: any model on any data over growing training sets.

    The rows are shuffled once; some are held out to validate, and a training set of size s is the
    first s of the others, so that each holds the smaller ones. Every configuration is trained on
    every size; a task is a size. Columns of text become 0s and 1s, what is missing the median or a
    choice of its own, and features are standardised.

    Each finished training is stored at once: stop it whenever you like, even by `kill -9`, and the
    same command continues. More --configs or other --sizes (with --replace) train only what is new.
    """
    _generate(generate_custom, Custom, **options)


@click.command(retraining.COMMAND, epilog=RETRAIN_EXAMPLES)
@common_options
@click.option(
    "--data", required=True, metavar="FILE", help="What it learns from: a .csv or .parquet file."
)
@click.option("--time", required=True, metavar="COLUMN", help="Column of times; no feature.")
@click.option(
    "--time-format",
    metavar="FORMAT",
    help="How the times are written, such as %d/%m/%Y.  [default: told from them, if clear]",
)
@click.option(
    "--every",
    required=True,
    metavar="PERIOD",
    help=f"A period: {', '.join(PERIODS)}, or a number of rows (rows of equal time stay together).",
)
@click.option(
    "--window",
    default="1",
    show_default=True,
    callback=parse_window,
    help="Periods that a model is trained on; a range such as 1-6 makes it a hyperparameter.",
)
def retrain(**options: Any) -> None:
    """Make a benchmark of your own: any model trained again every period of your data.

    Rows are sorted by the column of times and cut into periods. For every period the model is
    trained on the last ones before it and measured on the period itself; a task is a period. Two
    names in a search space are not the model's own: `window`, the number of periods that it is
    trained on, and `half_life`, the number of periods after which a row weighs half as much, for
    models whose fit takes weights.

    Each finished configuration is stored at once: stop it whenever you like, even by `kill -9`, and
    the same command continues.
    """
    _generate(generate_retrain, Retrain, **options)


COMMANDS = (custom, retrain)


def _generate(
    generate: Callable[..., Path],
    describe: Callable[..., Any],
    *,
    workers: int,
    output: Path | None,
    replace: bool,
    **options: Any,
) -> None:
    """Generate the benchmark that the options describe, and print its path.

    Args:
        generate: Generates a benchmark from its description.
        describe: Makes the description from the options.
        workers: Number of processes.
        output: Folder that gets the artifact; None: that of the user's own benchmarks.
        replace: Whether to replace a benchmark of this name.
        options: All other options of the command.
    """
    description = describe(**options)
    sys.path.append(str(Path.cwd()))  # the user's model may be in a module of this folder
    with progress_bar() as show_progress, _workers_ignore_interrupt():
        written = generate(
            description, output=output, replace=replace, workers=workers, progress=show_progress
        )
    click.echo(str(written))
    is_found_by_name = written.parent == local_folder()
    name_or_path = description.name if is_found_by_name else written
    say(f"try:  hpobench-ordered run --benchmark {name_or_path}")


@contextmanager
def _workers_ignore_interrupt() -> Iterator[None]:
    """Let worker processes ignore Ctrl-C, as this process ends them."""
    from joblib import parallel_config

    ignore_interrupt = partial(signal.signal, signal.SIGINT, signal.SIG_IGN)
    with parallel_config("loky", initializer=ignore_interrupt):
        yield
