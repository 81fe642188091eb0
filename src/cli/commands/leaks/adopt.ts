// Adopts volumes without a PV: builds a PV with the reclaim policy Retain from the driver's report, and creates it. The PV
// is reserved for a claim, so that no other claim binds to the data by accident.
import { createHash } from 'node:crypto'
import { persistentVolumeKind } from '../../../api/kinds/volume/volume.ts'
import type { PersistentVolume, PersistentVolumeSpec } from '../../../api/kinds/volume/volume-schema.ts'
import { dns1123SubdomainProblems } from '../../../api/names.ts'
import { formatQuantity, quantityFromBytes } from '../../../api/quantity.ts'
import { UsageError } from '../../../base/usage-error.ts'
import type { Client } from '../../../client/index.ts'
import { PROVISIONED_BY } from '../../../volumes/names.ts'
import type { Cluster } from './cluster.ts'
import type { DriverVolume, Inventory } from './inventory.ts'
import type { Machine, VolumeDetails } from './machine.ts'

export interface AdoptOptions {
  /** The class of the PVs. Default: the driver's only class, or none if the driver has none. */
  readonly className?: string
  /** The claim for which a single PV is reserved. Default: a claim with the name of the PV in the namespace `default`. */
  readonly claim?: { readonly namespace: string; readonly name: string }
}

/** Throws UsageError if the driver has no such class, or if no class is named and the driver has several. */
export function chooseClass(driver: string, { classes }: Cluster, className: string | undefined): string {
  const names = classes.filter(({ provisioner }) => provisioner === driver).map(({ metadata }) => metadata.name)
  if (className === undefined) {
    if (names.length <= 1) return names[0] ?? ''
    throw new UsageError(`${driver} has the classes ${names.join(', ')}: choose that of the PVs with --class.`)
  }
  if (className === '' || names.includes(className)) return className
  throw new UsageError(
    `The class "${className}" is not a class of ${driver}, which has: ${names.join(', ') || 'none'}.`,
  )
}

/** Returns the PV, or the reason why none can be created. */
export function buildAdoptedVolume(
  { driver }: Pick<Inventory, 'driver'>,
  volume: DriverVolume,
  { details }: Machine,
  { className, claim }: AdoptOptions,
): PersistentVolume | { readonly problem: string } {
  if (volume.sizeBytes === undefined)
    return { problem: 'the driver does not report the size of the volume, which a PV needs' }
  const name = nameOf(driver, volume.handle)
  const known = details.get(volume.handle)
  const affinity = nodeAffinityOf(volume)
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name, annotations: { [PROVISIONED_BY]: driver } },
    spec: {
      capacity: { storage: formatQuantity(quantityFromBytes(volume.sizeBytes)) },
      accessModes: ['ReadWriteOnce'],
      persistentVolumeReclaimPolicy: 'Retain',
      storageClassName: className ?? '',
      volumeMode: known?.isBlock ? 'Block' : 'Filesystem',
      claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', ...(claim ?? { namespace: 'default', name }) },
      csi: sourceOf(driver, volume, known),
      ...(affinity ? { nodeAffinity: affinity } : {}),
    },
  } as PersistentVolume
}

/** Rejects with AlreadyExists if a PV has the name, for example because another process has adopted the volume. */
export const createAdoptedVolume = (
  client: Pick<Client, 'create'>,
  volume: PersistentVolume,
  { dryRun, signal }: { readonly dryRun: boolean; readonly signal: AbortSignal },
) => client.create(persistentVolumeKind, volume, { dryRun, signal })

/** Returns the handle if it is a valid name, otherwise a name derived from it, which is the same for repeated adoption. */
function nameOf(driver: string, handle: string): string {
  if (dns1123SubdomainProblems(handle).length === 0) return handle
  return `adopted-${createHash('sha256').update(`${driver} ${handle}`).digest('hex').slice(0, 16)}`
}

const sourceOf = (driver: string, { handle, context }: DriverVolume, known: VolumeDetails | undefined) => ({
  driver,
  volumeHandle: handle,
  ...(known && !known.isBlock ? { fsType: known.fsType } : {}),
  ...(Object.keys(context).length > 0 ? { volumeAttributes: { ...context } } : {}),
})

function nodeAffinityOf({ topology }: DriverVolume): PersistentVolumeSpec['nodeAffinity'] {
  const nodeSelectorTerms = topology
    .map((segments) => Object.entries(segments).sort(([a], [b]) => (a < b ? -1 : 1)))
    .filter((segments) => segments.length > 0)
    .map((segments) => ({
      matchExpressions: segments.map(([key, value]) => ({ key, operator: 'In' as const, values: [value] })),
    }))
  return nodeSelectorTerms.length > 0 ? { required: { nodeSelectorTerms } } : undefined
}
