"""Figures as a report needs them: on the page, and as files."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from hpobench_ordered.analysis.labels import label_protocol
from hpobench_ordered.reporting.chart import follow_theme
from hpobench_ordered.reporting.charts.figures import (
    FIGURES,
    CaptionedChart,
    FigureData,
    FigureKind,
)
from hpobench_ordered.reporting.charts.saving import pdf_of, png_of, svg_of
from hpobench_ordered.reporting.formats import slug

if TYPE_CHECKING:
    import altair as alt

MARK_LABELS = re.compile(r' (?:role|aria-[a-z]+)="[^"]*"')
"""Names of single marks in an SVG, removed since figures have a description and a table."""


@dataclass(frozen=True)
class ReportFigure:
    """A figure of a report.

    Attributes:
        stem: Name of its files without their ending; its id on the page.
        title: What it shows.
        caption: How to read it.
        chart: The chart.
    """

    stem: str
    title: str
    caption: str
    chart: "alt.TopLevelMixin"

    @classmethod
    def of_chart(cls, figure: CaptionedChart, *, protocol: str) -> "ReportFigure":
        """Make the report's figure of a chart; its files are named after the protocol as well."""
        stem = slug(f"{figure.name} {label_protocol(protocol)}")
        return cls(stem, figure.title, figure.caption, figure.chart)

    @cached_property
    def svg(self) -> str:
        """The chart as SVG, from which all other formats are made."""
        return svg_of(self.chart, prefix=f"{self.stem}-")

    @property
    def markup(self) -> Markup:
        """The picture on the page, in the page's colours.

        It is safe as markup, since the encoder has escaped all text in it.
        """
        without_labels = MARK_LABELS.sub("", self.svg)
        # To screen readers the picture is one image with a title.
        label = f'<svg role="img" aria-label="{escape(self.title)}" '
        return Markup(follow_theme(without_labels).replace("<svg ", label, 1))

    @property
    def files(self) -> dict[str, bytes]:
        """Contents of its files, by their ending: "png", "svg" and "pdf"."""
        return {"png": png_of(self.svg), "svg": self.svg.encode(), "pdf": pdf_of(self.svg)}


def make_report_figures(
    data_of_protocols: Iterable[FigureData],
) -> list[tuple[FigureKind, list[ReportFigure]]]:
    """Make all figures of all protocols, by kind, without kinds that have none.

    Figures of one kind stand together, whatever their protocol, as sections of the page.
    """
    sections = []
    all_data = list(data_of_protocols)  # read once for every kind
    for kind in FIGURES:
        figures = []
        for data in all_data:
            for chart in kind.make(data):
                figures.append(ReportFigure.of_chart(chart, protocol=data.group.protocol))
        if figures:
            sections.append((kind, figures))
    return sections
