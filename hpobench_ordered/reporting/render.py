"""Renders the page: text from the template; style, scripts and the first numbers inline.

Other numbers are parts, files beside the page. They are scripts, since a page that is opened from a
file can load nothing else.

Text from results (names, messages, tracebacks) is not trusted. The template escapes it; the
script's data are in base64; and the page's content security policy forbids every request and every
script but the page's and those that it loads.
"""

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from hpobench_ordered.data.remote import cache_folder
from hpobench_ordered.data.writing import write_atomically
from hpobench_ordered.reporting.charts.saving import javascript

RECEIVE_PART = "receivePart"
"""The function of the page's script that parts call."""


def render(values: Mapping[str, Any], data: Mapping[str, Any] | None) -> str:
    """Render the page from the template's values and the data of its script.

    Args:
        values: Values that the template shows.
        data: Data of the interactive chart; None leaves out the chart and its library.
    """
    import jinja2
    from markupsafe import Markup

    script = _read_resource("script.js")
    # A page without a chart has neither the library nor data.
    library = ""
    packed_data = ""
    packed_library = ""
    if data is not None:
        library = _load_library()
        packed_data = _pack(data)
        packed_library = _pack(library)

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(_read_resource("template.html.j2"))
    return template.render(
        **values,
        policy=_format_policy([script, library]),
        # Style and script come with the package: the template need not escape them.
        style=Markup(_read_resource("style.css")),
        script=Markup(script),
        library=packed_library,
        data=packed_data,
    )


def render_part(name: str, part: Any) -> bytes:
    """Write a part of the data as a script, which hands the part to the page's script.

    Args:
        name: Name of the part.
        part: The data of the part, of types that JSON has.
    """
    return f'{RECEIVE_PART}("{name}", "{_pack(part)}");\n'.encode()


def _format_policy(scripts: Sequence[str]) -> str:
    """Format the content security policy of the page.

    The policy lets the page run the given scripts, which it knows by their hashes, and the scripts
    that these load. The page can request nothing else.
    """
    sources = []
    for script in scripts:
        digest = hashlib.sha256(script.encode()).digest()
        sources.append(f"'sha256-{base64.b64encode(digest).decode()}'")
    sources.append("'strict-dynamic'")  # allows the scripts that these scripts load

    # Inline styles are allowed, as figures have them as attributes.
    return (
        f"default-src 'none'; script-src {' '.join(sources)}; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _pack(data: Any) -> str:
    """Pack data for the page's script: as JSON, compressed by gzip, in base64."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Without the time of compression, so that the same data always give the same bytes.
    compressed = gzip.compress(text.encode(), 6, mtime=0)
    return base64.b64encode(compressed).decode()


def _load_library() -> str:
    """Load Vega and vega-embed as one script.

    Bundling them takes seconds, so a copy is written to the cache for the next report.
    """
    path = cache_folder() / f"vega-{version('vl-convert-python')}.js"
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        text = javascript()  # there is no copy, or an unreadable one

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text.encode())
    except OSError:
        pass  # The cache only saves time: the next report bundles the script again.
    return text


def _read_resource(name: str) -> str:
    """Read a file that lies beside this module."""
    return files("hpobench_ordered.reporting").joinpath(name).read_text(encoding="utf-8")
