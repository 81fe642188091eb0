// Encrypts the values of configured resources in the store. The configuration can be replaced while the server runs.
import { UndecryptableError, type ValueTransformer } from '../../store/index.ts'
import { decryptAesGcm, encryptAesGcm } from './aes-gcm.ts'
import { ENCRYPTED_PREFIX, type EncryptionKey, type EncryptionRules } from './configuration.ts'

export interface Encryption extends ValueTransformer {
  setRules(rules: EncryptionRules): void
  /** The prefixes of the store keys to which a rule applies. */
  prefixes(): readonly string[]
}

/** Returns a transformer that stores values unchanged while it has no rules. */
export function createEncryption(initialRules: EncryptionRules = []): Encryption {
  let rules = initialRules
  const ruleOf = (storeKey: string) =>
    rules.find(({ prefixes }) => prefixes.some((prefix) => storeKey.startsWith(prefix)))

  /** Returns the key that encrypts new values of the store key, or undefined if they are stored unencrypted. */
  function writeKeyOf(storeKey: string): EncryptionKey | undefined {
    const provider = ruleOf(storeKey)?.providers[0]
    return provider?.is === 'aesgcm' ? provider.keys[0] : undefined
  }

  return {
    setRules(newRules) {
      rules = newRules
    },
    prefixes: () => rules.flatMap(({ prefixes }) => prefixes),

    encode(storeKey, value) {
      const key = writeKeyOf(storeKey)
      return key ? encryptAesGcm(value, { secret: key.secret, storeKey, prefix: key.prefix }) : value
    },

    isTransformed: (storeKey, storedBytes) => isEncrypted(storedBytes) || ruleOf(storeKey) !== undefined,

    decode(storeKey, storedBytes) {
      const providers = ruleOf(storeKey)?.providers ?? []
      if (!isEncrypted(storedBytes)) {
        if (providers.length === 0 || providers.some(({ is }) => is === 'identity')) return storedBytes
        throw new UndecryptableError(
          storeKey,
          'the value is not encrypted, and the configuration has no "identity" provider',
        )
      }
      let hasKey = false
      for (const provider of providers) {
        if (provider.is !== 'aesgcm') continue
        for (const key of provider.keys) {
          if (!startsWith(storedBytes, key.prefix)) continue
          hasKey = true
          const value = decryptAesGcm(storedBytes.subarray(key.prefix.length), { secret: key.secret, storeKey })
          if (value) return value
        }
      }
      const name = describeEncryptionKey(storedBytes)
      throw new UndecryptableError(
        storeKey,
        hasKey
          ? `${name} has another secret than the one that encrypted the value, or the stored value was modified`
          : `the encryption configuration does not have ${name}`,
      )
    },

    isStale(storeKey, storedBytes) {
      const key = writeKeyOf(storeKey)
      return key ? !startsWith(storedBytes, key.prefix) : isEncrypted(storedBytes)
    },
  }
}

const MAGIC = Buffer.from(ENCRYPTED_PREFIX)

/** Returns whether the value is encrypted by any provider. Unencrypted objects are JSON and begin with another byte. */
const isEncrypted = (storedBytes: Uint8Array): boolean => storedBytes[0] === MAGIC[0] && startsWith(storedBytes, MAGIC)

function startsWith(bytes: Uint8Array, prefix: Uint8Array): boolean {
  if (bytes.length < prefix.length) return false
  for (let index = 0; index < prefix.length; index++) if (bytes[index] !== prefix[index]) return false
  return true
}

const PREFIX_CHARACTERS_MAX = 300

/** Returns `key "NAME" of provider PROVIDER` from the prefix of an encrypted value. */
export function describeEncryptionKey(storedBytes: Uint8Array): string {
  const start = Buffer.from(storedBytes.subarray(0, PREFIX_CHARACTERS_MAX)).toString('latin1')
  const [, , provider, , name] = start.split(':')
  return `key ${JSON.stringify(name ?? '')} of provider ${provider}`
}
