// Judges every commit: what a quota says is used is what the objects add up to at that very moment, and no charge has
// taken it above its bounds. Adds up by itself, from the bytes in the store, with nothing that production code uses.
import type { Store } from '../../store/index.ts'
import type { Cluster } from '../cluster.ts'

/** One object of a commit; undefined: it is gone. Only the fields that count are looked at. */
export interface Stored {
  readonly key: string
  readonly object: any
}

export interface QuotaChecker {
  /** What became visible at once. */
  take(changes: readonly Stored[]): void
  readonly quotas: ReadonlyMap<string, any>
  readonly claims: ReadonlyMap<string, any>
  /** How much a quota with this spec counts now, by key, or would with one more claim. */
  addUp(spec: any, another?: any): Map<string, bigint>
  boundOf(spec: any, key: string): bigint
}

const CLAIMS = 'core/persistentvolumeclaims/'
const QUOTAS = 'core/resourcequotas/'
const CONFIG_MAPS = 'core/configmaps/'

export function createQuotaChecker(namespace: string, convict: (crime: string) => void): QuotaChecker {
  const claims = new Map<string, any>()
  const quotas = new Map<string, any>()
  const configMaps = new Map<string, any>()
  const shelves = [
    { prefix: `${CLAIMS}${namespace}/`, shelf: claims },
    { prefix: `${QUOTAS}${namespace}/`, shelf: quotas },
    { prefix: `${CONFIG_MAPS}${namespace}/`, shelf: configMaps },
  ]

  /**
   * `states`: of this quota, as the commit found it and every one it went through; a charge was judged by one of them.
   * `told`: the claims whose status was written. That is never refused, so what they hold may be above the bounds.
   */
  function judge(name: string, states: readonly any[], told: readonly any[]): void {
    const [before] = states
    const quota = states.at(-1)
    const counted = addUp(quota.spec)
    const excused = sumOf(quota.spec, told, 0, 0)
    const isSameQuota = before && states.every((state) => scopeOf(state) === scopeOf(before))
    for (const [key, text] of Object.entries(quota.status?.used ?? {}) as [string, string][]) {
      const used = amountOf(text)
      if (used !== counted.get(key)) {
        convict(`quota ${name} says ${key}=${used}, the objects add up to ${counted.get(key)}`)
      }
      const usedBefore = before?.status?.used?.[key]
      if (!isSameQuota || usedBefore === undefined) continue // counted just now: what was there may be above the bounds
      const limit = largest([amountOf(usedBefore), ...states.map(({ spec }) => amountOf(spec.hard[key]))])
      if (used > limit + (excused.get(key) ?? 0n)) {
        convict(`quota ${name}: a charge has raised ${key} from ${usedBefore} to ${used}, above ${limit}`)
      }
    }
  }

  const addUp = (spec: any, another?: any) =>
    sumOf(spec, [...claims.values(), ...(another ? [another] : [])], configMaps.size, quotas.size)

  return {
    claims,
    quotas,
    addUp,
    boundOf: (spec, key) => amountOf(spec.hard[key]),
    take(changes) {
      const statesOf = new Map<string, any[]>([...quotas].map(([name, quota]) => [name, [quota]]))
      const told = new Set<string>()
      let isOurs = false
      for (const { key, object } of changes) {
        const place = shelves.find(({ prefix }) => key.startsWith(prefix))
        if (!place) continue
        isOurs = true
        const name = key.slice(place.prefix.length)
        if (place.shelf === claims && object && hasNewStatus(object, claims.get(name))) told.add(name)
        if (object === undefined) place.shelf.delete(name)
        else place.shelf.set(name, object)
        if (place.shelf !== quotas) continue
        const states = statesOf.get(name) ?? [undefined]
        if (object === undefined) statesOf.set(name, [undefined])
        else statesOf.set(name, [...states, object])
      }
      if (!isOurs) return
      const toldClaims = [...told].map((name) => claims.get(name)).filter((claim) => claim !== undefined)
      for (const name of quotas.keys()) judge(name, statesOf.get(name) ?? [], toldClaims)
    },
  }
}

