// Tests the built server on a store with a damaged record and with a damaged page.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { get } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runStowage } from './helpers/run-stowage.ts'
import { type RunningServer, startServer } from './helpers/server.ts'

const PATH = '/api/v1/namespaces/default/configmaps'
const MARKER = 'the value that is damaged'

describe('a damaged store', () => {
  let dataDir: string
  let file: string
  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'stowage-damaged-'))
    file = join(dataDir, 'store', 'store.mdb')
  })
  afterAll(() => rm(dataDir, { recursive: true, force: true }))

  /** Reads a path without credentials. */
  const readAnonymously = ({ url, ca }: RunningServer, path: string): Promise<string> =>
    new Promise((resolve, reject) => {
      get(`${url}${path}`, { ca, agent: false }, (response) => resolve(text(response))).on('error', reject)
    })

  const create = (server: RunningServer, name: string, value: string) =>
    server.call('POST', PATH, { metadata: { name }, data: { value } })

  it('SYS-20 fails requests for the damaged object, names it in readiness, counts it in metrics, and can be repaired without it', async () => {
    const firstServer = await startServer({ dataDir })
    expect((await create(firstServer, 'damaged', MARKER)).status).toBe(201)
    expect((await create(firstServer, 'intact', 'x')).status).toBe(201)
    await firstServer.stop()
    const bytes = await readFile(file)
    for (let position = bytes.indexOf(MARKER); position >= 0; position = bytes.indexOf(MARKER, position + 1))
      bytes[position]! ^= 1
    await writeFile(file, bytes)

    const secondServer = await startServer({ dataDir })
    const message = 'the stored configmaps "damaged" in namespace "default" is damaged at revision'
    const requests: readonly (readonly [string, string])[] = [
      ['GET', `${PATH}/damaged`],
      ['DELETE', `${PATH}/damaged`],
      ['GET', PATH],
    ]
    for (const [method, path] of requests) {
      const { status, json } = await secondServer.call(method, path)
      expect(status, `${method} ${path}`).toBe(500)
      expect(json).toMatchObject({ kind: 'Status', reason: 'InternalError' })
      expect(json.message).toContain(message)
    }
    expect(await secondServer.call('GET', `${PATH}/intact`)).toMatchObject({ status: 200 })
    const readiness = await secondServer.call('GET', '/readyz?verbose')
    expect(readiness.status).toBe(503)
    expect(readiness.text).toContain('[-]store-records failed: 1 record is damaged: configmaps "damaged" in namespace')
    const publicReadiness = await readAnonymously(secondServer, '/readyz?verbose')
    expect(publicReadiness).toContain('[-]store-records failed: 1 record is damaged; authenticate to see which')
    expect(publicReadiness).not.toContain('configmaps')
    expect((await secondServer.call('GET', '/metrics')).text).toMatch(/^stowage_store_damaged_records 1$/m)
    expect(secondServer.log()).toContain('a stored record is damaged')
    expect(await secondServer.stop()).toBe(0)

    const check = await runStowage('store', 'check', '--data-dir', dataDir)
    expect(check).toMatchObject({ code: 1, stdout: expect.stringContaining('"core/configmaps/default/damaged"') })
    expect(await runStowage('store', 'repair', '--data-dir', dataDir, '--yes')).toMatchObject({ code: 0 })
    const thirdServer = await startServer({ dataDir })
    expect((await thirdServer.call('GET', '/readyz')).status).toBe(200)
    expect((await thirdServer.call('GET', `${PATH}/damaged`)).status).toBe(404)
    expect((await thirdServer.call('GET', `${PATH}/intact`)).status).toBe(200)
    await thirdServer.stop()
  })

  it('SYS-20 prevents the server from starting if a page is damaged, and the error names the page', async () => {
    const bytes = await readFile(file)
    const root = Number(bytes.readBigUInt64LE(24 + 72 + 40))
    const newestRoot = Number(bytes.readBigUInt64LE(4_096 + 24 + 72 + 40))
    for (const page of [root, newestRoot]) bytes.writeUInt16LE(0xffff, page * 4_096 + 20)
    await writeFile(file, bytes)
    const { code, stderr } = await runStowage('up', '--nodes', '0', '--data-dir', dataDir, '--listen', '127.0.0.1:0')
    expect(code).toBe(1)
    expect(stderr).toMatch(/store\.mdb is damaged: page \d+: .*stowage store check/)
  })
})
