"""Experiment 2, ablating periodicity: the mean follows an AR(2) process whose spectrum peaks at f."""

import xarray as xr
from matplotlib.figure import Figure

import resonance_jax as rj
from resonance_jax import Claim
from sweeps import _heatmap

VARIANTS = {"independent_start": dict(joint_start=False)}  # the table: first two means drawn independently

axes = _heatmap.axes


def point(seed, f, mu, joint_start=True):
    return _heatmap.run(seed, mu, rj.shifts.ar2(f, joint_start=joint_start)) | _heatmap.predicted(f, mu)


def figure(data: xr.Dataset) -> Figure:
    return _heatmap.figure(data, "SGDm under an AR(2) mean")


def claims(data: xr.Dataset) -> list[Claim]:
    return _heatmap.claims(data, where="Ablating Periodicity", least=0.94)
