import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

import resonance_jax as rj
from resonance_jax.plotting import contours, growth_curves, heatmap, zero_lines
from resonance_jax.plotting._colours import GROWTH
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


def test_an_exact_boundary_takes_the_place_of_the_white_line():
    edge = xr.Dataset({"f": ("point", [0.01, 0.02, np.nan]), "mu": ("point", [0.96, 0.97, np.nan])})
    ax = heatmap(VALLEY, log_rho=VALLEY / 3, boundary=edge)
    assert ax.collections[1].levels[0] > 1
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), edge.f)
    assert ax.get_legend().get_texts()[0].get_text() == "1"
    lines = zero_lines({"traced": edge, "none": edge.isel(point=[])}, ax=plt.subplots()[1])
    np.testing.assert_array_equal(lines.lines[0].get_ydata(), edge.mu)
    assert [text.get_text() for text in lines.get_legend().get_texts()] == ["traced", "none: no zero here"]
    assert len(heatmap(VALLEY, boundary=edge).lines) == 1
    with pytest.raises(ValueError, match=r"boundary must hold 'f' and 'mu', got f; call stability_boundary with"):
        heatmap(VALLEY, boundary=edge[["f"]])


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
        ValueError, match=r"two dimensions 'f' and 'mu', got \('seed', 'f', 'mu'\); name yours, e.g. x='T', and reduce"
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


def test_response_names_the_dimensions_it_draws():
    message = r"response draws the dimensions 'T', 'seed', got \('seed', 'T', 'v'\); name them by x=, hue= and over="
    with pytest.raises(ValueError, match=message):
        rj.plotting.response(CURVES)


def bands(ax):
    return [each.get_paths()[0].vertices[:, 1] for each in ax.collections if each.get_alpha() == 0.2]


def test_response_draws_one_curve_and_labels():
    one = rj.plotting.response(CURVES.isel(v=0, drop=True), log10=True)
    assert len(bands(one)) == 1
    assert [text.get_text() for text in one.get_legend().get_texts()] == ["iid baseline"]
    assert rj.plotting.response(CURVES.isel(v=0, seed=0, T=slice(1, None), drop=True)).get_legend() is None
    named = CURVES.rename(v="optimizer").assign_coords(optimizer=["sgd", "adam", "lion"])
    legend = rj.plotting.response(named, hue="optimizer", log10=True).get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["sgd", "adam", "lion", "iid baseline"]
    across = rj.plotting.response(named, x="optimizer", hue="T", log10=True)
    assert [text.get_text() for text in across.get_xticklabels()] == ["sgd", "adam", "lion"]
    assert across.lines[0].get_xdata().tolist() == [0, 1, 2]
    assert "iid baseline" not in [text.get_text() for text in across.get_legend().get_texts()]


def test_response_takes_logarithmic_axes_where_values_span_decades():
    loss = xr.DataArray(np.outer([1.0, 1.1], [1e-3, 0.1, 9]), {"eta": [1e-4, 1e-3, 1e-2]}, ("seed", "eta"), name="loss")
    wide, narrow = (rj.plotting.response(each, x="eta") for each in (loss, loss.clip(0.1)))
    assert (wide.get_xscale(), wide.get_yscale(), narrow.get_yscale()) == ("log", "log", "linear")


@pytest.mark.parametrize("log10", [False, True])
def test_response_bands_stay_within_the_values(log10):
    values = np.random.default_rng(0).lognormal(sigma=3, size=(6, 4)) / 100
    data = xr.DataArray(values, {"seed": range(6), "eta": [0.1, 0.2, 0.3, 0.4]}, name="loss")
    (band,) = bands(rj.plotting.response(np.log10(data) if log10 else data, x="eta", log10=log10))
    ends = np.log10([values.min(), values.max()]) if log10 else [values.min(), values.max()]
    assert ends[0] - 1e-9 <= band.min() < band.max() <= ends[1] + 1e-9


def test_runs_that_overflow_are_drawn_as_diverged():
    loss = xr.DataArray([[1.0, np.inf], [2.0, 2.0]], {"seed": [0, 1], "eta": [0.1, 0.2]}, name="loss")
    ax = rj.plotting.response(loss, x="eta")
    (strip,) = ax.child_axes
    assert strip.lines[0].get_ydata().tolist() == [0, 50]
    assert [line.get_xdata().tolist() for line in ax.lines if line.get_marker() == "^"] == [[0.2]]
    assert ax.get_ylim()[1] < 3
    two = rj.plotting.overview(loss.expand_dims(mu=[0.8, 0.9]))
    np.testing.assert_allclose(np.ma.filled(two.axes[0].collections[1].get_array(), 0), [[0, 0], [0.5, 0.5]])


