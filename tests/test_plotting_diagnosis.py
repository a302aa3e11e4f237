"""The picture of a diagnosis: its parts, and planes and settings of every kind."""

import numpy as np
import pytest
import xarray as xr

from resonance_jax.streams.diagnosis import Diagnosis
from resonance_jax.streams.remedies import Remedy
from resonance_jax.theory.recorded.verdicts import NAMES, largest_safe

MUS = 1 - np.geomspace(1, 1e-3, 7)
ETAS = np.geomspace(1e-4, 1, 9)


def diagnosed(mus=MUS, etas=ETAS, *, grows_above=0.05, mu=None, eta=None, own=True, time_scale=False):
    """Runs grow where eta / (1 - mu) is large: by the order, and ten times farther up by noise too."""
    mus, etas = (np.asarray(each, float) for each in (mus, etas))
    strength = xr.DataArray(etas / (1.0005 - mus[:, None]), dict(mu=mus, eta=etas), ("mu", "eta"))
    rate, shuffled = 0.02 * np.log(strength / grows_above), 0.02 * np.log(strength / grows_above / 10)
    verdict = xr.where(shuffled > 0, NAMES.index("noise"), xr.where(rate > 0, NAMES.index("order"), 0))
    frequency = np.arange(1, 65) / 128
    data = xr.Dataset(
        {
            "growth_rate": rate,
            "shuffled_rate": shuffled,
            "verdict": verdict,
            "largest_safe_mu": largest_safe(verdict, "mu"),
            "modulation": ("frequency", 1 / frequency),
        },
        coords={"frequency": frequency},
    )
    said, returns_at, remedies = "", None, ()
    if mu is not None:
        said = NAMES[int(verdict.sel(mu=mu, eta=eta, method="nearest"))]
        periods = [[np.nan, np.nan, np.nan], [12.7, 25.5, 1e9]]
        data = data.assign(tongue_period=xr.DataArray(periods, {"tongue": [1, 2, 3]}, ("mode", "tongue")))
    if time_scale:
        lengths = 2 ** np.arange(10)
        data = data.assign(
            block_rate=("block_length", 0.01 * np.log2(lengths / 60)),
            block_rate_standard_error=("block_length", np.full(10, 1e-3)),
            buffer_rate=("buffer_size", 0.01 * np.log2(3 / lengths)),
            buffer_rate_standard_error=("buffer_size", np.full(10, 1e-3)),
        ).assign_coords(block_length=lengths, buffer_size=lengths)
        returns_at, remedies = 64, (Remedy("momentum", 0.5, -0.1, "less."), Remedy("buffer", 4, -0.004, "a buffer."))
    return Diagnosis(data, mu, eta, own, said, returns_at, remedies, None, "rows")


def by_title(figure):
    figure.canvas.draw()
    return {ax.get_title(): ax for ax in figure.axes}


def ticks(axis):
    """Labels of the ticks within the view."""
    low, high = sorted(axis.get_view_interval())
    pairs = zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True)
    return [label.get_text() for at, label in pairs if low <= at <= high]


def test_every_part_of_the_picture():
    found = diagnosed(mu=0.9, eta=ETAS[5], time_scale=True)
    figure = found.plot()
    assert "Momentum 0.9, step size 0.0316: runs diverge in time order and converge" in figure.get_suptitle()
    assert figure.get_supxlabel().splitlines() == ["What to do:", "\u2022 less.", "\u2022 a buffer."]
    axes = by_title(figure)
    time, shuffled = axes["In time order"], axes["Shuffled"]
    assert ticks(time.yaxis) == ["0", "0.5", "0.9", "0.99", "0.999"]
    heights = [time.transData.transform((1e-3, 1 - mu))[1] for mu in (0, 0.5, 0.9, 0.99)]
    assert heights == sorted(heights)
    assert [text.get_text() for text in time.texts] == ["your setting"]
    assert not shuffled.texts
    for ax, rate in ((time, found.data.growth_rate), (shuffled, found.data.shuffled_rate)):
        mesh = ax.collections[0]
        np.testing.assert_array_equal(mesh.get_array(), rate)
        assert mesh.norm.vmin == -mesh.norm.vmax
        assert mesh.norm(0.0) == 0.5
        assert mesh.norm.vmax == time.collections[0].norm.vmax
        assert ax.lines[0].get_xdata()[0] == ETAS[5]
        np.testing.assert_allclose(ax.lines[0].get_ydata(), 0.1)
    (bar,) = [ax for ax in figure.axes if ax.get_ylabel() == "growth per step" and not ax.get_title()]
    assert "0" in ticks(bar.yaxis)
    (legend,) = [ax.get_legend() for ax in figure.axes if not ax.axison]
    names = [text.get_text().partition(":")[0] for text in legend.get_texts()]
    assert names == ["stable", "order", "noise", "largest safe momentum"]
    labels = [text.get_text() for text in axes["How much order it takes"].get_legend().get_texts()]
    assert set(labels) == {
        "growth from 64 rows on",
        "smallest safe buffer, 4 rows",
        "blocks of rows keep their order",
        "behind a shuffle buffer",
    }
    assert [line.get_xdata()[0] for line in axes["Periods in the stream"].lines[1:]] == [12.7, 25.5]


