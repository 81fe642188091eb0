// Adds up what each quota of a namespace should count, at every commit, and compares it with the quota's status. Reads the
// stored bytes with independent arithmetic and shares no code with the server.

/** Stored JSON, read without the product's types: the sums must not depend on them. */
// biome-ignore lint/suspicious/noExplicitAny: the checker reads arbitrary fields of stored objects
type StoredJson = any

/** One object of a commit; `object` is undefined if it was deleted. */
interface ObjectChange {
  readonly key: string
  readonly object: StoredJson
}

export interface QuotaSums {
  /** Applies the changes of one commit, and checks the quotas. */
  apply(changes: readonly ObjectChange[]): void
  readonly quotas: ReadonlyMap<string, StoredJson>
  readonly claims: ReadonlyMap<string, StoredJson>
  /** Returns the amounts that a quota with this spec counts, by key, at present or with one more claim. */
  addUp(spec: StoredJson, extraClaim?: StoredJson): Map<string, bigint>
  /** Whether a quota with this spec would accept one more claim. */
  admits(spec: StoredJson, claim: StoredJson): boolean
}

const CLAIMS = 'core/persistentvolumeclaims/'
const QUOTAS = 'core/resourcequotas/'
const PODS = 'core/pods/'

export function createQuotaSums(namespace: string, report: (text: string) => void): QuotaSums {
  const claims = new Map<string, StoredJson>()
  const quotas = new Map<string, StoredJson>()
  const pods = new Map<string, StoredJson>()
  /** Every object of the namespace by resource: `configmaps`, `leases.coordination.k8s.io`. */
  const objects = new Map<string, Set<string>>()
  const collections = [
    { prefix: `${CLAIMS}${namespace}/`, objects: claims },
    { prefix: `${QUOTAS}${namespace}/`, objects: quotas },
    { prefix: `${PODS}${namespace}/`, objects: pods },
  ]

  /** Returns whether the object belongs to the namespace. */
  function trackObject(key: string, exists: boolean): boolean {
    const [group = '', plural = '', namespaceOfKey, name] = key.split('/')
    if (namespaceOfKey !== namespace || name === undefined || plural === 'events') return false
    const resource = group === 'core' ? plural : `${plural}.${group}`
    const names = objects.get(resource) ?? new Set()
    objects.set(resource, names)
    if (exists) names.add(name)
    else names.delete(name)
    return true
  }

  /**
   * `states`: the quota before the commit and after each of its writes; the charge was made against one of them.
   * `claimsWithNewStatus`: claims whose status was written. Status writes are never rejected, so they may exceed a limit.
   */
  function check(name: string, states: readonly StoredJson[], claimsWithNewStatus: readonly StoredJson[]): void {
    const [previous] = states
    const quota = states.at(-1)
    const countedAmounts = addUp(quota.spec)
    const exemptAmounts = sumOf(quota.spec, { claims: claimsWithNewStatus, pods: [], countOf: () => 0 })
    const isSameQuota = previous && states.every((state) => scopeOf(state) === scopeOf(previous))
    for (const [key, usedText] of Object.entries(quota.status?.used ?? {}) as [string, string][]) {
      const used = amountOf(usedText, unitsOf(key))
      if (used !== countedAmounts.get(key)) {
        report(`quota ${name} reports ${key}=${used}, but the objects add up to ${countedAmounts.get(key)}`)
      }
      const usedBefore = previous?.status?.used?.[key]
      if (!isSameQuota || usedBefore === undefined) continue // counted for the first time: existing objects may exceed the limit
      const limits = states.map(({ spec }) => amountOf(spec.hard[key], unitsOf(key)))
      const limit = largest([amountOf(usedBefore, unitsOf(key)), ...limits])
      if (used > limit + (exemptAmounts.get(key) ?? 0n)) {
        report(`quota ${name}: a charge raised ${key} from ${usedBefore} to ${used}, above ${limit}`)
      }
    }
  }

  const addUp = (spec: StoredJson, extraClaim?: StoredJson) =>
    sumOf(spec, {
      claims: [...claims.values(), ...(extraClaim ? [extraClaim] : [])],
      pods: [...pods.values()],
      countOf: (resource) =>
        (objects.get(resource)?.size ?? 0) + (extraClaim && resource === 'persistentvolumeclaims' ? 1 : 0),
    })

  return {
    claims,
    quotas,
    addUp,
    admits(spec, claim) {
      const usage = addUp(spec)
      const isWithinLimit = ([key, amount]: [string, bigint]) =>
        amount <= (usage.get(key) ?? 0n) || amount <= amountOf(spec.hard[key], unitsOf(key))
      return [...addUp(spec, claim)].every(isWithinLimit)
    },
    apply(changes) {
      const statesByQuota = new Map<string, StoredJson[]>([...quotas].map(([name, quota]) => [name, [quota]]))
      const namesWithNewStatus = new Set<string>()
      let concernsNamespace = false
      for (const { key, object } of changes) {
        if (trackObject(key, object !== undefined)) concernsNamespace = true
        const collection = collections.find(({ prefix }) => key.startsWith(prefix))
        if (!collection) continue
        const name = key.slice(collection.prefix.length)
        if (collection.objects === claims && object && hasNewStatus(object, claims.get(name)))
          namesWithNewStatus.add(name)
        if (object === undefined) collection.objects.delete(name)
        else collection.objects.set(name, object)
        if (collection.objects !== quotas) continue
        const states = statesByQuota.get(name) ?? [undefined]
        if (object === undefined) statesByQuota.set(name, [undefined])
        else statesByQuota.set(name, [...states, object])
      }
      if (!concernsNamespace) return
      const claimsWithNewStatus = [...namesWithNewStatus]
        .map((name) => claims.get(name))
        .filter((claim) => claim !== undefined)
      for (const name of quotas.keys()) check(name, statesByQuota.get(name) ?? [], claimsWithNewStatus)
    },
  }
}

