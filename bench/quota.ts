// Measures the cost of quotas: durable creates of claims over HTTPS in namespaces with no, one and ten quotas, and with
// one quota and thousands of claims. The namespaces alternate: all are measured with the same load and store. The first write
// after a new quota counts the existing objects, and is measured separately. On etcd, the suite compares no quota with one.
import { join } from 'node:path'
import { loadOrCreatePki } from '../src/apiserver/security/index.ts'
import { systemClock } from '../src/base/clock.ts'
import { etcdSkipReason, startEtcd } from '../test/helpers/etcd.ts'
import { buildClaim, fillDirectory } from './lib/claims.ts'
import { type Figure, medianOf } from './lib/figure.ts'
import { toUnitGrowthFigure } from './lib/growth.ts'
import type { Endpoint } from './lib/http-connection.ts'
import { NUMBER, type TurnsJob, type TurnsResult } from './lib/load-role.ts'
import { post } from './lib/post.ts'
import { startRole } from './lib/role.ts'
import { startServer } from './lib/server-process.ts'
import type { PartOptions, Suite } from './lib/suite.ts'
import { formatCount } from './lib/text.ts'

/** Many short turns, because the speed of the machine changes from second to second. */
const TURN_MS = 150
const ROUNDS = 30
const ROUNDS_LONG = 120
const WARM_UP_MS = 3_000
const CLIENTS = 64
const ONE_QUOTA_RATIO_MIN = 0.9
const FULL_NAMESPACE_RATIO_MIN = 0.9
const ETCD_RATIO_MIN = 0.4
/** Longer than the turns on the embedded store, because a commit takes longer. */
const ETCD_TURN_MS = 300
const HARD_LIMITS = { persistentvolumeclaims: '100000000', 'requests.storage': '1Ei' }
const pathOf = (namespace: string) => `/api/v1/namespaces/${namespace}/persistentvolumeclaims`

interface Namespace {
  readonly quotas: number
  /** Existing claims. */
  readonly claims: number
}

const NAMESPACES = {
  none: { quotas: 0, claims: 0 },
  one: { quotas: 1, claims: 0 },
  ten: { quotas: 10, claims: 0 },
  full: { quotas: 1, claims: 10_000 },
  fuller: { quotas: 1, claims: 30_000 },
  fullest: { quotas: 1, claims: 100_000 },
} as const satisfies Record<string, Namespace>
type Name = keyof typeof NAMESPACES
const NAMES = Object.keys(NAMESPACES) as Name[]
const LAST = NAMESPACES.fullest
/** The namespaces of the growth figure. Each receives thousands of further claims while it is measured. */
const GROWTH_NAMESPACES = ['full', 'fuller', 'fullest'] as const

export const quotaSuite: Suite = { parts: { creates: measureQuota, etcd: measureQuotaOnEtcd } }

async function measureQuota({ dir, profileDir, isLong, progress }: PartOptions): Promise<Figure[]> {
  const rounds = isLong ? ROUNDS_LONG : ROUNDS
  const dataDir = join(dir, 'data')
  progress('creating a data directory with claims')
  for (const [name, { claims }] of Object.entries(NAMESPACES)) await fillDirectory(dataDir, claims, name)
  const pki = await loadOrCreatePki({ dir: join(dataDir, 'pki'), clock: systemClock() })
  const server = await startServer({ dataDir, profileDir })
  const load = startRole<TurnsJob, TurnsResult>('load')
  try {
    const endpoint: Endpoint = { port: server.port, ca: pki.caCert, ...pki.admin }
    let firstCreateMs = 0
    for (const [name, { quotas }] of Object.entries(NAMESPACES)) {
      await post(endpoint, '/api/v1/namespaces', { metadata: { name } })
      for (let number = 0; number < quotas; number++) {
        const quota = { metadata: { name: `quota-${number}` }, spec: { hard: HARD_LIMITS } }
        await post(endpoint, `/api/v1/namespaces/${name}/resourcequotas`, quota)
      }
      const startMs = performance.now()
      await post(endpoint, pathOf(name), buildClaim('first'))
      firstCreateMs = performance.now() - startMs
    }
    progress(`${rounds} rounds of creates in all namespaces`)
    const body = JSON.stringify(buildClaim(`claim-${NUMBER}`))
    const { rates } = await load.run({
      do: 'turns',
      clients: CLIENTS,
      requests: NAMES.map((name) => ({ endpoint, method: 'POST', path: pathOf(name), body })),
      order: Array.from({ length: rounds }, (_, round) => orderOf(round)).flat(),
      warmUpMs: WARM_UP_MS,
      turnMs: TURN_MS,
    })
    return figuresOf(rates, firstCreateMs)
  } finally {
    load.stop()
    await server.stop()
  }
}

