// POST /apis/stowage.dev/v1/commits: several writes as one transaction, for clients in other processes.
//   { "writes": [{ "verb": "patch", "apiVersion": "v1", "resource": "persistentvolumeclaims", "namespace": "shop",
//                  "name": "orders", "subresource": "status", "patchType": "merge", "body": { … } }, …] }
// The response contains the object of each write as it is after the commit, or null if it was removed. With "results": "distinct"
// an object that several writes have changed is sent once: the results of the others are the index of the last one. With
// "results": "none" the response contains no objects. If a write fails, the response is its Status with a cause that names the
// write, such as writes[3].
import { isRecord } from '../api/decode.ts'
import { defineKind } from '../api/kind.ts'
import { objectMeta } from '../api/kinds/shared/meta-schema.ts'
import { object, req } from '../api/schema.ts'
import { badRequest, noSuchPath } from '../api/status-error.ts'
import { commitWriteFailed } from '../client/client.ts'
import { bodyOfValue, type ParseContext, parseInTurn, parseJsonBody, pauseAfter } from './http/body.ts'
import { type ApiRequest, type ApiResponse, bytesResponse } from './http/messages.ts'
import { parseDeleteOptions, parseWriteOptions } from './http/options.ts'
import type { ResourceRequest, Verb } from './http/route.ts'
import { fencesOf } from './objects/check-fences.ts'
import { type ObjectDeps, viewOf } from './objects/object-deps.ts'
import { decodeStored, objectBytes } from './objects/stored-object.ts'
import { updateLimits } from './objects/update-values.ts'
import type { WriteResult, WriteTarget, WriteVerb } from './objects/write-verb.ts'
import type { Resource, Resources } from './resources.ts'
import type { UserInfo } from './security/index.ts'
import { checkStoredScope } from './verbs/check-scope.ts'
import { COMMIT_WRITES_MAX, executeCommit, mapWrites } from './verbs/commit.ts'
import { createVerb } from './verbs/create.ts'
import { deleteVerb } from './verbs/delete.ts'
import { patchOfValue, patchVerb } from './verbs/patch.ts'
import { updateVerb } from './verbs/update.ts'

const GROUP = 'stowage.dev'
const VERSION = 'v1'
const PLURAL = 'commits'

/** The route of a commit. The user needs permission to create commits and permission for each of the writes. */
export const COMMIT_ROUTE: ResourceRequest = {
  is: 'resource',
  verb: 'create',
  group: GROUP,
  version: VERSION,
  plural: PLURAL,
  namespace: '',
  name: '',
  subresource: '',
}

export const isCommit = ({ group, version, plural, verb, name }: ResourceRequest): boolean =>
  group === GROUP && version === VERSION && plural === PLURAL && verb === 'create' && name === ''

export interface CommitCall {
  readonly request: ApiRequest
  readonly user: UserInfo
  readonly parseContext: ParseContext
  /** Throws 403 if the user is not allowed to send this write as a single request. */
  authorize(write: ResourceRequest): void
}

export async function handleCommit(deps: ObjectDeps, call: CommitCall): Promise<ApiResponse> {
  const { request, parseContext, authorize } = call
  const { dryRun, fieldManager } = parseWriteOptions('CreateOptions', request.query, request.headers['user-agent'])
  if (dryRun) throw badRequest('commits do not support dry run; dry-run the writes one by one')
  const bytes = await request.readBody()
  const body = await parseInTurn(bytes, parseContext, () => parseJsonBody(bytes, COMMIT_KEYS_MAX))
  const mode = parseResultsMode(body.value)
  const writes: RequestedWrite[] = []
  for (const [index, raw] of parseWrites(body.value).entries()) {
    try {
      const write = parseWrite(deps, raw, call, fieldManager)
      authorize(write.route)
      checkStoredScope(write.resource, write.route)
      writes.push(write)
    } catch (error) {
      throw commitWriteFailed(error, index)
    }
  }
  const limits = await Promise.all(
    writes.map(({ route, resource }) => updateLimits(deps, { ...route, resource }, bytes.length)),
  )
  const verbs = mapWrites(writes, ({ verb }, index) => verb(limits[index]!.valuesMax))
  await pauseAfter(bytes, parseContext)
  const results = await executeCommit(deps, verbs)
  const encodedResults = encodeResults(mode, verbs, results)
  return bytesResponse(200, Buffer.concat([RESPONSE_HEAD, ...encodedResults.flatMap(withSeparator), RESPONSE_TAIL]))
}

const RESULT_MODES = ['all', 'distinct', 'none'] as const
type ResultsMode = (typeof RESULT_MODES)[number]

function parseResultsMode(body: unknown): ResultsMode {
  const { results = 'all' } = isRecord(body) ? body : {}
  const mode = RESULT_MODES.find((candidate) => candidate === results)
  if (!mode) throw badRequest(`Commit: results must be one of ${RESULT_MODES.join(', ')}`)
  return mode
}

function encodeResults(mode: ResultsMode, verbs: readonly WriteVerb[], results: readonly WriteResult[]): Buffer[] {
  if (mode === 'none') return []
  const resourceOf = (index: number): Resource => verbs[index]!.target.resource
  // The results of one object share its bytes. Another version of its kind has another form.
  const lastIndexes = new Map(results.map(({ value }, index) => [value, index]))
  return results.map((result, index) => {
    const lastIndex = lastIndexes.get(result.value)!
    const isRepeated = mode === 'distinct' && lastIndex !== index && !result.deleted
    if (isRepeated && resourceOf(lastIndex) === resourceOf(index)) return Buffer.from(String(lastIndex))
    return encodeResult(resourceOf(index), result)
  })
}

