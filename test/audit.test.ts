// Tests the audit log of the built program.
import { execFileSync } from 'node:child_process'
import { mkdtemp, readFile, rm, stat, statfs, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from './allowed-skips.ts'
import { runStowage } from './helpers/run-stowage.ts'
import { type RunningServer, startServer } from './helpers/server.ts'

const skip = skipReason(await probeThisMachine(), ['mount'])
const ACCOUNTS = '/api/v1/namespaces/default/serviceaccounts'
const account = (name: string) => ({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name } })

let dir: string
let server: RunningServer | undefined

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'stowage-audit-'))
})

afterEach(async () => {
  await server?.kill()
  server = undefined
  await rm(dir, { recursive: true })
})

const readEvents = async (path: string) => {
  const lines = (await readFile(path, 'utf8')).split('\n').slice(0, -1)
  return lines.map((line) => JSON.parse(line))
}

async function pollUntil(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 50))
}

describe('the audit log of a server', () => {
  it('SYS-21 records writes and access to Secrets in a private file, and is complete after a stop', async () => {
    server = await startServer({ dataDir: join(dir, 'data'), command: 'server' })
    const { headers } = await server.call('POST', ACCOUNTS, account('a'), { 'user-agent': 'test/1' })
    await server.call('GET', ACCOUNTS)
    await server.call('GET', '/api/v1/secrets')
    await server.stop()
    server = undefined
    const path = join(dir, 'data/audit/audit.log')
    const events = await readEvents(path)
    expect(events.filter(({ userAgent }) => userAgent === 'test/1')).toMatchObject([
      {
        auditID: headers['audit-id'],
        verb: 'create',
        user: { username: 'stowage-admin' },
        sourceIPs: ['127.0.0.1'],
        objectRef: { resource: 'serviceaccounts', namespace: 'default', name: 'a' },
        responseStatus: { code: 201 },
      },
    ])
    expect(events.map(({ verb, objectRef }) => `${verb} ${objectRef.resource}`)).toContain('list secrets')
    expect(events.map(({ verb, objectRef }) => `${verb} ${objectRef.resource}`)).not.toContain('list serviceaccounts')
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    expect((await stat(join(dir, 'data/audit'))).mode & 0o777).toBe(0o700)
  })

  it('SYS-21 rejects a policy with an unknown field at startup, and names the field', async () => {
    const policy = join(dir, 'policy.yaml')
    await writeFile(policy, 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, verb: [get]}]\n')
    expect(await runStowage('server', '--data-dir', join(dir, 'data'), '--audit-policy-file', policy)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`--audit-policy-file ${policy}: unknown field "rules[0].verb"`),
    })
  })

  it.skipIf(skip)(
    `SYS-21 blocks no request on a full disk, counts the failures, and loses no event that fits the buffer${skip ? ` (${skip})` : ''}`,
    async () => {
      const disk = join(dir, 'disk')
      execFileSync('mkdir', [disk])
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', disk])
      try {
        const path = join(disk, 'audit.log')
        const flags = ['--audit-log-path', path]
        server = await startServer({ dataDir: join(dir, 'data'), command: 'server', flags })
        const { bavail, bsize } = await statfs(disk)
        await writeFile(join(disk, 'filler'), Buffer.alloc(bavail * bsize)).catch(() => {})
        const create = (name: string) => server!.call('POST', ACCOUNTS, account(name))
        for (let index = 0; index < 20; index++) expect((await create(`full-${index}`)).status).toBe(201)
        const metrics = async () => (await server!.call('GET', '/metrics')).text
        await pollUntil(async () => /^apiserver_audit_error_total\{plugin="log"\} [1-9]/m.test(await metrics()))
        expect(await metrics()).toMatch(/^stowage_audit_dropped_events_total 0$/m)
        await rm(join(disk, 'filler'))
        await pollUntil(async () => (await readEvents(path)).length >= 20)
        const names = (await readEvents(path)).map(({ objectRef }) => objectRef.name)
        for (let index = 0; index < 20; index++) expect(names).toContain(`full-${index}`)
      } finally {
        await server?.kill()
        server = undefined
        execFileSync('umount', [disk])
      }
    },
  )
})
