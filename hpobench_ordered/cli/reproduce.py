"""The command that reproduces a paper."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpobench_ordered.cli._options import FOLDER, parse_seeds, workers_option
from hpobench_ordered.cli._output import print_table, progress_bar

if TYPE_CHECKING:
    from hpobench_ordered.papers import Reproduction

EXAMPLES = """\b
Examples:
  hpobench-ordered reproduce othpo --workers 2
      everything: 65 experiments and three more, 50 seeds each
  hpobench-ordered reproduce othpo --seeds 5 --output quick
      the same with 5 seeds, in a tenth of the time
  hpobench-ordered reproduce othpo --figure 5 --figure 6
      two figures, and only the runs that they need
  hpobench-ordered reproduce othpo --figure 1
      a landscape: nothing is run
  hpobench-ordered reproduce ablr --workers 2 --output ablr
  hpobench-ordered reproduce abrac --workers 2 --output abrac
  hpobench-ordered reproduce hp-transfer --workers 2 --output hp-transfer
      other papers, each under an hour on two cores
  hpobench-ordered reproduce distbo --figure 7 --seeds 3 --output distbo
      methods told of training data; every seed is another draw of these
  hpobench-ordered reproduce abrac --figure 4 --output abrac
      what models believe of a function: nothing is run
  hpobench-ordered fetch xgboost-mnist
  hpobench-ordered reproduce othpo --table 4 --surrogate nearest
      on the authors' own surrogate, which their numbers come from
  hpobench-ordered reproduce othpo --authors-bo --output authors
      with Bayesian optimisation as the authors ran it
"""


@click.command(epilog=EXAMPLES)
@click.argument("paper")
@click.option("--figure", "figures", type=int, multiple=True, help="Only this figure; repeat.")
@click.option("--table", "tables", type=int, multiple=True, help="Only this table; repeat.")
@click.option(
    "--seeds",
    callback=parse_seeds,
    help="How many (5), a range (10-19), a list (3,7), on all benchmarks; default: the paper's.",
)
@workers_option
@click.option(
    "--surrogate",
    help="Evaluate on this one the benchmarks that have it, such as xgboost-mnist on nearest.",
)
@click.option(
    "--simulated-workers",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Trials in flight (othpo): a method is asked for so many before it is told a result.",
)
@click.option(
    "--authors-bo",
    is_flag=True,
    help="With Bayesian optimisation as the authors ran it, four trials in flight (othpo).",
)
@click.option(
    "--output",
    type=FOLDER,
    default=Path("reproduction"),
    show_default=True,
    help="Folder of everything; running again with the same folder continues.",
)
def reproduce(
    paper: str,
    figures: tuple[int, ...],
    tables: tuple[int, ...],
    seeds: list[int] | None,
    workers: int,
    surrogate: str | None,
    simulated_workers: int,
    authors_bo: bool,
    output: Path,
) -> None:
    """Reproduce the results of a paper and check what it claims.

    Runs the experiments of PAPER (othpo: Hellan et al. 2023; ablr: Perrone et al. 2018; abrac:
    Horvath et al. 2021; hp-transfer: Stoll et al. 2020; distbo: Law et al. 2019), draws its
    figures, computes its tables, and says which of its claims hold.
    Runs are stored in OUTPUT/results: after a stop, the same command runs only what is missing.
    OUTPUT/summary.md has everything on one page, OUTPUT/figures.md every figure next to what the
    paper says about it; each figure is there as PNG, SVG and CSV.
    """
    from hpobench_ordered import papers

    chosen = papers.paper(paper)
    if authors_bo:
        chosen = chosen.require_authors_bo()
    with progress_bar() as show_progress:
        result = papers.reproduce(
            chosen,
            folder=output,
            figures=figures,
            tables=tables,
            seeds=seeds,
            surrogate=surrogate,
            workers=workers,
            workers_simulated=simulated_workers,
            progress=show_progress,
        )
    _print_claims(result)
    _print_tables(result)
    click.echo()
    for path in result.setup.files:
        click.echo(str(path))


def _print_claims(result: "Reproduction") -> None:
    """Print which claims of the paper hold, if any were checked."""
    from hpobench_ordered.papers.summary import CLAIM_HEADER, claim_rows

    rows = claim_rows(result)
    if rows:
        print_table(CLAIM_HEADER, rows, title=f"{result.setup.paper.citation}\n")


def _print_tables(result: "Reproduction") -> None:
    """Print the numbers of the paper's tables, ours beside the published ones."""
    from hpobench_ordered.papers.paper import TABLE
    from hpobench_ordered.papers.summary import ENTRY_HEADER, entry_rows

    for exhibit in result.setup.exhibits:
        if exhibit.kind == TABLE:
            click.echo()
            rows = entry_rows(result.data[exhibit.name])
            print_table(ENTRY_HEADER, rows, title=f"{exhibit.title}: {exhibit.caption}")
