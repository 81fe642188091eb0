// A claim as data source: checks it, returns the volume_id to clone, and sets the finalizer that protects the source during
// the clone. source-protection.ts removes the finalizer.
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { persistentVolumeKind } from '../../../api/kinds/volume/volume.ts'
import type { PersistentVolume } from '../../../api/kinds/volume/volume-schema.ts'
import { quantityToBytes } from '../../../api/quantity.ts'
import { ApiError } from '../../../api/status-error.ts'
import type { Client } from '../../../client/index.ts'
import type { DataSource } from './data-source.ts'
import { notNow } from './refusal.ts'
import { addFinalizer } from './source-finalizer.ts'

export const CLONE_FINALIZER = 'provisioner.storage.kubernetes.io/cloning-protection'

/** The handle of the volume to clone. The source is protected once this returns. Throws a Refusal. */
export async function cloneSource(
  claim: Readonly<PersistentVolumeClaim>,
  source: DataSource,
  { client, driverName }: { client: Client; driverName: string },
  signal: AbortSignal,
): Promise<string> {
  const { namespace, name } = source
  const from = await client
    .get(persistentVolumeClaimKind, { namespace, name }, { signal })
    .catch(unreadable(`PVC ${name} (namespace "${namespace}"), the data source,`))
  const problem = claimProblem(claim, from)
  if (problem) throw notNow(`the PVC DataSource ${name} ${problem}`)
  const volume = await client
    .get(persistentVolumeKind, { name: from.spec!.volumeName! }, { signal })
    .catch(unreadable(`PV ${from.spec!.volumeName} of the PVC DataSource ${name}`))
  const wrong = volumeProblem(claim, from, volume, driverName)
  if (wrong) throw notNow(`claim in dataSource not bound or invalid: ${wrong}`)
  await addFinalizer(client, persistentVolumeClaimKind, from, CLONE_FINALIZER, signal)
  return volume.spec!.csi!.volumeHandle
}

function claimProblem(
  claim: Readonly<PersistentVolumeClaim>,
  from: Readonly<PersistentVolumeClaim>,
): string | undefined {
  const phase = from.status?.phase ?? 'Pending'
  if (phase !== 'Bound') return `must have a status of Bound. Got ${phase}`
  // A clone that has begun continues although the source is being deleted: the source waits for it.
  const isBegun = from.metadata.finalizers?.includes(CLONE_FINALIZER) ?? false
  if (from.metadata.deletionTimestamp && !isBegun) return 'is currently being deleted'
  if (from.spec?.storageClassName === undefined) return 'has no storage class'
  if (claim.spec?.storageClassName === undefined) return `cannot be copied: the claim itself has no storage class`
  const [wanted, has] = [sizeOf(claim), sizeOf(from)]
  if (wanted < has) {
    return `is larger than the claim: new PVC request must be greater than or equal in size to the specified PVC data source, requested ${wanted} but source is ${has}`
  }
  if (!from.spec.volumeName) return 'names no volume'
  return undefined
}

function volumeProblem(
  claim: Readonly<PersistentVolumeClaim>,
  from: Readonly<PersistentVolumeClaim>,
  { metadata, spec, status }: Readonly<PersistentVolume>,
  driverName: string,
): string | undefined {
  const name = `volume ${metadata.name}`
  if (!spec?.csi) return `${name} is not a CSI volume`
  if (spec.csi.driver !== driverName) {
    return `${name} is handled by the driver ${spec.csi.driver}, and the class of the claim by ${driverName}`
  }
  const { uid, namespace, name: boundTo } = spec.claimRef ?? {}
  const { metadata: source } = from
  if (uid !== source.uid || namespace !== source.namespace || boundTo !== source.name) {
    return `${name} is not bound to ${source.namespace}/${source.name}`
  }
  if (status?.phase !== 'Bound') return `${name} is ${status?.phase ?? 'Pending'} and not Bound`
  const [has, wants] = [spec.volumeMode ?? 'Filesystem', claim.spec?.volumeMode ?? 'Filesystem']
  if (has !== wants) {
    return `the source PVC and destination PVCs must have the same volume mode for cloning. Source is ${has}, but new PVC requested ${wants}`
  }
  return undefined
}

const sizeOf = ({ spec }: Readonly<PersistentVolumeClaim>): bigint =>
  quantityToBytes(spec?.resources?.requests?.storage ?? '0')

const unreadable = (what: string) => (error: unknown) => {
  if (!(error instanceof ApiError)) throw error
  throw notNow(`${what} could not be read: ${error.message}`)
}
