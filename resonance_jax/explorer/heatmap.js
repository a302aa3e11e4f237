// The heatmap: colours of a slice, lines of no growth, limits of the colours, its table.

explorer.heatmap = (page) => {
  const {spec, models, values, chosen, state} = page
  const {x, y, axes, sizes} = spec

  const coloured = (v, kind) => (kind === "log" ? Math.log10(v) : v)
  const overflows = (v, kind) => !Number.isFinite(v) || (kind === "log10" && v >= spec.overflow)

  // Colours between the limits. A diverging map keeps its centre at 0, with the same steps on both sides.
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

  const drawNow = () => {
    const {variable} = state
    const {kind} = variable
    const [low, high] = models.limits.value
    const palette = paletteOf(kind, low, high)
    const marks = models.marks.active.length > 0
    state.slice = explorer.slice(spec, values[variable.name], variable, chosen)
    const colours = Array.from(state.slice, (value, c) => {
      const v = coloured(value, kind)
      const index = {...chosen, [x]: c % sizes[x], [y]: Math.floor(c / sizes[x])}
      if (marks && page.verdicts(index).includes(spec.verdicts.diverged)) return spec.special.diverged
      if (Number.isNaN(v)) return spec.special.nan
      if (overflows(v, kind)) return spec.special.overflow
      return palette[Math.min(255, Math.max(0, Math.floor(((v - low) / (high - low || 1)) * 256)))]
    })
    if (spec.even) models.heat.data.image[0].set(colours.map(rgba))
    else models.heat.data.color = colours
    models.heat.change.emit()
    models.mapper.setv({palette, low, high: high > low ? high : low + 1})
    models.bar.title = variable.label
    for (const {name} of spec.contours) {
      const rates = explorer.slice(spec, values[name], page.find(name), chosen)
      const line = explorer.zeroLine(rates, axes[x].values, axes[y].values)
      models["contour_" + name].data = line
      models["legend_" + name].label = {value: line.x0.length ? `${name} = 0` : `${name} = 0: nowhere here`}
    }
  }

  let waiting = false
  const draw = () => { // once, however many widgets changed
    if (waiting) return
    waiting = true
    queueMicrotask(() => { waiting = false; drawNow() })
  }

  const setLimits = ([low, high]) => {
    const margin = (high - low) * 0.5 || 1
    models.limits.setv({start: low - margin, end: high + margin, step: (high - low) / 200 || 0.01})
    models.limits.value = [low, high]
  }

  const fitToSlice = () => {
    const {kind} = state.variable
    const finite = Array.from(state.slice, (v) => coloured(v, kind)).filter((v) => !overflows(v, kind))
    if (finite.length) setLimits(finite.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]))
  }

  // The slice with all outputs, a row for each cell.
  const table = () => {
    const slices = spec.variables.map((variable) => explorer.slice(spec, values[variable.name], variable, chosen))
    const coordinate = (dim, n) => (axes[dim].numeric ? axes[dim].values[n] : axes[dim].texts[n])
    const rows = [[x, y, ...spec.variables.map((v) => v.name), "verdict"]]
    for (let c = 0; c < slices[0].length; c++) {
      const [i, j] = [c % sizes[x], Math.floor(c / sizes[x])]
      const verdict = explorer.summary(page.verdicts({...chosen, [x]: i, [y]: j}), spec.verdicts.words)
      rows.push([coordinate(x, i), coordinate(y, j), ...slices.map((slice) => slice[c]), verdict])
    }
    return rows
  }

  // Where the mean, or the chosen seed, is largest.
  const largest = () => {
    const {slice} = state
    const top = slice.reduce((best, v, c) => (v > slice[best] || !Number.isFinite(slice[best]) ? c : best), 0)
    return {x: axes[x].values[top % sizes[x]], y: axes[y].values[Math.floor(top / sizes[x])]}
  }

  return {draw, drawNow, setLimits, fitToSlice, table, largest}
}
