import { createVerify, generateKeyPairSync } from 'node:crypto'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { manualClock } from '../../base/manual-clock.ts'
import { signJwt, verifyJwt } from './jwt.ts'
import { loadTokenKeys } from './token-keys.ts'

const HOUR_MS = 60 * 60 * 1_000

let dir: string
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'stowage-keys-'))
})
afterEach(() => rm(dir, { recursive: true }))

const clock = manualClock()
const load = () => loadTokenKeys({ dir, tokenLifetimeMsMax: HOUR_MS, clock })

describe('loadTokenKeys', () => {
  it('SYS-23 creates a private key that only the owner can read, and keeps it', async () => {
    const { signingKey } = await load()
    expect((await stat(join(dir, 'service-account.key'))).mode & 0o777).toBe(0o600)
    expect((await load()).signingKey.kid).toBe(signingKey.kid)
  })

  it('SYS-23 accepts the key before a rotation until its last token has expired', async () => {
    const { signingKey: firstKey } = await load()
    await rm(join(dir, 'service-account.key'))
    await clock.advance(HOUR_MS * 2) // the age of the key does not count, only the time since it was replaced
    const { signingKey: secondKey, verificationKeys } = await load()
    expect(secondKey.kid).not.toBe(firstKey.kid)
    expect([...verificationKeys.keys()]).toEqual([secondKey.kid, firstKey.kid])
    await clock.advance(HOUR_MS)
    expect([...(await load()).verificationKeys.keys()]).toEqual([secondKey.kid, firstKey.kid])
    await clock.advance(1_000)
    expect([...(await load()).verificationKeys.keys()]).toEqual([secondKey.kid])
    expect(await readFile(join(dir, 'service-account.pub'), 'utf8')).toMatch(
      /^# since \S+\n-----BEGIN PUBLIC KEY-----\n/,
    )
  })

  it('signs with RS256 if the key is an RSA key', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
    await writeFile(join(dir, 'service-account.key'), privateKey.export({ type: 'pkcs1', format: 'pem' }))
    const { signingKey, verificationKeys } = await load()
    const token = signJwt({ sub: 'ann' }, signingKey)
    expect(verifyJwt(token, (kid) => verificationKeys.get(kid))?.claims).toEqual({ sub: 'ann' })
    const [header, payload, signature = ''] = token.split('.')
    const isValid = createVerify('RSA-SHA256').update(`${header}.${payload}`).verify(publicKey, signature, 'base64url')
    expect(isValid).toBe(true)
  })

  it.each(['junk', generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }) as string])(
    'rejects a file that is not a usable key',
    async (content) => {
      await writeFile(join(dir, 'service-account.key'), content)
      await expect(load()).rejects.toThrow(/^Cannot use .*service-account.key: it is not a private key in PEM/)
    },
  )
})
