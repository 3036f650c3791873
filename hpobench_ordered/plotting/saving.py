"""Charts as files: PNG, SVG, PDF, Vega-Lite's JSON, and HTML that needs no network.

vl-convert renders all of them, without a browser and without a network. A page with many charts
holds Vega once, `javascript`, and each chart as JSON; its script calls
`vegaEmbed(element, specification, EMBED_OPTIONS)`. With these options Vega interprets expressions
instead of compiling them, so that a content policy need not allow `unsafe-eval`.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

import altair as alt

from hpobench_ordered.files import write_atomically
from hpobench_ordered.plotting.theme import dark as darkened

DOTS_PER_INCH = 200.0

EMBED_OPTIONS: Mapping[str, Any] = {"mode": "vega-lite", "ast": True, "renderer": "svg"}
"""Options of `vegaEmbed` for a page whose content policy forbids `unsafe-eval`."""

POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
"""A content policy that such a page works under: it loads nothing."""

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
<script>vegaEmbed("#chart", {specification}, {options});</script>
</body>
</html>
"""


class Format(Enum):
    """A format of files."""

    PNG = "png"
    SVG = "svg"
    PDF = "pdf"
    JSON = "json"
    HTML = "html"


IDENTIFIER = re.compile(r'(id="|#)(clip|gradient_)(\d+)')
"""Where an SVG names or uses what it defines."""

FIGURE_FORMATS = (Format.PNG, Format.SVG, Format.PDF)


def specification(chart: alt.TopLevelMixin, *, dark: bool = False) -> dict[str, Any]:
    """The Vega-Lite specification of a chart with its data.

    Args:
        chart: The chart.
        dark: Whether for a dark page.
    """
    with alt.data_transformers.enable("default", max_rows=None, consolidate_datasets=True):
        spec: dict[str, Any] = chart.to_dict()
    # Vega's parser of expressions, which names stand in, takes these for ends of lines.
    text = json.dumps(spec)
    if "\\u2028" in text or "\\u2029" in text:
        spec = json.loads(text.replace("\\u2028", " ").replace("\\u2029", " "))
    return darkened(spec) if dark else spec


def encoded(
    chart: alt.TopLevelMixin, formats: Iterable[Format] = FIGURE_FORMATS, *, dark: bool = False
) -> dict[Format, bytes]:
    """Encode a chart; the same chart gives the same bytes.

    Args:
        chart: The chart.
        formats: The formats.
        dark: Whether for a dark page.
    """
    spec = specification(chart, dark=dark)
    return {name: ENCODERS[name](spec) for name in formats}


def save(chart: alt.TopLevelMixin, path: str | Path, *, dark: bool = False) -> Path:
    """Write a chart to a file in the format that the file's name ends with.

    Args:
        chart: The chart.
        path: Where to; png, svg, pdf, json or html.
        dark: Whether for a dark page.

    Returns:
        The path.

    Raises:
        UnknownNameError: The name ends with another format.
    """
    from hpobench_ordered.errors import UnknownNameError

    path = Path(path)
    suffix = path.suffix.removeprefix(".").lower()
    names = [name.value for name in Format]
    if suffix not in names:
        raise UnknownNameError("format of charts", suffix, names)
    write_atomically(path, encoded(chart, [Format(suffix)], dark=dark)[Format(suffix)])
    return path


@cache
def javascript() -> str:
    """Vega, Vega-Lite, vega-embed and the interpreter of expressions, to stand in a `<script>`.

    It defines `vegaEmbed`. About 0.9 MB.
    """
    import vl_convert

    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed; window.vega = vega;")
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def script_json(value: object) -> str:
    """A value as JSON that may stand in a `<script>`."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def _png(spec: dict[str, Any]) -> bytes:
    import vl_convert

    image: bytes = vl_convert.vegalite_to_png(spec, ppi=DOTS_PER_INCH)
    return image


def _svg(spec: dict[str, Any]) -> bytes:
    import vl_convert

    image: str = vl_convert.vegalite_to_svg(spec)
    # Vega numbers these in the order of all charts of a process.
    numbers: dict[str, int] = {}

    def renumbered(match: re.Match[str]) -> str:
        number = numbers.setdefault(match[2] + match[3], len(numbers))
        return f"{match[1]}{match[2]}{number}"

    return IDENTIFIER.sub(renumbered, image).encode()


def _pdf(spec: dict[str, Any]) -> bytes:
    import vl_convert

    image: bytes = vl_convert.vegalite_to_pdf(spec)
    return image


def _json(spec: dict[str, Any]) -> bytes:
    return json.dumps(spec, indent=1).encode()


def _html(spec: dict[str, Any]) -> bytes:
    from markupsafe import escape

    title = spec.get("title", "")
    page = PAGE.format(
        policy=POLICY,
        title=escape(title["text"] if isinstance(title, dict) else title),
        library=javascript(),
        specification=script_json(spec),
        options=script_json(dict(EMBED_OPTIONS)),
    )
    return page.encode()


ENCODERS: Mapping[Format, Callable[[dict[str, Any]], bytes]] = {
    Format.PNG: _png,
    Format.SVG: _svg,
    Format.PDF: _pdf,
    Format.JSON: _json,
    Format.HTML: _html,
}
