// The page in the browser: draws slices, answers the mouse, shows the run of the clicked cell.

explorer.text = (value, digits = 5) => {
  if (Number.isNaN(value)) return "not a number"
  if (!Number.isFinite(value)) return value > 0 ? "infinite" : "-infinite"
  return String(Number(value.toPrecision(digits)))
}

// 10 to a power: as a plain number where that is short.
explorer.power = (exponent) => {
  const marks = "⁰¹²³⁴⁵⁶⁷⁸⁹"
  const raised = (n) => "10" + [...String(n)].map((c) => (c === "-" ? "⁻" : marks[c])).join("")
  if (!Number.isFinite(exponent)) return explorer.text(exponent)
  if (Math.abs(exponent) < 3) return explorer.text(10 ** exponent, 4)
  if (Math.abs(exponent - Math.round(exponent)) < 1e-9) return raised(Math.round(exponent))
  const mantissa = (10 ** (exponent - Math.floor(exponent))).toPrecision(3)
  return mantissa === "10.0" ? raised(Math.floor(exponent) + 1) : `${mantissa} × ${raised(Math.floor(exponent))}`
}

// A value as the reader thinks of it: powers of ten for a log10, yes, no or a share for a flag.
explorer.shown = (value, kind, overflow) => {
  if (!Number.isFinite(value)) return explorer.text(value)
  if (kind === "log10") return value >= overflow ? "beyond the range of floats" : explorer.power(value)
  if (kind === "flag") return value === 0 ? "no" : value === 1 ? "yes" : `${explorer.text(100 * value, 3)}%`
  return explorer.text(value)
}