/** Returns whether a claim's status was written; for a new claim, whether it has anything that a quota counts. */
function hasNewStatus({ metadata, status = {} }: StoredJson, previous: StoredJson): boolean {
  if (previous?.metadata.uid === metadata.uid) return JSON.stringify(previous.status ?? {}) !== JSON.stringify(status)
  return status.allocatedResources !== undefined || status.currentVolumeAttributesClassName !== undefined
}

const scopeOf = ({ metadata, spec }: StoredJson): string =>
  `${metadata.uid} ${JSON.stringify(spec.scopeSelector ?? null)}`

interface Contents {
  readonly claims: readonly StoredJson[]
  readonly pods: readonly StoredJson[]
  /** Returns the number of objects of a resource, named as in `count/…`. */
  countOf(resource: string): number
}

function sumOf(spec: StoredJson, contents: Contents): Map<string, bigint> {
  const requirements = requirementsOf(spec)
  const isAboutClaims = requirements.every(({ scopeName }) => scopeName === CLASS_SCOPE)
  const isAboutPods = requirements.every(({ scopeName }) => scopeName !== CLASS_SCOPE)
  const claims = contents.claims.filter(
    (claim) => isAboutClaims && requirements.every((requirement) => isCounted(requirement, classesOf(claim))),
  )
  const pods = contents.pods.filter(
    (pod) => isAboutPods && requirements.every((requirement) => isPodCounted(requirement, pod)),
  )
  const amounts = (name: string, countedClaims = claims) => countedClaims.map((claim) => chargedAmount(claim, name))
  const sum = (list: readonly bigint[]) => list.reduce((total, amount) => total + amount, 0n)
  const amountsByKey = new Map<string, bigint>()
  for (const key of Object.keys(spec.hard ?? {})) amountsByKey.set(key, amountFor(key))
  return amountsByKey

  function amountFor(key: string): bigint {
    const classKey = /^(.+)\.storageclass\.storage\.k8s\.io\/(.+)$/.exec(key)
    if (classKey) {
      const [, className, resource] = classKey
      const claimsOfClass = claims.filter((claim) => claim.spec.storageClassName === className)
      return resource === 'requests.storage' ? sum(amounts('storage', claimsOfClass)) : BigInt(claimsOfClass.length)
    }
    const [, ioName] = /^limits\.(iops|throughput)$/.exec(key) ?? []
    if (ioName) return sum(amounts(ioName))
    const [, largestName] = /^requests\.(iops|throughput)$/.exec(key) ?? []
    if (largestName) return largest(amounts(largestName))
    if (key === 'requests.storage') return sum(amounts('storage'))
    const countKey = /^(?:count\/(.+)|persistentvolumeclaims|configmaps|secrets|resourcequotas)$/.exec(key)
    if (countKey) return BigInt(countOf(countKey[1] ?? key))
    const runningPods = pods.filter(({ status }) => status?.phase !== 'Succeeded' && status?.phase !== 'Failed')
    if (key === 'pods') return BigInt(runningPods.length)
    const [, section = 'requests', name = ''] = /^(?:(requests|limits)\.)?(.+)$/.exec(key) ?? []
    return sum(runningPods.map((pod) => podAmount(pod, section, name, unitsOf(key))))
  }

  function countOf(resource: string): number {
    if (resource === 'persistentvolumeclaims' && isAboutClaims) return claims.length
    if (resource === 'pods' && isAboutPods) return pods.length
    return requirements.length > 0 ? 0 : contents.countOf(resource)
  }
}

