"""Values of axes from the command line. They are parsed, never evaluated."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from resonance_jax.engine.axes import check_axis

WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
MOST_VALUES = 10**7  # of one axis; more is a typing error


def with_settings(axes: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """The axes of a file, some with other values, given as text. An axis of whole numbers keeps its type.

    On an axis that does not hold numbers, the text picks values by their labels.

    >>> with_settings({"mu": [0.9, 0.99], "seed": [0, 1]}, ["seed=0..3"])["seed"].tolist()
    [0, 1, 2, 3]
    >>> with_settings({"optimizer": ["sgd", "adam", None]}, ["optimizer=adam,None"])
    {'optimizer': ['adam', None]}
    """
    changed = dict(axes)
    for setting in settings:
        name, equals, text = setting.partition("=")
        name = name.strip()
        if not equals or not name.isidentifier():
            raise ValueError(f"--set needs name=values, got {setting!r}; write e.g. --set mu=0.9:0.99:10")
        changed[name] = _set(name, text, axes[name]) if name in axes else parse_values(text, name)
    return changed


def _set(name: str, text: str, old: Any) -> Any:
    axis = check_axis(name, old)
    if axis.dim != name:
        raise ValueError(f"axis {name!r} shares the dimension {axis.dim!r} with others; change it in the sweep file")
    if axis.static is not None:
        by_label = dict(zip(map(str, axis.labels), axis.static, strict=True))
        labels = [label.strip() for label in text.split(",")]
        for label in labels:
            if label not in by_label:
                raise ValueError(f"axis {name!r} has no value {label!r}; choose any of {', '.join(by_label)}")
        return [by_label[label] for label in labels]
    values = parse_values(text, name)
    if axis.labels.dtype.kind == "f":
        return values.astype(float)
    if np.any(values != np.round(values)):
        raise ValueError(f"axis {name!r} holds whole numbers, got {text!r}; write e.g. {name}=0..9")
    return values.astype(axis.labels.dtype)


def parse_selection(texts: Sequence[str]) -> dict[str, Any]:
    """Values to draw, one or several for each name: numbers as `parse_values` reads them, or labels.

    >>> parse_selection(["mu=0.95", "T=1,2", "optimizer=adam"])
    {'mu': 0.95, 'T': [1, 2], 'optimizer': 'adam'}
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, values = (part.strip() for part in text.partition("="))
        if not equals or not name or not values:
            raise ValueError(f"--sel needs name=value, got {text!r}; write e.g. --sel mu=0.95")
        try:
            chosen = parse_values(values, name).tolist()
        except ValueError:  # labels
            chosen = [label.strip() for label in values.split(",")]
        found[name] = chosen if len(chosen) > 1 else chosen[0]
    return found


def parse_values(text: str, name: str = "axis") -> np.ndarray:
    """Numbers and ranges with commas between: `0.9,0.99`, `0:0.05:100` (a hundred from 0 to 0.05), `0..9` (whole ones).

    >>> parse_values("0:1:5").tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    >>> parse_values("1,2,4..6").tolist()
    [1, 2, 4, 5, 6]
    """
    return np.concatenate([_parse_item(item.strip(), name) for item in text.split(",")])


def _parse_item(item: str, name: str) -> np.ndarray:
    first, dots, last = item.partition("..")
    if dots and WHOLE.fullmatch(first) and WHOLE.fullmatch(last) and int(first) <= int(last):
        return int(first) + np.arange(_few_enough(int(last) - int(first) + 1, item, name))
    parts = item.split(":")
    if len(parts) == 3 and all(map(NUMBER.fullmatch, parts[:2])) and WHOLE.fullmatch(parts[2]) and int(parts[2]) >= 1:
        return np.linspace(float(parts[0]), float(parts[1]), _few_enough(int(parts[2]), item, name))
    if WHOLE.fullmatch(item):
        return np.array([int(item)])
    if NUMBER.fullmatch(item):
        return np.array([float(item)])
    raise ValueError(
        f"cannot read {item!r} as values of {name}; write numbers (0.9,0.99), a range with its number of values "
        "(0:0.05:100) or whole numbers (0..9)"
    )


def _few_enough(number: int, item: str, name: str) -> int:
    if number > MOST_VALUES:
        raise ValueError(f"{item!r} are {number} values of {name}, at most {MOST_VALUES} are taken; split the sweep")
    return number
