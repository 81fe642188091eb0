// Checks claims, volumes and storage at rest: nothing is leaked or stuck, and every claim that can be bound is. Pure.
import { claimClassName, volumeClassName } from '../../src/api/kinds/shared/class-names.ts'
import type { StorageClass } from '../../src/api/kinds/storage-class/storage-class-schema.ts'
import { compareQuantities } from '../../src/api/quantity.ts'
import { labelSelectorFromObject, matchesLabels } from '../../src/api/selectors.ts'
import { keyOfObject } from '../../src/client/index.ts'
import { INTENT_PREFIX } from '../../src/controllers/provisioning/intent.ts'
import type { ClaimsAndVolumes } from '../../src/sim/checkers/bindings.ts'
import { isBound } from '../../src/sim/checkers/bindings.ts'
import { SELECTED_NODE } from '../../src/volumes/names.ts'
import type { Abandoned } from './abandoned.ts'
import type { Claim, Volume } from './assets.ts'
import { assetOf, assetsIn, driverAsset, type Storage } from './assets.ts'

export interface RestState {
  readonly view: ClaimsAndVolumes
  readonly storage: Storage
  readonly abandoned: Abandoned
  /** Assets whose deletion was legitimate. */
  readonly condemned: ReadonlySet<string>
  /** The existing classes, all with a working provisioner. */
  readonly classes: ReadonlyMap<string, Readonly<StorageClass>>
}

export const problemsOf = (world: RestState): string[] => [
  ...storageProblems(world),
  ...[...world.view.volumes.values()].flatMap((volume) => problemsOfVolume(volume, world)),
  ...[...world.view.claims.values()].flatMap((claim) => problemsOfClaim(claim, world)),
]

function storageProblems({ view, storage, abandoned, condemned }: RestState): string[] {
  const problems: string[] = []
  const held = assetsIn(storage)
  const names = new Map(Object.values(storage.driver.state().volumes).map(({ id, name }) => [driverAsset(id), name]))
  const nameOf = (asset: string) => `${asset} (${names.get(asset) ?? ''})`
  const objects = new Map<string, string[]>()
  for (const volume of view.volumes.values()) {
    const asset = assetOf(volume)
    const { name = '' } = volume.metadata
    if (asset) objects.set(asset, [...(objects.get(asset) ?? []), name])
    if (asset && !held.has(asset) && !condemned.has(asset))
      problems.push(`volume ${name} stands for ${asset}, which is gone`)
  }
  for (const asset of held) {
    const owners = objects.get(asset) ?? []
    if (owners.length === 0 && !abandoned.has(asset)) problems.push(`${nameOf(asset)} leaked: no volume stands for it`)
    if (owners.length > 1) problems.push(`${asset} has several volumes: ${owners.join(', ')}`)
  }
  return problems
}

function problemsOfVolume(volume: Volume, { view }: RestState): string[] {
  const problems: string[] = []
  const { name = '', deletionTimestamp } = volume.metadata
  const { claimRef, persistentVolumeReclaimPolicy: policy } = volume.spec ?? {}
  const phase = volume.status?.phase
  const claim = claimRef && view.claims.get(`${claimRef.namespace}/${claimRef.name}`)
  const isOwned = claim !== undefined && claim.metadata.uid === claimRef?.uid
  const isTheClaims = isOwned && claim.spec?.volumeName === name
  if (phase === 'Bound' && !isTheClaims) problems.push(`volume ${name} is Bound, and no claim has it`)
  if (phase === 'Available' && claimRef?.uid) problems.push(`volume ${name} is Available and belongs to a claim`)
  if (!phase || phase === 'Pending') problems.push(`volume ${name} has the phase "${phase}"`)
  if (phase === 'Released' && isTheClaims) problems.push(`volume ${name} is Released, and its claim is there`)
  if (phase === 'Released' && policy === 'Delete' && assetOf(volume)) {
    problems.push(`volume ${name} is Released with policy Delete, and still there`)
  }
  if (deletionTimestamp && !(phase === 'Bound' && isTheClaims)) problems.push(`volume ${name} is stuck in its deletion`)
  return problems
}

function problemsOfClaim(claim: Claim, world: RestState): string[] {
  const { view } = world
  const problems: string[] = []
  const key = keyOfObject(claim)
  const { finalizers = [], deletionTimestamp, uid } = claim.metadata
  const { volumeName = '' } = claim.spec ?? {}
  const phase = claim.status?.phase
  const volume = view.volumes.get(volumeName)
  const isItsOwn = volume?.spec?.claimRef?.uid === uid
  const mine = [...view.volumes.values()].filter(
    ({ spec, status }) => spec?.claimRef?.uid === uid && status?.phase === 'Bound',
  )
  if (deletionTimestamp) problems.push(`claim ${key} is stuck in its deletion`)
  if (isBound(claim) && !isItsOwn) problems.push(`claim ${key} is Bound, and ${volumeName} is not its own`)
  if (isBound(claim) && volume?.status?.phase !== 'Bound') problems.push(`claim ${key} is Bound, its volume is not`)
  if (phase === 'Lost' && isItsOwn) problems.push(`claim ${key} is Lost, and has its volume`)
  if (mine.length > 1) problems.push(`claim ${key} has ${mine.length} volumes`)
  const isRefused = claim.spec?.selector !== undefined
  const intent = finalizers.find((one) => one.startsWith(INTENT_PREFIX))
  if (intent && (volumeName || !isRefused)) problems.push(`claim ${key} keeps ${intent} for nothing`)
  if (!volumeName) problems.push(...whyNotBound(claim, world).map((why) => `claim ${key} could be bound: ${why}`))
  return problems
}

function whyNotBound(claim: Claim, { view, classes }: RestState): string[] {
  const className = claimClassName(claim)
  const storageClass = classes.get(className ?? '')
  const isWaiting =
    storageClass?.volumeBindingMode === 'WaitForFirstConsumer' && !claim.metadata.annotations?.[SELECTED_NODE]
  if (storageClass && !isWaiting && !claim.spec?.selector) return [`its class ${className} provisions volumes`]
  if (isWaiting) return []
  return [...view.volumes.values()]
    .filter((volume) => fits(volume, claim))
    .map((volume) => `${volume.metadata.name} fits`)
}

/** Whether an available volume matches the claim, implemented independently of the binder. */
function fits({ metadata, spec, status }: Volume, claim: Claim): boolean {
  const wanted = claim.spec ?? {}
  return (
    status?.phase === 'Available' &&
    !spec?.claimRef &&
    !metadata.deletionTimestamp &&
    volumeClassName({ metadata, spec }) === (claimClassName(claim) ?? '') &&
    compareQuantities(spec?.capacity?.storage ?? '0', wanted.resources?.requests?.storage ?? '0') >= 0 &&
    (wanted.accessModes ?? []).every((mode) => spec?.accessModes?.includes(mode)) &&
    (!wanted.selector || matchesLabels(labelSelectorFromObject(wanted.selector), metadata.labels))
  )
}
