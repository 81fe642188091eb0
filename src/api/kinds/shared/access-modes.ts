// Validates the access modes of claims and volumes and abbreviates them for tables. src/volumes decides whether the modes
// of a volume satisfy a claim.
import type { FieldErrors } from '../../field-errors.ts'

const ACCESS_MODES: readonly string[] = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod']

/** Validates access modes. `emptyDetail` is added to the error for an empty list. */
export function validateAccessModes(
  modes: readonly string[] = [],
  { field, emptyDetail }: { field: string; emptyDetail?: string },
  errors: FieldErrors,
): void {
  if (modes.length === 0) errors.required(field, emptyDetail)
  for (const mode of modes) if (!ACCESS_MODES.includes(mode)) errors.notSupported(field, mode, ACCESS_MODES)
  const hasOncePod = modes.includes('ReadWriteOncePod')
  const hasOtherMode = modes.some((mode) => mode !== 'ReadWriteOncePod' && ACCESS_MODES.includes(mode))
  if (hasOncePod && hasOtherMode) errors.forbidden(field, 'may not use ReadWriteOncePod with other access modes')
}

const ABBREVIATIONS = [
  ['ReadWriteOnce', 'RWO'],
  ['ReadOnlyMany', 'ROX'],
  ['ReadWriteMany', 'RWX'],
  ['ReadWriteOncePod', 'RWOP'],
] as const

/** Returns abbreviations such as `RWO,ROX` in a fixed order and without duplicates. */
export const shortAccessModes = (modes: readonly string[] = []): string =>
  ABBREVIATIONS.filter(([mode]) => modes.includes(mode))
    .map(([, abbreviation]) => abbreviation)
    .join(',')
