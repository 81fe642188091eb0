// The keys of ServiceAccount tokens in the pki directory. To rotate them, replace or remove service-account.key: the server
// signs with the new key, and accepts tokens of the old ones until the last of them has expired.
//   service-account.key   private key that signs
//   service-account.pub   public keys that verify, newest first; each follows a line with the time of its first use
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { join } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { readTextIfPresent, writePrivateFile } from '../../base/files.ts'
import { timestamp } from '../../base/timestamps.ts'
import { unusableFileError } from '../security/errors.ts'
import { type SigningKey, signingKeyOf, type VerificationKey, verificationKeyOf } from './jwt.ts'

export interface TokenKeys {
  readonly signingKey: SigningKey
  /** All keys by ID, including the one that signs. */
  readonly verificationKeys: ReadonlyMap<string, VerificationKey>
}

export interface TokenKeyOptions {
  /** The pki directory, which exists. */
  readonly dir: string
  /** The longest lifetime of a token. A public key is removed when it has not signed for this long. */
  readonly tokenLifetimeMsMax: number
  readonly clock: Clock
}

/** A public key with the time of its first use, when the server stopped signing with the next key in the file. */
interface PublishedKey {
  readonly key: VerificationKey
  readonly sinceMs: number
}

/** Loads the keys, creates missing ones and removes public keys whose tokens have all expired. */
export async function loadTokenKeys({ dir, tokenLifetimeMsMax, clock }: TokenKeyOptions): Promise<TokenKeys> {
  const [keyFile, publicFile] = [join(dir, 'service-account.key'), join(dir, 'service-account.pub')]
  const nowMs = clock.nowMs()
  const signingKey = await loadSigningKey(keyFile)
  const publicText = await readTextIfPresent(publicFile)
  const publishedKeys = parsePublicKeys(publicText ?? '', publicFile)
  const isPublished = publishedKeys[0]?.key.kid === signingKey.kid
  const olderKeys = publishedKeys.filter(({ key }) => key.kid !== signingKey.kid)
  const newestKey = isPublished ? publishedKeys[0]! : { key: signingKey, sinceMs: nowMs }
  const keys = [newestKey, ...olderKeys].filter(
    (_, index, all) => index === 0 || all[index - 1]!.sinceMs + tokenLifetimeMsMax >= nowMs,
  )
  const text = formatPublicKeys(keys)
  if (text !== publicText) await writePrivateFile(publicFile, text)
  return { signingKey, verificationKeys: new Map(keys.map(({ key }) => [key.kid, key])) }
}

async function loadSigningKey(file: string): Promise<SigningKey> {
  const pem = await readTextIfPresent(file)
  if (pem === undefined) {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    await writePrivateFile(file, privateKey.export({ type: 'pkcs8', format: 'pem' }) as string)
    return signingKeyOf(privateKey)!
  }
  const key = parseKey(() => createPrivateKey(pem))
  const signingKey = key && signingKeyOf(key)
  if (!signingKey) {
    throw unusableFileError({
      file,
      reason: 'it is not a private key in PEM for ECDSA P-256 or RSA with at least 2048 bits',
      remedy: 'Replace it, or remove it and start again with a new key.',
    })
  }
  return signingKey
}

const SINCE_PREFIX = '# since '
const PUBLIC_KEY = /^(?:# since (\S+)\n)?(-----BEGIN PUBLIC KEY-----\n[^-]+-----END PUBLIC KEY-----)$/gm

/** A key without a time, which an operator added, counts as used since the epoch. */
function parsePublicKeys(text: string, file: string): PublishedKey[] {
  return [...text.matchAll(PUBLIC_KEY)].map(([, since = '', pem = '']) => {
    const publicKey = parseKey(() => createPublicKey(pem))
    const key = publicKey && verificationKeyOf(publicKey)
    if (!key) {
      throw unusableFileError({
        file,
        reason: 'it has a public key that is neither ECDSA P-256 nor RSA with at least 2048 bits',
        remedy: 'Correct it, or remove it and start again; tokens of earlier keys then stop working.',
      })
    }
    return { key, sinceMs: Date.parse(since) || 0 }
  })
}

const formatPublicKeys = (keys: readonly PublishedKey[]): string =>
  keys
    .map(({ key, sinceMs }) => {
      const pem = key.publicKey.export({ type: 'spki', format: 'pem' }) as string
      return `${SINCE_PREFIX}${timestamp(sinceMs)}\n${pem.trimEnd()}\n`
    })
    .join('')

function parseKey(parse: () => KeyObject): KeyObject | undefined {
  try {
    return parse()
  } catch {
    return undefined
  }
}
