// Checks claims, volumes and storage at rest, from a snapshot: no storage is leaked, no object is stuck, and every claim
// that can be bound is bound.
import { claimClassName, volumeClassName } from '../../src/api/kinds/shared/class-names.ts'
import type { StorageClass } from '../../src/api/kinds/storage-class/storage-class-schema.ts'
import { compareQuantities } from '../../src/api/quantity.ts'
import { labelSelectorFromObject, matchesLabels } from '../../src/api/selectors.ts'
import { keyOfObject } from '../../src/client/index.ts'
import type { ClaimsAndVolumes } from '../../src/sim/checkers/bindings.ts'
import { isBound } from '../../src/sim/checkers/bindings.ts'
import { SELECTED_NODE } from '../../src/volumes/names.ts'
import { INTENT_PREFIX } from '../../src/volumes/provisioning-intent.ts'
import type { AbandonedStorage } from './abandoned-storage.ts'
import type { Claim, Volume } from './assets.ts'
import { assetOf, assetsIn, driverAsset, type Storage } from './assets.ts'

export interface RestState {
  readonly view: ClaimsAndVolumes
  readonly storage: Storage
  readonly abandoned: AbandonedStorage
  /** Assets that a provisioner was allowed to delete. */
  readonly deletableAssets: ReadonlySet<string>
  /** Existing classes with a working provisioner, by name. */
  readonly classes: ReadonlyMap<string, Readonly<StorageClass>>
}

export const findClaimAndVolumeProblems = (state: RestState): string[] => [
  ...storageProblems(state),
  ...[...state.view.volumes.values()].flatMap((volume) => findVolumeProblems(volume, state)),
  ...[...state.view.claims.values()].flatMap((claim) => findClaimProblems(claim, state)),
]

function storageProblems({ view, storage, abandoned, deletableAssets }: RestState): string[] {
  const problems: string[] = []
  const existingAssets = assetsIn(storage)
  const names = new Map(Object.values(storage.driver.state().volumes).map(({ id, name }) => [driverAsset(id), name]))
  const nameOf = (asset: string) => `${asset} (${names.get(asset) ?? ''})`
  const objects = new Map<string, string[]>()
  for (const volume of view.volumes.values()) {
    const asset = assetOf(volume)
    const { name = '' } = volume.metadata
    if (asset) objects.set(asset, [...(objects.get(asset) ?? []), name])
    if (asset && !existingAssets.has(asset) && !deletableAssets.has(asset))
      problems.push(`volume ${name} has the storage ${asset}, which does not exist`)
  }
  for (const asset of existingAssets) {
    const owners = objects.get(asset) ?? []
    if (owners.length === 0 && !abandoned.has(asset))
      problems.push(`${nameOf(asset)} leaked: it has no PersistentVolume`)
    if (owners.length > 1) problems.push(`${asset} has several volumes: ${owners.join(', ')}`)
  }
  return problems
}

function findVolumeProblems(volume: Volume, { view }: RestState): string[] {
  const problems: string[] = []
  const { name = '', deletionTimestamp } = volume.metadata
  const { claimRef, persistentVolumeReclaimPolicy: policy } = volume.spec ?? {}
  const phase = volume.status?.phase
  const claim = claimRef && view.claims.get(`${claimRef.namespace}/${claimRef.name}`)
  const isOwned = claim !== undefined && claim.metadata.uid === claimRef?.uid
  const isBoundToClaim = isOwned && claim.spec?.volumeName === name
  if (phase === 'Bound' && !isBoundToClaim) problems.push(`volume ${name} is Bound, but no claim is bound to it`)
  if (phase === 'Available' && claimRef?.uid) problems.push(`volume ${name} is Available, but belongs to a claim`)
  if (!phase || phase === 'Pending') problems.push(`volume ${name} has the phase "${phase}"`)
  if (phase === 'Released' && isBoundToClaim) problems.push(`volume ${name} is Released, but its claim exists`)
  if (phase === 'Released' && policy === 'Delete' && assetOf(volume)) {
    problems.push(`volume ${name} is Released with policy Delete, but still exists`)
  }
  if (deletionTimestamp && !(phase === 'Bound' && isBoundToClaim))
    problems.push(`volume ${name} is stuck in its deletion`)
  return problems
}

function findClaimProblems(claim: Claim, state: RestState): string[] {
  const { view } = state
  const problems: string[] = []
  const key = keyOfObject(claim)
  const { finalizers = [], deletionTimestamp, uid } = claim.metadata
  const { volumeName = '' } = claim.spec ?? {}
  const phase = claim.status?.phase
  const volume = view.volumes.get(volumeName)
  const isOwnVolume = volume?.spec?.claimRef?.uid === uid
  const ownVolumes = [...view.volumes.values()].filter(
    ({ spec, status }) => spec?.claimRef?.uid === uid && status?.phase === 'Bound',
  )
  if (deletionTimestamp) problems.push(`claim ${key} is stuck in its deletion`)
  if (isBound(claim) && !isOwnVolume) problems.push(`claim ${key} is Bound, but ${volumeName} belongs to another claim`)
  if (isBound(claim) && volume?.status?.phase !== 'Bound') problems.push(`claim ${key} is Bound, but its volume is not`)
  if (phase === 'Lost' && isOwnVolume) problems.push(`claim ${key} is Lost, but its volume exists`)
  if (ownVolumes.length > 1) problems.push(`claim ${key} has ${ownVolumes.length} volumes`)
  const hasSelector = claim.spec?.selector !== undefined
  const intent = finalizers.find((finalizer) => finalizer.startsWith(INTENT_PREFIX))
  if (intent && (volumeName || !hasSelector)) problems.push(`claim ${key} keeps ${intent} without a reason`)
  if (!volumeName)
    problems.push(...listBindableReasons(claim, state).map((reason) => `claim ${key} could be bound: ${reason}`))
  return problems
}

function listBindableReasons(claim: Claim, { view, classes }: RestState): string[] {
  const className = claimClassName(claim)
  const storageClass = classes.get(className ?? '')
  const isWaiting =
    storageClass?.volumeBindingMode === 'WaitForFirstConsumer' && !claim.metadata.annotations?.[SELECTED_NODE]
  if (storageClass && !isWaiting && !claim.spec?.selector) return [`its class ${className} provisions volumes`]
  if (isWaiting) return []
  return [...view.volumes.values()]
    .filter((volume) => isMatch(volume, claim))
    .map((volume) => `${volume.metadata.name} fits`)
}

/** Whether an available volume matches the claim. Does not use the matching code of the binder. */
function isMatch({ metadata, spec, status }: Volume, claim: Claim): boolean {
  const claimSpec = claim.spec ?? {}
  return (
    status?.phase === 'Available' &&
    !spec?.claimRef &&
    !metadata.deletionTimestamp &&
    volumeClassName({ metadata, spec }) === (claimClassName(claim) ?? '') &&
    compareQuantities(spec?.capacity?.storage ?? '0', claimSpec.resources?.requests?.storage ?? '0') >= 0 &&
    (claimSpec.accessModes ?? []).every((mode) => spec?.accessModes?.includes(mode)) &&
    (!claimSpec.selector || matchesLabels(labelSelectorFromObject(claimSpec.selector), metadata.labels))
  )
}
