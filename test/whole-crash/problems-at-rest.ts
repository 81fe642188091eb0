// Checks the state after the faults, once nothing changes any more, from the API and the drivers alone: every request that
// can be satisfied is, every other one reports why not, and no storage is leaked.
import { INTENT_PREFIX } from '../../src/controllers/provisioning/intent.ts'
import { createQuotaSums } from '../../src/sim/checkers/quota-sums.ts'
import { assetOf, driverAsset } from './assets.ts'
import { problemsOf } from './claims-at-rest.ts'
import { type Cluster, DRIVER } from './cluster.ts'
import { type Replay, replay, viewOf } from './replay.ts'
import type { HeldVolume, RealStorage } from './storage.ts'
import { COLLECTIONS, type Collection, keyOf, type WatchRecorder } from './watch-recorder.ts'
import { ATTRIBUTES, bytesOf, IMPOSSIBLE_SIZE, NAMESPACES, type Workload } from './workload.ts'

export interface RestDeps {
  readonly cluster: Cluster
  readonly recorder: WatchRecorder
  readonly storage: RealStorage
  readonly workload: Workload
}

/** The state at rest. */
export interface Rest extends Readonly<Record<Collection, readonly any[]>> {
  readonly events: readonly any[]
  readonly held: ReadonlyMap<string, HeldVolume>
  /** Uids of pods with a directory on a node. */
  readonly podDirs: readonly string[]
  /** Ids of volumes with a loop device. */
  readonly attached: readonly string[]
}

/** What the history says about that state. */
export interface Past extends Pick<Replay, 'abandoned' | 'condemned'> {
  /** Names of volumes that an administrator created by calling the driver. */
  readonly imported: ReadonlySet<string>
}

/** Reads the state and returns its problems. */
export async function problemsAtRest(deps: RestDeps): Promise<string[]> {
  const { recorder, workload, storage } = deps
  const rest = await look(deps)
  const past = { ...replay(recorder.history(), workload.deletedByHand), imported: workload.imported }
  return [...problemsIn(rest, past), ...(await storage.contradictions())]
}

/** Pure. */
export function problemsIn(rest: Rest, past: Past): string[] {
  return [
    ...bindingProblems(rest, past),
    ...rest.claims.flatMap((claim) => [...sizeProblems(claim, rest), ...attributeProblems(claim, rest)]),
    ...rest.claims.flatMap((claim) => missingReason(claim, rest)),
    ...rest.pods.flatMap((pod) => podProblems(pod, rest)),
    ...quotaProblems(rest),
    ...leftOnNodes(rest),
  ]
}

/** Storage without a PersistentVolume that no controller had to delete. */
export async function abandonedStorage({ recorder, storage, workload }: RestDeps): Promise<HeldVolume[]> {
  const { abandoned } = replay(recorder.history(), workload.deletedByHand)
  const held = [...(await storage.held()).values()]
  return held.filter(({ id, name }) => abandoned.has(driverAsset(id)) || workload.imported.has(name))
}

async function look({ cluster, storage }: RestDeps): Promise<Rest> {
  const list = async (path: string) => (await cluster.server().call('GET', path)).json.items as any[]
  const names = Object.keys(COLLECTIONS) as Collection[]
  const objects = await Promise.all(names.map(async (name) => [name, await list(COLLECTIONS[name])] as const))
  const collections = Object.fromEntries(objects) as Record<Collection, any[]>
  return {
    ...collections,
    events: await list('/api/v1/events'),
    held: await storage.held(),
    podDirs: await storage.podDirs(),
    attached: await storage.attached(),
  }
}

