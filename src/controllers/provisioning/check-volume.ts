// Checks whether a provisioned volume satisfies its claim, and whether two PVs refer to the same storage. Pure.
import { isRecord } from '../../api/decode.ts'
import { type JsonValue, jsonEquals } from '../../api/json-value.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { type PersistentVolume, persistentVolumeSource } from '../../api/kinds/volume/volume-schema.ts'
import { compareQuantities, quantityToBytes } from '../../api/quantity.ts'
import { labelSelectorFromObject, matchesLabels } from '../../api/selectors.ts'

/** Returns the reason why the volume does not satisfy the claim, or undefined if it does. */
export function mismatchOf(
  volume: Readonly<PersistentVolume>,
  claim: Readonly<PersistentVolumeClaim>,
): string | undefined {
  const requestedSize = claim.spec?.resources?.requests?.storage ?? 0
  const capacity = volume.spec?.capacity?.storage
  if (capacity === undefined) return `it reports no capacity, but the claim requests ${requestedSize}`
  if (compareQuantities(capacity, requestedSize) < 0) {
    const [capacityText, requestedText] = formatInCommonUnit(quantityToBytes(capacity), quantityToBytes(requestedSize))
    return `it has ${capacityText}, but the claim requests ${requestedText}`
  }
  const missingModes = claim.spec?.accessModes?.filter((mode) => !volume.spec?.accessModes?.includes(mode)) ?? []
  if (missingModes.length > 0) return `it lacks the access modes ${missingModes.join(', ')}`
  const requestedMode = claim.spec?.volumeMode ?? 'Filesystem'
  if (volume.spec?.volumeMode !== requestedMode)
    return `its volumeMode is ${volume.spec?.volumeMode}, but the claim requests ${requestedMode}`
  const { selector } = claim.spec ?? {}
  if (selector && !matchesLabels(labelSelectorFromObject(selector), volume.metadata.labels)) {
    return "its labels do not match the claim's selector"
  }
  return undefined
}

/** Formats the sizes in their largest common unit: 10Mi and 1024Mi, or 1073741823 and 1073741824 bytes. */
function formatInCommonUnit(...sizes: readonly bigint[]): string[] {
  const [unit, unitBytes] = UNITS.find(([, bytes]) => sizes.every((size) => size % bytes === 0n)) ?? [' bytes', 1n]
  return sizes.map((size) => `${size / unitBytes}${unit}`)
}

const UNITS = ['Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'].map((unit, i) => [unit, 1024n ** BigInt(i + 1)] as const).reverse()

/**
 * Compares the fields that identify the storage. Ignores defaults set by the API server and the attributes of a CSI
 * volume, which may contain the identity of the provisioner process.
 */
export function isSameStorage(
  builtVolume: Readonly<PersistentVolume>,
  savedVolume: Readonly<PersistentVolume>,
): boolean {
  const { csi } = builtVolume.spec ?? {}
  if (csi) return csi.driver === savedVolume.spec?.csi?.driver && csi.volumeHandle === savedVolume.spec.csi.volumeHandle
  const [name] = SOURCES.filter((source) => builtVolume.spec?.[source] !== undefined)
  return (
    name !== undefined &&
    isSubset(builtVolume.spec?.[name] as JsonValue, savedVolume.spec?.[name] as JsonValue | undefined)
  )
}

const SOURCES = Object.keys(persistentVolumeSource.fields) as (keyof typeof persistentVolumeSource.fields)[]

function isSubset(subset: JsonValue, superset: JsonValue | undefined): boolean {
  if (!isRecord(subset) || !isRecord(superset)) return jsonEquals(subset, superset)
  return Object.entries(subset).every(([name, value]) => value === undefined || isSubset(value, superset[name]))
}
