"""Reports: tables and figures drawn from a store."""

from hpobench_ordered.report.write import Report, write_report

__all__ = ["Report", "write_report"]
