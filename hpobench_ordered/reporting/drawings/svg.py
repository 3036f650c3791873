"""Encodes scenes as SVG, as files and as parts of a page."""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.reporting.drawings.scene import (
    INK,
    Anchor,
    Item,
    Paths,
    Repeated,
    Scene,
    Text,
)
from hpobench_ordered.reporting.style import VARIABLES

if TYPE_CHECKING:
    from hpobench_ordered.reporting.drawings.drawing import Drawing

STEPS = 10
"""Coordinates are rounded to so many steps a pixel."""

THINNINGS = 2
"""How often corners that make no difference are looked for."""

FEWEST_STRAIGHTENED = 16
"""Of fewer moves, nothing is worth to be saved."""

HEADER = re.compile(r'<svg [^>]*width="([^"]*)"[^>]*viewBox="([^"]*)"[^>]*>')
COLOUR = re.compile(r'="(#[0-9A-F]{6})"')


def to_svg(scene: Scene, *, stem: str, title: str) -> bytes:
    """Encode a scene; the same one gives the same bytes.

    Args:
        scene: The scene.
        stem: What all ids begin with.
        title: Title of the document.
    """
    size = f"{_number(scene.width)} {_number(scene.height)}"
    width, height = size.split()
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {size}" font-family="sans-serif" stroke-linejoin="round">'
    )
    body = (line for item in scene.items for line in _item(item, stem))
    return "\n".join([head, f"<title>{escape(title)}</title>", *body, "</svg>", ""]).encode()


def inline_svg(drawing: "Drawing") -> str:
    """The picture as a part of an HTML page.

    It is as wide as the page allows, up to its own width, so that texts of all have one size. Text
    and axes have the colour of the text around it, and colours of methods are custom properties,
    `VARIABLES`, with those on white as fallbacks.

    Args:
        drawing: The drawing.
    """
    text = drawing.svg.decode()
    width, box = _size(text)
    head = (
        f'<svg role="img" aria-label={quoteattr(drawing.alt)} viewBox="{box}" width="100%" '
        f'style="max-width:{width}px" font-family="sans-serif" stroke-linejoin="round">'
    )
    # A title of the whole would show up under the pointer everywhere.
    text = re.sub(r"\n<title>.*?</title>", "", HEADER.sub(lambda _: head, text, count=1), count=1)
    return COLOUR.sub(lambda found: f'="{_themed(found.group(1))}"', text)


def _size(text: str) -> tuple[str, str]:
    found = HEADER.match(text)
    if found is None:
        raise ValueError("no SVG that `to_svg` made")
    return found[1], found[2]


def _themed(colour: str) -> str:
    if colour == INK:
        return "currentColor"
    variable = VARIABLES.get(colour)
    return f"var({variable},{colour})" if variable else colour


def _item(item: Item, stem: str) -> Iterator[str]:
    if isinstance(item, Text):
        yield _text(item)
    elif isinstance(item, Repeated):
        name = f"{stem}-{item.name}"
        yield f'<defs><g id="{name}">'
        yield from (_paths(paths) for paths in item.paths)
        yield "</g></defs>"
        for dx, dy in item.offsets:
            yield f'<use href="#{name}" x="{_number(dx)}" y="{_number(dy)}"/>'
    elif item.lines:
        yield _paths(item)


def _paths(item: Paths) -> str:
    attributes = {"fill": item.fill or "none"}
    if item.stroke:
        attributes |= {"stroke": item.stroke, "stroke-width": _number(item.width)}
    if item.dashes:
        attributes["stroke-dasharray"] = " ".join(map(_number, item.dashes))
    if item.opacity < 1:
        attributes["opacity"] = f"{item.opacity:g}"
    end = "z" if item.closed else ""
    attributes["d"] = "".join(_line(line) + end for line in item.lines)
    body = f"><title>{escape(item.label)}</title></path>" if item.label else "/>"
    return "<path " + " ".join(f'{key}="{value}"' for key, value in attributes.items()) + body


def _line(corners: FloatArray) -> str:
    """Commands of a line: where it begins, then relative moves."""
    steps = np.rint(np.asarray(corners) * STEPS).astype(np.int64)
    if len(steps) >= FEWEST_STRAIGHTENED:
        steps = _thinned(steps)
        moves = _straightened(np.diff(steps, axis=0))
    else:
        moves = np.diff(steps, axis=0)
    x, y = steps[0]
    return f"M{_pair(x, y)}" + "".join(_moves(moves.tolist()))


def _thinned(steps: IntArray) -> IntArray:
    """Corners without those that are no further than a step from the line past them."""
    for _ in range(THINNINGS):
        before, middle, after = steps[:-2:2], steps[1:-1:2], steps[2::2]
        across, aside = after - before, middle - before
        area = np.abs(across[:, 0] * aside[:, 1] - across[:, 1] * aside[:, 0])
        kept = np.ones(len(steps), dtype=np.bool_)
        length, along = (across**2).sum(axis=1), (across * aside).sum(axis=1)
        # Where the line turns back, its corner is beyond either end; maybe both are one point.
        is_turn = (along < 0) | (along > length) | (length == 0) & (aside != 0).any(axis=1)
        kept[1:-1:2] = (area**2 > length) | is_turn
        steps = steps[kept]
    return steps


def _straightened(moves: IntArray) -> IntArray:
    """Moves without those of no length, and with those in the same direction joined."""
    moves = moves[(moves != 0).any(axis=1)]
    if not len(moves):
        return moves
    before, after = moves[:-1], moves[1:]
    cross = before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0]
    turns = (cross != 0) | ((before * after).sum(axis=1) < 0)
    starts = np.flatnonzero(np.concatenate([[True], turns]))
    return np.asarray(np.add.reduceat(moves, starts, axis=0))


def _moves(moves: Iterable[tuple[int, int]]) -> Iterator[str]:
    command = ""
    for dx, dy in moves:
        kind = "h" if dy == 0 else "v" if dx == 0 else "l"
        rest = _step(dx) if dy == 0 else _step(dy) if dx == 0 else _pair(dx, dy)
        if kind == command:
            yield rest if rest[0] == "-" else f" {rest}"
        else:
            yield kind + rest
        command = kind


def _pair(x: int, y: int) -> str:
    second = _step(y)
    return _step(x) + (second if second[0] == "-" else f" {second}")


def _step(value: int) -> str:
    whole, part = divmod(abs(int(value)), STEPS)
    sign = "-" if value < 0 else ""
    return f"{sign}{whole or ''}.{part}" if part else f"{sign}{whole}"


def _text(item: Text) -> str:
    x, y = _number(item.x), _number(item.y)
    attributes = [f'x="{x}" y="{y}" font-size="{_number(item.size)}" fill="{item.colour}"']
    if item.anchor is not Anchor.START:
        attributes.append(f'text-anchor="{item.anchor.value}"')
    if item.angle:
        attributes.append(f'transform="rotate({_number(-item.angle)} {x} {y})"')
    if item.bold:
        attributes.append('font-weight="bold"')
    return f"<text {' '.join(attributes)}>{escape(item.string)}</text>"


def _number(value: float) -> str:
    return f"{round(float(value), 2) + 0.0:g}"
