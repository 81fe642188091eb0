// What quotas cost: durable creates of claims over HTTPS in namespaces with no, one and ten quotas, and in one with one
// quota and thousands of claims. In turns, so that all meet the same machine.
import { mkdtemp, rm } from 'node:fs/promises'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadOrCreatePki } from '../src/apiserver/security/index.ts'
import { systemClock } from '../src/base/clock.ts'
import { claimNamed, fillDirectory } from './lib/claims.ts'
import { type Figure, medianOf } from './lib/figure.ts'
import type { Endpoint } from './lib/http-connection.ts'
import { type LoadResult, NUMBER, type RequestsJob } from './lib/load-role.ts'
import { startRole } from './lib/role.ts'
import { startServer } from './lib/server-process.ts'
import type { SuiteOptions } from './lib/suite.ts'

const ROUNDS = 5
const WARM_UP_MS = 1_000
const MEASURE_MS = 2_000
const CLIENTS = 64
const EXISTING_CLAIMS = 10_000
const ONE_QUOTA_RATIO_MIN = 0.9
const FULL_NAMESPACE_RATIO_MIN = 0.9

/** The directory is filled in `default`. */
const NAMESPACES = { none: 0, one: 1, ten: 10, default: 1 } as const
type Namespace = keyof typeof NAMESPACES

export async function measureQuota(options: SuiteOptions): Promise<Figure[]> {
  const dir = await mkdtemp(join(options.dir ?? tmpdir(), 'stowage-bench-'))
  const dataDir = join(dir, 'data')
  options.progress(`making a directory with ${EXISTING_CLAIMS} claims`)
  await fillDirectory(dataDir, EXISTING_CLAIMS)
  const pki = await loadOrCreatePki({ dir: join(dataDir, 'pki'), clock: systemClock() })
  const server = await startServer({ dataDir, profileDir: options.profileDir })
  const load = startRole<RequestsJob, LoadResult>('load')
  try {
    const endpoint = { port: server.port, ca: pki.caCert, ...pki.admin }
    const post = (path: string, object: object) => create(endpoint, path, object)
    for (const [namespace, quotas] of Object.entries(NAMESPACES)) {
      if (namespace !== 'default') await post('/api/v1/namespaces', { metadata: { name: namespace } })
      for (let n = 0; n < quotas; n++) {
        const hard = { persistentvolumeclaims: '100000000', 'requests.storage': '1Ei' }
        await post(`/api/v1/namespaces/${namespace}/resourcequotas`, {
          metadata: { name: `quota-${n}` },
          spec: { hard },
        })
      }
    }
    const rates: Record<Namespace, number[]> = { none: [], one: [], ten: [], default: [] }
    for (let round = 1; round <= ROUNDS; round++) {
      for (const namespace of Object.keys(NAMESPACES) as Namespace[]) {
        options.progress(`creates in ${namespace}, round ${round} of ${ROUNDS}`)
        const path = `/api/v1/namespaces/${namespace}/persistentvolumeclaims`
        const body = JSON.stringify(claimNamed(`claim-${NUMBER}`))
        const asked = { method: 'POST', path, body } as const
        const job = {
          do: 'requests',
          endpoint,
          clients: CLIENTS,
          request: asked,
          warmUpMs: WARM_UP_MS,
          measureMs: MEASURE_MS,
        } as const
        const { count, seconds } = await load.run(job)
        rates[namespace].push(count / seconds)
      }
    }
    return figuresOf(rates)
  } finally {
    load.stop()
    await server.stop()
    await rm(dir, { recursive: true, force: true })
  }
}

function create({ port, ca, cert, key }: Endpoint, path: string, object: object): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' }
    const sent = request({ host: '127.0.0.1', port, ca, cert, key, path, method: 'POST', headers }, (answer) => {
      answer.resume()
      if (answer.statusCode === 201) answer.on('end', resolve)
      else reject(new Error(`POST ${path}: ${answer.statusCode}`))
    })
    sent.on('error', reject)
    sent.end(JSON.stringify(object))
  })
}

function figuresOf(rates: Record<Namespace, number[]>): Figure[] {
  const free = { value: medianOf(rates.none), of: 'the same without a quota' }
  const figure = (name: string, namespace: Namespace, more: Partial<Figure> = {}): Figure => ({
    name: `durable creates, ${CLIENTS} clients, ${name}`,
    unit: '/s',
    value: medianOf(rates[namespace]),
    ...more,
  })
  return [
    figure('no quota', 'none'),
    figure('1 quota', 'one', { limit: free, target: { ratioMin: ONE_QUOTA_RATIO_MIN } }),
    figure('10 quotas', 'ten', { limit: free }),
    figure(`1 quota, among ${EXISTING_CLAIMS.toLocaleString('en')} claims`, 'default', {
      limit: { value: medianOf(rates.one), of: 'the same in a new namespace' },
      target: { ratioMin: FULL_NAMESPACE_RATIO_MIN },
    }),
  ]
}
