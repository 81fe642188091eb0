// The labels of capacity objects: the driver and the producer that manages the object. A producer changes and deletes only
// objects with its labels. The values are those of external-provisioner, so that one can replace the other.

export const DRIVER_NAME_LABEL = 'csi.storage.k8s.io/drivername'
export const MANAGED_BY_LABEL = 'csi.storage.k8s.io/managed-by'

const BASE = 'external-provisioner'
const LABEL_CHARACTERS_MAX = 63
const HASH_CHARACTERS = 8

/**
 * Returns the label value of a node's producer, or of the cluster-wide producer if no node is given. A long node name
 * requires a hash:
 *   up to 42 characters   external-provisioner-<node>
 *   43 to 52 characters   external-p-53f40b57-<node>, with the base shortened
 *   more characters       external-provisioner-<hash of base and node>
 */
export function managedBy(node?: string): string {
  if (node === undefined) return BASE
  const label = `${BASE}-${node}`
  if (label.length <= LABEL_CHARACTERS_MAX) return label
  const baseCharacters = LABEL_CHARACTERS_MAX - HASH_CHARACTERS - 2 - node.length
  if (baseCharacters <= 0) return `${BASE}-${fnv1a(label)}`
  return `${BASE.slice(0, baseCharacters)}-${fnv1a(BASE)}-${node}`
}

/**
 * Returns the node of a per-node producer, or undefined for other labels. `mayBeHash` means that the name may be a hash
 * of a longer name.
 */
export function parseManagedBy(label: string): { readonly name: string; readonly mayBeHash: boolean } | undefined {
  const suffix = label.startsWith(`${BASE}-`) ? label.slice(BASE.length + 1) : ''
  if (suffix) return { name: suffix, mayBeHash: /^[0-9a-f]{8}$/.test(suffix) }
  const name = label
    .split(`-${fnv1a(BASE)}-`)
    .slice(1)
    .join(`-${fnv1a(BASE)}-`)
  return name && managedBy(name) === label ? { name, mayBeHash: false } : undefined
}

/** Returns the label selector of a producer's objects. */
export const selectorOf = (driverName: string, label: string): string =>
  `${DRIVER_NAME_LABEL}=${driverName},${MANAGED_BY_LABEL}=${label}`

const FNV_OFFSET = 0x811c9dc5
const FNV_PRIME = 0x01000193

/** Returns the 32-bit FNV-1a hash as 8 hexadecimal digits. */
function fnv1a(text: string): string {
  let hash = FNV_OFFSET
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, FNV_PRIME) >>> 0
  return hash.toString(16).padStart(HASH_CHARACTERS, '0')
}
