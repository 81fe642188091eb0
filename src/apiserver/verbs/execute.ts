// From a write as a client describes it to one that can be decided inside a transaction: the body decoded, the patch
// parsed, the target named. What the HTTP handlers do by themselves is done here for in-process callers and commits.
import { isRecord } from '../../api/decode.ts'
import { binding } from '../../api/kinds/pod/pod-schema.ts'
import { badRequest, methodNotAllowed } from '../../api/status-error.ts'
import { decodeAs, decodeObjectBody, type ParsedBody, type RequestBody } from '../http/body.ts'
import type { DeleteOptions, FieldValidation } from '../http/options.ts'
import { type ObjectDeps, transactOne, type WriteTarget, type Written } from '../objects/write-deps.ts'
import { tellingRefusals } from '../refusal-events.ts'
import { applyOf } from './apply.ts'
import { checkBinding, mergeFinalize } from './bind.ts'
import { decide, failedAt, type ObjectWriteVerb } from './commit.ts'
import { checkBody } from './create.ts'
import { patchOf } from './patch.ts'

export type PatchType = 'json' | 'merge' | 'strategic' | 'apply'

export type DescribedWrite = { readonly target: WriteTarget } & (
  | { readonly verb: 'create'; readonly body: unknown }
  | { readonly verb: 'update'; readonly body: unknown }
  | { readonly verb: 'patch'; readonly patchType: PatchType; readonly body: unknown; readonly force?: boolean }
  | { readonly verb: 'delete'; readonly options: DeleteOptions }
)

/** The writes of a commit; an error says which of them cannot be understood. */
export const writeVerbsOf = (writes: readonly DescribedWrite[], validation: FieldValidation): ObjectWriteVerb[] =>
  writes.map((write, index) => {
    try {
      return writeVerbOf(write, validation)
    } catch (error) {
      throw failedAt(error, index)
    }
  })

export function writeVerbOf(write: DescribedWrite, validation: FieldValidation): ObjectWriteVerb {
  const { target } = write
  const { resource, subresource, name } = target
  switch (write.verb) {
    case 'create': {
      if (subresource === 'binding' && resource.plural === 'pods') {
        const { object } = decodeAs<any>(bodyOf(write.body), binding, 'Binding in version "v1"', validation)
        checkBinding(target, object)
        return { do: 'bind', target, body: object }
      }
      if (subresource !== '') throw methodNotAllowed()
      const { object } = decodeObjectBody(bodyOf(write.body), resource, validation)
      checkBody(target, object)
      return { do: 'create', target: { ...target, name: '' }, body: object }
    }
    case 'update': {
      const { object } = decodeObjectBody(bodyOf(write.body), resource, validation)
      const finalize = subresource === 'finalize' ? { merge: mergeFinalize } : {}
      return {
        do: 'update',
        target,
        update: { next: () => object, createFrom: object, needsVersion: true, ...finalize },
      }
    }
    case 'patch': {
      if (write.patchType === 'apply') {
        const options = { force: write.force ?? false, fieldValidation: validation }
        const { apiVersion, kind } = resource
        const body = isRecord(write.body) ? { apiVersion, kind: kind.kind, ...write.body } : write.body
        return { do: 'update', target, update: applyOf(parsed(body), target, options).update }
      }
      const media = PATCH_MEDIA_OF[write.patchType]
      if (!media)
        throw badRequest(`patches of type ${write.patchType} are not supported here; use json, merge or strategic`)
      const patch = patchOf(media, parsed(write.body), resource, name, validation)
      return { do: 'update', target, update: { next: patch.apply, needsVersion: false } }
    }
    case 'delete':
      return { do: 'delete', target, options: write.options }
  }
}

/** One write as a transaction of its own. */
export const writeObject = (deps: ObjectDeps, verb: ObjectWriteVerb): Promise<Written> =>
  tellingRefusals(deps, () => transactOne(deps, verb.target, (view) => decide(deps, verb, view)))

const PATCH_MEDIA_OF: Readonly<Record<string, string>> = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
}

function bodyOf(value: unknown): RequestBody {
  const { apiVersion, kind } = isRecord(value) ? value : {}
  return { apiVersion, kind, as: () => parsed(value) }
}

const parsed = (value: unknown): ParsedBody => ({ value, duplicates: () => [], keyCount: undefined })
