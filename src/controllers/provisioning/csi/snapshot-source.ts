// Prepares a snapshot as a volume's source: checks it, determines the snapshot_id and sets the finalizer that protects
// it during the restore. source-protection.ts removes the finalizer.

import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { quantityToBytes } from '../../../api/quantity.ts'
import { ApiError, isForbidden } from '../../../api/status-error.ts'
import type { Logger } from '../../../base/log.ts'
import type { Client } from '../../../client/index.ts'
import type { DataSource } from './data-source.ts'
import { finalError, notReadyError } from './preparation-error.ts'
import {
  SNAPSHOT_GROUP,
  type VolumeSnapshot,
  type VolumeSnapshotContent,
  volumeSnapshotContentKind,
  volumeSnapshotKind,
} from './snapshot-kinds.ts'
import { addFinalizer } from './source-finalizer.ts'

export const SNAPSHOT_FINALIZER = 'provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection'
const ALLOW_MODE_CHANGE = 'snapshot.storage.kubernetes.io/allow-volume-mode-change'

export interface SnapshotSourceDeps {
  readonly client: Client
  readonly driverName: string
  readonly preventVolumeModeConversion: boolean
  readonly log: Logger
}

/** Protects the snapshot and returns its handle. Throws a PreparationError if the snapshot cannot be restored now. */
export async function prepareSnapshotSource(
  claim: Readonly<PersistentVolumeClaim>,
  { namespace, name }: DataSource,
  deps: SnapshotSourceDeps,
  signal: AbortSignal,
): Promise<string> {
  const { client } = deps
  if (!(await client.serves(volumeSnapshotKind))) {
    // Atomic commits identify the Stowage API server, which has no CustomResourceDefinitions.
    const remedy = (await client.commitsAtomically())
      ? 'Stowage does not serve snapshots. Recreate the claim without the data source'
      : `install the snapshot controller's CustomResourceDefinitions, or recreate the claim without the data source`
    throw finalError(
      `the data source of the claim is the VolumeSnapshot ${name}, but this API server has no ${SNAPSHOT_GROUP}: ${remedy}`,
    )
  }
  const snapshot = await client
    .get(volumeSnapshotKind, { namespace, name }, { signal })
    .catch(notReadyIfUnreadable(`snapshot ${name}`))
  const isRestoring = snapshot.metadata.finalizers?.includes(SNAPSHOT_FINALIZER) ?? false
  if (snapshot.metadata.deletionTimestamp && !isRestoring) throw notReadyError(`snapshot ${name} is being deleted`)
  const contentName = snapshot.status?.boundVolumeSnapshotContentName
  if (!contentName) throw notReadyError(`snapshot ${name} not bound`)
  const content = await client
    .get(volumeSnapshotContentKind, { name: contentName }, { signal })
    .catch(notReadyIfUnreadable(`snapshotcontent ${contentName} for snapshot ${name}`))
  const problem = findSnapshotProblem(claim, snapshot, content, deps)
  if (problem) throw notReadyError(problem)
  await addSnapshotFinalizer(snapshot, deps, signal)
  return content.status!.snapshotHandle!
}

function findSnapshotProblem(
  claim: Readonly<PersistentVolumeClaim>,
  snapshot: Readonly<VolumeSnapshot>,
  content: Readonly<VolumeSnapshotContent>,
  { driverName, preventVolumeModeConversion }: SnapshotSourceDeps,
): string | undefined {
  const { name, namespace, uid } = snapshot.metadata
  const { spec = {}, status, metadata } = content
  const ref = spec.volumeSnapshotRef
  if (ref?.uid !== uid || ref?.namespace !== namespace || ref?.name !== name) {
    return `snapshotcontent ${metadata.name} for snapshot ${name} is bound to a different snapshot`
  }
  if (spec.driver !== driverName) {
    return `snapshotcontent ${metadata.name} for snapshot ${name} is not handled by CSI driver ${driverName} but by ${spec.driver}`
  }
  if (snapshot.status?.readyToUse !== true) return `snapshot ${name} is not Ready`
  if (!status?.snapshotHandle) return `snapshot handle ${name} is not available`
  const requestedBytes = quantityToBytes(claim.spec?.resources?.requests?.storage ?? '0')
  const restoreBytes = quantityToBytes(snapshot.status.restoreSize ?? '0')
  if (requestedBytes < restoreBytes) {
    return `requested volume size ${requestedBytes} is less than the size ${restoreBytes} for the source snapshot ${name}`
  }
  const mode = claim.spec?.volumeMode
  const convertsMode = spec.sourceVolumeMode && mode && spec.sourceVolumeMode !== mode
  const allowsConversion = /^(1|t|true)$/i.test(metadata.annotations?.[ALLOW_MODE_CHANGE] ?? '')
  if (preventVolumeModeConversion && convertsMode && !allowsConversion) {
    return (
      `requested volume ${claim.metadata.namespace}/${claim.metadata.name} modifies the mode of the source volume ` +
      `(${spec.sourceVolumeMode} to ${mode}) but does not have permission to do so: an administrator must set the ` +
      `annotation ${ALLOW_MODE_CHANGE} of snapshotcontent ${metadata.name} to "true"`
    )
  }
  return undefined
}

/** If patching snapshots is forbidden, the volume is created although the snapshot is not protected. */
async function addSnapshotFinalizer(
  snapshot: Readonly<VolumeSnapshot>,
  { client, log }: SnapshotSourceDeps,
  signal: AbortSignal,
): Promise<void> {
  try {
    await addFinalizer(client, volumeSnapshotKind, snapshot, SNAPSHOT_FINALIZER, signal)
  } catch (error) {
    if (!isForbidden(error)) throw error
    const { namespace, name } = snapshot.metadata
    log.info(
      { err: error, snapshot: `${namespace}/${name}` },
      'cannot protect the snapshot during the restore: patching snapshots is forbidden',
    )
  }
}

const notReadyIfUnreadable = (description: string) => (error: unknown) => {
  if (!(error instanceof ApiError)) throw error
  throw notReadyError(`error getting ${description} from api server: ${error.message}`)
}