function encodeResult(resource: Resource, { deleted, value, revision }: WriteResult): Buffer {
  if (deleted) return NULL_JSON
  if (!resource.kind.viewOf) return objectBytes(resource, value, revision)
  return Buffer.from(JSON.stringify(viewOf(resource, decodeStored({ value, modRevision: revision }))))
}

const NULL_JSON = Buffer.from('null')
const RESPONSE_HEAD = Buffer.from(`{"kind":"Commit","apiVersion":"${GROUP}/${VERSION}","results":[`)
const RESPONSE_TAIL = Buffer.from(']}')
const COMMA = Buffer.from(',')
const withSeparator = (bytes: Buffer, index: number): Buffer[] => (index > 0 ? [COMMA, bytes] : [bytes])

/** Maximum number of fields in all writes of a commit. */
const COMMIT_KEYS_MAX = 100_000

function parseWrites(body: unknown): readonly unknown[] {
  if (!isRecord(body) || !Array.isArray(body.writes)) throw badRequest('Commit: writes must be a list')
  if (body.writes.length > COMMIT_WRITES_MAX) {
    throw badRequest(
      `Commit: at most ${COMMIT_WRITES_MAX} writes are allowed, not ${body.writes.length}: split the commit`,
    )
  }
  return body.writes
}

const VERBS = ['create', 'update', 'patch', 'delete'] as const
const PATCH_TYPES = ['json', 'merge', 'strategic', 'apply'] as const

interface RequestedWrite {
  /** The equivalent single request: the user must be authorized to send it. */
  readonly route: ResourceRequest
  readonly resource: Resource
  /** Decodes the body, once all writes of the commit are authorized. `valuesMax` bounds the values of an update. */
  verb(valuesMax: number): WriteVerb
}

function parseWrite(deps: ObjectDeps, raw: unknown, call: CommitCall, fieldManager: string): RequestedWrite {
  if (!isRecord(raw)) throw badRequest('Commit: a write must be an object')
  const stringField = (field: string): string => {
    const value = raw[field] ?? ''
    if (typeof value !== 'string') throw badRequest(`Commit: ${field} must be a string`)
    return value
  }
  const verb = VERBS.find((candidate) => candidate === stringField('verb'))
  if (!verb) throw badRequest(`Commit: verb must be one of ${VERBS.join(', ')}`)
  const { body } = raw
  const [version = '', group = ''] = stringField('apiVersion').split('/').reverse()
  const resource = deps.resources.find(group, version, stringField('resource'))
  if (!resource) throw noSuchPath()
  const subresource = stringField('subresource')
  const target: WriteTarget = {
    resource,
    namespace: resource.kind.namespaced ? stringField('namespace') : '',
    name: requestNameOf(verb, subresource, stringField('name'), body),
    subresource,
    user: call.user,
    dryRun: false,
    fieldManager,
    fences: fencesOf(call.request),
    authorizeCreate: () => call.authorize({ ...route, verb: 'create' }),
  }
  if (resource.kind.namespaced && !target.namespace) throw badRequest('Commit: namespace is missing')
  if (!target.name && verb !== 'create') throw badRequest('Commit: name is missing')
  const { plural } = resource
  const { namespace, name } = target
  const route: ResourceRequest = { is: 'resource', verb, group, version, plural, namespace, name, subresource }
  switch (verb) {
    case 'create':
      return { route, resource, verb: () => createVerb(target, bodyOfValue(body), 'Ignore') }
    case 'update':
      return { route, resource, verb: (valuesMax) => updateVerb(target, bodyOfValue(body), 'Ignore', valuesMax) }
    case 'patch': {
      const type = PATCH_TYPES.find((candidate) => candidate === stringField('patchType'))
      if (!type) throw badRequest(`Commit: patchType must be one of ${PATCH_TYPES.join(', ')}`)
      const options = { force: raw.force === true, fieldValidation: 'Ignore' } as const
      return { route, resource, verb: () => patchVerb(target, patchOfValue(type, body, resource), options) }
    }
    case 'delete': {
      const options = parseDeleteOptions(body ?? {}, new URLSearchParams())
      return { route, resource, verb: () => deleteVerb(target, options) }
    }
  }
}

/** Returns the name in the path of the equivalent request. A create has none, unless it is of a subresource. */
function requestNameOf(verb: Verb, subresource: string, name: string, body: unknown): string {
  if (verb !== 'create') return name
  if (subresource === '') return ''
  const metadata = isRecord(body) && isRecord(body.metadata) ? body.metadata : {}
  return name || (typeof metadata.name === 'string' ? metadata.name : '')
}

/** Adds commits, which are not stored objects, to the resources that discovery lists. */
export function withCommits(resources: Resources): Resources {
  const { all, groups } = resources
  const kind = commitKind
  const resource = {
    kind,
    group: GROUP,
    version: VERSION,
    plural: PLURAL,
    apiVersion: `${GROUP}/${VERSION}`,
    storedKind: kind,
  }
  const hasGroup = groups.some(({ group }) => group === GROUP)
  return {
    ...resources,
    all: [...all, resource],
    groups: hasGroup ? groups : [...groups, { group: GROUP, versions: [VERSION] }],
  }
}

const commitKind = defineKind({
  group: GROUP,
  versions: [VERSION],
  kind: 'Commit',
  plural: PLURAL,
  singular: 'commit',
  namespaced: false,
  isReview: true,
  type: object('dev.stowage.v1.Commit', 'Several writes in one transaction: all of them are applied, or none.', {
    metadata: req(1, objectMeta, 'Not used.'),
  }),
  nameErrors: () => [],
  validate: () => {},
  columns: [],
  deleteReturnsObject: false,
})
