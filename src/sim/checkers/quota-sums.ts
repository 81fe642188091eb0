// Judges every commit: what a quota says is used is what the objects add up to at that very moment, and no charge has
// taken it above its bounds. Adds up by itself, from the bytes in the store, with nothing that production code uses.

/** One object of a commit; undefined: it is gone. Only the fields that count are looked at. */
export interface Stored {
  readonly key: string
  readonly object: any
}

export interface QuotaSums {
  /** What became visible at once. */
  take(changes: readonly Stored[]): void
  readonly quotas: ReadonlyMap<string, any>
  readonly claims: ReadonlyMap<string, any>
  /** How much a quota with this spec counts now, by key, or would with one more claim. */
  addUp(spec: any, another?: any): Map<string, bigint>
  /** Whether a quota with this spec would accept one more claim. */
  hasRoomFor(spec: any, claim: any): boolean
}

const CLAIMS = 'core/persistentvolumeclaims/'
const QUOTAS = 'core/resourcequotas/'
const PODS = 'core/pods/'

export function createQuotaSums(namespace: string, report: (text: string) => void): QuotaSums {
  const claims = new Map<string, any>()
  const quotas = new Map<string, any>()
  const pods = new Map<string, any>()
  /** Every object of the namespace, by what it is counted as: `configmaps`, `leases.coordination.k8s.io`. */
  const objects = new Map<string, Set<string>>()
  const collections = [
    { prefix: `${CLAIMS}${namespace}/`, collection: claims },
    { prefix: `${QUOTAS}${namespace}/`, collection: quotas },
    { prefix: `${PODS}${namespace}/`, collection: pods },
  ]

  /** Whether it is one of the namespace's. */
  function count(key: string, isThere: boolean): boolean {
    const [group = '', plural = '', of, name] = key.split('/')
    if (of !== namespace || name === undefined || plural === 'events') return false
    const counted = group === 'core' ? plural : `${plural}.${group}`
    const names = objects.get(counted) ?? new Set()
    objects.set(counted, names)
    if (isThere) names.add(name)
    else names.delete(name)
    return true
  }

  /**
   * `states`: of this quota, as the commit found it and every one it went through; a charge was judged by one of them.
   * `told`: the claims whose status was written. That is never refused, so what they hold may be above the bounds.
   */
  function check(name: string, states: readonly any[], told: readonly any[]): void {
    const [before] = states
    const quota = states.at(-1)
    const counted = addUp(quota.spec)
    const excused = sumOf(quota.spec, { claims: told, pods: [], countOf: () => 0 })
    const isSameQuota = before && states.every((state) => scopeOf(state) === scopeOf(before))
    for (const [key, text] of Object.entries(quota.status?.used ?? {}) as [string, string][]) {
      const used = amountOf(text, unitsOf(key))
      if (used !== counted.get(key)) {
        report(`quota ${name} says ${key}=${used}, the objects add up to ${counted.get(key)}`)
      }
      const usedBefore = before?.status?.used?.[key]
      if (!isSameQuota || usedBefore === undefined) continue // counted just now: what was there may be above the bounds
      const bounds = states.map(({ spec }) => amountOf(spec.hard[key], unitsOf(key)))
      const limit = largest([amountOf(usedBefore, unitsOf(key)), ...bounds])
      if (used > limit + (excused.get(key) ?? 0n)) {
        report(`quota ${name}: a charge has raised ${key} from ${usedBefore} to ${used}, above ${limit}`)
      }
    }
  }

  const addUp = (spec: any, another?: any) =>
    sumOf(spec, {
      claims: [...claims.values(), ...(another ? [another] : [])],
      pods: [...pods.values()],
      countOf: (resource) =>
        (objects.get(resource)?.size ?? 0) + (another && resource === 'persistentvolumeclaims' ? 1 : 0),
    })

  return {
    claims,
    quotas,
    addUp,
    hasRoomFor(spec, claim) {
      const used = addUp(spec)
      const isWithin = ([key, amount]: [string, bigint]) =>
        amount <= (used.get(key) ?? 0n) || amount <= amountOf(spec.hard[key], unitsOf(key))
      return [...addUp(spec, claim)].every(isWithin)
    },
    take(changes) {
      const statesOf = new Map<string, any[]>([...quotas].map(([name, quota]) => [name, [quota]]))
      const told = new Set<string>()
      let isOurs = false
      for (const { key, object } of changes) {
        if (count(key, object !== undefined)) isOurs = true
        const place = collections.find(({ prefix }) => key.startsWith(prefix))
        if (!place) continue
        const name = key.slice(place.prefix.length)
        if (place.collection === claims && object && hasNewStatus(object, claims.get(name))) told.add(name)
        if (object === undefined) place.collection.delete(name)
        else place.collection.set(name, object)
        if (place.collection !== quotas) continue
        const states = statesOf.get(name) ?? [undefined]
        if (object === undefined) statesOf.set(name, [undefined])
        else statesOf.set(name, [...states, object])
      }
      if (!isOurs) return
      const toldClaims = [...told].map((name) => claims.get(name)).filter((claim) => claim !== undefined)
      for (const name of quotas.keys()) check(name, statesOf.get(name) ?? [], toldClaims)
    },
  }
}