/** Feeds it with every commit, over every life of the server. A server that comes back shows what it kept: one commit. */
export function followQuotas(cluster: Cluster, checker: QuotaChecker): void {
  const read = (value: Uint8Array | undefined) => value && JSON.parse(Buffer.from(value).toString())
  const keys = new Set<string>()
  const take = (changes: readonly Stored[]) => {
    for (const { key, object } of changes) {
      if (object === undefined) keys.delete(key)
      else keys.add(key)
    }
    checker.take(changes)
  }
  async function attach(store: Store): Promise<void> {
    const { entries, revision } = await store.list({ prefix: 'core/' })
    const present = new Set(entries.map(({ key }) => key))
    take([
      ...[...keys].filter((key) => !present.has(key)).map((key) => ({ key, object: undefined })),
      ...entries.map(({ key, value }) => ({ key, object: read(value) })),
    ])
    store.watch({
      prefix: 'core/',
      afterRevision: revision,
      onEvents: (events) => take(events.map(({ key, entry }) => ({ key, object: read(entry?.value) }))),
      onEnd: () => {},
    })
  }
  cluster.follow((store) => void attach(store))
}

/** Of a claim that is new, anything that a status can count for. */
function hasNewStatus({ metadata, status = {} }: any, before: any): boolean {
  if (before?.metadata.uid === metadata.uid) return JSON.stringify(before.status ?? {}) !== JSON.stringify(status)
  return status.allocatedResources !== undefined || status.currentVolumeAttributesClassName !== undefined
}

const scopeOf = ({ metadata, spec }: any): string => `${metadata.uid} ${JSON.stringify(spec.scopeSelector ?? null)}`

function sumOf(spec: any, all: readonly any[], configMaps: number, quotas: number): Map<string, bigint> {
  const [requirement] = spec.scopeSelector?.matchExpressions ?? []
  const claims = all.filter((claim) => isCounted(requirement, claim))
  const amounts = (name: string, of = claims) => of.map((claim) => heldOf(claim, name))
  const sum = (list: readonly bigint[]) => list.reduce((total, amount) => total + amount, 0n)
  const others = (count: number) => (requirement ? 0n : BigInt(count))
  const used = new Map<string, bigint>()
  for (const key of Object.keys(spec.hard ?? {})) used.set(key, amountFor(key))
  return used

  function amountFor(key: string): bigint {
    const className = /^(.+)\.storageclass\.storage\.k8s\.io\/(.+)$/.exec(key)
    if (className) {
      const ofClass = claims.filter((claim) => claim.spec.storageClassName === className[1])
      return className[2] === 'requests.storage' ? sum(amounts('storage', ofClass)) : BigInt(ofClass.length)
    }
    switch (key) {
      case 'persistentvolumeclaims':
      case 'count/persistentvolumeclaims':
        return BigInt(claims.length)
      case 'requests.storage':
        return sum(amounts('storage'))
      case 'limits.iops':
        return sum(amounts('iops'))
      case 'requests.iops':
        return largest(amounts('iops'))
      case 'count/configmaps':
        return others(configMaps)
      case 'resourcequotas':
        return others(quotas)
      default:
        throw new Error(`the checker does not know the key "${key}"`)
    }
  }
}

function isCounted(requirement: any, { spec, status }: any): boolean {
  if (!requirement) return true
  const target = status?.modifyVolumeStatus?.targetVolumeAttributesClassName
  const classes = [spec.volumeAttributesClassName, status?.currentVolumeAttributesClassName, target].filter(Boolean)
  const has = classes.some((name) => requirement.values?.includes(name))
  const hasOther = classes.some((name) => !requirement.values?.includes(name))
  switch (requirement.operator) {
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

/** An amount that is being lowered counts until the volume has less. */
function heldOf({ spec, status }: any, name: string): bigint {
  const lists = [spec.resources?.requests, spec.allocatedResources, status?.allocatedResources]
  const held = largest(lists.map((list) => amountOf(list?.[name])))
  return name === 'iops' && held > 0n ? largest([held, amountOf(status?.capacity?.[name])]) : held
}

function largest(amounts: readonly bigint[]): bigint {
  let found = 0n
  for (const amount of amounts) if (amount > found) found = amount
  return found
}

const FACTORS: Readonly<Record<string, bigint>> = { '': 1n, k: 1_000n, Ki: 1n << 10n, Mi: 1n << 20n, Gi: 1n << 30n }

/** Whole amounts are all there is in these worlds. */
function amountOf(text: string | undefined): bigint {
  if (text === undefined) return 0n
  const [, digits, suffix] = /^(\d+)(k|Ki|Mi|Gi|)$/.exec(text) ?? []
  if (digits === undefined) throw new Error(`the checker cannot read the amount "${text}"`)
  return BigInt(digits) * (FACTORS[suffix ?? ''] ?? 1n)
}
