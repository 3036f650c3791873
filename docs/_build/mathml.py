"""Formulas as MathML, which browsers render without a script."""

import html
import re

from latex2mathml.converter import convert

INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
DISPLAYED = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)


def with_mathml(page: str) -> str:
    """Replace the formulas in a page's HTML, as `pymdownx.arithmatex` leaves them, by MathML."""
    page = INLINE.sub(lambda match: convert(html.unescape(match[1])), page)
    return DISPLAYED.sub(lambda match: _displayed(html.unescape(match[1])), page)


def _displayed(formula: str) -> str:
    return f'<div class="formula">{convert(formula, display="block")}</div>'