/** Runs the simulator's checker of claims, volumes and storage. */
function bindingProblems(rest: Rest, { abandoned, condemned, imported }: Past): string[] {
  const stood = new Set(rest.volumes.map((volume) => assetOf(volume)))
  for (const { id, name } of rest.held.values()) {
    // Created by a user; the PersistentVolume for it was rejected or never requested.
    if (imported.has(name) && !stood.has(driverAsset(id))) abandoned.imported(driverAsset(id))
  }
  const pursued = rest.claims.filter((claim) => isStillPursued(claim, rest))
  for (const { id, name } of rest.held.values()) {
    if (pursued.some(({ metadata }) => name === `pvc-${metadata.uid}`)) abandoned.imported(driverAsset(id))
  }
  const used = new Set(rest.pods.flatMap(claimKeysOf))
  const claims = rest.claims
    .filter((claim) => claim.spec.volumeName || whyRefused(claim, rest) === undefined)
    .map((claim) => (used.has(keyOf(claim)) ? withoutEnd(claim) : claim)) // it waits for its pods
    .map((claim) => (pursued.includes(claim) ? withoutIntents(claim) : claim))
  const classes = rest.classes.filter(({ provisioner }) => provisioner === DRIVER)
  return problemsOf({
    view: viewOf(claims, rest.volumes),
    storage: { driver: { state: () => ({ volumes: Object.fromEntries(rest.held) }) }, plugin: new Map() },
    abandoned,
    condemned,
    classes: new Map(classes.map((each) => [each.metadata.name, each])),
  })
}

/** The claim's class or attributes changed, so it is unknown whether a volume was created; an event reports that. */
const isStillPursued = (claim: any, rest: Rest): boolean =>
  (claim.metadata.finalizers ?? []).some((each: string) => each.startsWith(INTENT_PREFIX)) &&
  rest.events.some(
    ({ involvedObject, reason }) => involvedObject.uid === claim.metadata.uid && reason === 'ProvisioningFailed',
  ) &&
  (claim.spec.volumeName !== undefined || whyRefused(claim, rest) !== undefined)

const withoutIntents = ({ metadata, ...rest }: any) => ({
  ...rest,
  metadata: { ...metadata, finalizers: metadata.finalizers.filter((each: string) => !each.startsWith(INTENT_PREFIX)) },
})

const withoutEnd = ({ metadata: { deletionTimestamp: _, ...metadata }, ...rest }: any) => ({ ...rest, metadata })

/** Why its class cannot provision a volume for it; undefined if it can. */
function whyRefused({ spec, status }: any, { attributes, classes }: Rest): string | undefined {
  const wanted = spec.volumeAttributesClassName
  const found = attributes.find(({ metadata }) => metadata.name === wanted)
  if (!classes.some(({ metadata }) => metadata.name === spec.storageClassName)) return 'its class is missing'
  if (wanted && !found) return `attributes ${wanted} are missing`
  if (wanted === 'odd') return 'the driver rejects its attributes'
  // A class that was rolled back too late is in effect, and the claim's own requests must agree with it.
  const inEffect = wanted ?? status?.currentVolumeAttributesClassName
  const contradicted = AMOUNTS.find((key) => isContradicted(spec.resources.requests[key], inEffect, key))
  return contradicted && `it requests other ${contradicted} than its attributes class has`
}

const AMOUNTS = ['iops', 'throughput'] as const

const isContradicted = (own: string | undefined, className: string, key: (typeof AMOUNTS)[number]): boolean => {
  const classes = ATTRIBUTES[className]?.[key]
  return own !== undefined && classes !== undefined && amountOf(own, key) !== amountOf(classes, key)
}

/** A count, or bytes per second; below 1Mi throughput is in MiB/s. */
function amountOf(text: string, key: string): number {
  const amount = bytesOf(text)
  return key === 'throughput' && amount < 1024 ** 2 ? amount * 1024 ** 2 : amount
}

