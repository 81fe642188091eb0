// Formats an age in one unit: in seconds below two minutes, then in minutes, hours or days.

const UNITS = [
  { seconds: 86_400, name: 'd' },
  { seconds: 3_600, name: 'h' },
  { seconds: 60, name: 'min' },
] as const

/** Returns for example `90 s`, `27 min` or `3 h`. */
export function formatAge(seconds: number): string {
  const unit = UNITS.find((candidate) => seconds >= 2 * candidate.seconds)
  return unit ? `${Math.floor(seconds / unit.seconds)} ${unit.name}` : `${seconds} s`
}