const CLASS_SCOPE = 'VolumeAttributesClass'

/** Returns the requirements in scopes and scopeSelector. An expression without a scope name means VolumeAttributesClass. */
function requirementsOf({
  scopes = [],
  scopeSelector,
}: StoredJson): { scopeName: string; operator: string; values?: StoredJson }[] {
  return [
    ...scopes.map((scopeName: string) => ({ scopeName, operator: 'Exists' })),
    ...(scopeSelector?.matchExpressions ?? []).map((expression: StoredJson) => ({
      scopeName: CLASS_SCOPE,
      ...expression,
    })),
  ]
}

/** Returns the classes that a claim requests, has, and is being changed to. */
function classesOf({ spec, status }: StoredJson): string[] {
  const target = status?.modifyVolumeStatus?.targetVolumeAttributesClassName
  return [spec.volumeAttributesClassName, status?.currentVolumeAttributesClassName, target].filter(Boolean)
}

function isCounted(
  { operator, values = [] }: { operator: string; values?: StoredJson },
  classes: readonly string[],
): boolean {
  const hasListedClass = classes.some((name) => values.includes(name))
  const hasOtherClass = classes.some((name) => !values.includes(name))
  switch (operator) {
    case 'In':
      return hasListedClass
    case 'NotIn':
      return hasOtherClass || classes.length === 0
    case 'Exists':
      return classes.length > 0
    default:
      return classes.length === 0
  }
}

function isPodCounted(
  requirement: { scopeName: string; operator: string; values?: StoredJson },
  { spec }: StoredJson,
): boolean {
  const hasDeadline = spec.activeDeadlineSeconds !== undefined
  const isBestEffort = [...spec.containers, ...(spec.initContainers ?? [])].every(
    ({ resources: { requests = {}, limits = {} } = {} as StoredJson }: StoredJson) =>
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
      return false // no pod of the simulation uses cross-namespace affinity
  }
}

/** Returns the sum over the containers, or the amount of the largest init container if that is more. */
function podAmount({ spec }: StoredJson, section: string, name: string, units: bigint): bigint {
  const amountIn = ({ resources }: StoredJson) => amountOf(resources?.[section]?.[name], units)
  const containersTotal = spec.containers.map(amountIn).reduce((total: bigint, amount: bigint) => total + amount, 0n)
  return largest([containersTotal, ...(spec.initContainers ?? []).map(amountIn)])
}

/** Returns the amount that a quota charges for a claim. A lowered amount is charged until the volume has less. */
function chargedAmount({ metadata, spec, status }: StoredJson, name: string): bigint {
  // A removed request for iops or throughput counts as long as the volume provides the amount. The server records it in an
  // annotation: spec.allocatedResources holds storage only.
  const retainedAmounts = JSON.parse(metadata.annotations?.['quota.stowage.dev/retained-io'] ?? '{}')
  const lists = [spec.resources?.requests, spec.allocatedResources, status?.allocatedResources, retainedAmounts]
  const amount = largest(lists.map((list) => amountOf(list?.[name])))
  return name !== 'storage' && amount > 0n ? largest([amount, amountOf(status?.capacity?.[name])]) : amount
}

function largest(amounts: readonly bigint[]): bigint {
  let maximum = 0n
  for (const amount of amounts) if (amount > maximum) maximum = amount
  return maximum
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

/** CPU is counted in thousandths, everything else in integers. */
const unitsOf = (key: string): bigint => (/(^|\.)cpu$/.test(key) ? 1_000n : 1n)

/** Returns an amount in thousandths, or rounded up to an integer. */
function amountOf(text: string | undefined, units = 1n): bigint {
  if (text === undefined) return 0n
  const [, digits, suffix] = /^(\d+)(m|k|M|G|Ki|Mi|Gi|Ti|)$/.exec(text) ?? []
  if (digits === undefined) throw new Error(`The checker cannot read the amount "${text}".`)
  const thousandths = BigInt(digits) * FACTORS[suffix ?? '']!
  return units === 1_000n ? thousandths : (thousandths + 999n) / 1_000n
}
