// What quotas cost: durable creates of claims over HTTPS in namespaces with no, one and ten quotas, and in some with one
// quota and thousands of claims. In turns, so that all meet the same machine and store.
// A new quota counts what is there with the first write after it: that write has a figure of its own.
import { join } from 'node:path'
import { loadOrCreatePki } from '../src/apiserver/security/index.ts'
import { systemClock } from '../src/base/clock.ts'
import { claimNamed, fillDirectory } from './lib/claims.ts'
import { type Figure, medianOf } from './lib/figure.ts'
import { growthOfEach } from './lib/growth.ts'
import type { Endpoint } from './lib/http-connection.ts'
import { type LoadResult, NUMBER, type RequestsJob } from './lib/load-role.ts'
import { post } from './lib/post.ts'
import { startRole } from './lib/role.ts'
import { startServer } from './lib/server-process.ts'
import type { PartOptions, Suite } from './lib/suite.ts'
import { count } from './lib/text.ts'

const SHORT = { rounds: 6, measureMs: 500 }
const LONG = { rounds: 12, measureMs: 2_000 }
const FIRST_WARM_UP_MS = 2_000
const WARM_UP_MS = 300
const CLIENTS = 64
const ONE_QUOTA_RATIO_MIN = 0.9
const FULL_NAMESPACE_RATIO_MIN = 0.9

interface Namespace {
  readonly quotas: number
  /** That were there before. */
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
const LAST = NAMESPACES.fullest
/** All grow by the thousands while they are measured. */
const AMONG = ['full', 'fuller', 'fullest'] as const

export const quotaSuite: Suite = { parts: { creates: measureQuota } }

async function measureQuota({ dir, profileDir, long, progress }: PartOptions): Promise<Figure[]> {
  const { rounds, measureMs } = long ? LONG : SHORT
  const dataDir = join(dir, 'data')
  progress('making a directory full of claims')
  for (const [name, { claims }] of Object.entries(NAMESPACES)) await fillDirectory(dataDir, claims, name)
  const pki = await loadOrCreatePki({ dir: join(dataDir, 'pki'), clock: systemClock() })
  const server = await startServer({ dataDir, profileDir })
  const load = startRole<RequestsJob, LoadResult>('load')
  try {
    const endpoint: Endpoint = { port: server.port, ca: pki.caCert, ...pki.admin }
    const pathOf = (name: string) => `/api/v1/namespaces/${name}/persistentvolumeclaims`
    let countedMs = 0
    for (const [name, { quotas }] of Object.entries(NAMESPACES)) {
      await post(endpoint, '/api/v1/namespaces', { metadata: { name } })
      for (let n = 0; n < quotas; n++) {
        const hard = { persistentvolumeclaims: '100000000', 'requests.storage': '1Ei' }
        const quota = { metadata: { name: `quota-${n}` }, spec: { hard } }
        await post(endpoint, `/api/v1/namespaces/${name}/resourcequotas`, quota)
      }
      const startMs = performance.now()
      await post(endpoint, pathOf(name), claimNamed('first'))
      countedMs = performance.now() - startMs
    }
    const rates: Record<Name, number[]> = { none: [], one: [], ten: [], full: [], fuller: [], fullest: [] }
    for (let round = 1; round <= rounds; round++) {
      for (const name of orderOf(round)) {
        progress(`namespace ${name}, round ${round} of ${rounds}`)
        const body = JSON.stringify(claimNamed(`claim-${NUMBER}`))
        const request = { method: 'POST', path: pathOf(name), body } as const
        const isFirst = Object.values(rates).every((measured) => measured.length === 0)
        const warmUpMs = isFirst ? FIRST_WARM_UP_MS : WARM_UP_MS
        const answered = await load.run({ do: 'requests', endpoint, clients: CLIENTS, request, warmUpMs, measureMs })
        rates[name].push(answered.count / answered.seconds)
      }
    }
    return figuresOf(rates, countedMs)
  } finally {
    load.stop()
    await server.stop()
  }
}

/** In as many rounds as there are namespaces each comes once at every place, and once after each of the others. */
function orderOf(round: number): Name[] {
  const names = Object.keys(NAMESPACES) as Name[]
  return [0, 1, 5, 2, 4, 3].map((place) => names[(place + round) % names.length]!)
}

/** `countedMs` of the namespace that comes last. */
function figuresOf(rates: Record<Name, number[]>, countedMs: number): Figure[] {
  const free = { value: medianOf(rates.none), of: 'the same without a quota' }
  const figure = (what: string, name: Name, more: Partial<Figure> = {}): Figure => ({
    name: `durable creates, ${CLIENTS} clients, ${what}`,
    unit: '/s',
    value: medianOf(rates[name]),
    ...more,
  })
  const points = AMONG.map((name) => ({ size: NAMESPACES[name].claims, ms: 1_000 / medianOf(rates[name]) }))
  return [
    figure('no quota', 'none'),
    figure('1 quota', 'one', { limit: free, target: { ratioMin: ONE_QUOTA_RATIO_MIN } }),
    figure('10 quotas', 'ten', { limit: free }),
    figure(`1 quota, among ${count(NAMESPACES.full.claims)} claims`, 'full', {
      limit: { value: medianOf(rates.one), of: 'the same in a new namespace' },
      target: { ratioMin: FULL_NAMESPACE_RATIO_MIN },
    }),
    { name: `first create after a new quota, among ${count(LAST.claims)} claims`, unit: 'ms', value: countedMs },
    growthOfEach('a create under a quota', { of: 'claims there before', points }),
  ]
}