function sizeProblems(claim: any, { volumes, held, pods }: Rest): string[] {
  if (claim.status?.phase !== 'Bound' || claim.metadata.deletionTimestamp) return []
  const key = keyOf(claim)
  const problems: string[] = []
  const volume = volumes.find(({ metadata }) => metadata.name === claim.spec.volumeName)
  const real = held.get(volume?.spec.csi.volumeHandle)
  if (!real) return [`${key} has a volume that its driver does not have`]
  const [wanted, has] = [bytesOf(claim.spec.resources.requests.storage), bytesOf(claim.status.capacity?.storage)]
  const state = claim.status.allocatedResourceStatuses?.storage
  const conditions: any[] = claim.status.conditions ?? []
  const says = (type: string) => conditions.some((condition) => condition.type === type && condition.status === 'True')
  if (has > real.capacityBytes) problems.push(`${key} reports ${has}, its device has ${real.capacityBytes}`)
  // An earlier claim may have been deleted during its expansion: the volume is then larger than recorded.
  const wasMadeForIt = volume.metadata.name === `pvc-${claim.metadata.uid}`
  const said = bytesOf(volume.spec.capacity.storage)
  if (said > real.capacityBytes || (wasMadeForIt && said !== real.capacityBytes))
    problems.push(`the volume of ${key} says ${volume.spec.capacity.storage}, its device has ${real.capacityBytes}`)
  if (wanted === bytesOf(IMPOSSIBLE_SIZE)) {
    if (state !== 'ControllerResizeInfeasible' && state !== 'NodeResizePending')
      problems.push(`${key} cannot have ${IMPOSSIBLE_SIZE}, and reports ${state}`)
    return problems
  }
  const isInUse = pods.some((pod) => pod.status?.phase === 'Running' && claimKeysOf(pod).includes(key))
  // Node expansion needs a pod; without one it waits for the next.
  const mayWait = !isInUse && claim.spec.volumeMode !== 'Block' && says('FileSystemResizePending')
  if (wanted > has && !mayWait) problems.push(`${key} requests ${wanted} and has ${has} (${state})`)
  if (state && !mayWait) problems.push(`${key} is still ${state}`)
  if (!state && says('Resizing')) problems.push(`${key} still says Resizing`)
  return problems
}

function attributeProblems(claim: any, rest: Rest): string[] {
  if (claim.status?.phase !== 'Bound' || claim.metadata.deletionTimestamp) return []
  const key = keyOf(claim)
  const { spec, status } = claim
  const volume = rest.volumes.find(({ metadata }) => metadata.name === spec.volumeName)
  const real = rest.held.get(volume?.spec.csi.volumeHandle)
  const [wanted, current] = [spec.volumeAttributesClassName, status.currentVolumeAttributesClassName]
  const why = whyRefused(claim, { ...rest, classes: [{ metadata: { name: spec.storageClassName } }] } as Rest)
  const state = status.modifyVolumeStatus?.status
  const states = AMOUNTS.flatMap((name) => status.allocatedResourceStatuses?.[name] ?? [])
  if (why !== undefined) {
    const isSaid =
      state || states.length > 0 || (status.conditions ?? []).some(({ type }: any) => type === 'ModifyVolumeError')
    return wanted === current || isSaid ? [] : [`${key} does not report that ${why}`]
  }
  const problems: string[] = []
  if ((wanted ?? current) !== current)
    problems.push(`${key} requests attributes ${wanted} and has ${current} (${state})`)
  if (state)
    problems.push(`${key} is still ${state} about ${status.modifyVolumeStatus.targetVolumeAttributesClassName}`)
  for (const each of states) problems.push(`${key} is still ${each}`)
  for (const name of AMOUNTS) {
    const asked = spec.resources.requests[name]
    const reported = status.capacity?.[name] ?? ATTRIBUTES[current]?.[name]
    if (asked !== undefined && status.capacity?.[name] !== asked)
      problems.push(`${key} requests ${name} ${asked} and reports ${status.capacity?.[name]}`)
    const has = name === 'iops' ? real?.limits.iops : real?.limits.throughputBytes
    if (reported !== undefined && amountOf(reported, name) !== has)
      problems.push(`${key} reports ${name} ${reported}, its driver has ${has}`)
  }
  return problems
}

/** An unbound claim without an event. */
function missingReason(claim: any, { events }: Rest): string[] {
  if (claim.status?.phase === 'Bound') return []
  const hasEvent = events.some(({ involvedObject }) => involvedObject.uid === claim.metadata.uid)
  return hasEvent ? [] : [`${keyOf(claim)} is ${claim.status?.phase} without an event that says why`]
}

