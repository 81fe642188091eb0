import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { systemClock } from '../../../base/clock.ts'
import { queryServer } from './query-server.ts'

let dir: string
let kubeconfig: string

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'stowage-status-'))
  kubeconfig = join(dir, 'admin.kubeconfig')
  await writeFile(
    kubeconfig,
    JSON.stringify({
      'current-context': 'c',
      contexts: [{ name: 'c', context: { cluster: 'c' } }],
      clusters: [{ name: 'c', cluster: { server: 'http://127.0.0.1:1' } }],
    }),
  )
})
afterEach(() => rm(dir, { recursive: true, force: true }))

const query = (url: string, path = kubeconfig) =>
  queryServer({
    server: {
      pid: 1,
      startTicks: '1',
      bootId: 'b',
      command: 'server',
      version: '1.0.0',
      startTime: '2026-01-01T00:00:00Z',
      store: 'embedded',
      pkiDir: dir,
      url,
    },
    kubeconfig: path,
    clock: systemClock(),
  })

/** Starts an API server that is ready and forbids every list. Returns the problems that the query finds. */
async function queryForbiddingServer(): Promise<readonly string[]> {
  const server = createServer((request, response) => {
    const isProbe = /^\/(readyz|metrics)/.test(request.url ?? '')
    response.writeHead(isProbe ? 200 : 403, { 'content-type': 'application/json' })
    response.end(
      isProbe ? 'ok' : JSON.stringify({ kind: 'Status', code: 403, reason: 'Forbidden', message: 'no access' }),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    return (await query(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)).problems
  } finally {
    await new Promise((resolve) => server.close(resolve))
  }
}

it('queryServer distinguishes a rejected request, an unreachable server and an unreadable kubeconfig', async () => {
  expect(await queryForbiddingServer()).toEqual([
    expect.stringMatching(/^the API at http:\/\/127\.0\.0\.1:\d+ rejected the request: no access/),
  ])
  expect((await query('http://127.0.0.1:1')).problems).toEqual([
    'the API at http://127.0.0.1:1 is unavailable: cannot reach http://127.0.0.1:1: ECONNREFUSED (no server listens there)',
  ])
  const missingPath = join(dir, 'missing')
  expect((await query('http://127.0.0.1:1', missingPath)).problems).toEqual([
    expect.stringContaining(`cannot read the credentials in ${missingPath}: ENOENT`),
  ])
})
