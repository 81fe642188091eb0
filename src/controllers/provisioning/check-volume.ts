// Whether what the storage made is what the claim asked for, and whether two volume objects stand for the same storage.
// Pure.
import { isJsonObject, type JsonValue, jsonEquals } from '../../api/json-value.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { type PersistentVolume, persistentVolumeSource } from '../../api/kinds/volume/volume-schema.ts'
import { compareQuantities, quantityToBytes } from '../../api/quantity.ts'
import { labelSelectorFromObject, matchesLabels } from '../../api/selectors.ts'

/** Why the volume may not be given to the claim; nothing when it may. */
export function mismatchOf(
  volume: Readonly<PersistentVolume>,
  claim: Readonly<PersistentVolumeClaim>,
): string | undefined {
  const asked = claim.spec?.resources?.requests?.storage ?? 0
  const given = volume.spec?.capacity?.storage
  if (given === undefined) return `it does not say how large it is, and the claim asks for ${asked}`
  if (compareQuantities(given, asked) < 0) {
    const [has, wants] = inOneUnit(quantityToBytes(given), quantityToBytes(asked))
    return `it has ${has}, and the claim asks for ${wants}`
  }
  const missing = claim.spec?.accessModes?.filter((mode) => !volume.spec?.accessModes?.includes(mode)) ?? []
  if (missing.length > 0) return `it does not offer ${missing.join(', ')}`
  const mode = claim.spec?.volumeMode ?? 'Filesystem'
  if (volume.spec?.volumeMode !== mode) return `its mode is ${volume.spec?.volumeMode}, and the claim asks for ${mode}`
  const { selector } = claim.spec ?? {}
  if (selector && !matchesLabels(labelSelectorFromObject(selector), volume.metadata.labels)) {
    return "its labels do not match the claim's selector"
  }
  return undefined
}

/** As people compare them: 10Mi and 1024Mi, or 1073741823 and 1073741824 bytes. */
function inOneUnit(...sizes: readonly bigint[]): string[] {
  const [unit, bytes] = UNITS.find(([, bytes]) => sizes.every((size) => size % bytes === 0n)) ?? [' bytes', 1n]
  return sizes.map((size) => `${size / bytes}${unit}`)
}

const UNITS = ['Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'].map((unit, i) => [unit, 1024n ** BigInt(i + 1)] as const).reverse()

/**
 * By what names the storage. Defaults that the server filled in do not count; nor do a CSI volume's attributes, which
 * may say who made it and when.
 */
export function isSameStorage(made: Readonly<PersistentVolume>, saved: Readonly<PersistentVolume>): boolean {
  const { csi } = made.spec ?? {}
  if (csi) return csi.driver === saved.spec?.csi?.driver && csi.volumeHandle === saved.spec.csi.volumeHandle
  const [name] = SOURCES.filter((source) => made.spec?.[source] !== undefined)
  return name !== undefined && isWithin(made.spec?.[name] as JsonValue, saved.spec?.[name] as JsonValue | undefined)
}

const SOURCES = Object.keys(persistentVolumeSource.fields) as (keyof typeof persistentVolumeSource.fields)[]

function isWithin(part: JsonValue, whole: JsonValue | undefined): boolean {
  if (!isJsonObject(part) || !isJsonObject(whole)) return jsonEquals(part, whole)
  return Object.entries(part).every(([name, value]) => value === undefined || isWithin(value, whole[name]))
}
