// Adds a new key to an encryption configuration, as the first key of each provider that encrypts. Running servers
// reload the file, encrypt with the new key, and rewrite the values that older keys encrypt.
import { isRecord } from '../../../api/decode.ts'
import type { JsonValue } from '../../../api/json-value.ts'
import { printYaml } from '../../../api/print-yaml.ts'
import { parseYaml } from '../../../api/yaml-body.ts'
import { generateKey, parseEncryptionConfiguration } from '../../../apiserver/index.ts'
import { readTextIfPresent, writePrivateFile } from '../../../base/files.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { newKeyName } from '../../../processes/server/encryption.ts'

export interface Rotation {
  readonly file: string
  /** Name of the new key. Absent in a dry run. */
  readonly key?: string
  /** Names of the keys that can be removed when all values are rewritten. */
  readonly oldKeys: readonly string[]
}

/** A dry run checks the file and does not change it. */
export async function rotateKey(file: string, { isDryRun }: { readonly isDryRun: boolean }): Promise<Rotation> {
  const text = await readTextIfPresent(file)
  if (text === undefined) {
    throw new UsageError(
      `There is no encryption configuration at ${file}. A new data directory has one; for an existing one create it as ` +
        'docs/how-to/encryption.md describes.',
    )
  }
  await parseEncryptionConfiguration(text).catch((error: Error) => {
    throw new UsageError(`${file}: ${error.message}`)
  })
  const { value } = await parseYaml(text)
  const { name, secret } = generateKey(newKeyName())
  const oldKeys = new Set<string>()
  for (const keys of keyLists(value)) {
    for (const key of keys) if (isRecord(key)) oldKeys.add(String(key.name))
    keys.unshift({ name, secret: Buffer.from(secret).toString('base64') })
  }
  if (oldKeys.size === 0)
    throw new UsageError(`${file} has no resources whose first provider is aesgcm, so there is no key to rotate.`)
  if (isDryRun) return { file, oldKeys: [...oldKeys] }
  await writePrivateFile(file, await printYaml(value))
  return { file, key: name, oldKeys: [...oldKeys] }
}

/** Returns the keys that the server encrypts with: those of the first provider of each entry, if it is aesgcm. */
function keyLists(configuration: JsonValue): JsonValue[][] {
  const entries = isRecord(configuration) && Array.isArray(configuration.resources) ? configuration.resources : []
  return entries.flatMap((entry: JsonValue) => {
    const provider = isRecord(entry) && Array.isArray(entry.providers) ? entry.providers[0] : undefined
    const aesgcm = isRecord(provider) ? provider.aesgcm : undefined
    return isRecord(aesgcm) && Array.isArray(aesgcm.keys) ? [aesgcm.keys as JsonValue[]] : []
  })
}