def test_overview_of_any_number_of_axes():
    axes = {"eta": [0.1, 0.2], "seed": np.arange(3), "T": [1.0, 2.0, 3.0], "mu": [0.8, 0.9]}
    loss = xr.DataArray(np.random.default_rng(0).uniform(1, 2, (2, 3, 3, 2)), axes, name="loss")
    three = rj.plotting.overview(loss)
    assert [ax.get_title() for ax in three.axes[:2]] == ["eta = 0.1", "eta = 0.2"]
    assert three.get_suptitle() == "loss; mean over seed"
    drawn = three.axes[1].collections[0].get_array()
    np.testing.assert_allclose(drawn, loss.isel(eta=1).mean("seed").transpose("mu", "T"))
    two = rj.plotting.overview(loss.isel(eta=0))
    assert two.axes[0].get_xlabel() == "period or interval of the shift $T$ (steps)"
    one = rj.plotting.overview(loss.isel(eta=[0], mu=0))
    np.testing.assert_allclose(one.axes[0].lines[0].get_ydata(), loss.isel(eta=0, mu=0).mean("seed"))
    assert "eta = 0.1" in one.get_suptitle()


def test_overview_takes_log10_where_decades_are_many():
    loss = xr.DataArray([1.0, 10.0, 1e5, np.nan], {"T": [1.0, 2.0, 3.0, 4.0]}, name="loss")
    curve = rj.plotting.overview(loss).axes[0]
    np.testing.assert_allclose(curve.lines[0].get_ydata(), loss)
    assert curve.get_yscale() == "log"
    cells = rj.plotting.overview(loss.expand_dims(mu=[0.8, 0.9])).axes
    drawn = cells[0].collections[0].get_array()
    np.testing.assert_allclose(np.ma.filled(drawn, np.nan), np.log10([[1, 1], [10, 10], [1e5, 1e5], [np.nan] * 2]))
    assert cells[1].get_ylabel() == "test loss, mean of the last steps"
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


def test_own_names_and_units_are_drawn():
    data = VALLEY.assign_attrs(long_name="log10 of the altitude", units="m")
    data["f"] = data.f.assign_attrs(units="Hz")
    ax = heatmap(data)
    assert ax.get_xlabel() == "frequency of the shift $f$ (Hz)"
    assert ax.figure.axes[-1].get_ylabel() == "log10 of the altitude (m)"


def test_colours_are_centred_where_growth_begins():
    """Blue below no growth and below distance 1, yellow above, whatever the range; no centre for a loss."""
    skewed = VALLEY.clip(-30, 0.5)
    for data in (skewed, skewed.rename("growth_rate"), (skewed - 40).rename("growth_rate")):
        mesh = heatmap(data).collections[0]
        assert mesh.norm(0.0) == 0.5
        assert mesh.norm.vmax >= 0.1 * -mesh.norm.vmin
        red, _, blue, _ = mesh.to_rgba([float(data.min()), 0.4])[:, :].T
        assert red[0] < blue[0]
        assert red[1] > blue[1]
    loss = heatmap((VALLEY - VALLEY.min()).rename("loss"), powers_of_ten=False).collections[0]
    assert loss.norm(float(loss.get_array().mean())) != 0.5
    assert loss.norm.vmin == 0
    assert heatmap(VALLEY, centre=-5.0).collections[0].norm(-5.0) == 0.5


def test_growth_colours_rise_in_lightness():
    rgb = GROWTH(np.linspace(0, 1, 64))[:, :3]
    assert np.all(np.diff(rgb @ [0.2126, 0.7152, 0.0722]) > 0)


def test_cells_meet_half_way_and_stay_inside_their_axis():
    axes = {"eta": [0.1, 0.001, 0.01], "mu": [0.0, 0.9, 0.99]}
    rate = xr.DataArray(np.arange(9.0).reshape(3, 3), axes, name="growth_rate")
    ax = heatmap(rate, x="eta")
    mesh = ax.collections[0]
    x, y = mesh.get_coordinates()[0, :, 0], mesh.get_coordinates()[:, 0, 1]
    np.testing.assert_allclose(x, 10.0 ** np.array([-3.5, -2.5, -1.5, -0.5]))  # sorted, on a logarithmic axis
    np.testing.assert_allclose(y, [0, 0.45, 0.945, 1])  # no momentum below 0 or above 1
    np.testing.assert_array_equal(mesh.get_array(), rate.sortby("eta").transpose("mu", "eta"))
    assert ax.get_xscale() == "log"
    assert ax.get_ylim() == (0, 1)
    one = heatmap(rate.isel(eta=[1]), x="eta").collections[0]  # a single value still has a cell
    assert one.get_coordinates()[0, 0, 0] < 0.001 < one.get_coordinates()[0, -1, 0]