def test_the_black_line_is_where_growth_changes_its_sign():
    contour = diagnosed().plot().axes[0].collections[1]
    (line,) = [path.vertices for path in contour.get_paths()]
    eta, damping = line.T
    np.testing.assert_allclose(np.log(eta / (damping + 0.0005) / 0.05), 0, atol=0.2)  # cells are 1.15 apart


def test_the_line_of_safe_momentum_bounds_the_stable_cells():
    found = diagnosed()
    steps = by_title(found.plot())["What is to blame"].patches[0]
    for height, column in zip(steps.get_data().values, found.data.verdict.T.values, strict=True):
        assert ((height < 1 - MUS) == (column == 0)).all()


def test_without_a_setting_there_is_no_star():
    figure = diagnosed().plot()
    assert figure.get_suptitle() == "No setting of the plane diverges because of the order"
    axes = by_title(figure)
    assert not axes["In time order"].lines
    assert axes["Periods in the stream"].get_legend() is None
    assert "How much order it takes" not in axes
    assert figure.get_supxlabel() == ""


def test_a_setting_that_was_not_given_is_said_to_be_so():
    figure = diagnosed(mu=0.9, eta=ETAS[5], own=False).plot()
    assert figure.get_suptitle().startswith("The order does most harm at momentum 0.9")
    assert figure.axes[0].texts[0].get_text() == "order harms most"


@pytest.mark.parametrize(
    ("mus", "etas"),
    [
        ([0.9], [0.01]),
        ([0.5, 0.9], [0.001]),
        ([0.9], [0.001, 0.01]),
        ([0.9, 0.95, 0.951, 0.97], [0.01, 0.0101, 0.02]),
        ([0.0, 0.9, 1.0], ETAS),
    ],
)
def test_planes_of_any_shape(mus, etas):
    figure = diagnosed(mus, etas, mu=mus[-1], eta=etas[-1]).plot()
    ax = by_title(figure)["In time order"]
    low, high = sorted(ax.get_ylim())
    assert low < ax.lines[0].get_ydata()[0] < high
    assert ticks(ax.yaxis)
    assert ticks(ax.xaxis)
    assert ax.collections[0].get_array().shape == (len(mus), len(etas))


def test_cells_meet_half_way_between_uneven_values():
    mesh = diagnosed([0.0, 0.9, 0.99], [0.01, 0.02, 0.08]).plot().axes[0].collections[0]
    x, y = mesh.get_coordinates()[0, :, 0], mesh.get_coordinates()[:, 0, 1]
    np.testing.assert_allclose(x, [0.01 / np.sqrt(2), 0.01 * np.sqrt(2), 0.04, 0.16])
    np.testing.assert_allclose(y, 10.0 ** np.array([0.5, -0.5, -1.5, -2.5]))


def test_planes_where_everything_is_stable_and_a_quiet_stream():
    found = diagnosed(grows_above=1e9, mu=0.5, eta=ETAS[0])
    quiet = found._replace(data=found.data.assign(modulation=0 * found.data.modulation))
    figure = quiet.plot()
    figure.canvas.draw()
    assert len(figure.axes[0].collections) == 1
    assert figure.get_suptitle().endswith("runs converge in time order")