/** Of a claim that is new, anything that a status can count for. */
function hasNewStatus({ metadata, status = {} }: any, before: any): boolean {
  if (before?.metadata.uid === metadata.uid) return JSON.stringify(before.status ?? {}) !== JSON.stringify(status)
  return status.allocatedResources !== undefined || status.currentVolumeAttributesClassName !== undefined
}

const scopeOf = ({ metadata, spec }: any): string => `${metadata.uid} ${JSON.stringify(spec.scopeSelector ?? null)}`

interface Contents {
  readonly claims: readonly any[]
  readonly pods: readonly any[]
  /** How many there are, as `count/…` names them. */
  countOf(resource: string): number
}

function sumOf(spec: any, contents: Contents): Map<string, bigint> {
  const requirements = requirementsOf(spec)
  const isAboutClaims = requirements.every(({ scopeName }) => scopeName === CLASS_SCOPE)
  const isAboutPods = requirements.every(({ scopeName }) => scopeName !== CLASS_SCOPE)
  const claims = contents.claims.filter(
    (claim) => isAboutClaims && requirements.every((one) => isCounted(one, classesOf(claim))),
  )
  const pods = contents.pods.filter((pod) => isAboutPods && requirements.every((one) => isPodCounted(one, pod)))
  const amounts = (name: string, of = claims) => of.map((claim) => heldOf(claim, name))
  const sum = (list: readonly bigint[]) => list.reduce((total, amount) => total + amount, 0n)
  const used = new Map<string, bigint>()
  for (const key of Object.keys(spec.hard ?? {})) used.set(key, amountFor(key))
  return used

  function amountFor(key: string): bigint {
    const className = /^(.+)\.storageclass\.storage\.k8s\.io\/(.+)$/.exec(key)
    if (className) {
      const ofClass = claims.filter((claim) => claim.spec.storageClassName === className[1])
      return className[2] === 'requests.storage' ? sum(amounts('storage', ofClass)) : BigInt(ofClass.length)
    }
    const [, io] = /^limits\.(iops|throughput)$/.exec(key) ?? []
    if (io) return sum(amounts(io))
    const [, largestOf] = /^requests\.(iops|throughput)$/.exec(key) ?? []
    if (largestOf) return largest(amounts(largestOf))
    if (key === 'requests.storage') return sum(amounts('storage'))
    const counted = /^(?:count\/(.+)|persistentvolumeclaims|configmaps|secrets|resourcequotas)$/.exec(key)
    if (counted) return BigInt(countOf(counted[1] ?? key))
    const running = pods.filter(({ status }) => status?.phase !== 'Succeeded' && status?.phase !== 'Failed')
    if (key === 'pods') return BigInt(running.length)
    const [, part = 'requests', name = ''] = /^(?:(requests|limits)\.)?(.+)$/.exec(key) ?? []
    return sum(running.map((pod) => askedBy(pod, part, name, unitsOf(key))))
  }

  function countOf(resource: string): number {
    if (resource === 'persistentvolumeclaims' && isAboutClaims) return claims.length
    if (resource === 'pods' && isAboutPods) return pods.length
    return requirements.length > 0 ? 0 : contents.countOf(resource)
  }
}

const CLASS_SCOPE = 'VolumeAttributesClass'

