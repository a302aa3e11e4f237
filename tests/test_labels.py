import pytest

import resonance_jax as rj
from resonance_jax import labels


@pytest.mark.parametrize("name", labels.LABELS)
def test_every_label_has_a_name_and_units(name):
    assert set(labels.attrs(name)) == {"long_name", "units"}
    assert all(labels.attrs(name).values())
    assert labels.LABELS[name].units in {"1", "1/step", "steps", "rows", "decades"}
    assert labels.axis(name, labels.attrs(name)) == labels.axis(name)  # a dataset of ours is drawn as the table says


def test_texts_of_axes():
    assert labels.axis("mu") == r"momentum $\mu$"
    assert labels.axis("T") == "period or interval of the shift $T$ (steps)"
    assert labels.axis("distance") == r"distance $\Vert\theta_k-\theta^*\Vert$, mean of the last steps"
    assert labels.axis("log10_distance") == labels.axis("distance")


def test_own_attributes_win():
    assert labels.axis("T", {"long_name": "season"}) == "season (steps)"
    assert labels.axis("T", {"units": "days"}) == "period or interval of the shift $T$ (days)"
    assert labels.axis("log10_distance", {"long_name": "log10 of my distance"}) == "log10 of my distance"
    assert labels.axis("width", {"long_name": "width of the network", "units": "1"}) == "width of the network"


def test_standard_errors_and_unknown_names():
    assert labels.attrs("mean_square_rate_standard_error") == {
        "long_name": "standard error of the growth rate of the mean square",
        "units": "1/step",
    }
    assert labels.attrs("width") == labels.attrs("width_standard_error") == {}
    assert labels.axis("width") == "width"


def test_datasets_of_sweeps_say_what_they_hold(tmp_path):
    """In memory, in a store, and for whoever opens the store."""
    import xarray as xr

    def point(mu, seed):
        return {"growth_rate": mu, "diverged": seed > 0}

    axes = {"mu": [0.5, 0.9], "seed": [0, 1]}
    stored = rj.sweep(point, axes, store=tmp_path / "x.zarr")
    for data in (rj.sweep(point, axes), stored, xr.open_zarr(tmp_path / "x.zarr")):
        assert data.mu.attrs["long_name"] == "momentum"
        assert data.growth_rate.attrs["units"] == "1/step"
        assert data.diverged.attrs["long_name"] == "whether the run diverged"
    assert stored.status.attrs["long_name"] == "status of the cell"
