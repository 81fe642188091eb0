// The configuration of encryption at rest, in the format apiserver.config.k8s.io/v1 EncryptionConfiguration. Error messages
// never quote a key.
import { randomBytes } from 'node:crypto'
import { printYaml } from '../../api/print-yaml.ts'
import { list, object, opt, ptr, rawJson, req, string } from '../../api/schema.ts'
import { decodeConfigFile } from '../config-file.ts'
import { AES_KEY_BYTES } from './aes-gcm.ts'

const API_VERSION = 'apiserver.config.k8s.io/v1'
const KIND = 'EncryptionConfiguration'

const key = object('io.k8s.apiserver.config.v1.Key', 'A named key.', {
  name: req(0, string, 'Name of the key, which is stored with each value.'),
  secret: req(0, string, 'The key in base64.'),
})
const aesConfiguration = object('io.k8s.apiserver.config.v1.AESConfiguration', 'Keys of an AES provider.', {
  keys: req(0, list(key), 'The keys; the first one encrypts.'),
})
const providerConfiguration = object('io.k8s.apiserver.config.v1.ProviderConfiguration', 'Exactly one provider.', {
  aesgcm: ptr(0, aesConfiguration, 'AES-GCM.'),
  aescbc: ptr(0, rawJson, 'Not supported.'),
  secretbox: ptr(0, rawJson, 'Not supported.'),
  identity: ptr(0, rawJson, 'No encryption.'),
  kms: ptr(0, rawJson, 'Not supported.'),
})
const resourceConfiguration = object('io.k8s.apiserver.config.v1.ResourceConfiguration', 'Providers of resources.', {
  resources: req(0, list(string), 'Resources, such as secrets, widgets.example.com, *.apps, *. or *.*.'),
  providers: req(0, list(providerConfiguration), 'The providers; the first one encrypts.'),
})
const encryptionConfiguration = object('io.k8s.apiserver.config.v1.EncryptionConfiguration', 'Encryption at rest.', {
  metadata: opt(0, rawJson, 'Ignored.'),
  resources: req(0, list(resourceConfiguration), 'The first entry that includes a resource applies to it.'),
})

/** A key of aesgcm. */
export interface EncryptionKey {
  readonly name: string
  readonly secret: Uint8Array
  /** The bytes before the nonce: `k8s:enc:aesgcm:v1:NAME:`. */
  readonly prefix: Buffer
}

export type Provider = { readonly is: 'identity' } | { readonly is: 'aesgcm'; readonly keys: readonly EncryptionKey[] }

export interface EncryptionRule {
  /** The prefixes of the keys in the store. */
  readonly prefixes: readonly string[]
  readonly providers: readonly Provider[]
}

/** The rules in order. The first rule that has a prefix of a store key applies to its values. */
export type EncryptionRules = readonly EncryptionRule[]

export const ENCRYPTED_PREFIX = 'k8s:enc:'

/** Parses a configuration in YAML or JSON. */
export async function parseEncryptionConfiguration(text: string): Promise<EncryptionRules> {
  const format = { apiVersion: API_VERSION, kind: KIND, type: encryptionConfiguration, isSecret: true }
  const { resources } = await decodeConfigFile(text, format)
  if (resources.length === 0) throw new Error('resources: at least one entry is required')
  return resources.map(({ resources: names, providers }, index) => {
    const path = `resources[${index}]`
    if (names.length === 0) throw new Error(`${path}.resources: at least one resource is required`)
    if (providers.length === 0) throw new Error(`${path}.providers: at least one provider is required`)
    const prefixes = names.map((name, position) => prefixOf(name, `${path}.resources[${position}]`))
    checkOverlap(prefixes, names, path)
    return {
      prefixes,
      providers: providers.map((provider, position) => parseProvider(provider, `${path}.providers[${position}]`)),
    }
  })
}

/** Returns the prefix of the store keys of a resource: `secrets` is in core/secrets/, `*.apps` in apps/. */
function prefixOf(name: string, path: string): string {
  if (name === '*.*') return ''
  if (!/^(\*|[a-z0-9-]+)(\.[a-z0-9.-]*)?$/.test(name) || name === '*') {
    throw new Error(
      `${path}: ${JSON.stringify(name)} is not a resource, such as secrets, widgets.example.com or *.apps`,
    )
  }
  const dot = name.indexOf('.')
  const resource = dot < 0 ? name : name.slice(0, dot)
  const group = (dot < 0 ? '' : name.slice(dot + 1)) || 'core'
  return resource === '*' ? `${group}/` : `${group}/${resource}/`
}

function checkOverlap(prefixes: readonly string[], names: readonly string[], path: string): void {
  for (const [index, prefix] of prefixes.entries()) {
    const otherIndex = prefixes.findIndex((candidate, position) => position !== index && prefix.startsWith(candidate))
    if (otherIndex >= 0) throw new Error(`${path}.resources: ${names[otherIndex]} already includes ${names[index]}`)
  }
}

type ProviderConfiguration = NonNullable<(typeof providerConfiguration)['infer']>

function parseProvider(configuration: ProviderConfiguration, path: string): Provider {
  const kinds = Object.keys(configuration)
  if (kinds.length !== 1) throw new Error(`${path}: exactly one provider is required, not ${kinds.length}`)
  if (configuration.identity !== undefined) return { is: 'identity' }
  if (!configuration.aesgcm) {
    throw new Error(`${path}.${kinds[0]}: the provider is not supported; use aesgcm, or identity for no encryption`)
  }
  const { keys } = configuration.aesgcm
  if (keys.length === 0) throw new Error(`${path}.aesgcm.keys: at least one key is required`)
  const names = new Set<string>()
  return {
    is: 'aesgcm',
    keys: keys.map(({ name, secret }, index) => {
      const keyPath = `${path}.aesgcm.keys[${index}]`
      if (!/^[^:\s]{1,253}$/.test(name)) throw new Error(`${keyPath}.name: a name without colons or spaces is required`)
      if (names.has(name)) throw new Error(`${keyPath}.name: the name is used by an earlier key`)
      names.add(name)
      return parseKey(name, secret, keyPath)
    }),
  }
}

function parseKey(name: string, base64: string, path: string): EncryptionKey {
  const secret = Buffer.from(base64, 'base64')
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(base64)) throw new Error(`${path}.secret: the key is not base64`)
  if (!(AES_KEY_BYTES as readonly number[]).includes(secret.length)) {
    throw new Error(`${path}.secret: the key has ${secret.length} bytes, not ${AES_KEY_BYTES.join(', ')}`)
  }
  return { name, secret, prefix: Buffer.from(`${ENCRYPTED_PREFIX}aesgcm:v1:${name}:`) }
}

/** Returns the text of a configuration that encrypts Secrets with these keys, the first one for writing. */
export const formatSecretsConfiguration = (keys: readonly Pick<EncryptionKey, 'name' | 'secret'>[]): Promise<string> =>
  printYaml({
    apiVersion: API_VERSION,
    kind: KIND,
    resources: [
      {
        resources: ['secrets'],
        providers: [
          {
            aesgcm: {
              keys: keys.map(({ name, secret }) => ({ name, secret: Buffer.from(secret).toString('base64') })),
            },
          },
          { identity: {} }, // reads Secrets that were stored before encryption was enabled
        ],
      },
    ],
  })

export const generateKey = (name: string): Pick<EncryptionKey, 'name' | 'secret'> => ({ name, secret: randomBytes(32) })
