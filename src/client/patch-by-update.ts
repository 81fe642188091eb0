// Replaces patches by updates where a role grants `update` but not `patch`, as upstream's role of the external-provisioner
// does for claims: reads the object, applies the patch to it, and updates it on the condition that it has not changed.

import type { JsonObject, JsonValue } from '../api/json-value.ts'
import type { Kind, KubeObject, Stored } from '../api/kind.ts'
import { applyJsonPatch } from '../api/patch/json-patch.ts'
import { applyMergePatch } from '../api/patch/merge-patch.ts'
import { mergeShapeOf } from '../api/patch/merge-shape.ts'
import { PatchError } from '../api/patch/patch-error.ts'
import { strategicMerge } from '../api/patch/strategic-merge.ts'
import { badRequest, changedSinceRead, isConflict, isMissingRight } from '../api/status-error.ts'
import type { Client, ObjectRef, Patch, WriteOptions } from './client.ts'
import { commitOneByOne } from './commit-one-by-one.ts'

/** Another client may change the object between the read and the update. */
const ATTEMPTS_MAX = 5

/** Returns a client that updates where it may not patch. Requests that the role grants are sent unchanged. */
export function patchByUpdate<C extends Client>(client: C): C {
  /** Resources whose patches were denied and whose updates were not. */
  const updated = new Set<string>()

  async function patch<T extends KubeObject>(
    kind: Kind<T>,
    ref: ObjectRef,
    change: Patch,
    options: WriteOptions = {},
  ): Promise<Readonly<Stored<T>>> {
    const resource = `${kind.group}/${kind.plural}/${options.subresource ?? ''}`
    if (updated.has(resource) && change.type !== 'apply') {
      try {
        return await update(kind, ref, change, options)
      } catch (error) {
        if (!isMissingRight(error)) throw error
        updated.delete(resource) // the role has changed
      }
    }
    try {
      return await client.patch(kind, ref, change, options)
    } catch (denial) {
      if (!isMissingRight(denial) || change.type === 'apply') throw denial
      try {
        const object = await update(kind, ref, change, options)
        updated.add(resource)
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
      const current = await client.get(kind, ref, { signal: options.signal })
      const next = applyPatch(kind, current, change)
      const { uid, resourceVersion } = current.metadata
      // The patch may have the version or the uid that its author read as a condition.
      if (next.metadata.uid !== uid || next.metadata.resourceVersion !== resourceVersion) {
        throw changedSinceRead(kind, ref.name)
      }
      try {
        return await client.update(kind, next, options)
      } catch (error) {
        if (!isConflict(error) || attempt === ATTEMPTS_MAX) throw error
      }
    }
  }

  const wrapped: C = {
    ...client,
    patch,
    commit: async (writes, options) =>
      updated.size === 0 && (await client.commitsAtomically())
        ? client.commit(writes, options)
        : commitOneByOne(wrapped, writes, options),
  }
  return wrapped
}

function applyPatch<T extends KubeObject>(kind: Kind<T>, object: Readonly<Stored<T>>, change: Patch): T {
  try {
    const document = object as unknown as JsonObject
    if (change.type === 'json') return applyJsonPatch(document, change.body as unknown as JsonValue) as unknown as T
    const body = change.body as JsonObject
    if (change.type === 'merge') return applyMergePatch(document, body) as unknown as T
    return strategicMerge(document, body, mergeShapeOf(kind.type)) as unknown as T
  } catch (error) {
    if (error instanceof PatchError)
      throw badRequest(`the patch of ${kind.plural} could not be applied: ${error.message}`)
    throw error
  }
}
