"""The command that generates artifacts: of this package's benchmarks, and of a user's."""

import ast
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from hpobench_ordered.cli._completion import complete_suite
from hpobench_ordered.cli._options import workers_option
from hpobench_ordered.cli._show import progress_bar, say
from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.generation import custom as making
from hpobench_ordered.generation.custom import Custom, Failures, Kind, generate_custom
from hpobench_ordered.registry import LOCAL_VARIABLE, benchmark_spec, generators, local_folder
from hpobench_ordered.suites import SUITES

EXAMPLES = """\b
Examples:
  hpobench-ordered generate newsvendor --output mine
  hpobench-ordered info mine/newsvendor
      regenerates a benchmark of this package; it is loaded by its path
  hpobench-ordered generate --suite wide
      makes what that suite has beyond the package: yahpo-xgboost-*, yahpo-rpart-*
  hpobench-ordered generate custom --name digits-forest \\
      --model sklearn.ensemble:RandomForestClassifier --data sklearn:digits \\
      --sizes 60,92,141,217,332,510,782,1200
  hpobench-ordered run --benchmark digits-forest
      makes a new benchmark, which is loaded by its name
"""

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


def _sources() -> list[tuple[str, str]]:
    """Benchmarks with their sources, and what these are; alike ones on one line."""
    alike: dict[tuple[str, str], list[str]] = {}
    for name, generator in sorted(generators().items()):
        stem, _, number = name.rpartition("-")
        shown = f"{stem}-ID" if number.isdecimal() else name
        for source, described in generator.sources.items():
            alike.setdefault((f"{shown} --source {source}", described.summary), []).append(number)
    return [
        (shown, f"{summary} ID: {', '.join(numbers)}." if "-ID " in shown else summary)
        for (shown, summary), numbers in alike.items()
    ]


class _Named(click.Command):
    """`generate NAME`: adds the benchmarks and their sources to the help, looked up only then."""

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage(ctx.command_path.strip(), "NAME [OPTIONS]")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        records = [parameter.get_help_record(ctx) for parameter in self.get_params(ctx)]
        with formatter.section("Options of generate NAME"):
            formatter.write_dl([record for record in records if record is not None])
        with formatter.section("Benchmarks and their sources, the default one first"):
            formatter.write_dl(_sources(), col_max=40)


