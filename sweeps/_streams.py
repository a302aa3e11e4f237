"""Public streams of real data that come with Python packages: no download, `pip install 'resonance_jax[examples]'`."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

DIGIT_COMPONENTS = 8
DIGIT_RUN = 20  # rows of one class before the next class comes


class Stream(NamedTuple):
    """Rows in the order of time. Each column of the inputs has mean 0 and variance 1 over the whole stream."""

    name: str
    inputs: np.ndarray  # (N, d), float64
    targets: np.ndarray | None  # (N,), float64
    unit: str  # what one row is, e.g. "hour"
    source: str
    licence: str  # what the package says about the data
    description: str


def names() -> tuple[str, ...]:
    """The streams that `load` knows."""
    return tuple(_LOADERS)


def load(name: str) -> Stream:
    """A stream by its name; ValueError for another name, or where the package that holds it is not installed."""
    if name not in _LOADERS:
        raise ValueError(f"stream must be one of {', '.join(_LOADERS)}, got {name!r}; pick one of them")
    try:
        return _LOADERS[name]()
    except ModuleNotFoundError as error:
        raise ValueError(
            f"stream {name!r} needs the package {error.name}; run `pip install 'resonance_jax[examples]'`"
        ) from None


def standardised(values: np.ndarray) -> np.ndarray:
    """Each column with mean 0 and variance 1."""
    return (values - values.mean(axis=0)) / values.std(axis=0)


def one_step_ahead(series: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The value at row t as the one input, (N, 1), and the next value as target, (N,), in the scale of the input."""
    now, following = series[:-1], series[1:]
    return standardised(now)[:, None], (following - now.mean()) / now.std()


def interpolated(series: np.ndarray) -> np.ndarray:
    """Missing values on the straight line between their neighbours."""
    known = np.isfinite(series)
    rows = np.arange(len(series))
    return np.interp(rows, rows[known], series[known])


def class_cycles(labels: np.ndarray, run: int) -> np.ndarray:
    """Indices that go through the classes in turn, `run` rows each, again and again while every class has enough rows.

    >>> labels = np.array([0, 1, 0, 0, 1, 1, 0, 1, 0])
    >>> labels[class_cycles(labels, 2)].tolist()
    [0, 0, 1, 1, 0, 0, 1, 1]
    """
    members = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    cycles = min(map(len, members)) // run
    return np.stack([rows[: cycles * run].reshape(cycles, run) for rows in members], axis=1).reshape(-1)


def principal_components(values: np.ndarray, number: int) -> np.ndarray:
    """The coordinates of the rows along the first principal axes; each axis points to its largest entry."""
    centred = values - values.mean(axis=0)
    axes = np.linalg.svd(centred, full_matrices=False)[2][:number]
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1)
    return centred @ (axes * np.sign(largest)).T


def _statsmodels(name: str) -> tuple[Any, Any]:
    """A dataset of statsmodels: its module, with texts about it, and its table."""
    module: Any = import_module(f"statsmodels.datasets.{name}")
    return module, module.load_pandas().data


def _co2() -> Stream:
    module, table = _statsmodels("co2")
    return Stream(
        "co2",
        *one_step_ahead(interpolated(table["co2"].to_numpy(float))),
        unit="week",
        source="Keeling and Whorf (2004), Mauna Loa weekly atmospheric CO2 data; statsmodels.datasets.co2",
        licence=module.COPYRIGHT.strip(),
        description="Atmospheric CO2 at Mauna Loa, March 1958 to December 2001, and that of the next week. 59 of 2284 "
        "weeks are missing, up to 18 in a row, and are interpolated linearly. Standardised: mean 0, variance 1.",
    )


def _elnino() -> Stream:
    module, table = _statsmodels("elnino")
    return Stream(
        "elnino",
        *one_step_ahead(table.drop(columns="YEAR").to_numpy(float).reshape(-1)),  # a row is a year of 12 months
        unit="month",
        source="NOAA National Weather Service, ERSST.V3B, Nino 1+2; statsmodels.datasets.elnino",
        licence=module.COPYRIGHT.strip(),
        description="Sea surface temperature of the Pacific between 0-10 degrees South and 90-80 degrees West, 1950 to "
        "2010, and that of the next month. Standardised: mean 0, variance 1.",
    )


