// Replaces patches with updates where a role grants `update` but not `patch`, as the upstream role of
// external-provisioner does for claims: reads the object, applies the patch to it, and updates it on the condition that
// it has not changed. An apply is not replaced. A commit stays one transaction if its patches can be replaced before it is
// sent.

import type { JsonObject, JsonValue } from '../api/json-value.ts'
import type { Kind, KubeObject, Stored } from '../api/kind.ts'
import { applyJsonPatch } from '../api/patch/json-patch.ts'
import { applyMergePatch } from '../api/patch/merge-patch.ts'
import { mergeShapeOf } from '../api/patch/merge-shape.ts'
import { PatchError } from '../api/patch/patch-error.ts'
import { applyStrategicMerge } from '../api/patch/strategic-merge.ts'
import { badRequest, changedSinceRead, isConflict, isMissingRight } from '../api/status-error.ts'
import {
  type Client,
  type CommitWrite,
  commitWriteFailed,
  failedWriteIndex,
  type ObjectRef,
  type Patch,
  type WriteOptions,
} from './client.ts'
import { commitOneByOne } from './commit-one-by-one.ts'

/** Another client may change the object between the read and the update. */
const ATTEMPTS_MAX = 5

type CommitOptions = Parameters<Client['commit']>[1]
type PatchWrite = Extract<CommitWrite, { do: 'patch' }>

/** Returns a client that updates where it may not patch. */
export function patchByUpdate<C extends Client>(client: C): C {
  /** Resources whose patches are replaced with updates. */
  const updatedResources = new Set<string>()

  async function patch<T extends KubeObject>(
    kind: Kind<T>,
    ref: ObjectRef,
    change: Patch,
    options: WriteOptions = {},
  ): Promise<Readonly<Stored<T>>> {
    const resource = resourceOf(kind, options.subresource)
    if (updatedResources.has(resource) && change.type !== 'apply') {
      try {
        return await update(kind, ref, change, options)
      } catch (error) {
        if (!isMissingRight(error)) throw error
        updatedResources.delete(resource) // the role has changed
      }
    }
    try {
      return await client.patch(kind, ref, change, options)
    } catch (denial) {
      if (!isMissingRight(denial) || change.type === 'apply') throw denial
      try {
        const object = await update(kind, ref, change, options)
        updatedResources.add(resource)
        return object
      } catch (error) {
        throw isMissingRight(error) ? denial : error
      }
    }
  }

  async function update<T extends KubeObject>(
    kind: Kind<T>,
    ref: ObjectRef,
    change: Patch,
    options: WriteOptions,
  ): Promise<Readonly<Stored<T>>> {
    for (let attempt = 1; ; attempt++) {
      const currentObject = await client.get(kind, ref, { signal: options.signal })
      const next = applyPatch(kind, currentObject, change)
      try {
        return await client.update(kind, next, options)
      } catch (error) {
        if (!isConflict(error) || attempt === ATTEMPTS_MAX) throw error
      }
    }
  }

  async function commit(writes: readonly CommitWrite[], options?: CommitOptions) {
    if (!(await client.commitsAtomically())) return commitOneByOne(wrappedClient, writes, options)
    /** The first denial of each resource. A second one means that the role grants neither patch nor update. */
    const denials = new Map<string, unknown>()
    for (let conflicts = 0; ; ) {
      const sentWrites = await replacePatches(writes, options)
      if (!sentWrites) return commitOneByOne(wrappedClient, writes, options)
      try {
        return await client.commit(sentWrites, options)
      } catch (error) {
        const index = failedWriteIndex(error) ?? -1
        if (index === -1 && isMissingRight(error) && !(await client.commitsAtomically())) {
          return commitOneByOne(wrappedClient, writes, options) // the role does not grant commits
        }
        const write = writes[index]
        if (write?.do !== 'patch' || write.patch.type === 'apply') throw error
        const isReplaced = sentWrites[index] !== write
        if (isReplaced && isConflict(error) && ++conflicts < ATTEMPTS_MAX) continue
        if (!isMissingRight(error)) throw error
        const resource = resourceOf(write.kind, write.subresource)
        if (isReplaced) updatedResources.delete(resource)
        if (denials.has(resource)) throw isReplaced ? denials.get(resource) : error
        if (!isReplaced) updatedResources.add(resource)
        denials.set(resource, error)
      }
    }
  }

  /**
   * Returns the writes with updates instead of the patches that the role denies. Returns undefined if such a patch follows
   * another write of the same object, and the result of that write is unknown or the kind requires a version in updates.
   */
  async function replacePatches(
    writes: readonly CommitWrite[],
    options: CommitOptions,
  ): Promise<readonly CommitWrite[] | undefined> {
    /** Objects after the writes so far, or undefined if the result is unknown. */
    const states = new Map<string, Readonly<Stored> | undefined>()
    const sentWrites: CommitWrite[] = []
    for (const [index, write] of writes.entries()) {
      const key = objectKeyOf(write)
      if (!shouldReplace(write)) {
        states.set(key, undefined)
        sentWrites.push(write)
        continue
      }
      const { kind, ref, subresource } = write
      const isWritten = states.has(key)
      try {
        const currentObject = isWritten ? states.get(key) : await client.get(kind, ref, { signal: options?.signal })
        if (!currentObject || (isWritten && kind.allowsUnconditionalUpdate === false)) return undefined
        const next = applyPatch(kind, currentObject, write.patch)
        states.set(key, resultOf(currentObject, next, subresource))
        // The first update of an object in the commit has the version that was read as its condition.
        const object = isWritten ? removeVersion(next) : next
        sentWrites.push({ do: 'update', kind, object, subresource })
      } catch (error) {
        throw commitWriteFailed(error, index)
      }
    }
    return sentWrites
  }

  const shouldReplace = (write: CommitWrite): write is PatchWrite =>
    write.do === 'patch' &&
    write.patch.type !== 'apply' &&
    updatedResources.has(resourceOf(write.kind, write.subresource))

  const wrappedClient: C = { ...client, patch, commit }
  return wrappedClient
}

