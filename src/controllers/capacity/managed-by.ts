// The labels that mark the owner of a capacity object: the driver and the producer instance. Only objects with both are
// changed or deleted. The values are those of external-provisioner, so that either can replace the other.

export const DRIVER_NAME_LABEL = 'csi.storage.k8s.io/drivername'
export const MANAGED_BY_LABEL = 'csi.storage.k8s.io/managed-by'

const BASE = 'external-provisioner'
const LABEL_CHARACTERS_MAX = 63
const HASH_CHARACTERS = 8

/**
 * One producer for the whole cluster, or the one of a node. A name that does not fit is shortened with a hash:
 *   node of up to 42 characters   external-provisioner-<node>
 *   43 to 52                      external-p-53f40b57-<node>, with as much of the base as fits
 *   more                          external-provisioner-<hash of the whole>
 */
export function managedBy(node?: string): string {
  if (node === undefined) return BASE
  const whole = `${BASE}-${node}`
  if (whole.length <= LABEL_CHARACTERS_MAX) return whole
  const baseCharacters = LABEL_CHARACTERS_MAX - HASH_CHARACTERS - 2 - node.length
  if (baseCharacters <= 0) return `${BASE}-${fnv1a(whole)}`
  return `${BASE.slice(0, baseCharacters)}-${fnv1a(BASE)}-${node}`
}

/** The node of a per-node producer. Undefined for other labels. `mayBeHash`: the name may be a hash of a longer one. */
export function nodeNamedBy(label: string): { readonly name: string; readonly mayBeHash: boolean } | undefined {
  const plain = label.startsWith(`${BASE}-`) ? label.slice(BASE.length + 1) : ''
  if (plain) return { name: plain, mayBeHash: /^[0-9a-f]{8}$/.test(plain) }
  const name = label
    .split(`-${fnv1a(BASE)}-`)
    .slice(1)
    .join(`-${fnv1a(BASE)}-`)
  return name && managedBy(name) === label ? { name, mayBeHash: false } : undefined
}

/** As a label selector. */
export const managedObjects = (driverName: string, label: string): string =>
  `${DRIVER_NAME_LABEL}=${driverName},${MANAGED_BY_LABEL}=${label}`

const FNV_OFFSET = 0x811c9dc5
const FNV_PRIME = 0x01000193

/** 32-bit FNV-1a as 8 hexadecimal digits. */
function fnv1a(text: string): string {
  let hash = FNV_OFFSET
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, FNV_PRIME) >>> 0
  return hash.toString(16).padStart(HASH_CHARACTERS, '0')
}