/** Both ways of saying it. One that names no scope is about classes, which is all that worlds without pods have. */
function requirementsOf({ scopes = [], scopeSelector }: any): { scopeName: string; operator: string; values?: any }[] {
  return [
    ...scopes.map((scopeName: string) => ({ scopeName, operator: 'Exists' })),
    ...(scopeSelector?.matchExpressions ?? []).map((one: any) => ({ scopeName: CLASS_SCOPE, ...one })),
  ]
}

/** Those that a claim wants, has, and is being changed to. */
function classesOf({ spec, status }: any): string[] {
  const target = status?.modifyVolumeStatus?.targetVolumeAttributesClassName
  return [spec.volumeAttributesClassName, status?.currentVolumeAttributesClassName, target].filter(Boolean)
}

function isCounted({ operator, values = [] }: { operator: string; values?: any }, classes: readonly string[]): boolean {
  const has = classes.some((name) => values.includes(name))
  const hasOther = classes.some((name) => !values.includes(name))
  switch (operator) {
    case 'In':
      return has
    case 'NotIn':
      return hasOther || classes.length === 0
    case 'Exists':
      return classes.length > 0
    default:
      return classes.length === 0
  }
}

function isPodCounted(requirement: { scopeName: string; operator: string; values?: any }, { spec }: any): boolean {
  const hasDeadline = spec.activeDeadlineSeconds !== undefined
  const isBestEffort = [...spec.containers, ...(spec.initContainers ?? [])].every(
    ({ resources: { requests = {}, limits = {} } = {} as any }: any) =>
      ['cpu', 'memory'].every((name) => requests[name] === undefined && limits[name] === undefined),
  )
  switch (requirement.scopeName) {
    case 'Terminating':
      return hasDeadline
    case 'NotTerminating':
      return !hasDeadline
    case 'BestEffort':
      return isBestEffort
    case 'NotBestEffort':
      return !isBestEffort
    case 'PriorityClass':
      return isCounted(requirement, spec.priorityClassName ? [spec.priorityClassName] : [])
    default:
      return false // nobody here asks for pods of other namespaces
  }
}

/** What its containers ask for together, or one that runs before them alone. */
function askedBy({ spec }: any, part: string, name: string, units: bigint): bigint {
  const of = ({ resources }: any) => amountOf(resources?.[part]?.[name], units)
  const together = spec.containers.map(of).reduce((total: bigint, one: bigint) => total + one, 0n)
  return largest([together, ...(spec.initContainers ?? []).map(of)])
}

/** An amount that is being lowered counts until the volume has less. */
function heldOf({ spec, status }: any, name: string): bigint {
  const lists = [spec.resources?.requests, spec.allocatedResources, status?.allocatedResources]
  const held = largest(lists.map((list) => amountOf(list?.[name])))
  return name !== 'storage' && held > 0n ? largest([held, amountOf(status?.capacity?.[name])]) : held
}

function largest(amounts: readonly bigint[]): bigint {
  let found = 0n
  for (const amount of amounts) if (amount > found) found = amount
  return found
}

const FACTORS: Readonly<Record<string, bigint>> = {
  '': 1_000n,
  m: 1n,
  k: 1_000n * 1_000n,
  M: 1_000n * 1_000n ** 2n,
  G: 1_000n * 1_000n ** 3n,
  Ki: 1_000n << 10n,
  Mi: 1_000n << 20n,
  Gi: 1_000n << 30n,
  Ti: 1_000n << 40n,
}

/** Cores come in thousandths, all else is whole. */
const unitsOf = (key: string): bigint => (/(^|\.)cpu$/.test(key) ? 1_000n : 1n)

/** In thousandths, or whole and rounded up. Other amounts do not occur in these worlds. */
function amountOf(text: string | undefined, units = 1n): bigint {
  if (text === undefined) return 0n
  const [, digits, suffix] = /^(\d+)(m|k|M|G|Ki|Mi|Gi|Ti|)$/.exec(text) ?? []
  if (digits === undefined) throw new Error(`the checker cannot read the amount "${text}"`)
  const thousandths = BigInt(digits) * FACTORS[suffix ?? '']!
  return units === 1_000n ? thousandths : (thousandths + 999n) / 1_000n
}
