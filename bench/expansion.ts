// Measures the expansion of claims: bursts of edits over HTTPS to `stowage up` on a durable store, with a driver that
// responds immediately. An expansion is timed from its edit to the event with the new size. The volumes are block devices, which
// need no node expansion. Also counts the writes per expansion, without events.
import { join } from 'node:path'
import { loadOrCreatePki } from '../src/apiserver/index.ts'
import { systemClock } from '../src/base/clock.ts'
import type { BurstJob, BurstResult } from './lib/burst-role.ts'
import { buildClaim } from './lib/claims.ts'
import { type Figure, type GrowthPoint, medianOf } from './lib/figure.ts'
import { toTotalGrowthFigure } from './lib/growth.ts'
import { type Endpoint, openConnection } from './lib/http-connection.ts'
import { NUMBER, numberedRequest, type RequestText } from './lib/load-role.ts'
import { post } from './lib/post.ts'
import { type Role, startRole } from './lib/role.ts'
import { startFakeDriver, startServer } from './lib/server-process.ts'
import type { PartOptions, Suite } from './lib/suite.ts'
import { formatCount } from './lib/text.ts'

/** Measured rounds by number of claims expanded at once. */
const ROUNDS = { short: { 250: 2, 1000: 2, 3000: 1 }, long: { 250: 5, 1000: 5, 4000: 3 } }
const WARM_UP_ROUNDS = 1 // provisioning the claims has warmed up the server already
/** Number of claims to which the targets apply. */
const TARGET_CLAIMS = 1_000
const CLIENTS = 128
const PER_SECOND_MIN = 300
const WRITES_MAX = 3
const FIRST_GI = 10

const DRIVER = 'fake.csi.stowage.dev'
const CLASS = 'growing'
const NAMESPACE = 'default'
const CLAIMS = `/api/v1/namespaces/${NAMESPACE}/persistentvolumeclaims`
const VOLUMES = '/api/v1/persistentvolumes'

export const expansionSuite: Suite = { parts: { claims: measureExpansion } }

async function measureExpansion({ dir, profileDir, isLong, progress, note }: PartOptions): Promise<Figure[]> {
  const socket = join(dir, 'csi.sock')
  const driver = await startFakeDriver({ socket, name: DRIVER, profileDir })
  const dataDir = join(dir, 'data')
  const server = await startServer({ dataDir, profileDir, command: 'up', flags: ['--driver-socket', socket] })
  const pki = await loadOrCreatePki({ dir: join(dataDir, 'pki'), clock: systemClock() })
  const endpoint: Endpoint = { port: server.port, ca: pki.caCert, ...pki.admin }
  const bursts: Role<BurstJob, BurstResult> = startRole('burst')
  const burst = (claims: number, request: RequestText, until: string) =>
    bursts.run({
      endpoint,
      clients: CLIENTS,
      count: claims,
      after: 0,
      request,
      watch: { method: 'GET', path: `${CLAIMS}?watch=1` },
      until,
    })
  let rounds = 0
  /** Each round edits the same claims. */
  async function expand(claims: number): Promise<Round> {
    const round = ++rounds
    // The limit: as many durable edits to the same claims by the same clients, to which no controller reacts.
    const labelEdits = await burst(
      claims,
      editRequest({ metadata: { labels: { round: `r${round}` } } }),
      `"round":"r${round}"`,
    )
    const size = `${FIRST_GI * (round + 1)}Gi`
    const request = editRequest({ spec: { resources: { requests: { storage: size } } } })
    const cpuMsBefore = server.cpuMs()
    const writesAndResult = await countWrites(endpoint, () =>
      burst(claims, request, `"capacity":{"storage":"${size}"}`),
    )
    return { labelEdits, ...writesAndResult, cpuMs: (server.cpuMs() - cpuMsBefore) / claims }
  }
  try {
    await post(endpoint, '/apis/storage.k8s.io/v1/storageclasses', {
      metadata: { name: CLASS },
      provisioner: DRIVER,
      allowVolumeExpansion: true,
    })
    const plannedRounds = Object.entries(isLong ? ROUNDS.long : ROUNDS.short)
    const maxClaims = Math.max(...plannedRounds.map(([claims]) => Number(claims)))
    progress(`creating ${formatCount(maxClaims)} claims`)
    await burst(maxClaims, { method: 'POST', path: CLAIMS, body: JSON.stringify(aClaim()) }, '"phase":"Bound"')
    for (let round = 1; round <= WARM_UP_ROUNDS; round++) {
      progress(`warming up, round ${round} of ${WARM_UP_ROUNDS}`)
      await expand(TARGET_CLAIMS)
    }
    const figures: Figure[] = []
    const points: GrowthPoint[] = []
    for (const [claims, roundCount] of plannedRounds) {
      const size = Number(claims)
      const measuredRounds: Round[] = []
      while (measuredRounds.length < roundCount) {
        progress(`expanding ${formatCount(size)}, round ${measuredRounds.length + 1} of ${roundCount}`)
        measuredRounds.push(await expand(size))
      }
      points.push({ size, ms: 1_000 * medianOf(measuredRounds.map(({ result }) => result.seconds)) })
      if (size === TARGET_CLAIMS) figures.push(...figuresOf(measuredRounds, note))
    }
    return [...figures, toTotalGrowthFigure('claims expanded at once', { of: 'claims', points })]
  } finally {
    bursts.stop()
    await server.stop()
    await driver.stop()
  }
}

