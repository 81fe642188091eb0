// Checks the state after the faults, as the API and the drivers report it: every request that can be satisfied is
// satisfied, every other request has a reported reason, and no storage is leaked.

import { createQuotaSums } from '../../src/sim/checkers/quota-sums.ts'
import { INTENT_PREFIX } from '../../src/volumes/provisioning-intent.ts'
import { assetOf, driverAsset } from './assets.ts'
import { findClaimAndVolumeProblems } from './claims-at-rest.ts'
import { type Cluster, DRIVER } from './cluster.ts'
import { type Replay, replay, viewOf } from './replay-history.ts'
import type { DriverVolume, RealStorage } from './storage.ts'
import { COLLECTIONS, type Collection, keyOf, type WatchRecorder } from './watch-recorder.ts'
import { ATTRIBUTES, bytesOf, IMPOSSIBLE_SIZE, NAMESPACES, type Workload } from './workload.ts'

export interface RestDeps {
  readonly cluster: Cluster
  readonly recorder: WatchRecorder
  readonly storage: RealStorage
  readonly workload: Workload
}

/** The objects of the API, and the volumes, directories and devices on the nodes. */
export interface RestingState extends Readonly<Record<Collection, readonly any[]>> {
  readonly events: readonly any[]
  readonly driverVolumes: ReadonlyMap<string, DriverVolume>
  /** Uids of pods with a directory on a node. */
  readonly podDirs: readonly string[]
  /** Ids of volumes with a loop device. */
  readonly attachedVolumeIds: readonly string[]
}

/** Facts about that state that only the history contains. */
export interface RecordedPast extends Pick<Replay, 'abandoned' | 'deletableAssets'> {
  /** Names of volumes that an administrator created by calling the driver. */
  readonly importedNames: ReadonlySet<string>
}

/** Reads the current state and returns its problems. */
export async function findProblemsAtRest(deps: RestDeps): Promise<string[]> {
  const { recorder, workload, storage } = deps
  const state = await readState(deps)
  const past = { ...replay(recorder.history(), workload.userDeletedUids), importedNames: workload.importedNames }
  return [...findProblems(state, past), ...(await storage.contradictions())]
}

/** Returns the problems of a state. */
export function findProblems(state: RestingState, past: RecordedPast): string[] {
  return [
    ...findBindingProblems(state, past),
    ...state.claims.flatMap((claim) => [...sizeProblems(claim, state), ...findAttributeProblems(claim, state)]),
    ...state.claims.flatMap((claim) => missingEventProblems(claim, state)),
    ...state.pods.flatMap((pod) => findPodProblems(pod, state)),
    ...findQuotaProblems(state),
    ...nodeLeftovers(state),
  ]
}

/** Returns the storage that no controller had to delete, and the storage that an administrator created by calling the driver. */
export async function findAbandonedStorage({ recorder, storage, workload }: RestDeps): Promise<DriverVolume[]> {
  const { abandoned } = replay(recorder.history(), workload.userDeletedUids)
  const volumes = [...(await storage.volumes()).values()]
  return volumes.filter(({ id, name }) => abandoned.has(driverAsset(id)) || workload.importedNames.has(name))
}

async function readState({ cluster, storage }: RestDeps): Promise<RestingState> {
  const list = async (path: string) => (await cluster.server().call('GET', path)).json.items as any[]
  const names = Object.keys(COLLECTIONS) as Collection[]
  const objects = await Promise.all(names.map(async (name) => [name, await list(COLLECTIONS[name])] as const))
  const collections = Object.fromEntries(objects) as Record<Collection, any[]>
  return {
    ...collections,
    events: await list('/api/v1/events'),
    driverVolumes: await storage.volumes(),
    podDirs: await storage.podDirs(),
    attachedVolumeIds: await storage.attachedVolumeIds(),
  }
}

