// Reads the files of configMap, secret, downwardAPI and projected volumes from the API. Tokens of ServiceAccounts are requested
// again before they expire.
import { configMapKind } from '../../api/kinds/config-map/config-map.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { Volume } from '../../api/kinds/pod/pod-volumes-schema.ts'
import { secretKind } from '../../api/kinds/secret/secret.ts'
import { serviceAccountKind } from '../../api/kinds/service-account/service-account.ts'
import type { ServiceAccount } from '../../api/kinds/service-account/service-account-schema.ts'
import type { TokenRequest } from '../../api/kinds/service-account/token-request-schema.ts'
import { isNotFound } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'
import type { Client } from '../../client/index.ts'
import { fieldOf } from '../commands/environment.ts'

export type Projection = NonNullable<NonNullable<Volume['projected']>['sources']>[number]

export interface ProjectedFile {
  readonly content: Uint8Array
  readonly mode: number
}

/** An issued token, and the time after which the next one is requested. */
export interface IssuedToken {
  readonly token: string
  readonly renewAtMs: number
}

export interface ProjectedFiles {
  /** By path relative to the volume. */
  readonly files: ReadonlyMap<string, ProjectedFile>
  /** By path. */
  readonly tokens: ReadonlyMap<string, IssuedToken>
}

export interface ProjectionDeps {
  readonly client: Client
  readonly clock: Clock
}

const FILE_MODE = 0o644
const TOKEN_LIFETIME_SECONDS = 3_600
/** A token is renewed after this fraction of its lifetime, at the latest at the maximum age. */
const RENEWAL_FRACTION = 0.8
const TOKEN_AGE_MS_MAX = 24 * 60 * 60 * 1_000

/** Returns the sources of a volume whose files come from the API, or undefined for other volumes. */
export function projectionsOf(
  volume: Readonly<Volume>,
): { readonly sources: readonly Projection[]; readonly defaultMode: number } | undefined {
  const { projected, configMap, secret, downwardAPI } = volume
  const { defaultMode = FILE_MODE } = projected ?? configMap ?? secret ?? downwardAPI ?? {}
  if (projected) return { sources: projected.sources ?? [], defaultMode }
  if (configMap) {
    const { name, items, optional } = configMap
    return { sources: [{ configMap: { name, items, optional } }], defaultMode }
  }
  if (secret) {
    const { secretName: name, items, optional } = secret
    return { sources: [{ secret: { name, items, optional } }], defaultMode }
  }
  return downwardAPI ? { sources: [{ downwardAPI: { items: downwardAPI.items } }], defaultMode } : undefined
}

/** Throws an Error with a message for the event if an object or an entry is missing. */
export async function readProjectedFiles(
  pod: Readonly<Pod>,
  { sources, defaultMode }: NonNullable<ReturnType<typeof projectionsOf>>,
  previousTokens: ReadonlyMap<string, IssuedToken>,
  deps: ProjectionDeps,
): Promise<ProjectedFiles> {
  const files = new Map<string, ProjectedFile>()
  const tokens = new Map<string, IssuedToken>()
  const add = (path: string, content: Uint8Array | string, mode = defaultMode) =>
    files.set(path, { content: Buffer.from(content), mode })
  for (const { configMap, secret, downwardAPI, serviceAccountToken, ...otherSources } of sources) {
    if (configMap) await addEntries('configmap', configMap, () => readConfigMap(pod, configMap.name, deps), add)
    else if (secret) await addEntries('secret', secret, () => readSecret(pod, secret.name, deps), add)
    else if (downwardAPI) {
      for (const { path, fieldRef, mode } of downwardAPI.items ?? []) {
        if (!fieldRef) throw new Error(`${path}: only fieldRef is supported by this node agent`)
        add(path, fieldOf(pod, fieldRef.fieldPath), mode)
      }
    } else if (serviceAccountToken) {
      const { path } = serviceAccountToken
      const previousToken = previousTokens.get(path)
      const isValid = previousToken && deps.clock.nowMs() < previousToken.renewAtMs
      const issuedToken = isValid ? previousToken : await requestToken(pod, serviceAccountToken, deps)
      tokens.set(path, issuedToken)
      add(path, issuedToken.token)
    } else throw new Error(`${Object.keys(otherSources).join()} is not supported by this node agent`)
  }
  return { files, tokens }
}

type Entries = Readonly<Record<string, Uint8Array | string>>

interface EntrySelection {
  readonly name?: string
  readonly items?: readonly { readonly key: string; readonly path: string; readonly mode?: number }[]
  readonly optional?: boolean
}

async function addEntries(
  kind: string,
  { name, items = [], optional = false }: EntrySelection,
  readEntries: () => Promise<Entries | undefined>,
  add: (path: string, content: Uint8Array | string, mode?: number) => void,
): Promise<void> {
  const entries = await readEntries()
  if (!entries && !optional) throw new Error(`${kind} "${name}" not found`)
  if (items.length === 0) for (const [key, content] of Object.entries(entries ?? {})) add(key, content)
  for (const { key, path, mode } of items) {
    const content = entries?.[key]
    if (content !== undefined) add(path, content, mode)
    else if (!optional) throw new Error(`references non-existent ${kind} key: ${key}`)
  }
}

const base64Entries = (entries: Readonly<Record<string, string>> = {}): Entries =>
  Object.fromEntries(Object.entries(entries).map(([key, value]) => [key, Buffer.from(value, 'base64')]))

async function readConfigMap(pod: Readonly<Pod>, name = '', { client }: ProjectionDeps): Promise<Entries | undefined> {
  const ref = { namespace: pod.metadata.namespace, name }
  const configMap = await client.get(configMapKind, ref).catch(undefinedIfNotFound)
  return configMap && { ...configMap.data, ...base64Entries(configMap.binaryData) }
}

async function readSecret(pod: Readonly<Pod>, name = '', { client }: ProjectionDeps): Promise<Entries | undefined> {
  const secret = await client.get(secretKind, { namespace: pod.metadata.namespace, name }).catch(undefinedIfNotFound)
  return secret && base64Entries(secret.data)
}

function undefinedIfNotFound(error: unknown): undefined {
  if (isNotFound(error)) return undefined
  throw error
}

async function requestToken(
  { metadata, spec }: Readonly<Pod>,
  { audience, expirationSeconds = TOKEN_LIFETIME_SECONDS }: NonNullable<Projection['serviceAccountToken']>,
  { client, clock }: ProjectionDeps,
): Promise<IssuedToken> {
  const { name = '', namespace, uid } = metadata
  const request: TokenRequest = {
    metadata: { namespace, name: spec?.serviceAccountName ?? 'default' },
    spec: {
      audiences: audience ? [audience] : [],
      expirationSeconds,
      boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name, uid },
    },
  }
  // With this subresource, the body and the answer are a TokenRequest.
  const body = request as unknown as ServiceAccount
  const answer = (await client.create(serviceAccountKind, body, { subresource: 'token' })) as unknown as TokenRequest
  const { token, expirationTimestamp } = answer.status!
  const nowMs = clock.nowMs()
  const lifetimeMs = Date.parse(expirationTimestamp) - nowMs
  return { token, renewAtMs: nowMs + Math.min(lifetimeMs * RENEWAL_FRACTION, TOKEN_AGE_MS_MAX) }
}
