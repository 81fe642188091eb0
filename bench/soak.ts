// Measures the memory of `stowage up` under churn: claims are provisioned and deleted at a constant rate, and then the server
// is idle. Anonymous memory (heap, stacks, buffers) and mapped files are reported separately.
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { loadOrCreatePki } from '../src/apiserver/security/index.ts'
import { systemClock } from '../src/base/clock.ts'
import type { ChurnJob, ChurnResult } from './lib/churn-role.ts'
import { claimNamed } from './lib/claims.ts'
import type { Figure } from './lib/figure.ts'
import { NUMBER } from './lib/load-role.ts'
import { post } from './lib/post.ts'
import { startRole } from './lib/role.ts'
import { type Memory, startFakeDriver, startServer } from './lib/server-process.ts'
import type { PartOptions, Suite } from './lib/suite.ts'
import { formatCount } from './lib/text.ts'

const CLAIMS_PER_SECOND = 100
const LIFETIME_MS = 2_000
const CLIENTS = 16
/** A short soak shows the level of the first minutes, a long one whether memory levels off. */
const MINUTES = { short: { load: 3, idle: 2 }, long: { load: 30, idle: 10 } }
const SETTLE_MS = 10_000
const SAMPLE_MS = 5_000
const PROGRESS_SAMPLES = 12
const LOADED_MB_MAX = 250
/** The idle memory before the load compared with the idle memory after it. */
const IDLE_RATIO_MIN = 1 / 1.5

const DRIVER = 'fake.csi.stowage.dev'
const CLASS = 'churn'
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'

export const soakSuite: Suite = { isOptional: true, parts: { churn: measureChurn } }

async function measureChurn({ dir, profileDir, isLong, progress, note }: PartOptions): Promise<Figure[]> {
  const minutes = isLong ? MINUTES.long : MINUTES.short
  const socket = join(dir, 'csi.sock')
  const dataDir = join(dir, 'data')
  const driver = await startFakeDriver({ socket, name: DRIVER, profileDir })
  const server = await startServer({ dataDir, profileDir, command: 'up', flags: ['--driver-socket', socket] })
  const churn = startRole<ChurnJob, ChurnResult>('churn')
  try {
    const pki = await loadOrCreatePki({ dir: join(dataDir, 'pki'), clock: systemClock() })
    const endpoint = { port: server.port, ca: pki.caCert, ...pki.admin }
    await post(endpoint, '/apis/storage.k8s.io/v1/storageclasses', { metadata: { name: CLASS }, provisioner: DRIVER })
    await sleep(SETTLE_MS)
    const idle = server.memory()
    progress(`idle: ${memoryText(idle)}`)
    const claim = claimNamed(`claim-${NUMBER}`)
    const load = churn.run({
      endpoint,
      clients: CLIENTS,
      perSecond: CLAIMS_PER_SECOND,
      seconds: minutes.load * 60,
      lifetimeMs: LIFETIME_MS,
      create: {
        method: 'POST',
        path: CLAIMS,
        body: JSON.stringify({ ...claim, spec: { ...claim.spec, storageClassName: CLASS } }),
      },
      remove: { method: 'DELETE', path: `${CLAIMS}/claim-${NUMBER}` },
    })
    const loaded = await sampleUntil(load, server.memory, progress)
    const { created, seconds } = await load
    note(`${formatCount(created)} claims were created and deleted, ${Math.round(created / seconds)} per second.`)
    const rested = await sampleUntil(sleep(minutes.idle * 60_000), server.memory, progress)
    return figuresOf({ idle, loaded, after: rested.at(-1)! }, minutes)
  } finally {
    churn.stop()
    await server.stop()
    await driver.stop()
  }
}

/** Returns the memory at regular intervals until the promise is settled, and at its end. */
async function sampleUntil(
  end: Promise<unknown>,
  memory: () => Memory,
  progress: PartOptions['progress'],
): Promise<Memory[]> {
  const samples: Memory[] = []
  let isEnded = false
  const ended = end.finally(() => {
    isEnded = true
  })
  while (!isEnded) {
    await Promise.race([ended, sleep(SAMPLE_MS)])
    samples.push(memory())
    if (samples.length % PROGRESS_SAMPLES === 0) progress(memoryText(samples.at(-1)!))
  }
  return samples
}

const memoryText = ({ anonymousMb, mappedMb }: Memory): string =>
  `${Math.round(anonymousMb)} MB anonymous, ${Math.round(mappedMb)} MB mapped`

interface Soak {
  readonly idle: Memory
  readonly loaded: readonly Memory[]
  readonly after: Memory
}

function figuresOf({ idle, loaded, after }: Soak, minutes: { load: number; idle: number }): Figure[] {
  const name = `${CLAIMS_PER_SECOND} claims created and deleted per second for ${minutes.load} minutes`
  const idleName = `${minutes.idle} minutes after the load`
  return [
    {
      name: `${name}: anonymous memory, most`,
      unit: 'MB',
      value: Math.max(...loaded.map(({ anonymousMb }) => anonymousMb)),
      limit: { value: idle.anonymousMb, of: 'idle before the load' },
      target: { valueMax: LOADED_MB_MAX },
    },
    {
      name: `${name}: mapped memory, most`,
      unit: 'MB',
      value: Math.max(...loaded.map(({ mappedMb }) => mappedMb)),
      limit: { value: idle.mappedMb, of: 'idle before the load' },
    },
    {
      name: `${idleName}: anonymous memory`,
      unit: 'MB',
      value: after.anonymousMb,
      limit: { value: idle.anonymousMb, of: 'idle before the load' },
      target: { ratioMin: IDLE_RATIO_MIN },
    },
    {
      name: `${idleName}: mapped memory`,
      unit: 'MB',
      value: after.mappedMb,
      limit: { value: idle.mappedMb, of: 'idle before the load' },
    },
  ]
}
