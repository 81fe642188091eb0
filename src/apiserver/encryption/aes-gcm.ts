// AES-GCM as in the Kubernetes provider aesgcm: a random nonce of 12 bytes, the ciphertext, and a tag of 16 bytes. The
// authenticated data is the key in the store, so that a value cannot be moved to another object.
import { createCipheriv, createDecipheriv, randomFillSync } from 'node:crypto'

const NONCE_BYTES = 12
const TAG_BYTES = 16

export const AES_KEY_BYTES = [16, 24, 32] as const
type Algorithm = 'aes-128-gcm' | 'aes-192-gcm' | 'aes-256-gcm'
const algorithmOf = (secret: Uint8Array) => `aes-${secret.length * 8}-gcm` as Algorithm

/** Random bytes for the next nonces. One call that fills all of them is faster than a call per nonce. */
const nonces = Buffer.alloc(256 * NONCE_BYTES)
let usedBytes = nonces.length

/** Returns a nonce that is valid until the next call. */
function nextNonce(): Buffer {
  if (usedBytes === nonces.length) {
    randomFillSync(nonces)
    usedBytes = 0
  }
  usedBytes += NONCE_BYTES
  return nonces.subarray(usedBytes - NONCE_BYTES, usedBytes)
}

/** Returns `prefix`, the nonce, the ciphertext and the tag in one buffer. */
export function encryptAesGcm(
  value: Uint8Array,
  { secret, storeKey, prefix }: { readonly secret: Uint8Array; readonly storeKey: string; readonly prefix: Uint8Array },
): Buffer {
  const nonce = nextNonce()
  const cipher = createCipheriv(algorithmOf(secret), secret, nonce).setAAD(Buffer.from(storeKey))
  const ciphertext = cipher.update(value)
  const finalBytes = cipher.final()
  return Buffer.concat([prefix, nonce, ciphertext, finalBytes, cipher.getAuthTag()])
}

/** Returns undefined if the data was encrypted with another secret or for another key of the store, or was modified. */
export function decryptAesGcm(
  data: Uint8Array,
  { secret, storeKey }: { readonly secret: Uint8Array; readonly storeKey: string },
): Buffer | undefined {
  if (data.length < NONCE_BYTES + TAG_BYTES) return undefined
  const nonce = data.subarray(0, NONCE_BYTES)
  const ciphertext = data.subarray(NONCE_BYTES, data.length - TAG_BYTES)
  const decipher = createDecipheriv(algorithmOf(secret), secret, nonce, { authTagLength: TAG_BYTES })
  decipher.setAAD(Buffer.from(storeKey)).setAuthTag(data.subarray(data.length - TAG_BYTES))
  try {
    return Buffer.concat([decipher.update(ciphertext), decipher.final()])
  } catch {
    return undefined
  }
}