def test_heatmap_of_labels():
    rate = xr.DataArray(np.eye(2), {"optimizer": ["sgd", "adam"], "mu": [0.8, 0.9]}, name="growth_rate")
    ax = heatmap(rate, x="optimizer")
    assert [text.get_text() for text in ax.get_xticklabels()] == ["sgd", "adam"]
    np.testing.assert_array_equal(ax.collections[0].get_array(), rate.transpose("mu", "optimizer"))


AXES = {"eta": [0.1, 0.2], "seed": np.arange(3), "T": [1.0, 2.0, 3.0], "mu": [0.8, 0.9], "kind": ["a", "b", "c"]}
LOSS = xr.DataArray(np.random.default_rng(0).uniform(1, 2, (2, 3, 3, 2, 3)), AXES, name="loss")


def visible(figure):
    return [ax for ax in figure.axes if ax.get_visible() and ax.get_title()]


def test_overview_draws_every_slice_or_says_which():
    figure = rj.plotting.overview(LOSS)
    assert len(visible(figure)) == 6  # eta and kind; labels lie in panels
    assert visible(figure)[1].get_title() == "kind = a, eta = 0.2"
    drawn = visible(figure)[1].collections[0].get_array()
    np.testing.assert_allclose(drawn, LOSS.isel(eta=1, kind=0).mean("seed").transpose("mu", "T"))
    many = LOSS.isel(kind=0, eta=[0] * 8, drop=True).assign_coords(eta=range(8))
    figure = rj.plotting.overview(many)
    assert len(visible(figure)) == 6
    assert figure.get_suptitle() == "loss; mean over seed; 6 of 8 values of eta"
    figure = rj.plotting.overview(LOSS.expand_dims(b=[0.5, 0.6]))
    assert figure.get_suptitle() == "loss; mean over seed; kind = a (1 of 3 values)"


def test_overview_takes_roles_and_selections():
    figure = rj.plotting.overview(LOSS, x="mu", y="eta", col="T", sel={"kind": "b"})
    assert [ax.get_title() for ax in visible(figure)] == ["T = 1", "T = 2", "T = 3"]
    assert figure.get_suptitle() == "loss; mean over seed; kind = b"
    drawn = figure.axes[2].collections[0].get_array()
    np.testing.assert_allclose(drawn, LOSS.sel(kind="b", T=3).mean("seed").transpose("eta", "mu"))
    assert figure.axes[0].get_xlabel().startswith("momentum")
    rows = rj.plotting.overview(LOSS, row="T", col="kind", sel={"eta": 0.11, "T": [1, 3]})  # 0.1 is the nearest
    assert "eta = 0.1" in rows.get_suptitle()
    assert [ax.get_title() for ax in visible(rows)][3] == "T = 3, kind = a"
    curves = rj.plotting.overview(LOSS, sel={"eta": 0.1, "mu": 0.9, "kind": "c"})
    np.testing.assert_allclose(curves.axes[0].lines[0].get_ydata(), LOSS.sel(eta=0.1, mu=0.9, kind="c").mean("seed"))
    assert len(bands(curves.axes[0])) == 1


def test_overview_takes_a_dataset():
    data = xr.Dataset({"first": LOSS, "loss": LOSS, "diverged_at": xr.where(LOSS > 1.5, 7, -1)}).isel(eta=0, kind=0)
    title = rj.plotting.overview(data).get_suptitle()
    assert title == f"loss; mean over seed; {100 * float((data.loss > 1.5).mean()):.3g}% of the runs diverged"
    assert rj.plotting.overview(data, output="first").get_suptitle() == "first; mean over seed"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(x="nu"), "'nu' is not a dimension to draw; choose from eta, T, mu, kind"),
        (dict(x="mu", y="mu"), "'mu' has two roles; x, y, col and row need a dimension each"),
        (dict(sel={"nu": 1}), "sel names 'nu', which is not a dimension; choose from eta, seed, T, mu, kind"),
        (dict(sel={"T": 9}), "T has no value 9; choose from numbers from 1 to 3"),
        (dict(sel={"kind": "d"}), "kind has no value d; choose from a, b, c"),
        (dict(sel=dict(T=1, mu=0.8, eta=0.1, kind="a")), "no dimension is left for the horizontal axis; give x, or"),
    ],
)
def test_overview_names_what_it_cannot_draw(arguments, message):
    with pytest.raises(ValueError, match=message):
        rj.plotting.overview(LOSS, **arguments)


def test_overview_needs_an_output():
    with pytest.raises(ValueError, match=r"the data have no output 'y'; they have loss"):
        rj.plotting.overview(LOSS.to_dataset(), output="y")
    with pytest.raises(ValueError, match=r"the dataset has no output; pass one with at least one data variable"):
        rj.plotting.overview(xr.Dataset())
    with pytest.raises(ValueError, match=r"data must be a dataset or one of its outputs, got dict; pass dataset.loss"):
        rj.plotting.overview({"loss": LOSS})
