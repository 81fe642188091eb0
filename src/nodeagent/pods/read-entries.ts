// Reads the entries of ConfigMaps and Secrets, for volumes and environment variables.
import { configMapKind } from '../../api/kinds/config-map/config-map.ts'
import { secretKind } from '../../api/kinds/secret/secret.ts'
import { isNotFound } from '../../api/status-error.ts'
import type { Client } from '../../client/index.ts'

export type Entries = Readonly<Record<string, Uint8Array | string>>

export interface EntryReader {
  /** Returns undefined if the object does not exist. */
  configMap(namespace: string, name: string): Promise<Entries | undefined>
  secret(namespace: string, name: string): Promise<Entries | undefined>
}

export const createEntryReader = (client: Client): EntryReader => ({
  async configMap(namespace, name) {
    const configMap = await client.get(configMapKind, { namespace, name }).catch(undefinedIfNotFound)
    return configMap && { ...configMap.data, ...base64Entries(configMap.binaryData) }
  },
  async secret(namespace, name) {
    const secret = await client.get(secretKind, { namespace, name }).catch(undefinedIfNotFound)
    return secret && base64Entries(secret.data)
  },
})

const base64Entries = (entries: Readonly<Record<string, string>> = {}): Entries =>
  Object.fromEntries(Object.entries(entries).map(([key, value]) => [key, Buffer.from(value, 'base64')]))

function undefinedIfNotFound(error: unknown): undefined {
  if (isNotFound(error)) return undefined
  throw error
}
