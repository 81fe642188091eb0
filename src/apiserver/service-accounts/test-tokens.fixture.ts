// Issues and authenticates ServiceAccount tokens in tests, with a key that exists only in memory.
import { generateKeyPairSync } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import { silentLog } from '../../base/log.ts'
import type { Store } from '../../store/index.ts'
import { DEFAULT_ISSUER } from './default-issuer.ts'
import { type AccountTokens, createAccountTokens, type TokenKeys } from './index.ts'
import { type SigningKey, signingKeyOf } from './jwt.ts'

export const generateSigningKey = (): SigningKey =>
  signingKeyOf(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey)!

export const tokenKeysOf = (signingKey: SigningKey, ...olderKeys: readonly SigningKey[]): TokenKeys => ({
  signingKey,
  verificationKeys: new Map([signingKey, ...olderKeys].map((key) => [key.kid, key])),
})

export const createTestAccountTokens = ({ store, clock }: { store: Store; clock: Clock }): AccountTokens =>
  createAccountTokens({
    store,
    clock,
    log: silentLog,
    keys: tokenKeysOf(generateSigningKey()),
    issuer: DEFAULT_ISSUER,
    lifetimeSecondsMax: 86_400,
    serverUrl: () => 'https://127.0.0.1:7443',
  })
