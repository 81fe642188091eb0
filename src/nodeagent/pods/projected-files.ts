// Reads the files of configMap, secret, downwardAPI and projected volumes from the API. Requests ServiceAccount tokens, and
// renews them before they expire.
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { Volume } from '../../api/kinds/pod/pod-volumes-schema.ts'
import { serviceAccountKind } from '../../api/kinds/service-account/service-account.ts'
import type { ServiceAccount } from '../../api/kinds/service-account/service-account-schema.ts'
import type { TokenRequest } from '../../api/kinds/service-account/token-request-schema.ts'
import type { Clock } from '../../base/clock.ts'
import type { Client } from '../../client/index.ts'
import { formatPodField, formatResourceField, type NodeResources } from './downward-fields.ts'
import { createEntryReader, type Entries } from './read-entries.ts'

export type Projection = NonNullable<NonNullable<Volume['projected']>['sources']>[number]

export interface ProjectedFile {
  readonly content: Uint8Array
  readonly mode: number
  /** Owner of the file. Default: the agent's user. */
  readonly user?: number
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
  readonly resources: NodeResources
}

const FILE_MODE = 0o644
/** Mode of a token that only one user or the fsGroup may read. */
const TOKEN_MODE = 0o600
const TOKEN_LIFETIME_SECONDS = 3_600
/** A token is renewed after this fraction of its lifetime, or at the maximum age if that is earlier. */
const RENEWAL_FRACTION = 0.8
const TOKEN_AGE_MS_MAX = 24 * 60 * 60 * 1_000

/** Returns the sources of a volume whose files come from the API, or undefined for other volumes. */
export function listProjections(
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
  { sources, defaultMode }: NonNullable<ReturnType<typeof listProjections>>,
  previousTokens: ReadonlyMap<string, IssuedToken>,
  deps: ProjectionDeps,
): Promise<ProjectedFiles> {
  const files = new Map<string, ProjectedFile>()
  const tokens = new Map<string, IssuedToken>()
  const { client, clock, resources } = deps
  const { namespace = '' } = pod.metadata
  const entries = createEntryReader(client)
  const add = (path: string, content: Uint8Array | string, mode = defaultMode, user?: number) =>
    files.set(path, { content: Buffer.from(content), mode, ...(user === undefined ? {} : { user }) })
  for (const { configMap, secret, downwardAPI, serviceAccountToken, ...otherSources } of sources) {
    if (configMap) addEntries('configmap', configMap, await entries.configMap(namespace, configMap.name ?? ''), add)
    else if (secret) addEntries('secret', secret, await entries.secret(namespace, secret.name ?? ''), add)
    else if (downwardAPI) {
      for (const { path, fieldRef, resourceFieldRef, mode } of downwardAPI.items ?? []) {
        if (fieldRef) add(path, formatPodField(pod, fieldRef.fieldPath), mode)
        else if (resourceFieldRef) add(path, formatResourceField(pod, resourceFieldRef, resources), mode)
      }
    } else if (serviceAccountToken) {
      const { path } = serviceAccountToken
      const previousToken = previousTokens.get(path)
      const isValid = previousToken && clock.nowMs() < previousToken.renewAtMs
      const issuedToken = isValid ? previousToken : await requestToken(pod, serviceAccountToken, deps)
      tokens.set(path, issuedToken)
      const { mode, user } = tokenOwnerOf(pod)
      add(path, issuedToken.token, mode, user)
    } else throw new Error(`${Object.keys(otherSources).join()} is not supported by this node agent`)
  }
  return { files, tokens }
}

/** Makes a token private if the pod has an fsGroup, or if all containers run as one user, which then owns the token. */
function tokenOwnerOf({ spec }: Readonly<Pod>): { readonly mode?: number; readonly user?: number } {
  const { fsGroup, runAsUser } = spec?.securityContext ?? {}
  if (fsGroup !== undefined) return { mode: TOKEN_MODE }
  const containers = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])]
  const users = new Set(containers.map(({ securityContext }) => securityContext?.runAsUser ?? runAsUser))
  const [user] = users
  return users.size === 1 && user !== undefined ? { mode: TOKEN_MODE, user } : {}
}

interface EntrySelection {
  readonly name?: string
  readonly items?: readonly { readonly key: string; readonly path: string; readonly mode?: number }[]
  readonly optional?: boolean
}

function addEntries(
  kind: 'configmap' | 'secret',
  { name, items = [], optional = false }: EntrySelection,
  entries: Entries | undefined,
  add: (path: string, content: Uint8Array | string, mode?: number) => void,
): void {
  if (!entries && !optional) throw new Error(`${kind} "${name}" not found`)
  if (items.length === 0) for (const [key, content] of Object.entries(entries ?? {})) add(key, content)
  for (const { key, path, mode } of items) {
    const content = entries?.[key]
    if (content !== undefined) add(path, content, mode)
    else if (!optional) {
      const problem =
        kind === 'configmap' ? 'configmap references non-existent config' : 'references non-existent secret'
      throw new Error(`${problem} key: ${key}`)
    }
  }
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
  // For this subresource, the request body and the response are a TokenRequest.
  const body = request as unknown as ServiceAccount
  const response = (await client.create(serviceAccountKind, body, { subresource: 'token' })) as unknown as TokenRequest
  const { token, expirationTimestamp } = response.status!
  const nowMs = clock.nowMs()
  const lifetimeMs = Date.parse(expirationTimestamp) - nowMs
  return { token, renewAtMs: nowMs + Math.min(lifetimeMs * RENEWAL_FRACTION, TOKEN_AGE_MS_MAX) }
}
