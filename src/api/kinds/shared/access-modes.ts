// Access modes: which there are, which may stand together, and how tables shorten them.
// Claims and volumes share these; whether a volume's modes satisfy a claim's is the binder's question.
import type { FieldErrors } from '../../field-errors.ts'

const ACCESS_MODES: readonly string[] = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod']

/** `emptyDetail` is added to the error about having none. */
export function validateAccessModes(
  modes: readonly string[] = [],
  { field, emptyDetail }: { field: string; emptyDetail?: string },
  errors: FieldErrors,
): void {
  if (modes.length === 0) errors.required(field, emptyDetail)
  for (const mode of modes) if (!ACCESS_MODES.includes(mode)) errors.notSupported(field, mode, ACCESS_MODES)
  const alone = modes.includes('ReadWriteOncePod')
  const others = modes.some((mode) => mode !== 'ReadWriteOncePod' && ACCESS_MODES.includes(mode))
  if (alone && others) errors.forbidden(field, 'may not use ReadWriteOncePod with other access modes')
}

const SHORT = [
  ['ReadWriteOnce', 'RWO'],
  ['ReadOnlyMany', 'ROX'],
  ['ReadWriteMany', 'RWX'],
  ['ReadWriteOncePod', 'RWOP'],
] as const

/** `RWO,ROX`: always in this order, each once. */
export const shortAccessModes = (modes: readonly string[] = []): string =>
  SHORT.filter(([mode]) => modes.includes(mode))
    .map(([, short]) => short)
    .join(',')
