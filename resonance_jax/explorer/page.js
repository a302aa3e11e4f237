// The page in the browser: what it holds, and what it does when the reader moves, clicks and chooses.

explorer.start = async (spec, models) => {
  const {x, y, seed, axes, sizes} = spec
  const values = await explorer.values
  const find = (name) => spec.variables.find((variable) => variable.name === name)
  const chosen = Object.fromEntries(Object.keys(axes).map((dim) => [dim, dim === seed ? -1 : 0])) // -1: the mean
  const state = {variable: find(spec.value), slice: null, clicked: null, run: null, curveKind: "plain"}
  const page = {spec, models, values, curves: {}, chosen, state, find}
  Object.assign(explorer, {state, chosen})

  // Of one number for each seed, that of the chosen seed; all where the mean is shown.
  page.chosenOf = (all) => (seed !== null && chosen[seed] >= 0 && all.length > 1 ? [all[chosen[seed]]] : all)
  page.allVerdicts = (index) => explorer.over(spec, values["/verdicts"], spec.verdicts, index)
  page.verdicts = (index) => page.chosenOf(page.allVerdicts(index))

  const heatmap = explorer.heatmap(page)
  const run = explorer.run(page)

  // The cell at a position of the heatmap, as a number for each axis; null outside.
  const cellAt = (at) => {
    const [i, j] = [explorer.cell(axes[x].edges, at.x), explorer.cell(axes[y].edges, at.y)]
    return i < 0 || j < 0 ? null : {...chosen, [x]: i, [y]: j}
  }

  // ---- the pointer

  const tip = document.createElement("div")
  tip.id = "tip"
  document.body.append(tip)

  explorer.hover = (at, left, top) => {
    const index = cellAt(at)
    tip.style.display = index ? "block" : "none"
    if (!index) return
    const rows = spec.variables.filter((v) => !v.is_error).map((variable) => {
      const all = page.chosenOf(explorer.over(spec, values[variable.name], variable, index))
      const shown = explorer.shown(explorer.mean(all, variable.kind), variable.kind, spec.overflow)
      return `<tr${variable === state.variable ? " class=now" : ""}><td>${explorer.escape(variable.name)}<td>${shown}`
    })
    const mean = seed !== null && chosen[seed] < 0
    const whose = mean ? `mean over ${sizes[seed]} seeds` : seed === null ? "" : axes[seed].texts[chosen[seed]]
    const verdict = explorer.summary(page.verdicts(index), spec.verdicts.words)
    tip.innerHTML = `<b>${explorer.coordinates(spec, index).map(explorer.escape).join(", ")}</b><br>
      ${explorer.escape(whose)}<table>${rows.join("")}</table>${verdict}`
    const wide = tip.offsetWidth
    tip.style.left = `${left + 16 + wide > innerWidth ? left - wide - 12 : left + 16}px`
    tip.style.top = `${Math.min(top + 14, innerHeight - tip.offsetHeight - 4)}px`
  }

  explorer.click = async (at) => {
    const index = cellAt(at)
    if (!index) return
    state.clicked = index
    const [i, j] = [index[x], index[y]]
    const {edges: across} = axes[x], {edges: up} = axes[y]
    models.mark.data = {left: [across[i]], right: [across[i + 1]], bottom: [up[j]], top: [up[j + 1]]}
    if (spec.live) {
      run.say("Computing this run ...")
      models.ask.data = {x: [at.x], y: [at.y], index: [JSON.stringify(index)]}
      return
    }
    state.run = await run.stored(index)
    run.show()
  }

  let pointer = [0, 0] // on the screen
  document.addEventListener("pointermove", (event) => { pointer = [event.clientX, event.clientY] }, true)
  models.figure.on_event("mousemove", (event) => explorer.hover(event, ...pointer))
  models.figure.on_event("mouseleave", () => { tip.style.display = "none" })
  models.figure.on_event("tap", (event) => explorer.click(event))

  models.answer?.properties.data.change.connect(() => {
    const numbers = {NaN, Infinity, "-Infinity": -Infinity} // which JSON does not have
    const answer = JSON.parse(models.answer.data.run[0], (_, v) => (typeof v === "string" && v in numbers ? numbers[v] : v))
    if (answer.error) return run.say(answer.error)
    state.run = answer
    run.show()
  })

  // ---- selectors and buttons

  const choose = async (dim, i) => {
    chosen[dim] = i
    heatmap.draw()
    if (!state.clicked) return
    if (dim === seed) return run.show()
    await explorer.click({x: axes[x].values[state.clicked[x]], y: axes[y].values[state.clicked[y]]})
  }
  for (const dim of spec.others) {
    const widget = models["choose_" + dim]
    widget?.properties.value.change.connect(() => {
      const i = Number(widget.value)
      if (widget.start !== undefined) widget.title = axes[dim].texts[i] // a slider
      choose(dim, i)
    })
  }
  models.variable.properties.value.change.connect(() => {
    state.variable = find(models.variable.value)
    models.marks.active = ["log10", "signed"].includes(state.variable.kind) ? [] : [0]
    heatmap.setLimits([state.variable.low, state.variable.high])
    heatmap.draw()
  })
  models.limits.properties.value.change.connect(heatmap.draw)
  models.marks.properties.active.change.connect(heatmap.draw)
  models.curve?.properties.value.change.connect(run.show)
  models.rescale.on_event("button_click", heatmap.fitToSlice)
  models.save_slice.on_event("button_click", () => explorer.download("slice.csv", heatmap.table()))
  models.save_run.on_event("button_click", () => state.run && explorer.download("run.csv", run.table(state.run)))

  heatmap.setLimits([state.variable.low, state.variable.high])
  heatmap.drawNow()
  requestAnimationFrame(() => setTimeout(() => { // once the picture is there
    document.body.dataset.ready = performance.now()
    if (spec.live) return
    page.curves = explorer.unpack("packed-curves", spec.packed.curves)
    explorer.click(heatmap.largest())
  }))
}
