"""Renders the page: text from the template; numbers, style and scripts inline.

Text from results (names, messages, tracebacks) is not trusted. The
template escapes it; the script's data are in base64; and the page's content security policy forbids
every request and every script but the page's.
"""

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from hpobench_ordered.files.remote import cache_folder
from hpobench_ordered.files.writing import write_atomically
from hpobench_ordered.plotting.saving import javascript


def render(
    values: Mapping[str, Any], data: Mapping[str, Any] | None, tasks: Sequence[Any] = ()
) -> str:
    """Make the page."""
    import jinja2
    from markupsafe import Markup

    template, style, script = map(_resource, ("template.html.j2", "style.css", "script.js"))
    library = "" if data is None else _library()
    hashes = (hashlib.sha256(text.encode()).digest() for text in (script, library))
    allowed = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in hashes)
    # Styles may stand inline, as attributes in figures do.
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(template).render(
        **values,
        policy=policy,
        style=Markup(style),
        script=Markup(script),
        library=Markup(library),
        data="" if data is None else packed(data),
        tasks=packed(tasks),
    )


def packed(data: Any) -> str:
    """Data as the script reads them: JSON, compressed by gzip, in base64."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode()


def _library() -> str:
    """Vega and vega-embed; bundling takes seconds, so a copy is kept in the cache."""
    path = cache_folder() / f"vega-{version('vl-convert-python')}.js"
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        text = javascript()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text.encode())
    except OSError:
        pass  # The next report bundles it again.
    return text


def _resource(name: str) -> str:
    return files("hpobench_ordered.reporting").joinpath(name).read_text(encoding="utf-8")
