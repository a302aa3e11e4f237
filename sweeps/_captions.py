"""What each figure of the report shows, for a reader who has not seen the code."""

_RESPONSE = (
    "Each point is the mean distance from the solution over the last {tail} steps of a run, averaged over the seeds, "
    "with a 95% band; the horizontal axis is the {axis}. Diamonds: the iid baseline. The strip on top shows the share "
    "of runs that diverged; a right-hand panel, where there is one, repeats the curves near the baseline."
)
_HEATMAP = (
    "Colour: the mean distance from the solution over the last 500 of 10,000 steps, averaged over the seeds; blue "
    "converged, yellow diverged. White line: where rho of the theory is 1; redder lines: larger rho. Horizontal: "
    "frequency of the {mean}. Vertical: momentum."
)
_PANELS = (
    "Rows: step sizes. Columns: sinusoidal and AR(2) mean. Colour: mean distance at the end of the runs, blue "
    "converged, yellow diverged; white line: where rho of the theory is 1. {samples} a step."
)
_LYAPUNOV = (
    "Above: {response} over the steps between two switches of the mean. Below: the largest Lyapunov exponent of the "
    "same runs; above 0, nearby runs part. Bands: 95% over the seeds."
)
_SIGNAL = (
    "Left: the first 500 steps of the inputs (dots) and of their mean (line). Right: their power spectral densities. "
    "A row for each {parameter}."
)
_SQUARE, _SWITCHING = "period of the square wave", "number of steps between two switches of the mean"

CAPTIONS = {
    "exp1_sinusoid": _HEATMAP.format(mean="sinusoidal mean of the inputs"),
    "exp2_ar2": _HEATMAP.format(mean="peak in the spectrum of the AR(2) mean"),
    "exp3_square_wave": "A curve for each number of samples a step. " + _RESPONSE.format(tail=500, axis=_SQUARE),
    "exp4_variance": "A curve for each variance of the mean. " + _RESPONSE.format(tail=500, axis=_SWITCHING),
    "exp4_dimension": "A curve for each number of inputs. " + _RESPONSE.format(tail=500, axis=_SWITCHING),
    "exp5_adam": "A curve for each beta_1 of Adam. " + _RESPONSE.format(tail="2000", axis=_SWITCHING),
    "exp6_mlp": "A curve for each variance of the mean. Each point is the mean test loss of a ReLU network over its "
    "last 2000 steps, averaged over the seeds, with a 95% band; the horizontal axis is the number of steps between "
    "two switches of the mean.",
    "reduced_step_size": _PANELS.format(samples="Twenty samples"),
    "stochastic_gradients": _PANELS.format(samples="One sample"),
    "reduced_momentum_exp3": "A curve for each momentum. " + _RESPONSE.format(tail=500, axis=_SQUARE),
    "reduced_momentum_exp4_variance": "A curve for each momentum. " + _RESPONSE.format(tail=500, axis=_SWITCHING),
    "reduced_momentum_exp4_dimension": "A curve for each momentum. " + _RESPONSE.format(tail=500, axis=_SWITCHING),
    "reduced_momentum_exp6": "A curve for each momentum: mean test loss of the network with a 95% band, over the "
    "number of steps between two switches of the mean.",
    "theory_chart": "No runs, theory alone. Colour: growth of the mean per step, blue shrinks, yellow grows; white "
    "line: rho = 1; redder: larger rho. Horizontal: period of the sinusoid. Vertical: momentum. Left: the corner that "
    "the dotted line on the right encloses. Dashed: the momentum of fastest convergence.",
    "signals_sinusoid": _SIGNAL.format(parameter="frequency"),
    "signals_ar2": _SIGNAL.format(parameter="frequency of the peak"),
    "signals_square_wave": _SIGNAL.format(parameter="period"),
    "signals_switching": _SIGNAL.format(parameter="number of steps between two switches"),
    "noise_heatmaps": "Colour: distance of the median run at the end. Lines: where the growth of the mean, of the mean "
    "square and of a typical run changes its sign. A panel for each number of samples a step.",
    "noise_response": "Dots: measured growth per step of runs, with a 95% band. Lines: three predictions. Rows: "
    "samples a step. Columns: number of inputs.",
    "optimizers_heatmap": "A column for each optimizer, a row for each number of samples a step. Colour: distance of "
    "the median run at the end. Lines: where three growth rates change their sign. Dash-dotted: the largest momentum "
    "at which no frequency makes the mean square grow.",
    "lyapunov_adam": _LYAPUNOV.format(response="distance from the solution"),
    "lyapunov_network": _LYAPUNOV.format(response="test loss"),
    "real_streams": "A column for each recorded stream. Colour: growth per step over step size and momentum, red "
    "grows; above with the rows in the order of time, below shuffled. Black: no growth. Gold: where training by optax "
    "diverges.",
    "guard": "Above: share of the runs that go away, for each remedy and experiment. Below: how much higher the error "
    "is at the end than without a remedy, where nothing has to be done, in decades.",
}
