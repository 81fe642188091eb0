import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { countRequests, isPerVolume, readAuditLog } from './audit-log.ts'

let dir: string
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'stowage-audit-log-'))
})
afterEach(() => rm(dir, { recursive: true }))

const line = (verb: string, resource: string, subresource?: string) =>
  JSON.stringify({
    verb,
    user: { username: 'stowage' },
    objectRef: { resource, subresource },
    responseStatus: { code: 201 },
    stageTimestamp: '2026-01-02T03:04:05.678901Z',
  })

async function readLines(...lines: string[]) {
  const path = join(dir, 'audit.log')
  await writeFile(path, lines.map((text) => `${text}\n`).join(''))
  return readAuditLog(path)
}

it('readAuditLog returns the user, verb, resource, code and time of a request', async () => {
  expect(await readLines(line('patch', 'persistentvolumeclaims', 'status'))).toEqual([
    {
      user: 'stowage',
      request: 'patch persistentvolumeclaims/status',
      code: 201,
      atMs: Date.parse('2026-01-02T03:04:05.678Z'),
    },
  ])
})

it('countRequests counts requests by verb and resource, the most frequent first', async () => {
  const requests = await readLines(line('create', 'events'), line('create', 'pods'), line('create', 'pods'))
  expect([...countRequests(requests)]).toEqual([
    ['create pods', 2],
    ['create events', 1],
  ])
})

it('isPerVolume excludes leases, lists, watches and paths without a resource', async () => {
  const discovery = JSON.stringify({ verb: 'get', user: { username: 'stowage' }, requestURI: '/apis' })
  const requests = await readLines(
    line('create', 'persistentvolumes'),
    line('update', 'leases'),
    line('list', 'pods'),
    line('watch', 'pods'),
    discovery,
  )
  expect(requests.filter(isPerVolume).map(({ request }) => request)).toEqual(['create persistentvolumes'])
})