class _Generate(click.Group):
    """`generate custom`, and for every other name `generate NAME`; its options may come first."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in self.commands:
            return super().resolve_command(ctx, args)
        return "", named, args

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        named.format_usage(ctx, formatter)
        formatter.write_usage(
            ctx.command_path, f"{making.COMMAND} [OPTIONS]", prefix=" " * len("Usage: ")
        )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("A benchmark of your own"):
            formatter.write_dl([(f"{making.COMMAND} --help", custom.get_short_help_str(limit=100))])
        named.format_options(ctx, formatter)


@click.group(cls=_Generate, context_settings={"ignore_unknown_options": True}, epilog=EXAMPLES)
def generate() -> None:
    """Make a benchmark's artifact: surrogate, best known values and quality card.

    `generate NAME` regenerates one of this package's benchmarks, of those below, from its raw
    evaluations. `generate custom` makes a benchmark of your own, whose evaluations it makes, too:
    it trains any model on any data over growing training sets, as xgboost-mnist was made. What
    either makes is an artifact of the same kind.
    """


@click.command(cls=_Named, epilog=EXAMPLES)
@click.argument("name", required=False)
@click.option(
    "--suite",
    "suite_name",
    shell_complete=complete_suite,
    help="Instead of NAME: all benchmarks of this suite that have no artifact yet.",
)
@click.option("--source", help="Where the evaluations come from, see below.")
@click.option(
    "--from",
    "local",
    type=click.Path(exists=True, path_type=Path),
    help="A local copy of the raw data, instead of a download.",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder that gets the artifact, in a folder of the benchmark's name.  [default: "
    "artifacts; for what does not come with the package, where it is found by its name]",
)
@click.option("--seed", type=click.IntRange(0), help="Seed of everything random.  [default: 0]")
@click.option("--workers", type=click.IntRange(1), help="Number of processes.  [default: 1]")
@click.option("--sizes", help="Training-set sizes, such as 56,155,433 (sources that train).")
@click.option("--configs", type=click.IntRange(1), help="Number of configurations.")
@click.option("--tasks", help="Names of tasks, such as 37,49.  [default: all]")
def named(
    name: str | None,
    suite_name: str | None,
    source: str | None,
    local: Path | None,
    output: Path | None,
    seed: int | None,
    workers: int | None,
    sizes: str | None,
    configs: int | None,
    tasks: str | None,
) -> None:
    """Regenerate a benchmark's artifact: surrogate, best known values and quality card.

    A source refuses an option that it has no use for.
    """
    for one in _to_generate(name, suite_name):
        generator = generators()[one]
        with progress_bar() as move:
            written = generator.generate(
                (generator.home() if output is None else output) / one,
                source=source,
                local=local,
                seed=seed,
                workers=workers,
                sizes=_sizes(sizes),
                configurations=configs,
                tasks=None if tasks is None else tasks.split(","),
                progress=move,
            )
        click.echo(str(written))


def _to_generate(name: str | None, suite_name: str | None) -> list[str]:
    """The benchmark of that name, or those of a suite that have no artifact yet.

    Raises:
        click.UsageError: Neither is named, or both are.
        UnknownNameError: There is no such suite, or nothing generates that benchmark.
    """
    if (name is None) == (suite_name is None):
        raise click.UsageError("give the NAME of a benchmark, or --suite")
    if suite_name is not None:
        if suite_name not in SUITES:
            raise UnknownNameError("suite", suite_name, SUITES)
        made = [one for one in SUITES[suite_name] if one in generators()]
        lacking = [one for one in made if benchmark_spec(one).artifact is None]
        if not lacking:
            say(f"suite {suite_name}: nothing to generate, every artifact is there")
        return lacking
    if name is None or name not in generators():
        raise UnknownNameError("benchmark to generate", str(name), generators())
    return [name]


@generate.command(making.COMMAND, epilog=CUSTOM_EXAMPLES)
@click.option("--name", required=True, help="Name of the benchmark.")
@click.option(
    "--model",
    required=True,
    metavar="MODULE:CLASS",
    help="What is trained: a class with fit and predict, or a function that makes such an object.",
)
@click.option(
    "--data",
    required=True,
    metavar="FILE",
    help="What it learns from: a .csv, .parquet or .npz file, or sklearn:NAME (breast_cancer, "
    "diabetes, digits, iris, wine).",
)
@click.option("--sizes", required=True, help="Training-set sizes, such as 60,141,332,782.")
@click.option(
    "--configs",
    type=click.IntRange(1),
    default=making.CONFIGURATIONS,
    show_default=True,
    help="Number of random configurations, the same at every size.",
)
@click.option(
    "--space",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File of the search space in ConfigSpace's JSON; a built-in one for well-known classes.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEYWORD=VALUE",
    help="A keyword of the class that every configuration gets; not tuned then. Repeat.",
)
@click.option("--target", metavar="COLUMN", help="Column to be predicted.  [default: the last one]")
@click.option(
    "--kind",
    type=click.Choice([kind.value for kind in Kind]),
    help="What is predicted.  [default: told from the model, or else the target]",
)
@click.option(
    "--metric",
    help="A scorer of scikit-learn, such as roc_auc or neg_log_loss.  [default: the share of "
    "misclassified rows, or the mean squared error]",
)
@click.option(
    "--validation",
    type=float,
    default=making.VALIDATION,
    show_default=True,
    help="Share of the rows that is held out to validate.",
)
@click.option(
    "--failures",
    type=click.Choice([failures.value for failures in Failures]),
    default=Failures.STOP.value,
    show_default=True,
    help="What becomes of a configuration that cannot be trained: everything stops there, or it "
    "has the worst value of its size.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Seed of split, configurations, model and surrogate.",
)
@workers_option
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder that gets the artifact, in a folder of its name.  [default: the folder "
    f"of your benchmarks, which {LOCAL_VARIABLE} may name]",
)
@click.option("--replace", is_flag=True, help="Replace a benchmark of this name made before.")
def custom(
    name: str,
    model: str,
    data: str,
    sizes: str,
    configs: int,
    space: Path | None,
    settings: tuple[str, ...],
    target: str | None,
    kind: str | None,
    metric: str | None,
    validation: float,
    failures: str,
    seed: int,
    workers: int,
    output: Path | None,
    replace: bool,
) -> None:
    """Make a benchmark of your own: any model on any data over growing training sets.

    The rows are shuffled once; some are held out to validate, and a training set of size s is the
    first s of the others, so that each holds the smaller ones. Every configuration is trained on
    every size; a task is a size. Columns of text become 0s and 1s, what is missing the median or a
    choice of its own, and features are standardised.

    Each finished training is stored at once: stop it whenever you like, even by `kill -9`, and the
    same command continues. More --configs or other --sizes (with --replace) train only what is new.
    """
    from joblib import parallel_config

    sys.path.append(str(Path.cwd()))  # where the user's module is
    asked = Custom(
        name=name,
        model=model,
        data=data,
        sizes=_sizes(sizes) or [],
        target=target,
        kind=None if kind is None else Kind(kind),
        metric=metric,
        validation=validation,
        fixed=_settings(settings),
        space=space,
        configurations=configs,
        failures=Failures(failures),
        seed=seed,
    )
    # Ctrl-C reaches all processes; this one ends the others.
    ignore = partial(signal.signal, signal.SIGINT, signal.SIG_IGN)
    with progress_bar() as move, parallel_config("loky", initializer=ignore):
        written = generate_custom(
            asked, output=output, replace=replace, workers=workers, progress=move
        )
    click.echo(str(written))
    known_as = name if written.parent == local_folder() else written
    say(f"try:  hpobench-ordered run --benchmark {known_as}")


def _settings(words: tuple[str, ...]) -> dict[str, Any]:
    """Read KEYWORD=VALUE words; values are Python literals, or else text.

    Raises:
        ExperimentError: A word is malformed or repeated.
    """
    settings: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not (name and equals) or name in settings:
            raise ExperimentError(f"--set takes KEYWORD=VALUE, each keyword once; got {word!r}")
        try:
            settings[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            settings[name] = text
    return settings


def _sizes(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        message = f"{text!r} is not a list such as 56,155,433"
        raise click.BadParameter(message, param_hint="--sizes") from None
