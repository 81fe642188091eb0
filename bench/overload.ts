// Measures the effect of attacks by one user on another: the 99th percentile of reads by the administrator before, during
// and after each attack, and the memory of the server. Each attack has a new server, with lists of about 5 MB.
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { loadOrCreatePki } from '../src/apiserver/security/index.ts'
import { systemClock } from '../src/base/clock.ts'
import type { Attack, AttackJob, AttackResult } from './lib/attack-role.ts'
import { fillDirectory } from './lib/claims.ts'
import type { Figure } from './lib/figure.ts'
import { type Endpoint, openConnection } from './lib/http-connection.ts'
import { startRole } from './lib/role.ts'
import { type ServerProcess, startServer } from './lib/server-process.ts'
import type { PartOptions, Suite } from './lib/suite.ts'
import { formatCount } from './lib/text.ts'

const CLAIMS = 8_000
const PROBES = 300
const PROBE_PAUSE_MS = 5
/** Ends the probes of a slow server before PROBES are sent. */
const PROBE_MS_MAX = 5_000
/** From the end of an attack to the probe after it. */
const PAUSE_AFTER_ATTACK_MS = 2_000
const P99_MS_MAX = 100
const MEMORY_MB_MAX = 400
/** The memory before the attack compared with the memory after it. */
const MEMORY_AFTER_RATIO_MIN = 0.5

const CLAIMS_PATH = '/api/v1/persistentvolumeclaims'
const get = (path: string, headers = '') => `GET ${path} HTTP/1.1\r\nhost: x\r\n${headers}\r\n`
const post = (path: string, headers: string) => `POST ${path} HTTP/1.1\r\nhost: x\r\n${headers}\r\n`
const REVIEWS = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
const YAML_LINES = 12_000

/** The attacker may only read. */
const ATTACKS: Readonly<Record<string, Attack & { readonly name: string }>> = {
  bodies: {
    name: '2,000 unfinished bodies',
    connections: 2_000,
    text: `${post(REVIEWS, 'content-type: application/json\r\ncontent-length: 2000000\r\n')}{`,
    isRead: true,
  },
  headers: {
    name: '300 unfinished headers of 0.9 MB',
    connections: 300,
    text: `GET /api HTTP/1.1\r\nhost: x\r\nx: ${'a'.repeat(900_000)}`,
    isRead: true,
  },
  lists: {
    name: '200 connections that list without a pause',
    connections: 200,
    text: get(CLAIMS_PATH),
    isRead: true,
    repeatMs: 0,
  },
  tables: {
    name: '100 connections that list tables without a pause',
    connections: 100,
    text: get(CLAIMS_PATH, 'accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n'),
    isRead: true,
    repeatMs: 0,
  },
  yaml: {
    name: '20 connections that list in YAML without a pause',
    connections: 20,
    text: get(CLAIMS_PATH, 'accept: application/yaml\r\n'),
    isRead: true,
    repeatMs: 0,
  },
  pipeline: {
    name: '50 connections with 12 unread lists each',
    connections: 50,
    text: get(CLAIMS_PATH).repeat(12),
    isRead: false,
  },
  selectors: {
    name: '500 watches with a selector of 60 kB, and 500 with one of 1.5 kB',
    connections: 500,
    text:
      get(`${CLAIMS_PATH}?watch=1&labelSelector=${selectorOf(60_000)}`) +
      get(`${CLAIMS_PATH}?watch=1&labelSelector=${selectorOf(1_500)}`),
    isRead: true,
  },
  watches: {
    name: '1,000 watches',
    connections: 1_000,
    text: get(`${CLAIMS_PATH}?watch=1&resourceVersion=${CLAIMS}&allowWatchBookmarks=true`),
    isRead: true,
  },
  'unread-watches': {
    name: '200 unread watches in YAML, with initial events',
    connections: 200,
    text: get(`${CLAIMS_PATH}?watch=1`, 'accept: application/yaml\r\n'),
    isRead: false,
  },
  'yaml-bodies': {
    name: '20 connections that send YAML without a pause',
    connections: 20,
    text: yamlReview(),
    isRead: true,
    repeatMs: 0,
  },
}

function selectorOf(bytes: number): string {
  const requirements: string[] = []
  for (let length = 0; length < bytes; length += requirements.at(-1)!.length + 1) {
    requirements.push(`label-${requirements.length}!=a`)
  }
  return requirements.join(',')
}

