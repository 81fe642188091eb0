// Tests the official Python client, typed and dynamic. The program in python/ runs its steps against a server, and against
// one that compacts its history as soon as possible.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { preparePython } from '../helpers/python.ts'
import { type RunningServer, startServer } from '../helpers/server.ts'
import { runSteps, type StepsRun } from './steps.ts'

const FOLDER = new URL('python', import.meta.url).pathname
const environment = await preparePython(join(FOLDER, 'requirements.txt'))
const skipReason = environment.is === 'missing' ? ` (skipped: ${environment.message})` : ''

/** The steps of python/steps.py, each with its expected result. */
const STEPS = {
  create: 'creates objects, and changes only the status with a status update',
  errors: 'SYS-4 distinguishes errors by code and reason',
  pages: 'lists in pages',
  'dict patch': 'applies a dict as a strategic merge patch',
  'list patch': 'applies a list as a JSON patch',
  'watch resumed': 'SYS-3 receives every change once and in order when it resumes',
  'informer loop': 'SYS-3 misses nothing between one watch and the next',
  'watch expired': 'SYS-3 receives 410 Expired for a compacted version',
  delete: 'SYS-4 deletes with options in the query',
  'dynamic client': 'reads, patches, watches and deletes objects without generated types',
  'server-side apply': 'applies server-side, with conflicts, force and removal of fields no longer applied',
} as const

describe.skipIf(environment.is === 'missing')(`the Python client${skipReason}`, () => {
  let dir: string
  const servers: RunningServer[] = []
  let steps: StepsRun
  beforeAll(async () => {
    if (environment.is === 'missing') return
    dir = await mkdtemp(join(tmpdir(), 'stowage-python-client-'))
    for (const [name, flags] of [
      ['data', []],
      ['compacting', ['--history-minutes', '0.0001']],
    ] as const) {
      servers.push(await startServer({ dataDir: join(dir, name), command: 'server', flags }))
    }
    const kubeconfigs = servers.map(({ kubeconfig }) => kubeconfig)
    steps = await runSteps(environment.python, [join(FOLDER, 'steps.py'), ...kubeconfigs, dir])
  })
  afterAll(async () => {
    await Promise.all(servers.map((server) => server.stop()))
    await rm(dir, { recursive: true, force: true })
  })

  it.each(Object.entries(STEPS))('%s: %s', (step) => {
    expect(steps.outputByName.get(step), steps.errors).toBe(`ok ${step}`)
  })

  it('runs exactly these steps', () => {
    expect(steps.names).toEqual(Object.keys(STEPS))
    expect(steps.exitCode).toBe(0)
  })
})
