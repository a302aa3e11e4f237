// The run behind a cell: its numbers, its verdict, its curve, its spectrum, its table.
// A run is {texts, values: name -> a number for each seed, curves: name -> a curve for each seed, verdicts, positions}.

explorer.run = (page) => {
  const {spec, models, values, chosen, state} = page
  const {seed, axes, sizes} = spec
  const worst = [2, 1, 3, 5, 0, 4] // verdicts, in the order in which one gives its colour to all

  // The run of a cell as the page holds it.
  const stored = async (index) => {
    const run = {texts: explorer.coordinates(spec, index), values: {}, curves: {}, verdicts: page.allVerdicts(index)}
    for (const variable of spec.variables)
      run.values[variable.name] = explorer.over(spec, values[variable.name], variable, index)
    const arrays = await page.curves
    for (const curve of spec.curves) {
      const count = seed !== null && curve.dims.includes(seed) ? sizes[seed] : 1
      run.curves[curve.name] = Array.from({length: count}, (_, s) =>
        explorer.curve(arrays, curve, explorer.offset(curve.dims, sizes, {...index, [seed]: s})))
    }
    return run
  }

  const numbers = (run) => {
    const one = seed !== null && chosen[seed] >= 0
    const first = seed === null ? "run" : one ? explorer.escape(axes[seed].texts[chosen[seed]]) : "smallest to largest"
    const second = seed === null ? "" : `<th>mean over ${sizes[seed]} seeds`
    const rows = spec.variables.filter((v) => !v.is_error).map((variable) => {
      const all = run.values[variable.name]
      const show = (v) => explorer.shown(v, variable.kind, spec.overflow)
      const errors = variable.error && run.values[variable.error]
      const plus = (s) => (errors ? ` ± ${explorer.text(errors[Math.min(s, errors.length - 1)], 2)}` : "")
      const single = (s) => show(all[s]) + plus(s)
      const own = all.length === 1 ? single(0) : one ? single(chosen[seed])
        : [...new Set([Math.min(...all), Math.max(...all)].map(show))].join(" to ")
      const mean = seed === null ? "" : `<td>${all.length === 1 ? "" : show(explorer.mean(all, variable.kind))}`
      return `<tr><td title="${explorer.escape(variable.name)}">${explorer.escape(variable.label)}<td>${own}${mean}`
    })
    return `<table><tr><td><th>${first}${second}${rows.join("")}</table>`
  }

  const fit = (plot, xs, ys, log) => {
    const set = (range, all, margin) => {
      const [low, high] = all.length ? [Math.min(...all), Math.max(...all)] : [0.1, 1]
      const room = (high - low) * margin || 0.5
      const [start, end] = log && range === plot.y_range ? [low / 1.5, high * 1.5] : [low - room, high + room]
      range.setv({start, end, reset_start: start, reset_end: end})
    }
    set(plot.x_range, xs, 0.02)
    set(plot.y_range, ys.filter((v) => Number.isFinite(v) && (!log || v > 0)), 0.06)
  }

  const positionsOf = (run, curve) => run.positions?.[curve.name] ?? curve.positions

  const drawCurve = (run, curve) => {
    const log = curve.kind === "log"
    const kind = log ? "log10" : curve.kind
    const lines = run.curves[curve.name].map((line) => (log ? line.map((v) => Math.log10(v)) : line))
    const positions = positionsOf(run, curve)
    const none = {x: [], y: []}
    const mean = positions.map((_, k) => explorer.mean(lines.map((line) => line[k]), kind))
    const one = lines.length === 1 ? lines[0] : chosen[seed] >= 0 ? lines[chosen[seed]] : null
    const spectrum = (line) => {
      const {frequency, power} = explorer.spectrum(positions, line)
      return {x: frequency, y: power}
    }
    state.curveKind = kind
    state.drawn = {positions, mean, one}
    models.seeds.data = {xs: lines.map(() => positions), ys: lines}
    models.mean.data = lines.length > 1 ? {x: positions, y: mean} : none
    models.one.data = one ? {x: positions, y: one} : none
    models.curve_axis.axis_label = curve.label
    const spectra = [one ? spectrum(one) : none, lines.length > 1 ? spectrum(mean) : none]
    models.spectrum_one.data = spectra[0]
    models.spectrum_mean.data = spectra[1]
    fit(models.curve_figure, positions, lines.flat(), false)
    fit(models.spectrum_figure, spectra.flatMap((s) => s.x), spectra.flatMap((s) => s.y), true)
    for (const plot of [models.curve_figure, models.spectrum_figure]) plot.visible = true
  }

  const show = () => {
    const {run} = state
    if (!run) return
    const found = page.chosenOf(run.verdicts)
    models.verdict.text = `<div class="run"><h2>${run.texts.map(explorer.escape).join(", ")}</h2>
      <p class="verdict v${worst.find((v) => found.includes(v))}">${explorer.summary(found, spec.verdicts.words)}</p>
      ${numbers(run)}</div>`
    const curve = spec.curves.find((c) => c.name === models.curve?.value)
    if (curve) drawCurve(run, curve)
  }

  const say = (text) => { models.verdict.text = `<div class="run"><p>${explorer.escape(text)}</p></div>` }

  // The run with all its numbers, a row for each.
  const table = ({texts, values, curves, verdicts}) => {
    const where = texts.join(", ")
    const rows = [["coordinates", "seed", "what", "position", "value"]]
    const add = (name, all, position = "") => all.forEach((v, s) =>
      rows.push([where, seed === null || all.length === 1 ? "" : axes[seed].texts[s], name, position, v]))
    for (const [name, all] of Object.entries(values)) add(name, all)
    add("verdict", verdicts.map((v) => spec.verdicts.words[v]))
    for (const curve of spec.curves)
      positionsOf(state.run, curve).forEach((position, k) =>
        add(curve.name, curves[curve.name].map((line) => line[k]), position))
    return rows
  }

  return {stored, show, say, table}
}
