// Tests the official Go client, which controllers and CSI sidecars use. The program in go/ runs its steps against a server,
// once with protobuf and watches with initial events, like current clients, and once with JSON and lists, like older ones.
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { programSkipReason } from '../helpers/programs.ts'
import { type RunningServer, startServer } from '../helpers/server.ts'
import { runSteps, type StepsRun } from './steps.ts'

const run = promisify(execFile)
const skipMessage = programSkipReason('go', ['version'])

/** The steps of go/main.go, each with its expected result. */
const STEPS = {
  discovery: 'finds the same resources with aggregated and unaggregated discovery',
  create: 'SYS-4 creates a class, claim, volume, capacity, pod and secret with all fields',
  update: 'SYS-4 updates objects and their status, and receives a conflict for an old version',
  errors: 'SYS-4 distinguishes errors by reason and field',
  'strategic patch': 'merges lists by key',
  'merge patch': 'merges maps',
  'json patch': 'applies operations, and none if a test operation fails',
  apply: 'applies server-side, with conflicts, force and removal of fields no longer applied',
  delete: 'SYS-4 deletes with preconditions, propagation and by selector',
  pages: 'lists in pages',
  binding: 'binds a pod to a node only once',
  review: 'SYS-9 reviews its own permissions',
  'watch resumed': 'SYS-3 receives every change once and in order across lost connections',
  'storage informers': 'syncs the caches of a storage controller',
  'scheduler informers': 'syncs the caches of a kube-scheduler',
  'informer events': 'SYS-3 receives additions, updates and deletions',
  'informer reconnects': 'SYS-3 catches up after lost connections',
  'selecting informer': 'SYS-3 receives only selected objects',
  'dynamic client': 'writes objects without generated types',
  'dynamic informer': 'watches objects without generated types',
  'metadata client': 'reads and patches only metadata',
  'metadata informer': 'watches only metadata',
  'leader election': 'SYS-8 elects a leader, and another one when the first resigns',
  'core events': 'SYS-11 counts a repeated event',
  events: 'SYS-11 records a series for a repeated event',
} as const

const MODES = [
  { client: 'protobuf, state by watch', flags: [], env: { KUBE_FEATURE_WatchListClient: 'true' } },
  {
    client: 'JSON, state by list',
    flags: ['-content-type', 'application/json'],
    env: { KUBE_FEATURE_WatchListClient: 'false' },
  },
]

/** The first build of the client library takes minutes. Go caches the result. */
const BUILD_TIMEOUT_MS = 15 * 60_000
/** Long enough for several failing steps, each of which waits for its own timeout. */
const RUN_TIMEOUT_MS = 10 * 60_000

describe.skipIf(skipMessage)(`the Go client${skipMessage ? ` (skipped: ${skipMessage})` : ''}`, () => {
  let dir: string
  let program: string
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'stowage-go-client-'))
    program = join(dir, 'clients')
    await run('go', ['build', '-o', program, '.'], { cwd: new URL('go', import.meta.url).pathname })
  }, BUILD_TIMEOUT_MS)
  afterAll(() => rm(dir, { recursive: true, force: true }))

  describe.each(MODES)('$client', ({ client, flags, env }) => {
    let server: RunningServer
    let steps: StepsRun
    beforeAll(async () => {
      server = await startServer({ dataDir: join(dir, client), command: 'server' })
      steps = await runSteps(program, ['-kubeconfig', server.kubeconfig, '-namespace', 'shop', ...flags], env)
    }, RUN_TIMEOUT_MS)
    afterAll(() => server?.stop())

    it.each(Object.entries(STEPS))('%s: %s', (step) => {
      expect(steps.outputByName.get(step), steps.errors).toBe(`ok ${step}`)
    })

    it('runs exactly these steps', () => {
      expect(steps.names).toEqual(Object.keys(STEPS))
      expect(steps.exitCode).toBe(0)
    })
  })
})