/** Runs the checker of claims, volumes and storage in claims-at-rest.ts. */
function findBindingProblems(
  state: RestingState,
  { abandoned, deletableAssets, importedNames }: RecordedPast,
): string[] {
  const assetsWithVolume = new Set(state.volumes.map((volume) => assetOf(volume)))
  for (const { id, name } of state.driverVolumes.values()) {
    // A user created the storage, and its PersistentVolume was rejected or never requested.
    if (importedNames.has(name) && !assetsWithVolume.has(driverAsset(id))) abandoned.recordImport(driverAsset(id))
  }
  const retriedClaims = state.claims.filter((claim) => isStillRetried(claim, state))
  for (const { id, name } of state.driverVolumes.values()) {
    if (retriedClaims.some(({ metadata }) => name === `pvc-${metadata.uid}`)) abandoned.recordImport(driverAsset(id))
  }
  const usedClaimKeys = new Set(state.pods.flatMap(claimKeysOf))
  const claims = state.claims
    .filter((claim) => claim.spec.volumeName || rejectionReason(claim, state) === undefined)
    .map((claim) => (usedClaimKeys.has(keyOf(claim)) ? omitDeletionTimestamp(claim) : claim)) // its deletion waits for its pods
    .map((claim) => (retriedClaims.includes(claim) ? omitIntents(claim) : claim))
  const classes = state.classes.filter(({ provisioner }) => provisioner === DRIVER)
  return findClaimAndVolumeProblems({
    view: viewOf(claims, state.volumes),
    storage: { driver: { state: () => ({ volumes: Object.fromEntries(state.driverVolumes) }) }, plugin: new Map() },
    abandoned,
    deletableAssets,
    classes: new Map(classes.map((storageClass) => [storageClass.metadata.name, storageClass])),
  })
}

/** Whether provisioning is still retried for a claim whose class or attributes were deleted after an uncertain attempt. */
const isStillRetried = (claim: any, state: RestingState): boolean =>
  (claim.metadata.finalizers ?? []).some((finalizer: string) => finalizer.startsWith(INTENT_PREFIX)) &&
  state.events.some(
    ({ involvedObject, reason }) => involvedObject.uid === claim.metadata.uid && reason === 'ProvisioningFailed',
  ) &&
  (claim.spec.volumeName !== undefined || rejectionReason(claim, state) !== undefined)

const omitIntents = ({ metadata, ...rest }: any) => ({
  ...rest,
  metadata: {
    ...metadata,
    finalizers: metadata.finalizers.filter((finalizer: string) => !finalizer.startsWith(INTENT_PREFIX)),
  },
})

const omitDeletionTimestamp = ({ metadata: { deletionTimestamp: _, ...metadata }, ...rest }: any) => ({
  ...rest,
  metadata,
})

/** Returns why no volume can be provisioned for the claim, or undefined. */
function rejectionReason({ spec, status }: any, { attributes, classes }: RestingState): string | undefined {
  const requestedClass = spec.volumeAttributesClassName
  const attributesClass = attributes.find(({ metadata }) => metadata.name === requestedClass)
  if (!classes.some(({ metadata }) => metadata.name === spec.storageClassName)) return 'its class is missing'
  if (requestedClass && !attributesClass) return `attributes ${requestedClass} are missing`
  if (requestedClass === 'odd') return 'the driver rejects its attributes'
  // A class may be current although it was rolled back; the claim's requests must not contradict it.
  const effectiveClass = requestedClass ?? status?.currentVolumeAttributesClassName
  const contradictedAmount = AMOUNTS.find((key) => isContradicted(spec.resources.requests[key], effectiveClass, key))
  return contradictedAmount && `it requests other ${contradictedAmount} than its attributes class has`
}

const AMOUNTS = ['iops', 'throughput'] as const

const isContradicted = (
  requestedAmount: string | undefined,
  className: string,
  key: (typeof AMOUNTS)[number],
): boolean => {
  const classAmount = ATTRIBUTES[className]?.[key]
  return (
    requestedAmount !== undefined &&
    classAmount !== undefined &&
    amountOf(requestedAmount, key) !== amountOf(classAmount, key)
  )
}

/** Returns a count or bytes per second. Throughput below 1Mi is in MiB/s. */
function amountOf(text: string, key: string): number {
  const amount = bytesOf(text)
  return key === 'throughput' && amount < 1024 ** 2 ? amount * 1024 ** 2 : amount
}

