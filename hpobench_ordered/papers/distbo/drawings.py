"""The figure of Law et al. (2019) that shows a benchmark's functions."""

from hpobench_ordered.papers import charts as paper_charts
from hpobench_ordered.papers.evidence import Comparisons, Evidence
from hpobench_ordered.papers.paper import Content


def illustration(evidence: Evidence, comparisons: Comparisons) -> Content:
    """Draw the objective of every task over a benchmark's only hyperparameter.

    Args:
        evidence: The results, and what benchmarks define.
        comparisons: One comparison, whose benchmark is drawn.
    """
    import pandas as pd

    landscape = evidence.landscape(comparisons[0].benchmark)
    benchmark = landscape.benchmark
    (name,) = benchmark.space.names
    x = landscape.column(name)
    frames = []
    for task, values in zip(benchmark.tasks, landscape.objective, strict=True):
        # The chart tells curves apart by the column `method`, here by task.
        frames.append(pd.DataFrame({"method": task.name, "x": x, "value": values}))
    data = pd.concat(frames, ignore_index=True).sort_values(["method", "x"], ignore_index=True)
    chart = paper_charts.functions(data, x=name, title=f"{benchmark.name}: every task")
    return Content(data.rename(columns={"method": "task", "x": name}), chart)
