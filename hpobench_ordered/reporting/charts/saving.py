"""Charts as files: PNG, SVG and PDF; vl-convert needs no browser.

A page with several charts holds Vega once, `javascript`, and calls `vegaEmbed` for each.
"""

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import altair as alt

from hpobench_ordered.data.writing import write_atomically
from hpobench_ordered.errors import UnknownNameError

DOTS_PER_INCH = 200.0

IDENTIFIER = re.compile(r'(id="|#)(clip|gradient_)(\d+)')
"""Where an SVG defines or uses a clip path or a gradient."""


def specification(chart: alt.TopLevelMixin) -> dict[str, Any]:
    """Make the Vega-Lite specification of a chart with its data."""
    # Altair refuses charts of more than 5000 rows by default.
    with alt.data_transformers.enable("default", max_rows=None, consolidate_datasets=True):
        # The charts of this package follow Vega-Lite's schema, which tests check; checking it
        # again takes a sixth of the time.
        spec: dict[str, Any] = chart.to_dict(validate=False)
    # Names become part of expressions. Vega's parser treats these two characters, the separators of
    # lines and of paragraphs, as ends of lines, and so the expression as broken.
    text = json.dumps(spec)
    if "\\u2028" in text or "\\u2029" in text:
        spec = json.loads(text.replace("\\u2028", " ").replace("\\u2029", " "))
    return spec


def save(chart: alt.TopLevelMixin, path: str | Path) -> Path:
    """Write a chart to a file; equal charts give equal bytes, except for PDF.

    Args:
        chart: The chart.
        path: The file; its name ends with .png, .svg or .pdf.

    Raises:
        UnknownNameError: The name ends with another format.
    """
    encoders: dict[str, Callable[[str], bytes]] = {
        ".png": png_of,
        ".svg": str.encode,
        ".pdf": pdf_of,
    }
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in encoders:
        raise UnknownNameError("format of charts", suffix, encoders)
    write_atomically(path, encoders[suffix](svg_of(chart)))
    return path


def svg_of(chart: alt.TopLevelMixin, *, prefix: str = "") -> str:
    """Convert a chart to SVG; equal charts give equal text.

    `prefix` begins the ids in it, so that several charts can stand on one page.
    """
    return _svg(specification(chart), prefix)


@cache
def javascript() -> str:
    """Bundle Vega and vega-embed as text of a `<script>`, which defines `vegaEmbed`; 0.9 MB."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed; window.vega = vega;")
    # Within a `<script>` these would end it, or begin a comment.
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def png_of(svg: str) -> bytes:
    """Convert a chart from SVG to PNG."""
    import vl_convert

    return bytes(vl_convert.svg_to_png(svg, ppi=DOTS_PER_INCH))


def pdf_of(svg: str) -> bytes:
    """Convert a chart from SVG to PDF."""
    import vl_convert

    return bytes(vl_convert.svg_to_pdf(svg))


def _svg(spec: dict[str, Any], prefix: str = "") -> str:
    """Convert a specification to SVG, in which ids begin with `prefix` and are numbered from 0."""
    import vl_convert

    # Vega counts clip paths and gradients over all charts of a process: their numbers differ
    # between equal charts.
    new_numbers: dict[str, int] = {}

    def renumber(match: re.Match[str]) -> str:
        before, kind, number = match.groups()
        new_number = new_numbers.setdefault(kind + number, len(new_numbers))
        return f"{before}{prefix}{kind}{new_number}"

    return IDENTIFIER.sub(renumber, vl_convert.vegalite_to_svg(spec))
