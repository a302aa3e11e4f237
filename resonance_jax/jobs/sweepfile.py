"""Sweep files: a point and its axes, in Python."""

import functools
import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple


class SweepFile(NamedTuple):
    """What a sweep file defines."""

    path: Path
    source: str
    point: Callable[..., dict[str, Any]]
    axes: Callable[[str], dict[str, Any]]  # scale -> name -> values
    figure: Callable[..., Any] | None
    claims: Callable[..., Any] | None
    dtype: str  # float32 or float64
    variants: tuple[str, ...]  # their names
    text: str  # its docstring


def load(path: Path, variant: str | None = None) -> SweepFile:
    """Import a sweep file.

    Args:
        path: of a Python file with `point`, a function, and `axes`, a dict or a function of the scale that returns one;
            `figure(dataset)`, `claims(dataset)`, `DTYPE` and `VARIANTS` if it has them.
        variant: one of its `VARIANTS`, which are keyword arguments of the point.

    Raises:
        ValueError: no such file, one that fails, or one without a point or axes.
    """
    if not path.is_file():
        raise ValueError(f"no sweep file {path}; give a Python file with `point` and `axes`")
    module = _import(path)
    for name in ("point", "axes"):
        if not hasattr(module, name):
            raise ValueError(f"{path} does not define `{name}`; a sweep file needs `point`, a function, and `axes`")
    point, axes, variants = module.point, module.axes, getattr(module, "VARIANTS", {})
    if variant is not None:
        if variant not in variants:
            raise ValueError(f"{path} has no variant {variant!r}; it has {', '.join(variants) or 'none'}")
        point = functools.partial(point, **variants[variant])

    def axes_of(scale: str) -> dict[str, Any]:
        if not callable(axes):
            return dict(axes)
        found: Any = within(path, axes, scale) if inspect.signature(axes).parameters else within(path, axes)
        return dict(found)

    return SweepFile(
        path,
        path.read_text(encoding="utf-8"),
        point,
        axes_of,
        getattr(module, "figure", None),
        getattr(module, "claims", None),
        getattr(module, "DTYPE", "float32"),
        tuple(variants),
        (module.__doc__ or "").strip(),
    )


def within(path: Path, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Call a function of a sweep file; an error in the file becomes a ValueError that names its line."""
    try:
        return function(*arguments, **named)
    except (OSError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, ValueError) and not _lines(path, error):
            raise
        raise ValueError(_describe(path, error)) from error


def _import(path: Path) -> ModuleType:
    """The file as a module: in its package if it is in one, otherwise with its folder on the path, like a script."""
    root, name = path.resolve().parent, path.stem
    while (root / "__init__.py").is_file():
        root, name = root.parent, f"{root.name}.{name}"
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    try:
        if "." in name:
            return importlib.import_module(name)
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise ValueError(f"{path} is not a Python file; give one that ends in .py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module
    except SyntaxError as error:
        raise ValueError(f"{error.filename}, line {error.lineno}: syntax error: {error.msg}; fix the file") from None
    except ValueError:
        raise
    except Exception as error:
        raise ValueError(_describe(path, error)) from error


def _describe(path: Path, error: Exception) -> str:
    lines = _lines(path, error)
    where = f"{path}, line {lines[-1]}" if lines else str(path)
    first = next(iter(str(error).splitlines()), "")
    return f"{where}: {type(error).__name__}: {first}"


def _lines(path: Path, error: Exception) -> list[int]:
    """Lines of the file that the error passed through."""
    frames = traceback.extract_tb(error.__traceback__)
    return [frame.lineno or 0 for frame in frames if Path(frame.filename).resolve() == path.resolve()]
