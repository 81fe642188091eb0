import { X509Certificate } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import type { Pki } from '../../apiserver/index.ts'
import { silentLog } from '../../base/log.ts'
import { manualClock } from '../../base/manual-clock.ts'
import { openCredentials } from './credentials.ts'

const DAY_MS = 24 * 60 * 60 * 1_000
const HALF_DAY_MS = DAY_MS / 2

async function createDirectory(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'stowage-credentials-'))
  onTestFinished(() => rm(dir, { recursive: true }))
  return dir
}

it('SYS-22 renews a serving certificate before it expires, and serves it without a restart', async () => {
  const dir = await createDirectory()
  const baseClock = manualClock()
  let offsetMs = 0
  const clock = { ...baseClock, nowMs: () => baseClock.nowMs() + offsetMs }
  const stop = new AbortController()
  onTestFinished(() => stop.abort())
  const credentials = await openCredentials({ dir, hosts: [], clock, log: silentLog })
  await credentials.createAuthenticator({ tokenAuthenticators: [] })
  const renewals: Pki[] = []
  const servedCerts: string[] = []
  await credentials.follow({
    listener: { setCertificates: ({ servingCert }) => void servedCerts.push(servingCert) },
    server: { endUnauthenticatedStreams: () => 0 },
    onRenewed: async (pki) => void renewals.push(pki),
    signal: stop.signal,
  })
  offsetMs = 340 * DAY_MS
  await baseClock.advance(HALF_DAY_MS)
  while (renewals.length === 0 || servedCerts.at(-1) !== renewals[0]!.servingCert) {
    await baseClock.advance(400)
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(Date.parse(new X509Certificate(servedCerts.at(-1)!).validTo)).toBeGreaterThan(clock.nowMs() + 300 * DAY_MS)
})

it('SYS-22 rejects an invalid list of revoked certificates, and names its file and line', async () => {
  const dir = await createDirectory()
  const credentials = await openCredentials({ dir, hosts: [], clock: manualClock(), log: silentLog })
  await writeFile(join(dir, 'revoked-certificates'), 'ann\n')
  await expect(credentials.createAuthenticator({ tokenAuthenticators: [] })).rejects.toThrow(
    `Cannot use ${join(dir, 'revoked-certificates')}: line 1: expected "serial HEX" or "sha256 HEX" with 64 digits. Correct the file.`,
  )
})