const resourceOf = (kind: Kind, subresource = ''): string => `${kind.group}/${kind.plural}/${subresource}`

function objectKeyOf(write: CommitWrite): string {
  const { namespace = '', name = '' } = 'ref' in write ? write.ref : write.object.metadata
  return `${resourceOf(write.kind)}${namespace}/${name}`
}

/** Returns the object after an update, which changes the status or, without the status subresource, all other fields. */
function resultOf(currentObject: Readonly<Stored>, next: KubeObject, subresource?: string): Readonly<Stored> {
  const objects = [next, currentObject] as unknown as [JsonObject, JsonObject]
  const [statusSource, source] = subresource === 'status' ? objects : objects.toReversed()
  const { status } = statusSource!
  return { ...source!, status } as unknown as Stored
}

function removeVersion(object: KubeObject): KubeObject {
  const { resourceVersion, ...metadata } = object.metadata
  return { ...object, metadata }
}

/** Returns the object after the patch. Throws a conflict if the patch requires another version or uid than the object has. */
function applyPatch<T extends KubeObject>(kind: Kind<T>, object: Readonly<Stored<T>>, change: Patch): T {
  const next = patchedObject(kind, object, change)
  const { uid, resourceVersion, name } = object.metadata
  if (next.metadata.uid !== uid || next.metadata.resourceVersion !== resourceVersion) throw changedSinceRead(kind, name)
  return next
}

function patchedObject<T extends KubeObject>(kind: Kind<T>, object: Readonly<Stored<T>>, change: Patch): T {
  try {
    const document = object as unknown as JsonObject
    if (change.type === 'json') return applyJsonPatch(document, change.body as unknown as JsonValue) as unknown as T
    const body = change.body as JsonObject
    if (change.type === 'merge') return applyMergePatch(document, body) as unknown as T
    return applyStrategicMerge(document, body, mergeShapeOf(kind.type)) as unknown as T
  } catch (error) {
    if (error instanceof PatchError)
      throw badRequest(`the patch of ${kind.plural} could not be applied: ${error.message}`)
    throw error
  }
}
