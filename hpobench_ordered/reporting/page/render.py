"""Puts the page together: text from the template, numbers as JSON, style and script inline.

Whatever comes from results (names, messages, tracebacks) is text that nobody has checked. All of it
is escaped by the template; in the JSON, characters that could end the script element are written as
escapes; and the page's content security policy forbids every request and every script but its own.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from hpobench_ordered.reporting.labels import protocol_label
from hpobench_ordered.reporting.style import theme

if TYPE_CHECKING:
    import jinja2

ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}
"""What could end the script element, or be a line's end in a script."""


def render(values: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    """Make the page.

    Args:
        values: What the template shows.
        data: What the script shows, as JSON.
    """
    script = _resource("script.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # Styles may stand inline, as attributes in figures do.
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    from markupsafe import Markup

    template = _environment().from_string(_resource("template.html.j2"))
    return template.render(
        {
            **values,
            "policy": policy,
            "style": Markup(_style()),
            "script": Markup(script),
            "data": Markup(as_json(data)),
        }
    )


def as_json(data: Any) -> str:
    """JSON that may stand within a script element."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(ESCAPES)


def _environment() -> "jinja2.Environment":
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["protocol_label"] = protocol_label
    return environment


def _style() -> str:
    style = _resource("style.css")
    for name, dark in (("LIGHT_METHODS", False), ("DARK_METHODS", True)):
        variables = (f"{variable}: {colour};" for variable, colour in theme(dark=dark).items())
        style = style.replace(name, " ".join(variables))
    return style


def _resource(name: str) -> str:
    folder = files("hpobench_ordered.reporting.page")
    return folder.joinpath(name).read_text(encoding="utf-8")
