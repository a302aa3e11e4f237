import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

import resonance_jax as rj
from resonance_jax.plotting import contours, growth_curves, heatmap, zero_lines
from resonance_jax.plotting.heatmap import REDNESS

F, MU = np.linspace(0, 0.05, 20), np.linspace(0.95, 0.999, 15)
VALLEY = xr.DataArray(
    np.add.outer(-(((F - 0.03) / 0.01) ** 2), 40 * (MU - 0.97)), {"f": F, "mu": MU}, name="log10_distance"
)


def test_pixels_stand_where_the_data_says():
    ax = heatmap(VALLEY.transpose("mu", "f"))
    mesh = ax.collections[0]
    assert np.array_equal(mesh.get_array(), VALLEY.transpose("mu", "f"))
    assert ax.get_xlabel().startswith("frequency")
    assert ax.get_ylabel() == r"momentum $\mu$"
    assert ax.get_xlim() == pytest.approx((F[0], F[-1]), abs=0.002)


def test_colour_scale_is_logarithmic_and_says_what_it_cuts():
    ax = heatmap(VALLEY, limits=(-5, 0.5))
    bar = ax.figure.axes[-1]
    ax.figure.canvas.draw()
    assert "$10^{-5}$" in [label.get_text() for label in bar.get_yticklabels()]
    mesh = ax.collections[0]
    assert (mesh.norm.vmin, mesh.norm.vmax) == (-5, 0.5)
    assert mesh.colorbar.extend == "both"


def test_default_colours_rise_in_lightness():
    """Readable in grey: luminance is monotone over the colour map."""
    rgb = heatmap(VALLEY).collections[0].cmap(np.linspace(0, 1, 64))[:, :3]
    assert np.all(np.diff(rgb @ [0.2126, 0.7152, 0.0722]) > 0)


def test_contours_are_white_at_one_and_redder_above():
    ax = heatmap(VALLEY, log_rho=VALLEY / 3)
    lines = ax.collections[1]
    assert lines.levels[0] == 1
    assert len(lines.levels) >= 3
    colors = np.asarray(lines.get_edgecolor())[:, :3]
    assert np.array_equal(colors[0], [1, 1, 1])
    whiteness = colors[:, 1:].mean(1)  # red falls last: the lines lose their green and blue
    assert np.all(np.diff(whiteness) < 0)
    assert np.all(np.diff(colors[:, 0] / colors.sum(1)) > 0)
    assert np.array_equal(REDNESS(0.0)[:3], (1, 1, 1))
    for path in lines.get_paths()[0].to_polygons(closed_only=False):  # the white line runs where rho = 1
        rho = np.exp(VALLEY.interp(f=xr.DataArray(path[:, 0]), mu=xr.DataArray(path[:, 1])) / 3)
        assert np.allclose(rho, 1, atol=0.05)


def test_contours_pass_over_infinite_values_and_empty_charts():
    _, ax = plt.subplots()
    contours((VALLEY / 3).where(VALLEY.f > 0, -np.inf), ax=ax)
    assert len(ax.collections) == 1
    contours(VALLEY * 0 - 1, ax=ax)
    assert len(ax.collections) == 1


def test_period_axis():
    ax = heatmap(VALLEY, period_axis=True)
    ax.figure.canvas.draw()
    top = ax.child_axes[0]
    assert [label.get_text() for label in top.get_xticklabels()][:3] == ["20", "30", "50"]


def test_draws_on_given_axes():
    _, ax = plt.subplots()
    assert heatmap(VALLEY, ax=ax) is ax


def test_a_forgotten_reduction_is_named():
    with pytest.raises(
        ValueError, match=r"two dimensions 'f' and 'mu', got \('seed', 'f', 'mu'\); reduce the others first"
    ):
        rj.plotting.heatmap(VALLEY.expand_dims("seed"))


CURVES = xr.DataArray(
    np.random.default_rng(0).normal(size=(8, 5, 3)) + np.array([0.0, 2.0, 30.0]),
    {"seed": range(8), "T": [0.0, 1, 2, 3, 4], "v": [0.1, 0.2, 0.4]},
    name="log10_distance",
)


