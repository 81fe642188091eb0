// Reads the settings of a verification from the flags and files of `stowage verify`. Throws a UsageError that names the flag or
// the file.
import { readFile } from 'node:fs/promises'
import { isRecord } from '../../../api/decode.ts'
import { volumeAttributesClassKind } from '../../../api/kinds/attributes-class/attributes-class.ts'
import { storageClassKind } from '../../../api/kinds/storage-class/storage-class.ts'
import { loadYaml } from '../../../api/load-yaml.ts'
import { isQuantity, quantitySign, quantityToBytes } from '../../../api/quantity.ts'
import type { Random } from '../../../base/clock.ts'
import { UsageError } from '../../../base/usage-error.ts'
import {
  DEFAULT_SETTINGS,
  SECRET_KEYS,
  type SecretKey,
  type Secrets,
  type VerifySettings,
} from '../../../verify/index.ts'
import { parseDurationFlag } from '../../flags/common.ts'
import { decodeManifest } from '../../manifests/decode-manifest.ts'
import { readManifests } from '../../manifests/read-manifests.ts'

export interface SettingsFlags {
  readonly class?: string
  readonly secrets?: string
  readonly size: string
  readonly expandedSize?: string
  readonly otherNode?: string
  readonly seed?: string
  readonly callTimeout: string
}

const SEED_MAX = 2 ** 31

export async function readSettings(flags: SettingsFlags, random: Random): Promise<VerifySettings> {
  const sizeBytes = parseSize('--size', flags.size)
  const expandedBytes =
    flags.expandedSize === undefined ? 2 * sizeBytes : parseSize('--expanded-size', flags.expandedSize)
  if (expandedBytes <= sizeBytes)
    throw new UsageError(`--expanded-size ${flags.expandedSize}: expected more than --size ${flags.size}`)
  const callTimeoutMs = parseDurationFlag('--call-timeout', flags.callTimeout)
  if (callTimeoutMs <= 0) throw new UsageError(`--call-timeout ${flags.callTimeout}: expected more than 0`)
  return {
    ...DEFAULT_SETTINGS,
    ...(await readClasses(flags.class)),
    sizeBytes,
    expandedBytes,
    callTimeoutMs,
    checkTimeoutMs: Math.max(DEFAULT_SETTINGS.checkTimeoutMs, 2 * callTimeoutMs),
    secrets: flags.secrets === undefined ? {} : await readSecrets(flags.secrets),
    otherNodeId: flags.otherNode,
    seed: flags.seed === undefined ? Math.floor(random() * SEED_MAX) : parseSeed(flags.seed),
  }
}

async function readClasses(file: string | undefined): Promise<Pick<VerifySettings, 'storageClass' | 'attributes'>> {
  if (file === undefined) return { storageClass: {}, attributes: undefined }
  const manifests = await readManifests([file])
  const context = { namespace: 'default', nowMs: 0 }
  const other = manifests.find(({ kind }) => kind !== storageClassKind.kind && kind !== volumeAttributesClassKind.kind)
  if (other)
    throw new UsageError(`${other.source}: expected a StorageClass or a VolumeAttributesClass, not ${other.kind}`)
  const decodeOnly = <T>(kind: string, decode: (manifest: (typeof manifests)[number]) => T): T | undefined => {
    const [first, second] = manifests.filter((manifest) => manifest.kind === kind)
    if (second) throw new UsageError(`${second.source}: the file has a second ${kind}; expected one`)
    return first && decode(first)
  }
  const storageClass = decodeOnly(storageClassKind.kind, (manifest) =>
    decodeManifest(storageClassKind, manifest, context),
  )
  const attributesClass = decodeOnly(volumeAttributesClassKind.kind, (manifest) =>
    decodeManifest(volumeAttributesClassKind, manifest, context),
  )
  return { storageClass: storageClass ?? {}, attributes: attributesClass?.parameters }
}

async function readSecrets(file: string): Promise<Secrets> {
  const { parse } = await loadYaml()
  let value: unknown
  try {
    value = parse(await readFile(file, 'utf8'))
  } catch (error) {
    throw new UsageError(`--secrets ${file}: cannot be read: ${(error as Error).message.split('\n')[0]}`)
  }
  if (!isRecord(value))
    throw new UsageError(`--secrets ${file}: expected a map such as CreateVolumeSecret: {user: admin}`)
  return Object.fromEntries(
    Object.entries(value).map(([key, secret]) => [readSecretKey(file, key), readMap(file, key, secret)]),
  )
}

function readSecretKey(file: string, key: string): SecretKey {
  const secretKey = SECRET_KEYS.find((candidate) => candidate === key)
  if (!secretKey)
    throw new UsageError(`--secrets ${file}: unknown key "${key}"; known keys are ${SECRET_KEYS.join(', ')}`)
  return secretKey
}

function readMap(file: string, key: string, value: unknown): Record<string, string> {
  const isMap = isRecord(value) && Object.values(value).every((item) => typeof item === 'string')
  if (!isMap) throw new UsageError(`--secrets ${file}: ${key} must be a map of strings`)
  return value as Record<string, string>
}

function parseSize(flag: string, text: string): number {
  const bytes = isQuantity(text) && quantitySign(text) > 0 ? Number(quantityToBytes(text)) : Number.NaN
  if (!Number.isSafeInteger(bytes)) throw new UsageError(`${flag} ${JSON.stringify(text)}: expected a size such as 1Gi`)
  return bytes
}

function parseSeed(text: string): number {
  const seed = Number(text)
  if (!/^\d+$/.test(text) || seed >= 2 * SEED_MAX)
    throw new UsageError(`--seed ${JSON.stringify(text)}: expected a number from 0 to ${2 * SEED_MAX - 1}`)
  return seed
}