function podProblems(pod: any, rest: Rest): string[] {
  const key = `pod ${keyOf(pod)}`
  const { metadata, spec, status } = pod
  if (metadata.deletionTimestamp) return [`${key} is stuck in its deletion`]
  if (status?.phase === 'Running') return []
  const claims = claimKeysOf(pod).map((name) => rest.claims.find((claim) => keyOf(claim) === name))
  const isReady = (claim: any) =>
    claim &&
    !claim.metadata.deletionTimestamp &&
    (claim.status?.phase === 'Bound' || whyRefused(claim, rest) === undefined)
  const nodes = new Set(claims.map((claim) => nodeOf(claim, rest)).filter((node) => node !== undefined))
  const isStatic = claims.some((claim) => claim?.spec.storageClassName === 'static' && claim.status?.phase !== 'Bound')
  if (claims.every(isReady) && nodes.size <= 1 && !isStatic)
    return [`${key} could run, and is ${status?.phase}: ${whyOf(pod)}`]
  const hasEvent = rest.events.some(({ involvedObject }) => involvedObject.uid === metadata.uid)
  return whyOf(pod) !== '' || hasEvent
    ? []
    : [`${key} on ${spec.nodeName} is ${status?.phase} without an event that says why`]
}

const whyOf = ({ status }: any): string =>
  [
    ...(status?.conditions ?? []).map(({ message }: any) => message),
    ...(status?.containerStatuses ?? []).map(({ state }: any) => state?.waiting?.message),
  ]
    .filter(Boolean)
    .join('; ')

function nodeOf(claim: any, { volumes, held }: Rest): string | undefined {
  const volume = volumes.find(({ metadata }) => metadata.name === claim?.spec.volumeName)
  return held.get(volume?.spec.csi.volumeHandle)?.node
}

export const claimKeysOf = ({ metadata, spec }: any): string[] =>
  (spec.volumes ?? []).flatMap(({ name, persistentVolumeClaim, ephemeral }: any) => {
    const claim = persistentVolumeClaim?.claimName ?? (ephemeral && `${metadata.name}-${name}`)
    return claim ? [`${metadata.namespace}/${claim}`] : []
  })

/** The usage of each quota must equal the sum over its objects, as the simulator's checker computes it. */
function quotaProblems({ claims, quotas, configMaps }: Rest): string[] {
  const problems: string[] = []
  for (const namespace of NAMESPACES) {
    const checker = createQuotaSums(namespace, (text) => void problems.push(`${namespace}: ${text}`))
    const stored = (kind: string, objects: readonly any[]) =>
      objects
        .filter(({ metadata }) => metadata.namespace === namespace)
        .map((object) => ({ key: `core/${kind}/${keyOf(object)}`, object }))
    checker.take([
      ...stored('configmaps', configMaps),
      ...stored('persistentvolumeclaims', claims),
      ...stored('resourcequotas', quotas),
    ])
  }
  return problems
}

/** Deleted pods leave nothing on their node, and only volumes in use have a device. */
function leftOnNodes({ pods, claims, volumes, podDirs, attached }: Rest): string[] {
  const uids = new Set(pods.map(({ metadata }) => metadata.uid))
  const used = new Set(pods.flatMap(claimKeysOf))
  const names = new Set(claims.filter((claim) => used.has(keyOf(claim))).map(({ spec }) => spec.volumeName))
  const inUse = new Set(
    volumes.filter(({ metadata }) => names.has(metadata.name)).map(({ spec }) => spec.csi.volumeHandle),
  )
  return [
    ...podDirs
      .filter((uid) => !uids.has(uid))
      .map((uid) => `a node has a directory of pod ${uid}, which does not exist`),
    ...attached.filter((id) => !inUse.has(id)).map((id) => `${id} has a loop device, and no pod uses it`),
  ]
}
