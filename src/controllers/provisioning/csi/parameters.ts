// Separates the parameters of a class into those for the driver and reserved ones, such as fstype. Pure.
// secret-reference.ts resolves the parameters that name secrets.
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { finalError } from './preparation-error.ts'

export type Parameters = Readonly<Record<string, string>>

export const RESERVED_PREFIX = 'csi.storage.k8s.io/'
const FSTYPE = `${RESERVED_PREFIX}fstype`

/** Purposes for which a class can name a secret. `secret` is the default for all purposes. */
export const SECRET_PURPOSES = [
  'secret',
  'provisioner-secret',
  'controller-publish-secret',
  'node-stage-secret',
  'node-publish-secret',
  'controller-expand-secret',
  'node-expand-secret',
  'controller-modify-secret',
] as const
export type SecretPurpose = (typeof SECRET_PURPOSES)[number]

const RESERVED_KEYS: ReadonlySet<string> = new Set([
  FSTYPE,
  ...SECRET_PURPOSES.flatMap((purpose) => [
    `${RESERVED_PREFIX}${purpose}-name`,
    `${RESERVED_PREFIX}${purpose}-namespace`,
  ]),
])

/** Returns the parameters without the reserved prefix, which include the deprecated keys of secrets. */
export function driverParameters(parameters: Parameters = {}): Record<string, string> {
  const driverOnly: Record<string, string> = {}
  for (const [key, value] of Object.entries(parameters)) {
    if (!key.startsWith(RESERVED_PREFIX)) driverOnly[key] = value
    else if (!RESERVED_KEYS.has(key)) {
      throw finalError(
        `found unknown parameter key "${key}" with reserved namespace ${RESERVED_PREFIX}: ` +
          `remove it from the class, or correct it to one of ${[...RESERVED_KEYS].map((reserved) => reserved.slice(RESERVED_PREFIX.length)).join(', ')}`,
      )
    }
  }
  return driverOnly
}

/** Returns the parameters that identify the claim and the volume, for --extra-create-metadata and --extra-modify-metadata. */
export const metadataParameters = (
  claim: Readonly<PersistentVolumeClaim>,
  volumeName: string,
): Record<string, string> => ({
  [`${RESERVED_PREFIX}pvc/name`]: claim.metadata.name ?? '',
  [`${RESERVED_PREFIX}pvc/namespace`]: claim.metadata.namespace ?? '',
  [`${RESERVED_PREFIX}pv/name`]: volumeName,
})

/** Returns the file system type of the class or the default. If empty, the driver chooses. */
export function fsTypeOf(parameters: Parameters = {}, defaultFsType = ''): string {
  const fsTypes = Object.entries(parameters).filter(([key]) => key.toLowerCase() === 'fstype' || key === FSTYPE)
  if (fsTypes.length > 1) {
    throw finalError(
      `fstype specified in parameters with both "fstype" and "${FSTYPE}" keys: remove all but one of ` +
        fsTypes.map(([key]) => `"${key}"`).join(', '),
    )
  }
  return fsTypes[0]?.[1] || defaultFsType
}
