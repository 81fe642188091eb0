// Volumes at rest: every volume in a driver has one PersistentVolume, every PersistentVolume has its volume in the driver,
// and phases, finalizers and annotations are consistent.
import { INTENT_PREFIX } from '../../../controllers/provisioning/intent.ts'
import { isDeletionRequested } from '../../../volumes/deletion-requested.ts'
import { EXTERNAL_PROVISIONER_FINALIZER, PRE_RESIZE_CAPACITY } from '../../../volumes/names.ts'
import { assetOf, type ObjectOf } from '../../engine/view.ts'
import { DRIVERS, type DriverName } from '../../plan/catalog.ts'
import { assetsIn, heldAt, isBound, isDeleting, type Problem } from '../context.ts'
import { VOLUME_PREFIX } from '../intents.ts'
import type { AtRest } from './index.ts'

export function storageProblems({ system, view, exemptions }: AtRest): Problem[] {
  const problems: Problem[] = []
  for (const { asset, held } of assetsIn(system)) {
    const [driver = '', handle = ''] = asset.split('^')
    const owners = view.volumesOf(driver, handle).map(({ metadata }) => metadata.name)
    if (owners.length > 1)
      problems.push({ rule: 'leak', text: `${asset} has several PersistentVolumes: ${owners.join(', ')}` })
    // An intent covers a volume that may have been created; claims.ts checks that such a claim states what it waits for.
    const claim = view.claimOfUid(held.name.slice(VOLUME_PREFIX.length))
    const isIntended = claim?.metadata.finalizers?.some((one) => one.startsWith(INTENT_PREFIX)) ?? false
    if (owners.length === 0 && !isIntended && !exemptions.isGivenUp(asset)) {
      problems.push({ rule: 'leak', text: `${asset} (${held.name}) leaked: it has no PersistentVolume` })
    }
  }
  return problems
}

export function volumeProblems(volume: ObjectOf<'volume'>, rest: AtRest): Problem[] {
  const { system, view, exemptions, events } = rest
  const problems: Problem[] = []
  const found = (rule: Problem['rule'], text: string) => void problems.push({ rule, text })
  const { name = '', uid, finalizers = [] } = volume.metadata
  const { claimRef, persistentVolumeReclaimPolicy: policy } = volume.spec ?? {}
  const phase = volume.status?.phase
  const asset = assetOf(volume)
  const isOurs = DRIVERS.includes(volume.spec?.csi?.driver as DriverName)
  const owner = view.claimOfUid(claimRef?.uid ?? '')
  const isTheClaims = owner !== undefined && owner.spec?.volumeName === name
  if (asset && isOurs && !heldAt(system, asset) && !exemptions.isLost(asset) && !exemptions.isKeptTooLate(volume)) {
    found('missing', `volume ${name} refers to ${asset}, which does not exist`)
  }
  switch (phase) {
    case 'Bound':
      if (!isTheClaims) found('needless wait', `volume ${name} is Bound, and no claim is bound to it`)
      break
    case 'Available':
      if (claimRef?.uid) found('needless wait', `volume ${name} is Available, and belongs to a claim`)
      break
    case 'Released':
      if (isTheClaims) found('needless wait', `volume ${name} is Released, and its claim exists`)
      if (policy === 'Delete' && isOurs && (claimRef || isDeletionRequested(volume))) {
        found('not deleted', `volume ${name} is Released with the policy Delete: ${events.about(uid).join('; ')}`)
      }
      break
    case 'Failed':
      if (!volume.status?.message && events.about(uid).length === 0) found('no reason', `volume ${name} is Failed`)
      break
    default:
      found('needless wait', `volume ${name} has the phase "${phase}"`)
  }
  // A volume stays until the claim bound to it is deleted.
  if (isDeleting(volume) && !(phase === 'Bound' && isTheClaims)) {
    found('not deleted', `volume ${name} is stuck in deletion, held by ${finalizers.join(', ') || 'no finalizer'}`)
  }
  if (policy === 'Retain' && finalizers.includes(EXTERNAL_PROVISIONER_FINALIZER)) {
    found('finalizers', `volume ${name} has the policy Retain and the finalizer for deletion`)
  }
  if (volume.metadata.annotations?.[PRE_RESIZE_CAPACITY] && owner && isBound(owner) && !isGrowing(owner)) {
    found('size', `volume ${name} is still annotated as expanding`)
  }
  return problems
}

/** A claim that got a half-expanded volume has only the condition FileSystemResizePending. */
const isGrowing = ({ status }: ObjectOf<'claim'>): boolean =>
  status?.allocatedResourceStatuses?.storage !== undefined ||
  status?.conditions?.some(({ type }) => type === 'FileSystemResizePending') === true
