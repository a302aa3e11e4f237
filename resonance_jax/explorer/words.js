// Numbers and cells in words, and tables as files.

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
  const whole = Math.round(exponent)
  if (Math.abs(exponent - whole) < 1e-9) return raised(whole)
  const floor = Math.floor(exponent)
  const mantissa = (10 ** (exponent - floor)).toPrecision(3)
  return mantissa === "10.0" ? raised(floor + 1) : `${mantissa} × ${raised(floor)}`
}

// A value as the reader thinks of it: powers of ten for a log10; yes, no or a share for a flag.
explorer.shown = (value, kind, overflow) => {
  if (!Number.isFinite(value)) return explorer.text(value)
  if (kind === "log10") return value >= overflow ? "beyond the range of floats" : explorer.power(value)
  if (kind === "flag") return value === 0 ? "no" : value === 1 ? "yes" : `${explorer.text(100 * value, 3)}%`
  return explorer.text(value)
}

explorer.escape = (text) => String(text).replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`)

// Verdicts of some runs in words: one word where they agree, counts where they do not.
explorer.summary = (verdicts, words) => {
  if (verdicts.length === 1) return words[verdicts[0]]
  const counts = words.map((word, w) => [verdicts.filter((v) => v === w).length, word]).filter(([n]) => n > 0)
  if (counts.length === 1) return `${counts[0][1]} (all ${verdicts.length} seeds)`
  return counts.map(([n, word]) => `${n} of ${verdicts.length} seeds: ${word}`).join("; ")
}

// Coordinates of a cell in words, but for the seed.
explorer.coordinates = ({axes, seed}, index) =>
  Object.keys(axes).filter((dim) => dim !== seed).map((dim) => axes[dim].texts[index[dim]])

// Give the reader a table as a CSV file.
explorer.download = (name, rows) => {
  const quoted = (v) => (/[",\n]/.test(String(v)) ? `"${String(v).replaceAll('"', '""')}"` : String(v))
  const content = rows.map((row) => row.map(quoted).join(",")).join("\n") + "\n"
  const link = document.createElement("a")
  link.href = URL.createObjectURL(new Blob([content], {type: "text/csv"}))
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 1000)
}
