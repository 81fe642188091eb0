// Judges changes of attributes, commit by commit and call by call: a claim is never said to have what the driver's volume
// has not, the driver is asked only once the claim says so and the way back is on record, no volume undergoes two changes
// at once, and there are never more calls than workers. At rest the driver's volume has exactly the attributes that the
// claim's status amounts to, and every claim has what it wants or says why not. Reads the store and the driver alone.
import { volumeAttributesClassKind } from '../../api/kinds/attributes-class/attributes-class.ts'
import { collectionPrefix } from '../../apiserver/index.ts'
import { callDriver } from '../../csi/driver.ts'
import { type CsiDriver, createCsiDriver } from '../../csi/index.ts'
import type { Store } from '../../store/index.ts'
import type { Cluster } from '../cluster.ts'
import type { SimDriver } from '../driver.ts'

type Attributes = Readonly<Record<string, string>>

export interface ModifyingRules {
  readonly cluster: Cluster
  readonly driver: SimDriver
  /** Every class that there ever is, by name. */
  readonly classes: Readonly<Record<string, { readonly parameters: Attributes; readonly isForeign?: true }>>
  /** Attributes that the driver takes. */
  readonly knownKeys: readonly string[]
  readonly workers: number
  convict(crime: string): void
}

export interface ModifyingChecker {
  /** The driver as one life of the changer reaches it. */
  witness(driver: CsiDriver): CsiDriver
  /** Whether the driver has what it was last asked for. */
  isGiven(volumeId: string): boolean
  /** What is wrong, now that it should be quiet. */
  problems(): string[]
  /** Events about a claim, each once: `VolumeModify`, and what it says. */
  told(claim: string): readonly string[]
  /** Changes that the driver has made and claims have said. */
  readonly settled: number
  /** Counts the events about claims. */
  readonly heard: number
}

const CLAIMS = 'core/persistentvolumeclaims/default/'
const VOLUMES = 'core/persistentvolumes/'
const EVENTS = 'core/events/'
const CLASSES = collectionPrefix(volumeAttributesClassKind)
export const UNDO = 'modifying.stowage.dev/undo'
export const ATTRIBUTES = 'modifying.stowage.dev/attributes'
const AMOUNTS = ['iops', 'throughput'] as const
const CONDITIONS = ['ModifyingVolume', 'ModifyVolumeError']
const CHANGES: readonly string[] = ['ControllerModifyVolume', 'ControllerExpandVolume']