function sizeProblems(claim: any, { volumes, driverVolumes, pods }: RestingState): string[] {
  if (claim.status?.phase !== 'Bound' || claim.metadata.deletionTimestamp) return []
  const key = keyOf(claim)
  const problems: string[] = []
  const volume = volumes.find(({ metadata }) => metadata.name === claim.spec.volumeName)
  const driverVolume = driverVolumes.get(volume?.spec.csi.volumeHandle)
  if (!driverVolume) return [`${key} has a volume that its driver does not have`]
  const [requestedBytes, reportedBytes] = [
    bytesOf(claim.spec.resources.requests.storage),
    bytesOf(claim.status.capacity?.storage),
  ]
  const state = claim.status.allocatedResourceStatuses?.storage
  const conditions: any[] = claim.status.conditions ?? []
  const hasCondition = (type: string) =>
    conditions.some((condition) => condition.type === type && condition.status === 'True')
  if (reportedBytes > driverVolume.capacityBytes)
    problems.push(`${key} reports ${reportedBytes}, but its device has ${driverVolume.capacityBytes}`)
  // If an earlier claim was deleted during an expansion, the device may be larger than the recorded capacity.
  const isProvisionedForClaim = volume.metadata.name === `pvc-${claim.metadata.uid}`
  const volumeBytes = bytesOf(volume.spec.capacity.storage)
  if (volumeBytes > driverVolume.capacityBytes || (isProvisionedForClaim && volumeBytes !== driverVolume.capacityBytes))
    problems.push(
      `the volume of ${key} reports ${volume.spec.capacity.storage}, but its device has ${driverVolume.capacityBytes}`,
    )
  if (requestedBytes === bytesOf(IMPOSSIBLE_SIZE)) {
    if (state !== 'ControllerResizeInfeasible' && state !== 'NodeResizePending')
      problems.push(`${key} cannot have ${IMPOSSIBLE_SIZE}, but reports ${state}`)
    return problems
  }
  const isInUse = pods.some((pod) => pod.status?.phase === 'Running' && claimKeysOf(pod).includes(key))
  // Node expansion waits for the next pod that uses the volume.
  const mayWait = !isInUse && claim.spec.volumeMode !== 'Block' && hasCondition('FileSystemResizePending')
  if (requestedBytes > reportedBytes && !mayWait)
    problems.push(`${key} requests ${requestedBytes} and has ${reportedBytes} (${state})`)
  if (state && !mayWait) problems.push(`${key} is still ${state}`)
  if (!state && hasCondition('Resizing')) problems.push(`${key} still has the condition Resizing`)
  return problems
}

function findAttributeProblems(claim: any, state: RestingState): string[] {
  if (claim.status?.phase !== 'Bound' || claim.metadata.deletionTimestamp) return []
  const key = keyOf(claim)
  const { spec, status } = claim
  const volume = state.volumes.find(({ metadata }) => metadata.name === spec.volumeName)
  const driverVolume = state.driverVolumes.get(volume?.spec.csi.volumeHandle)
  const [requestedClass, currentClass] = [spec.volumeAttributesClassName, status.currentVolumeAttributesClassName]
  const rejection = rejectionReason(claim, {
    ...state,
    classes: [{ metadata: { name: spec.storageClassName } }],
  } as RestingState)
  const modifyState = status.modifyVolumeStatus?.status
  const states = AMOUNTS.flatMap((name) => status.allocatedResourceStatuses?.[name] ?? [])
  if (rejection !== undefined) {
    const isReported =
      modifyState ||
      states.length > 0 ||
      (status.conditions ?? []).some(({ type }: any) => type === 'ModifyVolumeError')
    return requestedClass === currentClass || isReported ? [] : [`${key} does not report that ${rejection}`]
  }
  const problems: string[] = []
  if ((requestedClass ?? currentClass) !== currentClass)
    problems.push(`${key} requests attributes ${requestedClass} and has ${currentClass} (${modifyState})`)
  if (modifyState)
    problems.push(`${key} is still ${modifyState} about ${status.modifyVolumeStatus.targetVolumeAttributesClassName}`)
  for (const resourceState of states) problems.push(`${key} is still ${resourceState}`)
  for (const name of AMOUNTS) {
    const requestedAmount = spec.resources.requests[name]
    const reportedAmount = status.capacity?.[name] ?? ATTRIBUTES[currentClass]?.[name]
    if (requestedAmount !== undefined && status.capacity?.[name] !== requestedAmount)
      problems.push(`${key} requests ${name} ${requestedAmount} and reports ${status.capacity?.[name]}`)
    const actualAmount = name === 'iops' ? driverVolume?.limits.iops : driverVolume?.limits.throughputBytes
    if (reportedAmount !== undefined && amountOf(reportedAmount, name) !== actualAmount)
      problems.push(`${key} reports ${name} ${reportedAmount}, but its driver has ${actualAmount}`)
  }
  return problems
}

