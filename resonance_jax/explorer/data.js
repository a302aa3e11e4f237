// Numbers of the page, without drawing: arrays from text, slices, means over seeds, zero lines, spectra.

const explorer = {}

// The arrays of `packing.pack` from an element of the page: base64, zlib, and the bytes of the numbers plane by plane.
explorer.unpack = async (id, entries) => {
  const characters = atob(document.getElementById(id).textContent)
  const bytes = new Uint8Array(characters.length)
  for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i)
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))
  const content = new Uint8Array(await new Response(stream).arrayBuffer())
  const types = {uint8: Uint8Array, float32: Float32Array, float64: Float64Array}
  const found = {}
  for (const {name, dtype, shape, start} of entries) {
    const count = shape.reduce((product, n) => product * n, 1)
    const type = types[dtype]
    const width = type.BYTES_PER_ELEMENT
    const joined = new Uint8Array(count * width)
    for (let byte = 0; byte < width; byte++)
      for (let i = 0, from = start + byte * count; i < count; i++) joined[i * width + byte] = content[from + i]
    found[name] = new type(joined.buffer)
  }
  return found
}

// How far apart neighbours along each axis lie in an array over some of the axes; 0 along the others.
explorer.strides = (dims, sizes) => {
  const found = Object.fromEntries(Object.keys(sizes).map((dim) => [dim, 0]))
  let stride = 1
  for (const dim of [...dims].reverse()) {
    found[dim] = stride
    stride *= sizes[dim]
  }
  return found
}

// Where a cell lies in such an array; `index` has a number for each axis. A seed of -1, the mean, counts as the first.
explorer.offset = (dims, sizes, index) => {
  const strides = explorer.strides(dims, sizes)
  return dims.reduce((at, dim) => at + strides[dim] * Math.max(0, index[dim]), 0)
}

// Mean of some values: of what they are the log10 of, or of themselves. One that is not a number makes it none.
explorer.mean = (values, kind) => {
  let top = -Infinity, sum = 0
  if (kind === "log10") {
    for (const v of values) top = v > top || Number.isNaN(v) ? v : top // v > NaN is false: a NaN stays
    if (!Number.isFinite(top)) return top
    for (const v of values) sum += 10 ** (v - top)
    return top + Math.log10(sum / values.length)
  }
  for (const v of values) sum += v
  return sum / values.length
}

// Values of one variable over y and x, row by row, at the chosen index; the mean over seeds where that is -1.
explorer.slice = (spec, array, variable, chosen) => {
  const {x, y, seed, sizes} = spec
  const strides = explorer.strides(variable.dims, sizes)
  const start = explorer.offset(variable.dims, sizes, {...chosen, [x]: 0, [y]: 0})
  const averaged = seed !== null && chosen[seed] < 0 && strides[seed] > 0
  const seeds = new Float64Array(averaged ? sizes[seed] : 0)
  const found = new Float64Array(sizes[x] * sizes[y])
  for (let j = 0, c = 0; j < sizes[y]; j++)
    for (let i = 0; i < sizes[x]; i++, c++) {
      const at = start + i * strides[x] + j * strides[y]
      for (let s = 0; s < seeds.length; s++) seeds[s] = array[at + s * strides[seed]]
      found[c] = averaged ? explorer.mean(seeds, variable.kind) : array[at]
    }
  return found
}

// Values of one cell for all seeds; one value where there are no seeds.
explorer.over = (spec, array, variable, index) => {
  const {seed, sizes} = spec
  const strides = explorer.strides(variable.dims, sizes)
  const start = explorer.offset(variable.dims, sizes, seed === null ? index : {...index, [seed]: 0})
  const count = seed !== null && strides[seed] > 0 ? sizes[seed] : 1
  return Array.from({length: count}, (_, s) => array[start + (s && s * strides[seed])])
}

// The curve of one cell: offset + scale * code. A code is stored as what it adds to the one before, modulo 256.
explorer.curve = (arrays, curve, cell) => {
  const count = curve.positions.length
  const offset = arrays[curve.name + "/offset"][cell]
  const scale = arrays[curve.name + "/scale"][cell]
  let code = 0
  return Array.from(arrays[curve.name].subarray(cell * count, (cell + 1) * count), (step) => {
    code = (code + step) & 255
    return code === 255 ? NaN : offset + scale * code
  })
}

// The line on which values over a grid change their sign, as segments; squares with a value that is no number are left
// out. Of the two ways through a saddle, the one that separates the corners from the mean.
explorer.zeroLine = (values, xs, ys) => {
  const found = {x0: [], y0: [], x1: [], y1: []}
  const nx = xs.length
  for (let j = 0; j + 1 < ys.length; j++)
    for (let i = 0; i + 1 < nx; i++) {
      const corners = [[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1]]
      const v = corners.map(([a, b]) => values[b * nx + a])
      if (!v.every(Number.isFinite)) continue
      const points = []
      for (let e = 0; e < 4; e++) {
        const f = (e + 1) % 4
        if (v[e] > 0 === v[f] > 0) continue
        const t = v[e] / (v[e] - v[f])
        const [a, b] = [corners[e], corners[f]]
        points.push([xs[a[0]] + t * (xs[b[0]] - xs[a[0]]), ys[a[1]] + t * (ys[b[1]] - ys[a[1]])])
      }
      const saddle = points.length === 4 && v[0] > 0 === v[0] + v[1] + v[2] + v[3] > 0
      const pairs = {0: [], 2: [[0, 1]], 4: saddle ? [[0, 1], [2, 3]] : [[3, 0], [1, 2]]}[points.length]
      for (const [a, b] of pairs) {
        found.x0.push(points[a][0]); found.y0.push(points[a][1])
        found.x1.push(points[b][0]); found.y1.push(points[b][1])
      }
    }
  return found
}

// Power of a curve about its straight line, at the frequencies that its snapshots resolve, with a Hann window.
explorer.spectrum = (positions, values) => {
  const n = values.length
  if (n < 8 || !values.every(Number.isFinite)) return {frequency: [], power: []}
  const step = (positions[n - 1] - positions[0]) / (n - 1)
  const centre = (n - 1) / 2
  const mean = values.reduce((sum, v) => sum + v, 0) / n
  const slope = values.reduce((sum, v, k) => sum + (k - centre) * v, 0) / ((n * (n * n - 1)) / 12)
  const rest = values.map((v, k) => (v - mean - slope * (k - centre)) * Math.sin((Math.PI * (k + 0.5)) / n) ** 2)
  const frequency = [], power = []
  for (let m = 1; m <= n / 2; m++) {
    let re = 0, im = 0
    for (let k = 0; k < n; k++) {
      re += rest[k] * Math.cos((2 * Math.PI * m * k) / n)
      im += rest[k] * Math.sin((2 * Math.PI * m * k) / n)
    }
    frequency.push(m / (n * step))
    power.push((2 * step * (re * re + im * im)) / (0.375 * n))
  }
  return {frequency, power}
}

// Which cell a position lies in; -1 outside.
explorer.cell = (edges, position) => {
  if (!(position >= edges[0] && position <= edges[edges.length - 1])) return -1
  let low = 0, high = edges.length - 1
  while (high - low > 1) {
    const middle = (low + high) >> 1
    if (edges[middle] <= position) low = middle
    else high = middle
  }
  return low
}
