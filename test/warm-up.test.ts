// Tests the warm-up of the built program: an idle server completes it; the synthetic claims that it creates appear in no list of
// objects, metric, event, audit log or temporary file; and a server that is stopped during the warm-up exits with code 0.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { type RunningServer, startServer } from './helpers/server.ts'

const dir = mkdtempSync(join(tmpdir(), 'warm-up-'))
afterAll(() => rmSync(dir, { recursive: true, force: true }))

/** Resolves when the log contains the text. The test fails by its timeout otherwise. */
async function logged(server: RunningServer, text: string): Promise<void> {
  while (!server.log().includes(text)) await new Promise((resolve) => setTimeout(resolve, 50))
}

it('an idle server warms up without a trace in objects, metrics, events, audit log and temporary files', async () => {
  const [dataDir, tmp] = ['data', 'tmp'].map((name) => mkdtempSync(join(dir, name))) as [string, string]
  const flags = ['--log-level', 'debug', '--log-format', 'json']
  const server = await startServer({ dataDir, flags, warmsUp: true, env: { TMPDIR: tmp } })
  await logged(server, 'the warm-up is complete')
  for (const path of ['/api/v1/persistentvolumeclaims', '/api/v1/persistentvolumes', '/api/v1/events']) {
    expect((await server.call('GET', path)).json.items, path).toEqual([])
  }
  const metrics = (await server.call('GET', '/metrics')).text
  expect(metrics).not.toContain('warm-up')
  expect(metrics).not.toMatch(
    /resource="persistentvolumeclaims"[^\n]*verb="POST"|verb="POST"[^\n]*resource="persistentvolumeclaims"/,
  )
  await server.stop()
  expect(readFileSync(join(dataDir, 'audit', 'audit.log'), 'utf8')).not.toContain('persistentvolumeclaims')
  expect(server.log()).not.toContain('claim-1')
  expect(readdirSync(tmp)).toEqual([])
})

it('a server that is stopped during its warm-up exits cleanly', async () => {
  const [dataDir, tmp] = ['stopped', 'tmp'].map((name) => mkdtempSync(join(dir, name))) as [string, string]
  const flags = ['--log-level', 'debug', '--log-format', 'json']
  const server = await startServer({ dataDir, flags, warmsUp: true, env: { TMPDIR: tmp } })
  await logged(server, 'the warm-up has started')
  expect(await server.stop()).toBe(0)
  expect(server.log()).not.toContain('did not stop')
  expect(readdirSync(tmp)).toEqual([])
})
