"""Reports: tables and figures drawn from a store."""

from hpobench_ordered.report.write import write_report

__all__ = ["write_report"]
