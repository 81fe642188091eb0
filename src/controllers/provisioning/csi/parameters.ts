// Parameters of a class: those passed to the driver, and fstype. Pure. Parameters that name secrets: secret-reference.ts.
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { finalError } from './preparation-error.ts'

export type Parameters = Readonly<Record<string, string>>

export const RESERVED_PREFIX = 'csi.storage.k8s.io/'
const FSTYPE = `${RESERVED_PREFIX}fstype`

/** Purposes for which a class can name a secret. `secret` is the default for all. */
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

const RESERVED: ReadonlySet<string> = new Set([
  FSTYPE,
  ...SECRET_PURPOSES.flatMap((purpose) => [
    `${RESERVED_PREFIX}${purpose}-name`,
    `${RESERVED_PREFIX}${purpose}-namespace`,
  ]),
])

/** Without those of the reserved prefix. The old spellings without prefix are passed on. */
export function driverParameters(parameters: Parameters = {}): Record<string, string> {
  const driverOnly: Record<string, string> = {}
  for (const [key, value] of Object.entries(parameters)) {
    if (!key.startsWith(RESERVED_PREFIX)) driverOnly[key] = value
    else if (!RESERVED.has(key)) {
      throw finalError(
        `found unknown parameter key "${key}" with reserved namespace ${RESERVED_PREFIX}: ` +
          `remove it from the class, or correct it to one of ${[...RESERVED].map((key) => key.slice(RESERVED_PREFIX.length)).join(', ')}`,
      )
    }
  }
  return driverOnly
}

/** Parameters that identify claim and volume, with --extra-create-metadata. */
export const createMetadata = (claim: Readonly<PersistentVolumeClaim>, volumeName: string): Record<string, string> => ({
  [`${RESERVED_PREFIX}pvc/name`]: claim.metadata.name ?? '',
  [`${RESERVED_PREFIX}pvc/namespace`]: claim.metadata.namespace ?? '',
  [`${RESERVED_PREFIX}pv/name`]: volumeName,
})

/** By one of the two spellings; '' leaves the choice to the driver. */
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
