// The client of components that run inside the API server's process: its verbs without the wire. Nothing is
// serialized, what is read is the server's own frozen objects, and a commit is one transaction of the store.
// Who is trusted to run here may do everything: requests are made as `user` but are not authorized.
import type { Kind, KubeObject } from '../../api/kind.ts'
import { noSuchPath } from '../../api/status-error.ts'
import { deepFreeze } from '../../base/freeze.ts'
import type {
  Client,
  CommitWrite,
  DeleteRequest,
  ListRequest,
  ObjectRef,
  Patch,
  WriteOptions,
} from '../../client/client.ts'
import { parseDeleteOptions, parseListOptions } from '../http/options.ts'
import { objectKey } from '../keys.ts'
import { decodeStored } from '../objects/stored-object.ts'
import { faceOf, type ObjectDeps, type WriteTarget, type Written } from '../objects/write-deps.ts'
import type { Resource } from '../resources.ts'
import type { UserInfo } from '../security/index.ts'
import { commitObjects } from '../verbs/commit.ts'
import { deleteObject } from '../verbs/delete.ts'
import { type DescribedWrite, writeObject, writeVerbOf, writeVerbsOf } from '../verbs/execute.ts'
import { getObject, listObjects } from '../verbs/list.ts'
import { explainStoreError } from './errors.ts'
import { watchInProcess } from './watch.ts'

export function inProcessClient(deps: ObjectDeps, user: UserInfo): Client {
  const resourceOf = (kind: Kind): Resource => {
    const resource = deps.resources.preferred(kind.group, kind.plural)
    if (!resource) throw noSuchPath()
    return resource
  }
  const targetOf = (kind: Kind, ref: Partial<ObjectRef>, options: WriteOptions = {}): WriteTarget => ({
    resource: resourceOf(kind),
    namespace: kind.namespaced ? (ref.namespace ?? '') : '',
    name: ref.name ?? '',
    subresource: options.subresource ?? '',
    user,
    dryRun: options.dryRun ?? false,
    ...(options.fieldManager ? { fieldManager: options.fieldManager } : {}),
  })
  const write = async (described: DescribedWrite): Promise<any> => {
    const { target } = described
    const written = await writeObject(deps, writeVerbOf(described, 'Strict'))
    return leftBehind(deps, target, written)
  }

  return {
    get: (kind, ref, options = {}) =>
      explained(async () => {
        const resource = resourceOf(kind)
        const atLeast = Number(options.resourceVersion ?? 0)
        const entry = await getObject(deps, resource, ref.namespace ?? '', ref.name, atLeast)
        return shownAs(resource, deps.objects.decode(entry))
      }),

    list: (kind, request = {}) =>
      explained(async () => {
        const resource = resourceOf(kind)
        const options = parseListOptions(listQuery(request), false)
        const listed = await listObjects(deps, resource, kind.namespaced ? (request.namespace ?? '') : '', options)
        return {
          items: listed.entries.map((entry) => shownAs(resource, deps.objects.decode(entry))),
          resourceVersion: String(listed.revision),
          ...(listed.continueToken ? { continueToken: listed.continueToken } : {}),
        }
      }),

    create: (kind, object, options = {}) =>
      explained(async () => {
        const { subresource } = options
        const target = targetOf(kind, refOf(object), options)
        if (subresource === 'eviction') {
          const asked = parseDeleteOptions((object as any).deleteOptions ?? {}, new URLSearchParams())
          await deleteObject(deps, { ...target, subresource: '' }, { ...asked, dryRun: target.dryRun })
          return object
        }
        const left = await write({ verb: 'create', target, body: object })
        return subresource ? object : left
      }),

    update: (kind, object, options) =>
      explained(() => write({ verb: 'update', target: targetOf(kind, refOf(object), options), body: object })),

    patch: (kind, ref, patch, options) =>
      explained(() => {
        const target = targetOf(kind, ref, options)
        return write({ verb: 'patch', target, patchType: patch.type, body: patch.body, force: forceOf(patch) })
      }),

    delete: (kind, ref, request = {}) =>
      explained(() => {
        const target = targetOf(kind, ref, { dryRun: request.dryRun })
        return write({ verb: 'delete', target, options: deleteOptionsOf(request) })
      }),

    watch: (kind, request) => watchInProcess(deps, () => resourceOf(kind), request),

    commit: (writes, { fieldManager } = {}) =>
      explained(async () => {
        const described = writes.map((one) =>
          describe(one, (kind, ref, subresource) => targetOf(kind, ref, { subresource, fieldManager })),
        )
        const written = await commitObjects(deps, writeVerbsOf(described, 'Strict'))
        return written.map((one, index) => leftBehind(deps, described[index]!.target, one))
      }),

    commitsAtomically: async () => true,
    serves: async (kind) => deps.resources.preferred(kind.group, kind.plural) !== undefined,
  }
}

function describe(
  write: CommitWrite,
  targetOf: (kind: Kind, ref: Partial<ObjectRef>, subresource?: string) => WriteTarget,
): DescribedWrite {
  switch (write.do) {
    case 'create':
    case 'update':
      return {
        verb: write.do,
        target: targetOf(write.kind, refOf(write.object), write.subresource),
        body: write.object,
      }
    case 'patch': {
      const { type, body } = write.patch
      const target = targetOf(write.kind, write.ref, write.subresource)
      return { verb: 'patch', target, patchType: type, body, force: forceOf(write.patch) }
    }
    case 'delete':
      return { verb: 'delete', target: targetOf(write.kind, write.ref), options: deleteOptionsOf(write) }
  }
}

const forceOf = (patch: Patch): boolean => patch.type === 'apply' && patch.force === true

const refOf = ({ metadata: { namespace, name } }: Readonly<KubeObject>): Partial<ObjectRef> => ({ namespace, name })

const deleteOptionsOf = ({ propagation, gracePeriodSeconds, uid, resourceVersion, dryRun = false }: DeleteRequest) => ({
  propagation,
  gracePeriodSeconds,
  uid,
  resourceVersion,
  dryRun,
})

function listQuery({ labelSelector, fieldSelector, limit, continueToken, resourceVersion }: ListRequest) {
  const query = new URLSearchParams()
  if (labelSelector) query.set('labelSelector', labelSelector)
  if (fieldSelector) query.set('fieldSelector', fieldSelector)
  if (limit) query.set('limit', String(limit))
  if (continueToken) query.set('continue', continueToken)
  if (resourceVersion) query.set('resourceVersion', resourceVersion)
  return query
}

/** The object after the write; a dry run's is no version of the store's, so it is not remembered as one. */
function leftBehind(deps: ObjectDeps, target: WriteTarget, { value, revision, deleted }: Written): any {
  if (deleted) return undefined
  const { resource, namespace, dryRun } = target
  if (dryRun) return shownAs(resource, decodeStored({ value, modRevision: revision }))
  const name = target.name || decodeStored({ value, modRevision: revision }).metadata.name! // it was generated
  const key = objectKey(resource.stored, namespace, name)
  return shownAs(resource, deps.objects.decode({ key, value, modRevision: revision, createRevision: revision }))
}

const shownAs = (resource: Resource, stored: Readonly<KubeObject>): any => deepFreeze(faceOf(resource, stored))

async function explained<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    throw explainStoreError(error)
  }
}
