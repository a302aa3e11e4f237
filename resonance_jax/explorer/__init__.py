"""Sweeps as a page to click on; the only room that imports bokeh."""