def test_response_draws_the_mean_the_band_and_the_baseline():
    ax = rj.plotting.response(CURVES, hue="v", log10=True)
    lines = [line for line in ax.lines if len(line.get_xdata()) == 5]
    assert len(lines) == 3
    for line, v in zip(lines, CURVES.v.values, strict=True):
        assert np.allclose(line.get_ydata(), rj.log10_mean(CURVES.sel(v=v), "seed"))
    bands = [each for each in ax.collections if hasattr(each, "get_paths") and each.get_alpha() == 0.2]
    assert len(bands) == 3
    for band, line in zip(bands, lines, strict=True):
        low, high = band.get_paths()[0].vertices[:, 1].min(), band.get_paths()[0].vertices[:, 1].max()
        assert low < line.get_ydata().min() + 1e-9
        assert high > line.get_ydata().max() - 1e-9
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["0.1", "0.2", "0.4", "iid baseline"]
    assert ax.get_legend().get_title().get_text() == "variance of the mean $v$"
    diamonds = [each for each in ax.collections if each.get_offsets().shape == (3, 2)]
    assert np.allclose(diamonds[0].get_offsets()[:, 1], [line.get_ydata()[0] for line in lines])


def test_response_labels_powers_of_ten_or_plain_numbers():
    wide, narrow, linear = (
        rj.plotting.response(CURVES, hue="v", log10=True),
        rj.plotting.response(CURVES * 0.03, hue="v", log10=True),
        rj.plotting.response(CURVES, hue="v"),
    )
    for ax, label in ((wide, "$10^{30}$"), (narrow, "2")):
        ax.figure.canvas.draw()
        assert label in [text.get_text() for text in ax.get_yticklabels()]
    assert np.allclose(linear.lines[0].get_ydata(), CURVES.isel(v=0).mean("seed"))


def diverging():
    """Losses of 8 seeds, of which 0, 2 and 6 diverged at T = 0, 1, 2 of the second curve."""
    axes = {"seed": range(8), "T": [0.0, 1.0, 2.0], "v": [0.1, 0.2]}
    loss = xr.DataArray(np.random.default_rng(0).lognormal(size=(8, 3, 2)), axes, name="loss")
    diverged = (loss.seed < xr.DataArray([0, 2, 6], {"T": axes["T"]})) & (loss.v == 0.2)
    return loss.where(~diverged, 1e21), diverged.transpose(*loss.dims)


def test_response_draws_the_share_of_diverged_runs():
    loss, diverged = diverging()
    ax = rj.plotting.response(loss, hue="v", diverged=diverged)
    (strip,) = ax.child_axes
    assert [line.get_ydata().tolist() for line in strip.lines] == [[0, 0, 0], [0, 25, 75]]
    ax.figure.canvas.draw()
    calm = loss.where(~diverged.any("seed")).mean("seed")
    bottom, top = ax.get_ylim()
    assert bottom < float(calm.min()) < float(calm.max()) < top < 100
    assert ax.lines[1].get_ydata()[1:].min() > 1e20  # the mean of all runs leaves the picture
    arrows = [line.get_xdata().tolist() for line in ax.lines if line.get_marker() == "^"]
    assert arrows == [[], [1.0, 2.0]]
    assert not rj.plotting.response(loss, hue="v", diverged=diverged & False).child_axes


def test_response_bands_stay_above_zero():
    skewed = xr.DataArray([[[0.01]], [[0.01]], [[3.0]]], {"seed": range(3), "T": [1.0], "v": [0.1]}, name="loss")
    (band,) = [each for each in rj.plotting.response(skewed, hue="v").collections if each.get_alpha() == 0.2]
    assert band.get_paths()[0].vertices[:, 1].min() > 0


def test_overview_draws_the_share_of_diverged_runs():
    loss, diverged = diverging()
    two = rj.plotting.overview(loss, diverged=diverged)
    values, shares = two.axes[0].collections
    drawn = np.ma.filled(shares.get_array(), 0).reshape(2, 3)
    np.testing.assert_allclose(drawn, [[0, 0, 0], [0, 0.25, 0.75]])
    assert np.ma.getmaskarray(values.get_array()).tolist() == (drawn > 0).tolist()  # no mean is drawn there
    assert values.norm.vmax < 100
    assert shares.get_hatch()
    assert two.get_suptitle() == "loss; mean over seed; 16.7% of the runs diverged"
    one = rj.plotting.overview(loss.sel(v=0.2), diverged=diverged.sel(v=0.2))
    (strip,) = one.axes[0].child_axes
    assert strip.lines[0].get_ydata().tolist() == [0, 25, 75]
    assert len(rj.plotting.overview(loss.where(~diverged, 1.0)).axes[0].collections) == 1


