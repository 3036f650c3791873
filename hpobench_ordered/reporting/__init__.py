"""Reports: tables, figures and a page made of the runs in a store."""

from hpobench_ordered.reporting.write import Report, ReportInput, write_report

__all__ = ["Report", "ReportInput", "write_report"]
