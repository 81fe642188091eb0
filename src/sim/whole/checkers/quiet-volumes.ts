// At rest: everything in a driver has a volume that stands for it, every volume stands for something, and each is where its
// phase says.

import { INTENT_PREFIX } from '../../../controllers/provisioning/intent.ts'
import { isDeletionRequested } from '../../../volumes/deletion-requested.ts'
import { EXTERNAL_PROVISIONER_FINALIZER, PRE_RESIZE_CAPACITY } from '../../../volumes/names.ts'
import { DRIVERS, type DriverName } from '../universe.ts'
import { assetOf, type Of } from '../view.ts'
import { assetsIn, heldAt, isBound, isGoing, type Problem } from './court.ts'
import { VOLUME_PREFIX } from './intents.ts'
import type { Quiet } from './quiet.ts'

export function storageProblems({ stage, view, past }: Quiet): Problem[] {
  const problems: Problem[] = []
  for (const { asset, held } of assetsIn(stage)) {
    const [driver = '', handle = ''] = asset.split('^')
    const owners = view.volumesOf(driver, handle).map(({ metadata }) => metadata.name)
    if (owners.length > 1) problems.push({ rule: 'leak', text: `${asset} has several volumes: ${owners.join(', ')}` })
    // An intent stands for what may have been made; that such a claim says what it waits for is judged with the claims.
    const claim = view.claimOfUid(held.name.slice(VOLUME_PREFIX.length))
    const isIntended = claim?.metadata.finalizers?.some((one) => one.startsWith(INTENT_PREFIX)) ?? false
    if (owners.length === 0 && !isIntended && !past.isGivenUp(asset)) {
      problems.push({ rule: 'leak', text: `${asset} (${held.name}) leaked: no volume stands for it` })
    }
  }
  return problems
}

export function volumeProblems(volume: Of<'volume'>, quiet: Quiet): Problem[] {
  const { stage, view, past, told } = quiet
  const problems: Problem[] = []
  const found = (rule: Problem['rule'], text: string) => void problems.push({ rule, text })
  const { name = '', uid, finalizers = [] } = volume.metadata
  const { claimRef, persistentVolumeReclaimPolicy: policy } = volume.spec ?? {}
  const phase = volume.status?.phase
  const asset = assetOf(volume)
  const isOurs = DRIVERS.includes(volume.spec?.csi?.driver as DriverName)
  const owner = view.claimOfUid(claimRef?.uid ?? '')
  const isTheClaims = owner !== undefined && owner.spec?.volumeName === name
  if (asset && isOurs && !heldAt(stage, asset) && !past.isLost(asset) && !past.isKeptTooLate(volume)) {
    found('missing', `volume ${name} stands for ${asset}, which is gone`)
  }
  switch (phase) {
    case 'Bound':
      if (!isTheClaims) found('could go on', `volume ${name} is Bound, and no claim has it`)
      break
    case 'Available':
      if (claimRef?.uid) found('could go on', `volume ${name} is Available, and belongs to a claim`)
      break
    case 'Released':
      if (isTheClaims) found('could go on', `volume ${name} is Released, and its claim is there`)
      if (policy === 'Delete' && isOurs && (claimRef || isDeletionRequested(volume))) {
        found('not gone', `volume ${name} is Released with the policy Delete: ${told.about(uid).join('; ')}`)
      }
      break
    case 'Failed':
      if (!volume.status?.message && told.about(uid).length === 0) found('says not why', `volume ${name} is Failed`)
      break
    default:
      found('could go on', `volume ${name} has the phase "${phase}"`)
  }
  // What a claim is bound to stays until that is gone.
  if (isGoing(volume) && !(phase === 'Bound' && isTheClaims)) {
    found('not gone', `volume ${name} is stuck in its deletion, held by ${finalizers.join(', ') || 'nobody'}`)
  }
  if (policy === 'Retain' && finalizers.includes(EXTERNAL_PROVISIONER_FINALIZER)) {
    found('finalizers', `volume ${name} is to be retained, and is held for its storage to be deleted`)
  }
  if (volume.metadata.annotations?.[PRE_RESIZE_CAPACITY] && owner && isBound(owner) && !isGrowing(owner)) {
    found('size', `volume ${name} is still marked as growing`)
  }
  return problems
}

/** A claim that got a volume half grown has no state of a growth of its own, and says whose turn it is. */
const isGrowing = ({ status }: Of<'claim'>): boolean =>
  status?.allocatedResourceStatuses?.storage !== undefined ||
  status?.conditions?.some(({ type }) => type === 'FileSystemResizePending') === true
