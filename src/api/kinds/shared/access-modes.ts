// Validates the access modes of claims and volumes and abbreviates them for tables. Whether the modes of a volume satisfy a
// claim is decided in src/volumes.
import type { FieldErrors } from '../../field-errors.ts'

const ACCESS_MODES: readonly string[] = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod']

/** `emptyDetail` is added to the error for an empty list. */
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

/** Such as `RWO,ROX`, always in this order and without duplicates. */
export const shortAccessModes = (modes: readonly string[] = []): string =>
  SHORT.filter(([mode]) => modes.includes(mode))
    .map(([, short]) => short)
    .join(',')
