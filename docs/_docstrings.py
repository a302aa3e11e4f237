"""Docstrings as they are written here, turned into what Sphinx reads.

They are plain text: names in backticks, equations indented, fields of a named tuple explained by comments beside them.
"""

import collections
import functools
import inspect
import itertools
import re

import jax.typing


class ArrayLike:
    """Shown instead of the union of nine types that it is."""


ArrayLike.__module__ = "jax.typing"
jax.typing.ArrayLike = ArrayLike

SECTION = re.compile(r"(Args|Returns|Raises|Fields):$")
FIELD = re.compile(r"    (?P<name>[a-z_]\w*): (?P<type>.+?)(?: = (?P<default>.+?))?  # (?P<text>.+)$")


@functools.cache
def public():
    """Name, as docstrings have it -> full name, of every public function and class."""
    import resonance_jax as rj

    found = {}
    for name in rj.__all__:
        part = getattr(rj, name)
        if inspect.ismodule(part):
            found |= {each: f"{name}.{each}" for each in getattr(part, "__all__", ())}
        else:
            found[name] = name
    return {key: f"resonance_jax.{path}" for short, path in found.items() for key in (short, f"rj.{path}")}


def inline(line, parameters):
    """A line of prose: names in backticks become links where they are public, and nothing else is markup."""
    parts = re.split(r"(`[^`]+`)", line)
    for i, part in enumerate(parts):
        if not part.startswith("`") or len(part) < 3:
            parts[i] = re.sub(r"([*|\\`])|(?<=\w)(_)(?=\W|$)", r"\\\1\2", part)
            continue
        name = part.strip("`")
        full = None if name in parameters else public().get(name)
        parts[i] = f":py:obj:`{name} <{full}>`" if full else f"``{name}``"
        if parts[i + 1][:1].isalnum():  # as the s of a plural
            parts[i] += "\\ "
    return "".join(parts)


def fields_of(obj):
    """The lines of a section `Fields`, from the comments beside the fields of a named tuple."""
    source = inspect.getsource(obj).splitlines()
    return [f"    {m['name']} ({m['type']}): {m['text']}" for m in map(FIELD.match, source) if m]


def process(app, what, name, obj, options, lines):
    """One docstring, in place: equations become literal blocks, names links, comments of fields a section."""
    parameters = set(inspect.signature(obj).parameters) if callable(obj) else set()
    done, section, equation, example = [], "", False, False
    for before, line in itertools.pairwise(["", *lines]):
        indented, empty, heading = line.startswith("    "), not line.strip(), SECTION.match(line)
        if heading:
            section = heading[1]
        elif not indented and not empty:
            section, equation = "", False
        if indented and not empty and not section and not equation and not before.strip():
            equation = True
            done += ["::", ""]
        example = not empty and (example or line.lstrip().startswith(">>>"))
        if section == "Returns" and heading:
            continue  # napoleon would take the words before a colon for a type
        text = line if equation or example or heading else inline(line, parameters)
        done.append(f":returns: {text.strip()}" if before == "Returns:" else text)
    if isinstance(obj, type) and hasattr(obj, "_fields") and "Fields:" not in lines:
        described = [inline(line, parameters) for line in fields_of(obj)]
        at = next((i for i, line in enumerate(done) if line.startswith(">>>")), len(done))
        done[at:at] = ["", "Fields:", *described, ""] if described else []
    lines[:] = done


def skip(app, what, name, obj, skipped, options):
    """Fields of named tuples are listed with their class."""
    return True if isinstance(obj, collections._tuplegetter) else None  # type: ignore[attr-defined]


def setup(app):
    app.connect("autodoc-process-docstring", process, priority=400)  # before napoleon
    app.connect("autodoc-skip-member", skip)
