"""Reports: tables and figures drawn from a store."""

from hpobench_ordered.reporting.write import Report, write_report

__all__ = ["Report", "write_report"]
