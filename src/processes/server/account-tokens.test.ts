import { generateKeyPairSync } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { silentLog } from '../../base/log.ts'
import { manualClock } from '../../base/manual-clock.ts'
import { openMemoryStore } from '../../store/index.ts'
import { checkAccountTokenSettings, openAccountTokens } from './account-tokens.ts'

const HOUR_MS = 3_600_000
const SETTINGS = { issuer: 'https://issuer.example', lifetimeMsMax: 24 * HOUR_MS }

const subject = { namespace: 'shop', serviceaccount: { name: 'robot', uid: 'u' } }
const kidOf = (token: string): string => JSON.parse(Buffer.from(token.split('.')[0]!, 'base64url').toString()).kid

describe('openAccountTokens', () => {
  it('SYS-23 signs with a replaced key without a restart, and keeps the old key if the new one is not usable', async () => {
    const pkiDir = await mkdtemp(join(tmpdir(), 'stowage-account-tokens-'))
    const clock = manualClock()
    const store = await openMemoryStore({ clock })
    const stop = new AbortController()
    onTestFinished(async () => {
      stop.abort()
      await store.close()
      await rm(pkiDir, { recursive: true })
    })
    const serverUrl = () => 'https://127.0.0.1:7443'
    const tokens = await openAccountTokens({ ...SETTINGS, pkiDir, store, clock, log: silentLog, serverUrl })
    await tokens.start(stop.signal)
    /** Returns the ID of the signing key. The subject does not exist, so the clock must advance past the wait for the index. */
    const issueSigningKid = async () => {
      const issuance = tokens.issue({ subject, audiences: ['a'], lifetimeSeconds: 600 })
      await clock.advance(1_000)
      return kidOf((await issuance).token)
    }
    const readPublishedKeys = () =>
      JSON.parse(Buffer.from(tokens.handleDiscovery('/openid/v1/jwks')!.body!).toString()).keys
    const firstKid = await issueSigningKid()
    const replaceKey = (content: string) => writeFile(join(pkiDir, 'service-account.key'), content, { mode: 0o600 })

    await replaceKey('not a key')
    await clock.advance(1_000)
    expect(await issueSigningKid()).toBe(firstKid)
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    await replaceKey(privateKey.export({ type: 'pkcs8', format: 'pem' }) as string)
    await vi.waitFor(async () => expect(await issueSigningKid()).not.toBe(firstKid), { timeout: 20_000 })
    expect(readPublishedKeys().map(({ kid }: { kid: string }) => kid)).toEqual([await issueSigningKid(), firstKid])
  })
})

describe('checkAccountTokenSettings', () => {
  it.each(['http://issuer.example', 'https://issuer.example?a=b', 'issuer'])('rejects the issuer %s', (issuer) => {
    expect(() => checkAccountTokenSettings({ ...SETTINGS, issuer })).toThrow(/--service-account-issuer/)
  })

  it('rejects a maximum lifetime below one hour', () => {
    expect(() => checkAccountTokenSettings({ ...SETTINGS, lifetimeMsMax: HOUR_MS - 1 })).toThrow(/from 1h/)
  })
})