explorer.escape = (text) => String(text).replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`)

explorer.start = async (spec, models) => {
  const values = await explorer.values
  let curves = null // unpacked after the first picture
  const find = (name) => spec.variables.find((v) => v.name === name)
  const {x, y, seed, axes, sizes} = spec
  const chosen = Object.fromEntries(Object.keys(axes).map((dim) => [dim, dim === seed ? -1 : 0]))
  const state = {variable: find(spec.value), kind: "plain", curveKind: "plain", run: null, clicked: null, slice: null}
  explorer.state = state
  state.chosen = chosen

  // ---- the heatmap

  const colourValue = (v, kind) => (kind === "log" ? Math.log10(v) : v)

  // Colours between the limits. A diverging map keeps its centre at 0, and has the same steps on both sides.
  const paletteOf = (kind, low, high) => {
    if (kind !== "signed" && kind !== "log10") return spec.palettes.sequential
    const reach = Math.max(Math.abs(low), Math.abs(high)) || 1
    return Array.from({length: 256}, (_, i) => {
      const v = low + ((i + 0.5) / 256) * (high - low)
      return spec.palettes.diverging[Math.min(255, Math.max(0, Math.floor((0.5 + (0.5 * v) / reach) * 256)))]
    })
  }

  const rgba = (hex) => {
    const n = parseInt(hex.slice(1), 16) // a pixel is r, g, b, a in memory
    return ((255 << 24) | ((n & 255) << 16) | (n & 0xff00) | (n >> 16)) >>> 0
  }

  const flagsOf = (index) => explorer.over(spec, values["/verdicts"], {dims: spec.verdicts.dims}, index)

  // Verdict numbers of a cell that the choice shows: of one seed, or of all.
  const verdictsOf = (index) => {
    const all = flagsOf(index)
    return seed !== null && chosen[seed] >= 0 && all.length > 1 ? [all[chosen[seed]]] : all
  }

  let waiting = false
  const draw = () => { // once, however many widgets changed
    if (waiting) return
    waiting = true
    queueMicrotask(() => { waiting = false; drawNow() })
  }

  const drawNow = () => {
    const {variable} = state
    const slice = explorer.slice(spec, values[variable.name], variable, chosen)
    const [low, high] = models.limits.value
    const palette = paletteOf(variable.kind, low, high)
    const marks = models.marks.active.length > 0
    const colours = Array.from(slice, (value, c) => {
      const v = colourValue(value, variable.kind)
      const index = {...chosen, [x]: c % sizes[x], [y]: Math.floor(c / sizes[x])}
      if (marks && verdictsOf(index).includes(spec.verdicts.diverged)) return spec.special.diverged
      if (Number.isNaN(v)) return spec.special.nan
      if (!Number.isFinite(v) || (variable.kind === "log10" && v >= spec.overflow)) return spec.special.overflow
      return palette[Math.min(255, Math.max(0, Math.floor(((v - low) / (high - low || 1)) * 256)))]
    })
    state.slice = slice
    state.kind = variable.kind
    if (spec.even) models.heat.data.image[0].set(colours.map(rgba))
    else models.heat.data.color = colours
    models.heat.change.emit()
    models.mapper.setv({palette, low, high: high > low ? high : low + 1})
    models.bar.title = variable.label
    for (const {name} of spec.contours) {
      const rate = find(name)
      const rates = explorer.slice(spec, values[name], rate, chosen)
      const line = explorer.zeroLine(rates, axes[x].values, axes[y].values)
      models["contour_" + name].data = line
      models["legend_" + name].label = {value: line.x0.length ? `${name} = 0` : `${name} = 0: nowhere here`}
    }
  }

  const resetLimits = (range) => {
    const [low, high] = range
    const margin = (high - low) * 0.5 || 1
    models.limits.setv({start: low - margin, end: high + margin, step: (high - low) / 200 || 0.01})
    models.limits.value = [low, high]
  }

  const limitsOfSlice = () => {
    const {kind} = state.variable
    const shown = [...state.slice].map((v) => colourValue(v, kind))
      .filter((v) => Number.isFinite(v) && !(kind === "log10" && v >= spec.overflow))
    return shown.length ? [shown.reduce((a, b) => Math.min(a, b)), shown.reduce((a, b) => Math.max(a, b))] : [0, 1]
  }

  // ---- words about a cell

  const summary = (found) => {
    const words = spec.verdicts.words
    if (found.length === 1) return words[found[0]]
    const counts = words.map((word, w) => [found.filter((v) => v === w).length, word]).filter(([n]) => n > 0)
    if (counts.length === 1) return `${counts[0][1]} (all ${found.length} seeds)`
    return counts.map(([n, word]) => `${n} of ${found.length} seeds: ${word}`).join("; ")
  }

  const coordinates = (index) => Object.keys(axes).filter((dim) => dim !== seed).map((dim) => axes[dim].texts[index[dim]])

  const seedText = () => (seed === null ? "" : chosen[seed] < 0 ? `mean over ${sizes[seed]} seeds` : axes[seed].texts[chosen[seed]])

  // ---- the mouse over the heatmap

  const tip = document.createElement("div")
  tip.id = "tip"
  document.body.append(tip)

  explorer.hover = (at, left, top) => {
    const i = explorer.cell(axes[x].edges, at.x)
    const j = explorer.cell(axes[y].edges, at.y)
    if (i < 0 || j < 0) { tip.style.display = "none"; return }
    const index = {...chosen, [x]: i, [y]: j}
    const rows = spec.variables.filter((v) => !v.is_error).map((variable) => {
      const all = explorer.over(spec, values[variable.name], variable, index)
      const v = seed !== null && chosen[seed] >= 0 && all.length > 1 ? all[chosen[seed]] : explorer.mean(all, variable.kind)
      const bold = variable === state.variable ? " class=now" : ""
      return `<tr${bold}><td>${explorer.escape(variable.name)}<td>${explorer.shown(v, variable.kind, spec.overflow)}`
    })
    tip.innerHTML = `<b>${coordinates(index).map(explorer.escape).join(", ")}</b><br>${explorer.escape(seedText())}
      <table>${rows.join("")}</table>${explorer.escape(summary(verdictsOf(index)))}`
    tip.style.display = "block"
    const wide = tip.offsetWidth
    tip.style.left = `${left + 16 + wide > innerWidth ? left - wide - 12 : left + 16}px`
    tip.style.top = `${Math.min(top + 14, innerHeight - tip.offsetHeight - 4)}px`
  }

  let pointer = [0, 0] // on the screen
  document.addEventListener("pointermove", (event) => { pointer = [event.clientX, event.clientY] }, true)
  models.figure.on_event("mousemove", (event) => explorer.hover(event, ...pointer))
  models.figure.on_event("mouseleave", () => { tip.style.display = "none" })

  // ---- the run of the clicked cell

  // {index, texts, values: name -> one for each seed, curves: name -> one curve for each seed, verdicts}
  const storedRun = async (index) => {
    const run = {index, texts: coordinates(index), values: {}, curves: {}, verdicts: flagsOf(index)}
    for (const variable of spec.variables) run.values[variable.name] = explorer.over(spec, values[variable.name], variable, index)
    const arrays = await curves
    for (const curve of spec.curves) {
      const n = seed !== null && curve.dims.includes(seed) ? sizes[seed] : 1
      run.curves[curve.name] = Array.from({length: n}, (_, s) =>
        explorer.curve(arrays, curve, explorer.offset(curve.dims, sizes, {...index, [seed]: s})))
    }
    return run
  }

  const table = (run) => {
    const one = seed !== null && chosen[seed] >= 0
    const head = `<tr><td><th>${seed === null ? "run" : one ? explorer.escape(axes[seed].texts[chosen[seed]]) : "smallest to largest"}` +
      (seed === null ? "" : `<th>mean over ${sizes[seed]} seeds`)
    const rows = spec.variables.filter((v) => !v.is_error).map((variable) => {
      const all = run.values[variable.name]
      const show = (v) => explorer.shown(v, variable.kind, spec.overflow)
      const error = variable.error && run.values[variable.error]
      const plus = (s) => (error ? ` ± ${explorer.text(error[Math.min(s, error.length - 1)], 2)}` : "")
      const own = all.length === 1 ? show(all[0]) + plus(0)
        : one ? show(all[chosen[seed]]) + plus(chosen[seed])
        : [...new Set([Math.min(...all), Math.max(...all)].map(show))].join(" to ")
      const mean = seed === null ? "" : `<td>${all.length === 1 ? "" : show(explorer.mean(all, variable.kind))}`
      return `<tr><td title="${explorer.escape(variable.name)}">${explorer.escape(variable.label)}<td>${own}${mean}`
    })
    return `<table>${head}${rows.join("")}</table>`
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

  const showRun = () => {
    const {run} = state
    if (!run) return
    const found = seed !== null && chosen[seed] >= 0 && run.verdicts.length > 1 ? [run.verdicts[chosen[seed]]] : run.verdicts
    const worst = [2, 1, 3, 5, 0, 4].find((v) => found.includes(v))
    models.verdict.text = `<div class="run"><h2>${run.texts.map(explorer.escape).join(", ")}</h2>
      <p class="verdict v${worst}">${explorer.escape(summary(found))}</p>${table(run)}</div>`
    const curve = spec.curves.find((c) => c.name === models.curve?.value) ?? spec.curves[0]
    if (!curve) return
    const log = curve.kind === "log"
    const lines = run.curves[curve.name].map((line) => (log ? line.map((v) => Math.log10(v)) : line))
    const positions = run.positions?.[curve.name] ?? curve.positions
    const kind = log ? "log10" : curve.kind
    const mean = positions.map((_, k) => explorer.mean(lines.map((line) => line[k]), kind))
    const one = lines[seed !== null && chosen[seed] >= 0 && lines.length > 1 ? chosen[seed] : 0]
    const single = lines.length === 1 || chosen[seed] >= 0
    state.curveKind = kind
    models.seeds.data = {xs: lines.map(() => positions), ys: lines}
    models.mean.data = lines.length > 1 ? {x: positions, y: mean} : {x: [], y: []}
    models.one.data = single ? {x: positions, y: one} : {x: [], y: []}
    models.curve_axis.axis_label = curve.label
    for (const plot of [models.curve_figure, models.spectrum_figure]) plot.visible = true
    const power = (line) => { const s = explorer.spectrum(positions, line); return {x: s.frequency, y: s.power} }
    const spectra = [single ? power(one) : {x: [], y: []}, lines.length > 1 ? power(mean) : {x: [], y: []}]
    models.spectrum_one.data = spectra[0]
    models.spectrum_mean.data = spectra[1]
    fit(models.curve_figure, positions, lines.flat(), false)
    fit(models.spectrum_figure, spectra.flatMap((s) => s.x), spectra.flatMap((s) => s.y), true)
    state.drawn = {positions, mean, one: single ? one : null, curve}
  }

  const mark = (left, right, bottom, top) => { models.mark.data = {left: [left], right: [right], bottom: [bottom], top: [top]} }

  explorer.click = async (at) => {
    const i = explorer.cell(axes[x].edges, at.x)
    const j = explorer.cell(axes[y].edges, at.y)
    if (i < 0 || j < 0) return
    const index = {...chosen, [x]: i, [y]: j}
    state.clicked = index
    mark(axes[x].edges[i], axes[x].edges[i + 1], axes[y].edges[j], axes[y].edges[j + 1])
    if (spec.live) {
      models.verdict.text = "<div class=run><p>computing this run ...</p></div>"
      models.ask.data = {x: [at.x], y: [at.y], index: [JSON.stringify(index)]}
      return
    }
    state.run = await storedRun(index)
    showRun()
  }

  models.figure.on_event("tap", (event) => explorer.click(event))
  models.answer?.properties.data.change.connect(() => {
    const answer = JSON.parse(models.answer.data.run[0], (_, v) => (v === "NaN" ? NaN : v === "Infinity" ? Infinity : v === "-Infinity" ? -Infinity : v))
    if (answer.error) models.verdict.text = `<div class=run><p>${explorer.escape(answer.error)}</p></div>`
    else { state.run = answer; showRun() }
  })

  // ---- files

  const download = (name, rows) => {
    const quoted = (v) => (/[",\n]/.test(String(v)) ? `"${String(v).replaceAll('"', '""')}"` : String(v))
    const content = rows.map((row) => row.map(quoted).join(",")).join("\n") + "\n"
    const link = document.createElement("a")
    link.href = URL.createObjectURL(new Blob([content], {type: "text/csv"}))
    link.download = name
    link.click()
    setTimeout(() => URL.revokeObjectURL(link.href), 1000)
  }

  const seeds = (n) => (seed === null || n === 1 ? [""] : axes[seed].texts)

  models.save_run.on_event("button_click", () => {
    const {run} = state
    if (!run) return
    const rows = [["coordinates", "seed", "what", "position", "value"]]
    const where = run.texts.join(", ")
    for (const [name, all] of Object.entries(run.values)) all.forEach((v, s) => rows.push([where, seeds(all.length)[s], name, "", v]))
    for (const [name, lines] of Object.entries(run.curves)) {
      const {positions} = spec.curves.find((c) => c.name === name)
      lines.forEach((line, s) => line.forEach((v, k) => rows.push([where, seeds(lines.length)[s], name, positions[k], v])))
    }
    run.verdicts.forEach((v, s) => rows.push([where, seeds(run.verdicts.length)[s], "verdict", "", spec.verdicts.words[v]]))
    download("run.csv", rows)
  })

  models.save_slice.on_event("button_click", () => {
    const slices = spec.variables.map((variable) => explorer.slice(spec, values[variable.name], variable, chosen))
    const rows = [[x, y, ...spec.variables.map((v) => v.name), "verdict"]]
    for (let j = 0; j < sizes[y]; j++)
      for (let i = 0; i < sizes[x]; i++) {
        const place = (dim, n) => (axes[dim].numeric ? axes[dim].values[n] : axes[dim].texts[n])
        rows.push([place(x, i), place(y, j), ...slices.map((s) => s[j * sizes[x] + i]), summary(verdictsOf({...chosen, [x]: i, [y]: j}))])
      }
    download("slice.csv", rows)
  })

  // ---- selectors

  const changed = async () => {
    draw()
    if (!state.clicked) return
    const {run} = state
    const moved = spec.others.some((dim) => dim !== seed && state.clicked[dim] !== chosen[dim])
    if (moved) {
      state.clicked = {...chosen, [x]: state.clicked[x], [y]: state.clicked[y]}
      if (spec.live) await explorer.click({x: axes[x].values[state.clicked[x]], y: axes[y].values[state.clicked[y]]})
      else state.run = await storedRun(state.clicked)
    }
    if (run) showRun()
  }

  const choose = (dim, i) => {
    chosen[dim] = i
    const slider = models["choose_" + dim]
    if (slider?.title !== undefined && slider.start !== undefined) slider.title = axes[dim].texts[i]
    return changed()
  }
  for (const dim of spec.others) {
    const widget = models["choose_" + dim]
    widget?.properties.value.change.connect(() => choose(dim, Number(widget.value)))
  }
  models.variable.properties.value.change.connect(() => {
    state.variable = find(models.variable.value)
    models.marks.active = ["log10", "signed"].includes(state.variable.kind) ? [] : [0]
    resetLimits([state.variable.low, state.variable.high])
    draw()
  })
  models.limits.properties.value.change.connect(draw)
  models.marks.properties.active.change.connect(draw)
  models.rescale.on_event("button_click", () => resetLimits(limitsOfSlice()))
  models.curve?.properties.value.change.connect(showRun)

  resetLimits([state.variable.low, state.variable.high])
  drawNow()
  requestAnimationFrame(() => setTimeout(() => {
    document.body.dataset.ready = performance.now()
    if (spec.live) return
    curves = explorer.unpack("packed-curves", spec.packed.curves)
    const top = state.slice.reduce((best, v, c) => (v > state.slice[best] || !Number.isFinite(state.slice[best]) ? c : best), 0)
    explorer.click({x: axes[x].values[top % sizes[x]], y: axes[y].values[Math.floor(top / sizes[x])]})
  }))
}