function yamlReview(): string {
  const lines = Array.from({ length: YAML_LINES }, (_, line) => `  key-${line}: [a, b]\n`)
  const body = `kind: SelfSubjectAccessReview\nspec:\n${lines.join('')}`
  return `${post(REVIEWS, `content-type: application/yaml\r\ncontent-length: ${body.length}\r\n`)}${body}`
}

export const overloadSuite: Suite = {
  isOptional: true,
  parts: Object.fromEntries(
    Object.keys(ATTACKS).map((part) => [part, (options: PartOptions) => measureAttack(options, part)]),
  ),
}

async function measureAttack({ dir, profileDir, progress, note }: PartOptions, part: string): Promise<Figure[]> {
  const { name, ...attack } = ATTACKS[part]!
  const dataDir = join(dir, 'data')
  await fillDirectory(dataDir, CLAIMS)
  const pki = await loadOrCreatePki({ dir: join(dataDir, 'pki'), clock: systemClock() })
  const server = await startServer({ dataDir, profileDir })
  const attacker = startRole<AttackJob, AttackResult>('attack')
  try {
    const endpoint = { port: server.port, ca: pki.caCert }
    const admin = { ...endpoint, ...pki.admin }
    await probe(server, admin)
    const probeBefore = await probe(server, admin)
    progress(name)
    const attackStarted = attacker.run({ do: 'start', endpoint: { ...endpoint, ...pki.viewer }, attack })
    const openingProbe = await probe(server, admin)
    await attackStarted
    const runningProbe = await probe(server, admin)
    const { statuses, closed } = await attacker.run({ do: 'stop' })
    note(`${name}: responses ${JSON.stringify(statuses)}, ${formatCount(closed)} connections closed by the server`)
    await sleep(PAUSE_AFTER_ATTACK_MS)
    const probeAfter = await probe(server, admin)
    const probeDuring = {
      p99Ms: Math.max(openingProbe.p99Ms, runningProbe.p99Ms),
      mb: Math.max(openingProbe.mb, runningProbe.mb),
    }
    return figuresOf(name, probeBefore, probeDuring, probeAfter)
  } finally {
    attacker.stop()
    await server.stop()
  }
}

interface Probe {
  readonly p99Ms: number
  /** The peak of the server's anonymous memory during the probe. It excludes the store, which is a mapped file. */
  readonly mb: number
}

/** Reads one object repeatedly as the administrator, and samples the memory of the server. */
async function probe(server: ServerProcess, endpoint: Endpoint): Promise<Probe> {
  const connection = await openConnection(endpoint, () => {})
  const request = Buffer.from(get('/api/v1/namespaces/default'))
  const times: number[] = []
  let mb = 0
  const endMs = performance.now() + PROBE_MS_MAX
  while (times.length < PROBES && performance.now() < endMs) {
    const startMs = performance.now()
    const { status } = await new Promise<{ status: number }>((resolve) => connection.send(request, resolve))
    times.push(performance.now() - startMs)
    if (status !== 200) throw new Error(`the administrator got ${status}`)
    if (times.length % 50 === 1) mb = Math.max(mb, server.memory().anonymousMb)
    await sleep(PROBE_PAUSE_MS)
  }
  connection.close()
  times.sort((a, b) => a - b)
  return { p99Ms: times[Math.floor(times.length * 0.99)]!, mb }
}

const figuresOf = (name: string, probeBefore: Probe, probeDuring: Probe, probeAfter: Probe): Figure[] => [
  {
    name: `${name}: read by the administrator, p99`,
    unit: 'ms',
    value: probeDuring.p99Ms,
    limit: { value: probeBefore.p99Ms, of: 'the same before' },
    target: { valueMax: P99_MS_MAX },
  },
  {
    name: `${name}: memory, above that before`,
    unit: 'MB',
    value: Math.max(0, probeDuring.mb - probeBefore.mb),
    target: { valueMax: MEMORY_MB_MAX },
  },
  {
    name: `${name}: memory afterwards`,
    unit: 'MB',
    value: probeAfter.mb,
    limit: { value: probeBefore.mb, of: 'the same before' },
    target: { ratioMin: MEMORY_AFTER_RATIO_MIN },
  },
  {
    name: `${name}: read afterwards, p99`,
    unit: 'ms',
    value: probeAfter.p99Ms,
    limit: { value: probeBefore.p99Ms, of: 'the same before' },
  },
]