interface Round {
  readonly labelEdits: BurstResult
  readonly result: BurstResult
  /** The number of writes to claims and volumes, including the user's edits. */
  readonly writes: number
  readonly cpuMs: number
}

function figuresOf(rounds: readonly Round[], note: PartOptions['note']): Figure[] {
  const median = (read: (round: Round) => number) => medianOf(rounds.map(read))
  const description = `${formatCount(TARGET_CLAIMS)} claims expanded at once`
  const labelEdits = 'as many label edits'
  note(`${description}: server CPU time ${median(({ cpuMs }) => cpuMs).toFixed(2)} ms per claim.`)
  return [
    {
      name: description,
      unit: '/s',
      value: median(({ result }) => TARGET_CLAIMS / result.seconds),
      limit: { value: median((round) => TARGET_CLAIMS / round.labelEdits.seconds), of: labelEdits },
      target: { valueMin: PER_SECOND_MIN },
    },
    {
      name: `${description}, p50`,
      unit: 'ms',
      value: median(({ result }) => result.p50Ms),
      limit: { value: median((round) => round.labelEdits.p50Ms), of: labelEdits },
    },
    {
      name: `${description}, p99`,
      unit: 'ms',
      value: median(({ result }) => result.p99Ms),
      limit: { value: median((round) => round.labelEdits.p99Ms), of: labelEdits },
    },
    {
      name: 'writes of claim and volume per expansion, without the edit',
      unit: 'writes',
      value: median(({ writes }) => writes / TARGET_CLAIMS - 1),
      target: { valueMax: WRITES_MAX },
    },
  ]
}

export async function countWrites(endpoint: Endpoint, run: () => Promise<BurstResult>) {
  let writes = 0
  const watchers = []
  for (const path of [CLAIMS, VOLUMES]) {
    const connection = await openConnection(endpoint, () => {})
    await connection.read(numberedRequest({ method: 'GET', path: `${path}?watch=1` })(0), (line) => {
      if (line.includes('"type":"MODIFIED"')) writes++
    })
    watchers.push(connection)
  }
  try {
    const result = await run()
    await waitUntilQuiet(() => writes)
    return { result, writes }
  } finally {
    for (const watcher of watchers) watcher.close()
  }
}

/** Waits until no write has been counted for half a second. */
async function waitUntilQuiet(readCount: () => number): Promise<void> {
  for (let lastCount = -1; lastCount !== readCount(); ) {
    lastCount = readCount()
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
}

const editRequest = (change: object): RequestText => ({
  method: 'PATCH',
  path: `${CLAIMS}/claim-${NUMBER}`,
  body: JSON.stringify(change),
})

function aClaim() {
  const { spec, ...fields } = buildClaim(`claim-${NUMBER}`)
  return { ...fields, spec: { ...spec, storageClassName: CLASS, volumeMode: 'Block' } }
}
