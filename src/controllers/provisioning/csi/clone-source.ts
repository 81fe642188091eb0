// Prepares a claim as the source of a clone: checks it, determines the volume_id and sets the finalizer that protects the
// source during the clone. source-protection.ts removes the finalizer.
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { persistentVolumeKind } from '../../../api/kinds/volume/volume.ts'
import type { PersistentVolume } from '../../../api/kinds/volume/volume-schema.ts'
import { quantityToBytes } from '../../../api/quantity.ts'
import { ApiError } from '../../../api/status-error.ts'
import type { Client } from '../../../client/index.ts'
import type { DataSource } from './data-source.ts'
import { notReadyError } from './preparation-error.ts'
import { addFinalizer } from './source-finalizer.ts'

export const CLONE_FINALIZER = 'provisioner.storage.kubernetes.io/cloning-protection'

/** Protects the source and returns its volume handle. Throws a PreparationError if the source cannot be cloned now. */
export async function prepareCloneSource(
  claim: Readonly<PersistentVolumeClaim>,
  source: DataSource,
  { client, driverName }: { client: Client; driverName: string },
  signal: AbortSignal,
): Promise<string> {
  const { namespace, name } = source
  const sourceClaim = await client
    .get(persistentVolumeClaimKind, { namespace, name }, { signal })
    .catch(notReadyIfUnreadable(`PVC ${name} (namespace "${namespace}"), the data source,`))
  const problem = findClaimProblem(claim, sourceClaim)
  if (problem) throw notReadyError(`the PVC DataSource ${name} ${problem}`)
  const volume = await client
    .get(persistentVolumeKind, { name: sourceClaim.spec!.volumeName! }, { signal })
    .catch(notReadyIfUnreadable(`PV ${sourceClaim.spec!.volumeName} of the PVC DataSource ${name}`))
  const volumeProblem = findVolumeProblem(claim, sourceClaim, volume, driverName)
  if (volumeProblem) throw notReadyError(`claim in dataSource not bound or invalid: ${volumeProblem}`)
  await addFinalizer(client, persistentVolumeClaimKind, sourceClaim, CLONE_FINALIZER, signal)
  return volume.spec!.csi!.volumeHandle
}

function findClaimProblem(
  claim: Readonly<PersistentVolumeClaim>,
  sourceClaim: Readonly<PersistentVolumeClaim>,
): string | undefined {
  const phase = sourceClaim.status?.phase ?? 'Pending'
  if (phase !== 'Bound') return `must have a status of Bound. Got ${phase}`
  // A clone in progress continues while the source is being deleted, because the finalizer keeps the source.
  const isCloning = sourceClaim.metadata.finalizers?.includes(CLONE_FINALIZER) ?? false
  if (sourceClaim.metadata.deletionTimestamp && !isCloning) return 'is currently being deleted'
  if (sourceClaim.spec?.storageClassName === undefined) return 'has no storage class'
  if (claim.spec?.storageClassName === undefined) return `cannot be copied: the claim itself has no storage class`
  const [requestedBytes, sourceBytes] = [sizeOf(claim), sizeOf(sourceClaim)]
  if (requestedBytes < sourceBytes) {
    return `is larger than the claim: new PVC request must be greater than or equal in size to the specified PVC data source, requested ${requestedBytes} but source is ${sourceBytes}`
  }
  if (!sourceClaim.spec.volumeName) return 'names no volume'
  return undefined
}

function findVolumeProblem(
  claim: Readonly<PersistentVolumeClaim>,
  sourceClaim: Readonly<PersistentVolumeClaim>,
  { metadata, spec, status }: Readonly<PersistentVolume>,
  driverName: string,
): string | undefined {
  const name = `volume ${metadata.name}`
  if (!spec?.csi) return `${name} is not a CSI volume`
  if (spec.csi.driver !== driverName) {
    return `${name} is handled by the driver ${spec.csi.driver}, but the class of the claim by ${driverName}`
  }
  const { uid, namespace, name: claimName } = spec.claimRef ?? {}
  const { metadata: source } = sourceClaim
  if (uid !== source.uid || namespace !== source.namespace || claimName !== source.name) {
    return `${name} is not bound to ${source.namespace}/${source.name}`
  }
  if (status?.phase !== 'Bound') return `${name} is ${status?.phase ?? 'Pending'} and not Bound`
  const sourceMode = spec.volumeMode ?? 'Filesystem'
  const requestedMode = claim.spec?.volumeMode ?? 'Filesystem'
  if (sourceMode !== requestedMode) {
    return `the source PVC and destination PVCs must have the same volume mode for cloning. Source is ${sourceMode}, but new PVC requested ${requestedMode}`
  }
  return undefined
}

const sizeOf = ({ spec }: Readonly<PersistentVolumeClaim>): bigint =>
  quantityToBytes(spec?.resources?.requests?.storage ?? '0')

const notReadyIfUnreadable = (description: string) => (error: unknown) => {
  if (!(error instanceof ApiError)) throw error
  throw notReadyError(`${description} could not be read: ${error.message}`)
}
