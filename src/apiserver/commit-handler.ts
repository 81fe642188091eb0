// POST /apis/stowage.dev/v1/commits: several writes as one transaction, for clients that are not in this process.
//   { "writes": [{ "verb": "patch", "apiVersion": "v1", "resource": "persistentvolumeclaims", "namespace": "shop",
//                  "name": "orders", "subresource": "status", "patchType": "merge", "body": { … } }, …] }
// Answers what each write left behind, or the Status of the one that failed, whose causes name it: writes[3].
import { isRecord } from '../api/decode.ts'
import { defineKind } from '../api/kind.ts'
import { objectMeta } from '../api/kinds/shared/meta-schema.ts'
import { type ObjectType, object, req } from '../api/schema.ts'
import { badRequest, noSuchPath } from '../api/status-error.ts'
import { parseJsonBody } from './http/body.ts'
import { type ApiAnswer, type ApiRequest, bytesAnswer } from './http/exchange.ts'
import { parseDeleteOptions, parseWriteOptions } from './http/options.ts'
import type { ResourceRequest, Verb } from './http/route.ts'
import { answerBytes, decodeStored } from './objects/stored-object.ts'
import { faceOf, type ObjectDeps, type WriteTarget, type Written } from './objects/write-deps.ts'
import type { Resource, Resources } from './resources.ts'
import type { UserInfo } from './security/index.ts'
import { COMMIT_WRITES_MAX, commitObjects, failedAt } from './verbs/commit.ts'
import { type DescribedWrite, type PatchType, writeVerbsOf } from './verbs/execute.ts'

const GROUP = 'stowage.dev'
const VERSION = 'v1'
const PLURAL = 'commits'

export const isCommit = ({ group, version, plural, verb, name }: ResourceRequest): boolean =>
  group === GROUP && version === VERSION && plural === PLURAL && verb === 'create' && name === ''

export interface CommitCall {
  readonly request: ApiRequest
  readonly user: UserInfo
  /** Throws 403 when this user may not make this one write. */
  authorize(write: ResourceRequest): Promise<void>
}

export async function handleCommit(deps: ObjectDeps, { request, user, authorize }: CommitCall): Promise<ApiAnswer> {
  const { dryRun, fieldManager } = parseWriteOptions('CreateOptions', request.query, request.headers['user-agent'])
  if (dryRun) throw badRequest('a commit has no dry run: dry-run its writes one by one')
  const writes = writesIn(parseJsonBody(await request.readBody()).value)
  const described: DescribedWrite[] = []
  for (const [index, raw] of writes.entries()) {
    try {
      const write = describedWrite(deps, raw, user, fieldManager)
      await authorize(routeOf(write))
      described.push(write)
    } catch (error) {
      throw failedAt(error, index)
    }
  }
  const written = await commitObjects(deps, writeVerbsOf(described, 'Ignore'))
  const results = written.map((one, index) => resultBytes(described[index]!.target.resource, one))
  return bytesAnswer(200, Buffer.concat([HEAD, ...results.flatMap(separated), TAIL]))
}

function resultBytes(resource: Resource, { deleted, value, revision }: Written): Buffer {
  if (deleted) return NULL
  if (!resource.kind.viewOf) return answerBytes(resource, value, revision)
  return Buffer.from(JSON.stringify(faceOf(resource, decodeStored({ value, modRevision: revision }))))
}

const NULL = Buffer.from('null')
const HEAD = Buffer.from(`{"kind":"Commit","apiVersion":"${GROUP}/${VERSION}","results":[`)
const TAIL = Buffer.from(']}')
const COMMA = Buffer.from(',')
const separated = (bytes: Buffer, index: number): Buffer[] => (index > 0 ? [COMMA, bytes] : [bytes])

function writesIn(body: unknown): readonly unknown[] {
  if (!isRecord(body) || !Array.isArray(body.writes)) throw badRequest('Commit: writes must be a list')
  if (body.writes.length > COMMIT_WRITES_MAX) {
    throw badRequest(`Commit: at most ${COMMIT_WRITES_MAX} writes, not ${body.writes.length}: split it`)
  }
  return body.writes
}

const VERBS = ['create', 'update', 'patch', 'delete'] as const
const PATCH_TYPES: readonly PatchType[] = ['json', 'merge', 'strategic', 'apply']

function describedWrite(deps: ObjectDeps, raw: unknown, user: UserInfo, fieldManager: string): DescribedWrite {
  if (!isRecord(raw)) throw badRequest('Commit: a write must be an object')
  const text = (field: string): string => {
    const value = raw[field] ?? ''
    if (typeof value !== 'string') throw badRequest(`Commit: ${field} must be a string`)
    return value
  }
  const verb = VERBS.find((known) => known === text('verb'))
  if (!verb) throw badRequest(`Commit: verb must be one of ${VERBS.join(', ')}`)
  const { body } = raw
  const named =
    isRecord(body) && isRecord(body.metadata) && typeof body.metadata.name === 'string' ? body.metadata.name : ''
  const [version = '', group = ''] = text('apiVersion').split('/').reverse()
  const resource = deps.resources.find(group, version, text('resource'))
  if (!resource) throw noSuchPath()
  const target: WriteTarget = {
    resource,
    namespace: resource.kind.namespaced ? text('namespace') : '',
    name: text('name') || (verb === 'create' ? named : ''),
    subresource: text('subresource'),
    user,
    dryRun: false,
    fieldManager,
  }
  if (resource.kind.namespaced && !target.namespace) throw badRequest('Commit: namespace is missing')
  if (!target.name && verb !== 'create') throw badRequest('Commit: name is missing')
  switch (verb) {
    case 'create':
    case 'update':
      return { verb, target, body }
    case 'patch': {
      const patchType = PATCH_TYPES.find((known) => known === text('patchType'))
      if (!patchType) throw badRequest(`Commit: patchType must be one of ${PATCH_TYPES.join(', ')}`)
      return { verb, target, patchType, body, force: raw.force === true }
    }
    case 'delete':
      return { verb, target, options: parseDeleteOptions(body ?? {}, new URLSearchParams()) }
  }
}

const routeOf = ({ verb, target }: DescribedWrite): ResourceRequest => ({
  is: 'resource',
  verb: verb as Verb,
  group: target.resource.group,
  version: target.resource.version,
  plural: target.resource.plural,
  namespace: target.namespace,
  name: verb === 'create' && target.subresource === '' ? '' : target.name,
  subresource: target.subresource,
})

/** What is served, as discovery tells it: commits too, which are no kind of object. */
export function withCommits(resources: Resources): Resources {
  const { all, groups } = resources
  const kind = commitKind
  const resource = {
    kind,
    group: GROUP,
    version: VERSION,
    plural: PLURAL,
    apiVersion: `${GROUP}/${VERSION}`,
    stored: kind,
  }
  const known = groups.some(({ group }) => group === GROUP)
  return {
    ...resources,
    all: [...all, resource],
    groups: known ? groups : [...groups, { group: GROUP, versions: [VERSION] }],
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
  type: object('dev.stowage.v1.Commit', 'Several writes that are done together or not at all.', {
    metadata: req(1, objectMeta, 'Not used.'),
  }) as ObjectType<any>,
  nameErrors: () => [],
  validate: () => {},
  columns: [],
  deleteReturnsObject: false,
})