def test_response_needs_its_three_dimensions():
    with pytest.raises(ValueError, match=r"response draws the dimensions 'T', 'v' and 'seed', got \('T', 'v'\)"):
        rj.plotting.response(CURVES.mean("seed"), hue="v")


def test_overview_of_any_number_of_axes():
    axes = {"eta": [0.1, 0.2], "seed": np.arange(3), "T": [1.0, 2.0, 3.0], "mu": [0.8, 0.9]}
    loss = xr.DataArray(np.random.default_rng(0).uniform(1, 2, (2, 3, 3, 2)), axes, name="loss")
    three = rj.plotting.overview(loss)
    assert [ax.get_title() for ax in three.axes[:2]] == ["eta = 0.1", "eta = 0.2"]
    assert three.get_suptitle() == "loss; mean over seed"
    drawn = three.axes[1].collections[0].get_array()
    np.testing.assert_allclose(drawn, loss.isel(eta=1).mean("seed").transpose("mu", "T"))
    two = rj.plotting.overview(loss.isel(eta=0))
    assert two.axes[0].get_xlabel() == "period of the shift $T$ (steps)"
    one = rj.plotting.overview(loss.isel(eta=[0], mu=0))
    np.testing.assert_allclose(one.axes[0].lines[0].get_ydata(), loss.isel(eta=0, mu=0).mean("seed"))
    assert "eta = 0.1" in one.get_suptitle()


def test_overview_takes_log10_where_decades_are_many():
    loss = xr.DataArray([1.0, 10.0, 1e5, np.nan], {"T": [1.0, 2.0, 3.0, 4.0]}, name="loss")
    np.testing.assert_allclose(rj.plotting.overview(loss).axes[0].lines[0].get_ydata(), [0, 1, 5, np.nan])
    distance = xr.DataArray([[0.0, 2.0], [1.0, 3.0]], {"seed": [0, 1], "T": [1.0, 2.0]}, name="log10_distance")
    drawn = rj.plotting.overview(distance).axes[0].lines[0].get_ydata()
    np.testing.assert_allclose(drawn, np.log10([5.5, 550.0]), rtol=1e-6)


def test_zero_lines_run_where_a_rate_changes_its_sign():
    ax = zero_lines({"valley": VALLEY, "below": VALLEY * 0 - 1}, ax=plt.subplots()[1])
    (lines,) = ax.collections
    for path in lines.get_paths()[0].to_polygons(closed_only=False):
        values = VALLEY.interp(f=xr.DataArray(path[:, 0]), mu=xr.DataArray(path[:, 1]))
        assert np.abs(values).max() < 0.05
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["valley", "below: no zero here"]
    with pytest.raises(ValueError, match=r"zero_lines draws at most 4 rates, got 5; draw fewer"):
        zero_lines({str(i): VALLEY for i in range(5)}, ax=ax)


def test_growth_curves_draw_predictions_and_runs():
    measured = xr.DataArray(np.add.outer(np.arange(3.0), [0.0, 0.2]), {"T": [1.0, 2.0, 3.0]}, ("T", "seed"))
    lines = {"one": measured.isel(seed=0), "two": measured.isel(seed=1)}
    ax = growth_curves(measured, lines, title="growth", ax=plt.subplots()[1])
    assert [text.get_text() for text in ax.legend().get_texts()] == ["one", "two", "runs"]
    assert ax.containers[0].lines[0].get_ydata() == pytest.approx([0.1, 1.1, 2.1])
    with pytest.raises(ValueError, match=r"growth_curves draws at most 4 rates, got 5; draw fewer"):
        growth_curves(measured, {str(i): measured for i in range(5)}, ax=ax)


def test_overview_takes_one_output():
    data = xr.Dataset({"loss": ("T", [1.0, 2.0])}, {"T": [1.0, 2.0]})
    with pytest.raises(ValueError, match=r"data must be one output of a sweep, got Dataset; pass e.g. dataset.loss"):
        rj.plotting.overview(data)


def test_own_names_and_units_are_drawn():
    data = VALLEY.assign_attrs(long_name="log10 of the altitude", units="m")
    data["f"] = data.f.assign_attrs(units="Hz")
    ax = heatmap(data)
    assert ax.get_xlabel() == "frequency of the shift $f$ (Hz)"
    assert ax.figure.axes[-1].get_ylabel() == "log10 of the altitude (m)"