/** Measures the cost of one quota on etcd, where the writes that wait for a quota at the same time form one transaction. */
async function measureQuotaOnEtcd({
  dir,
  profileDir,
  isLong,
  progress,
  reportMissing,
}: PartOptions): Promise<Figure[]> {
  const name = `durable creates on etcd, ${CLIENTS} clients, 1 quota`
  const skipReason = etcdSkipReason()
  if (skipReason) {
    reportMissing(name, skipReason)
    return []
  }
  const rounds = isLong ? ROUNDS_LONG : ROUNDS
  const etcd = await startEtcd({ dir })
  const dataDir = join(dir, 'on-etcd')
  const server = await startServer({ dataDir, store: `etcd://${etcd.endpoints[0]}/quota`, profileDir })
  const load = startRole<TurnsJob, TurnsResult>('load')
  try {
    const pki = await loadOrCreatePki({ dir: join(dataDir, 'pki'), clock: systemClock() })
    const endpoint: Endpoint = { port: server.port, ca: pki.caCert, ...pki.admin }
    const names = ['none', 'one']
    for (const namespace of names) await post(endpoint, '/api/v1/namespaces', { metadata: { name: namespace } })
    const quota = { metadata: { name: 'quota' }, spec: { hard: HARD_LIMITS } }
    await post(endpoint, '/api/v1/namespaces/one/resourcequotas', quota)
    progress(`${rounds} rounds of creates on etcd with and without a quota`)
    const body = JSON.stringify(buildClaim(`claim-${NUMBER}`))
    const { rates } = await load.run({
      do: 'turns',
      clients: CLIENTS,
      requests: names.map((namespace) => ({ endpoint, method: 'POST', path: pathOf(namespace), body })),
      order: Array.from({ length: rounds }, (_, round) => (round % 2 ? [1, 0] : [0, 1])).flat(),
      warmUpMs: WARM_UP_MS,
      turnMs: ETCD_TURN_MS,
    })
    const [withoutQuota, withQuota] = rates.map((rate) => medianOf(rate)) as [number, number]
    const limit = { value: withoutQuota, of: 'the same without a quota' }
    return [{ name, unit: '/s', value: withQuota, limit, target: { ratioMin: ETCD_RATIO_MIN } }]
  } finally {
    load.stop()
    await server.stop()
    await etcd.remove()
  }
}

/** A Latin square: over six rounds each namespace has every position once, and follows each of the others once. */
const orderOf = (round: number): number[] => [0, 1, 5, 2, 4, 3].map((position) => (position + round) % NAMES.length)

/** `firstCreateMs` is the time of the first create in the last namespace. */
function figuresOf(rates: TurnsResult['rates'], firstCreateMs: number): Figure[] {
  const rateOf = (name: Name) => medianOf(rates[NAMES.indexOf(name)]!)
  const withoutQuota = { value: rateOf('none'), of: 'the same without a quota' }
  const figure = (description: string, name: Name, fields: Partial<Figure> = {}): Figure => ({
    name: `durable creates, ${CLIENTS} clients, ${description}`,
    unit: '/s',
    value: rateOf(name),
    ...fields,
  })
  const points = GROWTH_NAMESPACES.map((name) => ({ size: NAMESPACES[name].claims, ms: 1_000 / rateOf(name) }))
  return [
    figure('no quota', 'none'),
    figure('1 quota', 'one', { limit: withoutQuota, target: { ratioMin: ONE_QUOTA_RATIO_MIN } }),
    figure('10 quotas', 'ten', { limit: withoutQuota }),
    figure(`1 quota, with ${formatCount(NAMESPACES.full.claims)} claims`, 'full', {
      limit: { value: rateOf('one'), of: 'the same in a new namespace' },
      target: { ratioMin: FULL_NAMESPACE_RATIO_MIN },
    }),
    {
      name: `first create after a new quota, with ${formatCount(LAST.claims)} claims`,
      unit: 'ms',
      value: firstCreateMs,
    },
    toUnitGrowthFigure('a create under a quota', { of: 'existing claims', points }),
  ]
}
