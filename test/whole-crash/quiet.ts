// What must hold once faults are over and nothing moves any more, by the API and the drivers alone. Whoever can have what
// it asks for has it; whoever cannot says why; and nothing is held that belongs to nobody.
import { INTENT_PREFIX } from '../../src/controllers/provisioning/intent.ts'
import { assetOf, driverAsset } from '../../src/sim/checkers/assets.ts'
import { problemsOf } from '../../src/sim/checkers/quiet.ts'
import { createQuotaChecker } from '../../src/sim/checkers/quota.ts'
import { type Cluster, DRIVER } from './cluster.ts'
import { ATTRIBUTES, bytesOf, IMPOSSIBLE_SIZE, NAMESPACES, type People } from './people.ts'
import { type Replay, replay, viewOf } from './replay.ts'
import type { HeldVolume, RealStorage } from './storage.ts'
import { COLLECTIONS, type Collection, keyOf, type Witness } from './witness.ts'

export interface QuietDeps {
  readonly cluster: Cluster
  readonly witness: Witness
  readonly storage: RealStorage
  readonly people: People
}

/** Everything as it is. */
export interface Rest extends Readonly<Record<Collection, readonly any[]>> {
  readonly events: readonly any[]
  readonly held: ReadonlyMap<string, HeldVolume>
  /** Uids of pods that a node has a directory of. */
  readonly podDirs: readonly string[]
  /** Ids of volumes that a loop device is over. */
  readonly attached: readonly string[]
}

/** How it came to be like that. */
export interface Past extends Pick<Replay, 'abandoned' | 'condemned'> {
  /** Names of storage that an administrator made with the driver itself. */
  readonly imported: ReadonlySet<string>
}

/** What is wrong, asked anew. */
export async function problemsAtRest(deps: QuietDeps): Promise<string[]> {
  const { witness, people, storage } = deps
  const rest = await look(deps)
  const past = { ...replay(witness.history(), people.deletedByHand), imported: people.imported }
  return [...problemsIn(rest, past), ...(await storage.contradictions())]
}

/** Pure: what there is goes in, what is wrong comes out. */
export function problemsIn(rest: Rest, past: Past): string[] {
  return [
    ...bindingProblems(rest, past),
    ...rest.claims.flatMap((claim) => [...sizeProblems(claim, rest), ...attributeProblems(claim, rest)]),
    ...rest.claims.flatMap((claim) => silence(claim, rest)),
    ...rest.pods.flatMap((pod) => podProblems(pod, rest)),
    ...quotaProblems(rest),
    ...leftOnNodes(rest),
  ]
}

/** Storage that no object stands for any more, and that nobody was to delete. */
export async function abandonedStorage({ witness, storage, people }: QuietDeps): Promise<HeldVolume[]> {
  const { abandoned } = replay(witness.history(), people.deletedByHand)
  const held = [...(await storage.held()).values()]
  return held.filter(({ id, name }) => abandoned.has(driverAsset(id)) || people.imported.has(name))
}

