"""Charts as files: PNG, SVG, PDF, Vega-Lite's JSON, and HTML; vl-convert needs no browser.

A page with several charts holds Vega once, `javascript`, and calls `vegaEmbed` for each.
"""

import json
import re
from collections.abc import Iterable
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

import altair as alt

from hpobench_ordered.errors import UnknownNameError
from hpobench_ordered.files import write_atomically
from hpobench_ordered.plotting.theme import dark as darkened

DOTS_PER_INCH = 200.0

POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
"""A content policy under which a page loads nothing; Vega then interprets expressions (`ast`)."""

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
</head>
<body>
<div id="chart"></div>
<script>{library}</script>
<script>vegaEmbed("#chart", {specification}, {{"ast": true, "renderer": "svg"}});</script>
</body>
</html>
"""

IDENTIFIER = re.compile(r'(id="|#)(clip|gradient_)(\d+)')
"""Where an SVG defines or uses a clip path or a gradient."""

RESOURCES = re.compile(rb"(?:^ +/[a-z]+\d+ \d+ 0 R\n)+", re.MULTILINE)
"""Resources of a page of a PDF, one a line."""


class Format(Enum):
    """A file format."""

    PNG = "png"
    SVG = "svg"
    PDF = "pdf"
    JSON = "json"
    HTML = "html"


def specification(chart: alt.TopLevelMixin, *, dark: bool = False) -> dict[str, Any]:
    """The Vega-Lite specification of a chart with its data, in the colours of a light page.

    Args:
        chart: The chart.
        dark: Use the colours of a dark page.
    """
    with alt.data_transformers.enable("default", max_rows=None, consolidate_datasets=True):
        spec: dict[str, Any] = chart.to_dict()
    # Names become part of expressions, where Vega's parser takes these for ends of lines.
    text = json.dumps(spec)
    if "\\u2028" in text or "\\u2029" in text:
        spec = json.loads(text.replace("\\u2028", " ").replace("\\u2029", " "))
    return darkened(spec) if dark else spec


def encoded(
    chart: alt.TopLevelMixin, formats: Iterable[Format], *, dark: bool = False
) -> dict[Format, bytes]:
    """Encode a chart; equal charts give equal bytes.

    Args:
        chart: The chart.
        formats: The formats.
        dark: Use the colours of a dark page.
    """
    spec = specification(chart, dark=dark)
    image = cache(lambda: _svg(spec))
    encoders = {
        Format.PNG: lambda: png_of(image()),
        Format.SVG: lambda: image().encode(),
        Format.PDF: lambda: pdf_of(image()),
        Format.JSON: lambda: json.dumps(spec, indent=1).encode(),
        Format.HTML: lambda: _html(spec),
    }
    return {name: encoders[name]() for name in formats}


def save(chart: alt.TopLevelMixin, path: str | Path, *, dark: bool = False) -> Path:
    """Write a chart to a file.

    Args:
        chart: The chart.
        path: The file; its name ends with .png, .svg, .pdf, .json or .html.
        dark: Use the colours of a dark page.

    Raises:
        UnknownNameError: The name ends with another format.
    """
    path = Path(path)
    suffix = path.suffix.removeprefix(".").lower()
    names = [name.value for name in Format]
    if suffix not in names:
        raise UnknownNameError("format of charts", suffix, names)
    (content,) = encoded(chart, [Format(suffix)], dark=dark).values()
    write_atomically(path, content)
    return path


@cache
def javascript() -> str:
    """Vega, Vega-Lite and vega-embed as text of a `<script>`, which defines `vegaEmbed`; 0.9 MB."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed; window.vega = vega;")
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def png_of(svg: str) -> bytes:
    """Convert a chart from SVG to PNG."""
    import vl_convert

    image: bytes = vl_convert.svg_to_png(svg, ppi=DOTS_PER_INCH)
    return image


def pdf_of(svg: str) -> bytes:
    """Convert a chart from SVG to PDF; equal charts give equal bytes."""
    import vl_convert

    # Resources are listed in random order.
    return RESOURCES.sub(
        lambda match: b"".join(sorted(match[0].splitlines(keepends=True))),
        vl_convert.svg_to_pdf(svg),
    )


def _svg(spec: dict[str, Any]) -> str:
    import vl_convert

    # Vega counts clip paths and gradients over all charts of a process.
    numbers: dict[str, int] = {}

    def renumbered(match: re.Match[str]) -> str:
        number = numbers.setdefault(match[2] + match[3], len(numbers))
        return f"{match[1]}{match[2]}{number}"

    return IDENTIFIER.sub(renumbered, vl_convert.vegalite_to_svg(spec))


def _html(spec: dict[str, Any]) -> bytes:
    from markupsafe import escape

    title = spec.get("title", "")
    page = PAGE.format(
        policy=POLICY,
        title=escape(title["text"] if isinstance(title, dict) else title),
        library=javascript(),
        specification=json.dumps(spec).replace("<", "\\u003c"),
    )
    return page.encode()