/** Returns a problem if the claim is unbound and has no event. */
function missingEventProblems(claim: any, { events }: RestingState): string[] {
  if (claim.status?.phase === 'Bound') return []
  const hasEvent = events.some(({ involvedObject }) => involvedObject.uid === claim.metadata.uid)
  return hasEvent ? [] : [`${keyOf(claim)} is ${claim.status?.phase} without an event with the reason`]
}

function findPodProblems(pod: any, state: RestingState): string[] {
  const key = `pod ${keyOf(pod)}`
  const { metadata, spec, status } = pod
  if (metadata.deletionTimestamp) return [`${key} is stuck in its deletion`]
  if (status?.phase === 'Running') return []
  const claims = claimKeysOf(pod).map((name) => state.claims.find((claim) => keyOf(claim) === name))
  const isReady = (claim: any) =>
    claim &&
    !claim.metadata.deletionTimestamp &&
    (claim.status?.phase === 'Bound' || rejectionReason(claim, state) === undefined)
  const nodes = new Set(claims.map((claim) => nodeOf(claim, state)).filter((node) => node !== undefined))
  const isStatic = claims.some((claim) => claim?.spec.storageClassName === 'static' && claim.status?.phase !== 'Bound')
  if (claims.every(isReady) && nodes.size <= 1 && !isStatic)
    return [`${key} could run, but is ${status?.phase}: ${waitingMessage(pod)}`]
  // The event may be about a claim: a pod that waits for its volumes in preBind has no event of its own until the timeout.
  const uids = [metadata.uid, ...claims.flatMap((claim) => (claim ? [claim.metadata.uid] : []))]
  const hasEvent = state.events.some(({ involvedObject }) => uids.includes(involvedObject.uid))
  return waitingMessage(pod) !== '' || hasEvent
    ? []
    : [`${key} on ${spec.nodeName} is ${status?.phase} without an event with the reason`]
}

const waitingMessage = ({ status }: any): string =>
  [
    ...(status?.conditions ?? []).map(({ message }: any) => message),
    ...(status?.containerStatuses ?? []).map(({ state }: any) => state?.waiting?.message),
  ]
    .filter(Boolean)
    .join('; ')

function nodeOf(claim: any, { volumes, driverVolumes }: RestingState): string | undefined {
  const volume = volumes.find(({ metadata }) => metadata.name === claim?.spec.volumeName)
  return driverVolumes.get(volume?.spec.csi.volumeHandle)?.node
}

const claimKeysOf = ({ metadata, spec }: any): string[] =>
  (spec.volumes ?? []).flatMap(({ name, persistentVolumeClaim, ephemeral }: any) => {
    const claim = persistentVolumeClaim?.claimName ?? (ephemeral && `${metadata.name}-${name}`)
    return claim ? [`${metadata.namespace}/${claim}`] : []
  })

/** Returns a problem for each quota whose usage differs from the sum over its objects. */
function findQuotaProblems({ claims, quotas, configMaps }: RestingState): string[] {
  const problems: string[] = []
  for (const namespace of NAMESPACES) {
    const checker = createQuotaSums(namespace, (text) => void problems.push(`${namespace}: ${text}`))
    const storedObjects = (kind: string, objects: readonly any[]) =>
      objects
        .filter(({ metadata }) => metadata.namespace === namespace)
        .map((object) => ({ key: `core/${kind}/${keyOf(object)}`, object }))
    checker.apply([
      ...storedObjects('configmaps', configMaps),
      ...storedObjects('persistentvolumeclaims', claims),
      ...storedObjects('resourcequotas', quotas),
    ])
  }
  return problems
}

/** Returns a problem for each directory of a deleted pod, and for each loop device of a volume that is not in use. */
function nodeLeftovers({ pods, claims, volumes, podDirs, attachedVolumeIds }: RestingState): string[] {
  const uids = new Set(pods.map(({ metadata }) => metadata.uid))
  const usedClaimKeys = new Set(pods.flatMap(claimKeysOf))
  const names = new Set(claims.filter((claim) => usedClaimKeys.has(keyOf(claim))).map(({ spec }) => spec.volumeName))
  const usedHandles = new Set(
    volumes.filter(({ metadata }) => names.has(metadata.name)).map(({ spec }) => spec.csi.volumeHandle),
  )
  return [
    ...podDirs
      .filter((uid) => !uids.has(uid))
      .map((uid) => `a node has a directory of pod ${uid}, which does not exist`),
    ...attachedVolumeIds
      .filter((id) => !usedHandles.has(id))
      .map((id) => `${id} has a loop device, but no pod uses it`),
  ]
}