def _sunspots() -> Stream:
    module, table = _statsmodels("sunspots")
    return Stream(
        "sunspots",
        *one_step_ahead(table["SUNACTIVITY"].to_numpy(float)),
        unit="year",
        source="National Geophysical Data Center, yearly sunspot numbers; statsmodels.datasets.sunspots",
        licence=module.COPYRIGHT.strip(),
        description="Yearly number of sunspots, 1700 to 2008, and that of the next year. "
        "Standardised: mean 0, variance 1.",
    )


def _vega(name: str) -> Any:
    """A dataset of vega_datasets that lies in the package itself."""
    return getattr(import_module("vega_datasets").local_data, name)()


_VEGA_LICENCE = (
    "Public domain: vega_datasets says 'drawn from public-domain NOAA data <https://www.weather.gov/disclaimer>'"
)


def _seattle_temps() -> Stream:
    return Stream(
        "seattle_temps",
        *one_step_ahead(_vega("seattle_temps")["temp"].to_numpy(float)),
        unit="hour",
        source="NOAA; vega_datasets.local_data.seattle_temps",
        licence=_VEGA_LICENCE,
        description="Hourly temperature in Seattle, labelled 2010, and that of the next hour. The curve is too smooth "
        "for the weather of one year (at 14:00, one day differs from the next by 0.2 degrees Fahrenheit on average): "
        "it appears to be an average over many years. One hour, at the change to summer time, is missing; the hours "
        "around it are taken as neighbours. Standardised: mean 0, variance 1.",
    )


def _seattle_weather() -> Stream:
    table = _vega("seattle_weather")
    columns = table[["temp_max", "temp_min", "wind", "precipitation"]].to_numpy(float)
    _, target = one_step_ahead(columns[:, 0])
    return Stream(
        "seattle_weather",
        standardised(columns[:-1]),
        target,
        unit="day",
        source="NOAA; vega_datasets.local_data.seattle_weather",
        licence=_VEGA_LICENCE,
        description="Daily maximum and minimum temperature, wind and precipitation in Seattle, 2012 to 2015, and the "
        "maximum temperature of the next day. Standardised: each column has mean 0, variance 1.",
    )


def _digits() -> Stream:
    pixels, labels = import_module("sklearn.datasets").load_digits(return_X_y=True)
    order = class_cycles(labels, DIGIT_RUN)
    return Stream(
        "digits",
        standardised(principal_components(pixels[order], DIGIT_COMPONENTS)),
        labels[order].astype(float),
        unit="image",
        source="Alpaydin and Kaynak (1998), UCI optical recognition of handwritten digits, test set; "
        "sklearn.datasets.load_digits",
        licence="CC BY 4.0 as listed by the UCI Machine Learning Repository; scikit-learn states none for the data",
        description="The first 8 principal components of 8x8 images of handwritten digits, and the digit, 0 to 9. The "
        "images come in cycles: 20 zeros, 20 ones, ..., 20 nines, then again, 8 times; 197 of 1797 images that do not "
        "fill a cycle are left out. Standardised: each component has mean 0, variance 1; the digit is left as it is.",
    )


def _electricity() -> Stream:
    return Stream(
        "electricity",
        *one_step_ahead(import_module("pmdarima.datasets").load_taylor()),
        unit="half hour",
        source="Taylor (2003), Journal of the Operational Research Society 54, 799-805; pmdarima.datasets.load_taylor",
        licence="pmdarima is under the MIT licence; it states none for the data, 'kindly provided by James W Taylor'",
        description="Electricity demand in England and Wales, 5 June to 27 August 2000, and that of the next half "
        "hour. Standardised: mean 0, variance 1.",
    )


_LOADERS: dict[str, Callable[[], Stream]] = {
    "co2": _co2,
    "elnino": _elnino,
    "sunspots": _sunspots,
    "seattle_temps": _seattle_temps,
    "seattle_weather": _seattle_weather,
    "digits": _digits,
    "electricity": _electricity,
}