async function look({ cluster, storage }: QuietDeps): Promise<Rest> {
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

/** The simulator's own judgement of claims, volumes and what is behind them. */
function bindingProblems(rest: Rest, { abandoned, condemned, imported }: Past): string[] {
  const stood = new Set(rest.volumes.map((volume) => assetOf(volume)))
  for (const { id, name } of rest.held.values()) {
    // Made by hand, and the object for it was refused or never asked for.
    if (imported.has(name) && !stood.has(driverAsset(id))) abandoned.imported(driverAsset(id))
  }
  const pursued = rest.claims.filter((claim) => isStillPursued(claim, rest))
  for (const { id, name } of rest.held.values()) {
    if (pursued.some(({ metadata }) => name === `pvc-${metadata.uid}`)) abandoned.imported(driverAsset(id))
  }
  const used = new Set(rest.pods.flatMap(claimKeysOf))
  const claims = rest.claims
    .filter((claim) => claim.spec.volumeName || whyRefused(claim, rest) === undefined)
    .map((claim) => (used.has(keyOf(claim)) ? withoutEnd(claim) : claim)) // it waits for its pods to end
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

/** Whether a volume was made could not be found out, as its class or its attributes are others now; and it says so. */
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

/** Why its class cannot make a volume for it, if so. */
function whyRefused({ spec, status }: any, { attributes, classes }: Rest): string | undefined {
  const wanted = spec.volumeAttributesClassName
  const found = attributes.find(({ metadata }) => metadata.name === wanted)
  if (!classes.some(({ metadata }) => metadata.name === spec.storageClassName)) return 'its class is missing'
  if (wanted && !found) return `attributes ${wanted} are missing`
  if (wanted === 'odd') return 'the driver refuses its attributes'
  // A class that was taken back too late is in effect, and what the claim asks for itself must agree with it.
  const inEffect = wanted ?? status?.currentVolumeAttributesClassName
  const contradicted = AMOUNTS.find((key) => isContradicted(spec.resources.requests[key], inEffect, key))
  return contradicted && `it asks for other ${contradicted} than its attributes have`
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
  if (has > real.capacityBytes) problems.push(`${key} is said to have ${has}, its device has ${real.capacityBytes}`)
  // An earlier claim may have gone while its growth was on the way: of that nobody is told, and the volume has more.
  const wasMadeForIt = volume.metadata.name === `pvc-${claim.metadata.uid}`
  const said = bytesOf(volume.spec.capacity.storage)
  if (said > real.capacityBytes || (wasMadeForIt && said !== real.capacityBytes))
    problems.push(`the volume of ${key} says ${volume.spec.capacity.storage}, its device has ${real.capacityBytes}`)
  if (wanted === bytesOf(IMPOSSIBLE_SIZE)) {
    if (state !== 'ControllerResizeInfeasible' && state !== 'NodeResizePending')
      problems.push(`${key} cannot have ${IMPOSSIBLE_SIZE}, and says ${state}`)
    return problems
  }
  const isInUse = pods.some((pod) => pod.status?.phase === 'Running' && claimKeysOf(pod).includes(key))
  // A file system grows where a pod has it; without one it waits for the next.
  const mayWait = !isInUse && claim.spec.volumeMode !== 'Block' && says('FileSystemResizePending')
  if (wanted > has && !mayWait) problems.push(`${key} asks for ${wanted} and has ${has} (${state})`)
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
    return wanted === current || isSaid ? [] : [`${key} does not say that ${why}`]
  }
  const problems: string[] = []
  if ((wanted ?? current) !== current) problems.push(`${key} wants attributes ${wanted} and has ${current} (${state})`)
  if (state)
    problems.push(`${key} is still ${state} about ${status.modifyVolumeStatus.targetVolumeAttributesClassName}`)
  for (const each of states) problems.push(`${key} is still ${each}`)
  for (const name of AMOUNTS) {
    const asked = spec.resources.requests[name]
    const told = status.capacity?.[name] ?? ATTRIBUTES[current]?.[name]
    if (asked !== undefined && status.capacity?.[name] !== asked)
      problems.push(`${key} asks for ${name} ${asked} and is told ${status.capacity?.[name]}`)
    const has = name === 'iops' ? real?.limits.iops : real?.limits.throughputBytes
    if (told !== undefined && amountOf(told, name) !== has)
      problems.push(`${key} is told ${name} ${told}, its driver has ${has}`)
  }
  return problems
}

/** A claim without a volume that says nothing. */
function silence(claim: any, { events }: Rest): string[] {
  if (claim.status?.phase === 'Bound') return []
  const isTold = events.some(({ involvedObject }) => involvedObject.uid === claim.metadata.uid)
  return isTold ? [] : [`${keyOf(claim)} is ${claim.status?.phase} and nobody is told why`]
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
  const isStatic = claims.some((claim) => claim?.spec.storageClassName === 'shelf' && claim.status?.phase !== 'Bound')
  if (claims.every(isReady) && nodes.size <= 1 && !isStatic)
    return [`${key} could run, and is ${status?.phase}: ${whyOf(pod)}`]
  const isTold = rest.events.some(({ involvedObject }) => involvedObject.uid === metadata.uid)
  return whyOf(pod) !== '' || isTold ? [] : [`${key} on ${spec.nodeName} is ${status?.phase} and nobody is told why`]
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

/** What each quota says is used is what the objects add up to, by the simulator's own arithmetic. */
function quotaProblems({ claims, quotas, configMaps }: Rest): string[] {
  const problems: string[] = []
  for (const namespace of NAMESPACES) {
    const checker = createQuotaChecker(namespace, (crime) => void problems.push(`${namespace}: ${crime}`))
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

/** Pods that are gone have left nothing on their node, and only what some pod uses has a device. */
function leftOnNodes({ pods, claims, volumes, podDirs, attached }: Rest): string[] {
  const uids = new Set(pods.map(({ metadata }) => metadata.uid))
  const used = new Set(pods.flatMap(claimKeysOf))
  const names = new Set(claims.filter((claim) => used.has(keyOf(claim))).map(({ spec }) => spec.volumeName))
  const inUse = new Set(
    volumes.filter(({ metadata }) => names.has(metadata.name)).map(({ spec }) => spec.csi.volumeHandle),
  )
  return [
    ...podDirs.filter((uid) => !uids.has(uid)).map((uid) => `a node has a directory of pod ${uid}, which is gone`),
    ...attached.filter((id) => !inUse.has(id)).map((id) => `${id} has a loop device, and no pod uses it`),
  ]
}
