// Copies plain JSON data that was computed from an earlier state, and shares with that state what is identical to it.
//   previous {labels: L, spec: S}   value {labels: L, spec: {size: 2}}   copy {labels: L, spec: a new object}
import { clone } from './clone.ts'

/** Shared parts must not be changed afterwards, neither in the copy nor in the earlier state. */
export function cloneChanged<T>(value: T, previous: unknown): T {
  if (value === previous) return value
  if (!isPlainObject(value) || !isPlainObject(previous)) return clone(value)
  const copy: Record<string, unknown> = {}
  for (const name in value) {
    // A key such as "constructor" is inherited by the earlier state, and "__proto__" cannot be assigned.
    if (name === '__proto__') return clone(value)
    copy[name] = cloneChanged(value[name], previous[name])
  }
  return copy as T
}

const isPlainObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