export function checkModifying(rules: ModifyingRules): ModifyingChecker {
  const { cluster, driver, classes, knownKeys, workers, convict } = rules
  const claims = new Map<string, any>()
  const volumes = new Map<string, any>()
  const existing = new Set<string>()
  const told = new Map<string, Set<string>>()
  /** What each claim has been said to have, one after the other. */
  const had = new Map<string, Set<string>>()
  /** What the volume of each claim must have, if all that its status ever said is true. */
  const amountsTo = new Map<string, Record<string, string>>()
  /** Attributes that were given up without anybody knowing what they were before: they may be anything. */
  const unknown = new Map<string, Set<string>>()
  const asked = new Map<string, Attributes>()
  let settled = 0
  let heard = 0

  /** What comes at once is judged once all of it is known: a server that comes back shows claims before volumes. */
  function take(states: readonly { key: string; value: Uint8Array | undefined }[]): void {
    const changed: (() => void)[] = []
    for (const { key, value } of states) {
      const object = value && JSON.parse(Buffer.from(value).toString())
      if (key.startsWith(CLAIMS)) changed.push(keep(claims, key.slice(CLAIMS.length), object, judgeClaim))
      else if (key.startsWith(VOLUMES)) keep(volumes, key.slice(VOLUMES.length), object)
      else if (key.startsWith(EVENTS) && object) hear(object)
      else if (key.startsWith(CLASSES)) existing[object ? 'add' : 'delete'](key.slice(CLASSES.length))
    }
    for (const judge of changed) judge()
  }

  function keep(shelf: Map<string, any>, name: string, object: any, judge?: (next: any, old: any) => void): () => void {
    const old = shelf.get(name)
    if (object === undefined) shelf.delete(name)
    else shelf.set(name, object)
    return () => void (object !== undefined && judge?.(object, old))
  }

  for (const prefix of ['core/', CLASSES]) {
    cluster.follow((store) => void attach(store, prefix))
  }
  async function attach(store: Store, prefix: string): Promise<void> {
    const { entries, revision } = await store.list({ prefix })
    const present = new Set(entries.map(({ key }) => key))
    const gone = prefix === CLASSES ? [...existing].filter((name) => !present.has(CLASSES + name)) : []
    take([...gone.map((name) => ({ key: CLASSES + name, value: undefined })), ...entries])
    store.watch({
      prefix,
      afterRevision: revision,
      onEvents: (events) => take(events.map(({ key, entry }) => ({ key, value: entry?.value }))),
      onEnd: () => {},
    })
  }

  function judgeClaim(claim: any, old: any): void {
    const { name } = claim.metadata
    const [current, before] = [currentOf(claim), currentOf(old)]
    const isNewClass = current !== before
    const changed = AMOUNTS.filter((key) => capacityOf(claim, key) !== capacityOf(old, key))
    const lost = unknown.get(name) ?? new Set()
    unknown.set(name, lost)
    for (const [key, value] of Object.entries(undoOf(old))) {
      if (value === null && !Object.hasOwn(undoOf(claim), key)) lost.add(key)
    }
    if (!isNewClass && changed.length === 0) return
    const gained: Record<string, string> = {}
    if (isNewClass && current !== undefined) Object.assign(gained, classes[current]?.parameters)
    for (const key of changed) {
      const own = capacityOf(claim, key)
      const amount = own ?? classes[current ?? '']?.parameters[key]
      if (amount !== undefined) gained[key] = amount
    }
    amountsTo.set(name, { ...amountsTo.get(name), ...gained })
    for (const key of Object.keys(gained)) lost.delete(key)
    had.set(name, (had.get(name) ?? new Set()).add(current ?? ''))
    if (old === undefined || claim.status?.phase !== old.status?.phase) return // how the world began
    settled++
    const has = attributesOf(claim) ?? {}
    for (const [key, value] of Object.entries(gained)) {
      if (has[key] !== value) convict(`${name} is said to have ${key}=${value}, its volume has ${has[key]}`)
    }
    if (isNewClass && current === undefined) convict(`${name} has lost its class`)
    if (current !== volumeOf(claim)?.spec.volumeAttributesClassName)
      convict(`${name} is said to have ${current}, its volume object says otherwise`)
  }

  function hear({ involvedObject, reason, message }: any): void {
    heard++
    const name = involvedObject?.name ?? ''
    const known = told.get(name) ?? new Set()
    told.set(name, known.add(`${reason}: ${message}`))
    const [, className] = /modified volume \S+ with vac (\S+) successfully/.exec(message ?? '') ?? []
    if (className !== undefined && !had.get(name)?.has(className))
      convict(`an event says that ${name} has ${className}, which it never had`)
  }

  const volumeOf = (claim: any): any => volumes.get(claim.spec.volumeName)
  const attributesOf = (claim: any): Attributes | undefined =>
    driver.state().volumes[volumeOf(claim)?.spec.csi.volumeHandle]?.mutableParameters

  function problemsOf(claim: any): string[] {
    const { name, annotations = {} } = claim.metadata
    const isKnown = ([key]: [string, string]) => !unknown.get(name)?.has(key)
    const known = (attributes: Attributes = {}) =>
      textOf(Object.fromEntries(Object.entries(attributes).filter(isKnown)))
    const [has, amounts] = [known(attributesOf(claim)), known(amountsTo.get(name))]
    const problems = has === amounts ? [] : [`${name}: the driver has ${has}, the status amounts to ${amounts}`]
    if (currentOf(claim) !== volumeOf(claim)?.spec.volumeAttributesClassName)
      problems.push(`${name} and its volume do not agree on a class`)
    for (const key of AMOUNTS) {
      if (capacityOf(claim, key) !== amountIn(volumeOf(claim)?.spec.capacity, key))
        problems.push(`${name} and its volume do not agree on ${key}`)
    }
    const noted = JSON.parse(volumeOf(claim)?.metadata.annotations?.[ATTRIBUTES] ?? '{}').attributes ?? {}
    if (Object.entries(noted).some(([key, value]) => attributesOf(claim)?.[key] !== value))
      problems.push(`the volume of ${name} notes ${textOf(noted)}, the driver has ${has}`)
    const expected = expectedOf(claim)
    const status = claim.status?.modifyVolumeStatus?.status
    const said = (claim.status?.conditions ?? []).filter(({ type }: any) => CONDITIONS.includes(type))
    const progress = AMOUNTS.map((key) => claim.status?.allocatedResourceStatuses?.[key]).filter(Boolean)
    if (expected === 'reached') {
      if (status) problems.push(`${name} has what it wants, and is still ${status}`)
      if (said.length > 0) problems.push(`${name} has what it wants, and still says ${JSON.stringify(said)}`)
      if (progress.length > 0) problems.push(`${name} has what it wants, and its amounts are still ${progress}`)
      if (annotations[UNDO]) problems.push(`${name} has what it wants, and keeps a way back`)
      return problems
    }
    if (expected === 'Infeasible' && !said.some(({ type }: any) => type === 'ModifyVolumeError'))
      problems.push(`${name} does not say why not`)
    // What the driver refuses is told with every try. What is told once may be lost with the process that tells it.
    const isRefused = expected === 'Infeasible' && !contradicts(claim)
    if (isRefused && ![...(told.get(name) ?? [])].some((text) => text.startsWith('VolumeModifyFailed')))
      problems.push(`no event says why ${name} has not what it wants`)
    if (expected === undefined) problems.push(`${name} wants what it could have: ${JSON.stringify(claim.spec)}`)
    else if (!(status === expected || progress.some((one: string) => one.endsWith(PROGRESS[expected]))))
      problems.push(`${name} should be ${expected}, and is ${status} ${progress}`)
    return problems
  }

  /** Where a claim must end. Undefined: elsewhere than it is, as nothing is in its way. */
  function expectedOf(claim: any): 'reached' | 'Pending' | 'Infeasible' | undefined {
    const current = currentOf(claim)
    const wanted = claim.spec.volumeAttributesClassName ?? current
    const due = AMOUNTS.filter((key) => isDue(claim, key, wanted))
    if (wanted === current && due.length === 0) return 'reached'
    const found = classes[wanted ?? '']
    if (wanted !== undefined && (!existing.has(wanted) || found?.isForeign)) return 'Pending'
    const isUnknown = Object.keys(found?.parameters ?? {}).some((key) => !knownKeys.includes(key))
    return isUnknown || contradicts(claim) ? 'Infeasible' : undefined
  }

  /** It asks for another amount than its class has. */
  function contradicts(claim: any): boolean {
    const parameters = classes[claim.spec.volumeAttributesClassName ?? currentOf(claim) ?? '']?.parameters ?? {}
    return AMOUNTS.some((key) => {
      const own = amountIn(claim.spec.resources.requests, key)
      return own !== undefined && parameters[key] !== undefined && parameters[key] !== own
    })
  }

  function isDue(claim: any, key: Amount, wanted: string | undefined): boolean {
    const own = amountIn(claim.spec.resources.requests, key)
    if (own !== undefined) return own !== capacityOf(claim, key)
    const isClassKnown = wanted !== undefined && existing.has(wanted)
    return capacityOf(claim, key) !== undefined && isClassKnown && classes[wanted]?.parameters[key] !== undefined
  }

  function judgeCall(volumeId: string, sent: Attributes): void {
    asked.set(volumeId, sent)
    cluster.world.note(`${volumeId} is to have ${textOf(sent)}`)
    const volume = [...volumes.values()].find(({ spec }) => spec.csi?.volumeHandle === volumeId)
    const claim = claims.get(volume?.spec.claimRef?.name)
    if (!claim) {
      convict(`the driver is asked about ${volumeId}, which is nobody's`)
      return
    }
    const { name, annotations = {} } = claim.metadata
    const undo = undoOf(claim)
    const has: Attributes = attributesOf(claim) ?? {}
    const changed = Object.entries(sent).filter(([key, value]) => has[key] !== value)
    // Who did not hear that its last write was done asks once more, for what is there.
    if (changed.length === 0) return
    const isSaid =
      claim.status?.modifyVolumeStatus?.status === 'InProgress' ||
      AMOUNTS.some((key) => claim.status?.allocatedResourceStatuses?.[key]?.endsWith('InProgress')) ||
      annotations[UNDO] !== undefined
    if (!isSaid) convict(`the driver is asked for ${textOf(sent)} of ${name}, and the claim does not say so`)
    for (const [key, value] of changed) {
      if (!Object.hasOwn(undo, key))
        convict(`${key} of ${name} is about to be ${value} in place of ${has[key]}, with no way back on record`)
    }
  }

  return {
    problems: () => [...claims.values()].flatMap(problemsOf),
    told: (claim) => [...(told.get(claim) ?? [])],
    isGiven(volumeId) {
      const held = driver.state().volumes[volumeId]?.mutableParameters ?? {}
      return Object.entries(asked.get(volumeId) ?? {}).every(([key, value]) => held[key] === value)
    },
    get settled() {
      return settled
    },
    get heard() {
      return heard
    },
    witness(to) {
      const underWay = new Set<string>()
      return createCsiDriver(async (method, request, options) => {
        if (!CHANGES.includes(method.name)) return callDriver(to, method, request, options)
        const { volumeId, mutableParameters = {} } = request as unknown as Asked
        if (method.name === 'ControllerModifyVolume') judgeCall(volumeId, mutableParameters)
        if (underWay.has(volumeId)) convict(`${volumeId} undergoes two changes at once`)
        underWay.add(volumeId)
        if (underWay.size > workers) convict(`${underWay.size} changes at once, with ${workers} workers`)
        try {
          return await callDriver(to, method, request, options)
        } finally {
          underWay.delete(volumeId)
        }
      })
    },
  }
}

type Amount = (typeof AMOUNTS)[number]

interface Asked {
  readonly volumeId: string
  readonly mutableParameters?: Attributes
}

/** How an amount says what a class says. */
const PROGRESS = { Pending: 'Pending', Infeasible: 'Failed' } as const

const undoOf = (claim: any): Readonly<Record<string, string | null>> =>
  JSON.parse(claim?.metadata.annotations?.[UNDO] ?? '{}')
const currentOf = (claim: any): string | undefined => claim?.status?.currentVolumeAttributesClassName
const capacityOf = (claim: any, key: Amount): string | undefined => amountIn(claim?.status?.capacity, key)

/** As a driver is told: a count, or whole MiB/s. Only such amounts occur in these worlds; the server writes 1000 as 1k. */
function amountIn(list: Readonly<Record<string, string>> | undefined, key: Amount): string | undefined {
  const amount = list?.[key]
  return key === 'throughput' ? amount?.replace(/Mi$/, '') : amount?.replace(/k$/, '000')
}

const textOf = (attributes: Attributes): string => JSON.stringify(Object.entries(attributes).sort())
