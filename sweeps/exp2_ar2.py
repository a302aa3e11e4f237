"""Experiment 2, ablating periodicity: the mean follows an AR(2) process whose spectrum peaks at f."""

import xarray as xr
from matplotlib.figure import Figure

import resonance_jax as rj
from sweeps import _heatmap
from sweeps._claims import Claim

axes = _heatmap.axes


def point(seed, f, mu):
    return _heatmap.pixel(seed, f, mu, rj.shifts.ar2(f))


def figure(data: xr.Dataset) -> Figure:
    return _heatmap.figure(data, "SGDm under an AR(2) mean")


def claims(data: xr.Dataset) -> list[Claim]:
    return _heatmap.claims(data, where="Ablating Periodicity", agreement=0.94)
