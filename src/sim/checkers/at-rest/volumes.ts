// Checks volumes at rest: every volume in a driver has one PersistentVolume, every PersistentVolume has its volume in the
// driver, and phases, finalizers and annotations are consistent.
import { isDeletionRequested } from '../../../volumes/deletion-requested.ts'
import { EXTERNAL_PROVISIONER_FINALIZER, PRE_RESIZE_CAPACITY } from '../../../volumes/names.ts'
import type { System } from '../../engine/system.ts'
import { assetName, assetOf, type ObjectOf } from '../../engine/view.ts'
import { DRIVERS, type DriverName, MEMORY_PLUGIN_ASSETS } from '../../plan/catalog.ts'
import { findDriverVolume, isBound, isDeleting, listAssets, type Problem } from '../context.ts'
import { isUnreachable } from '../feasibility.ts'
import { isIntended, listJournaledUids, VOLUME_PREFIX } from '../intents.ts'
import type { AtRestContext } from './index.ts'

export function findStorageProblems({ system, view, exemptions }: AtRestContext): Problem[] {
  const problems: Problem[] = []
  const storedAssets = [
    ...[...listAssets(system)].map(({ asset, driverVolume }) => ({ asset, name: driverVolume.name })),
    ...[...system.pluginVolumes.keys()].map((name) => ({ asset: assetName(MEMORY_PLUGIN_ASSETS, name), name })),
  ]
  for (const { asset, name } of storedAssets) {
    const [driver = '', handle = ''] = asset.split('^')
    const owners = view.volumesOf(driver, handle).map(({ metadata }) => metadata.name)
    if (owners.length > 1)
      problems.push({ rule: 'leak', text: `${asset} has several PersistentVolumes: ${owners.join(', ')}` })
    // An intent covers a volume that may have been created. claims.ts checks that such a claim states what it waits for, and
    // findJournalProblems that an entry of a deleted claim does.
    const isCovered = isIntended(name.slice(VOLUME_PREFIX.length), view)
    if (owners.length === 0 && !isCovered && !exemptions.isAbandoned(asset)) {
      problems.push({ rule: 'leak', text: `${asset} (${name}) leaked: it has no PersistentVolume` })
    }
  }
  return problems
}

/** Checks the journals of intents: an entry remains only if an event reports what it waits for. */
export function findJournalProblems({ view, events }: AtRestContext): Problem[] {
  const uids = [...view.leases.values()].flatMap((lease) => [...listJournaledUids(lease)])
  return uids
    .filter((uid) => events.about(uid).length === 0)
    .map((uid) => ({
      rule: 'no reason',
      text: `the intent of claim ${uid} is recorded without an event that states the reason`,
    }))
}

export function findVolumeProblems(volume: ObjectOf<'volume'>, context: AtRestContext): Problem[] {
  const { system, view, exemptions, events } = context
  const problems: Problem[] = []
  const report = (rule: Problem['rule'], text: string) => void problems.push({ rule, text })
  const { name = '', uid, finalizers = [] } = volume.metadata
  const { claimRef, persistentVolumeReclaimPolicy: policy } = volume.spec ?? {}
  const phase = volume.status?.phase
  const asset = assetOf(volume)
  const driver = asset?.split('^')[0] ?? ''
  const hasSimDriver = DRIVERS.includes(driver as DriverName) || driver === MEMORY_PLUGIN_ASSETS
  const owner = view.claimOfUid(claimRef?.uid ?? '')
  // The driver deletes such a volume once the node returns.
  const isLostWithNode = asset !== undefined && isUnreachable(system, asset)
  const isBoundToOwner = owner !== undefined && owner.spec?.volumeName === name
  if (
    asset &&
    hasSimDriver &&
    !isStored(system, asset) &&
    !exemptions.isLost(asset) &&
    !exemptions.mayHaveBeenDeleted(volume)
  ) {
    report('missing', `volume ${name} refers to ${asset}, which does not exist`)
  }
  switch (phase) {
    case 'Bound':
      if (!isBoundToOwner) report('needless wait', `volume ${name} is Bound, but no claim is bound to it`)
      break
    case 'Available':
      if (claimRef?.uid) report('needless wait', `volume ${name} is Available, but belongs to a claim`)
      break
    case 'Released':
      if (isBoundToOwner) report('needless wait', `volume ${name} is Released, but its claim exists`)
      if (policy === 'Delete' && hasSimDriver && !isLostWithNode && (claimRef || isDeletionRequested(volume))) {
        report('not deleted', `volume ${name} is Released with the policy Delete: ${events.about(uid).join('; ')}`)
      }
      break
    case 'Failed':
      if (!volume.status?.message && events.about(uid).length === 0) report('no reason', `volume ${name} is Failed`)
      break
    default:
      report('needless wait', `volume ${name} has the phase "${phase}"`)
  }
  // A volume stays until the claim bound to it is deleted.
  if (isDeleting(volume) && !isLostWithNode && !(phase === 'Bound' && isBoundToOwner)) {
    report('not deleted', `volume ${name} is stuck in deletion, held by ${finalizers.join(', ') || 'no finalizer'}`)
  }
  if (policy === 'Retain' && finalizers.includes(EXTERNAL_PROVISIONER_FINALIZER)) {
    report('finalizers', `volume ${name} has the policy Retain and the finalizer for deletion`)
  }
  if (volume.metadata.annotations?.[PRE_RESIZE_CAPACITY] && owner && isBound(owner) && !isExpanding(owner)) {
    report('size', `volume ${name} is still annotated as expanding`)
  }
  return problems
}

function isStored(system: System, asset: string): boolean {
  const [driver = '', handle = ''] = asset.split('^')
  return driver === MEMORY_PLUGIN_ASSETS
    ? system.pluginVolumes.has(handle)
    : findDriverVolume(system, asset) !== undefined
}

/** Whether an expansion is incomplete. A claim bound to a half-expanded volume has only the condition FileSystemResizePending. */
const isExpanding = ({ status }: ObjectOf<'claim'>): boolean =>
  status?.allocatedResourceStatuses?.storage !== undefined ||
  status?.conditions?.some(({ type }) => type === 'FileSystemResizePending') === true
