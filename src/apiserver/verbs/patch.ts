// PATCH with a JSON patch, merge patch or strategic merge patch: an update that is computed from the stored object inside
// the transaction. apply.ts implements server-side apply.
import { DecodeError, decode, isRecord } from '../../api/decode.ts'
import { FieldErrors } from '../../api/field-errors.ts'
import type { JsonObject, JsonValue } from '../../api/json-value.ts'
import { readScale, SCALE_TYPE, scale } from '../../api/kinds/stateful-set/scale.ts'
import { applyJsonPatch } from '../../api/patch/json-patch.ts'
import { applyMergePatch } from '../../api/patch/merge-patch.ts'
import { mergeShapeOf } from '../../api/patch/merge-shape.ts'
import { PatchError } from '../../api/patch/patch-error.ts'
import { applyStrategicMerge } from '../../api/patch/strategic-merge.ts'
import type { ObjectType } from '../../api/schema.ts'
import { badRequest, invalid, patchTooLarge, unsupportedMediaType } from '../../api/status-error.ts'
import type { Patch } from '../../client/client.ts'
import { mediaType, type ParseContext, type ParsedBody, parsedValue, parseInTurn, parseJsonBody } from '../http/body.ts'
import type { FieldValidation } from '../http/options.ts'
import type { AnyObject } from '../objects/object-deps.ts'
import { countObjectValues } from '../objects/update-values.ts'
import type { WriteTarget, WriteVerb } from '../objects/write-verb.ts'
import type { Resource } from '../resources.ts'
import { applyVerb, parseApplyBody } from './apply.ts'
import { isScale, mergeScale } from './scale.ts'
import type { Update } from './update.ts'

const APPLY_MEDIA = 'application/apply-patch+yaml'

type PatchType = Patch['type']

const PATCH_TYPES: Readonly<Record<string, PatchType>> = {
  [APPLY_MEDIA]: 'apply',
  'application/json-patch+json': 'json',
  'application/merge-patch+json': 'merge',
  'application/strategic-merge-patch+json': 'strategic',
}

export const PATCH_MEDIA = Object.keys(PATCH_TYPES)
/** The media types of patches to a Scale, which has no managed fields. */
export const SCALE_PATCH_MEDIA = PATCH_MEDIA.filter((media) => media !== APPLY_MEDIA)

/** A parsed patch that is not yet validated against the kind. */
export interface PatchBody {
  readonly type: PatchType
  readonly body: ParsedBody
}

export const isApply = (contentType: string | undefined): boolean => mediaType(contentType) === APPLY_MEDIA

/** Maximum number of fields in a JSON patch: up to four per operation, plus those of their values. */
const JSON_PATCH_KEYS_MAX = 50_000

export async function parsePatch(
  bytes: Uint8Array,
  contentType: string | undefined,
  parseContext: ParseContext,
): Promise<PatchBody> {
  const media = mediaType(contentType)
  const type = PATCH_TYPES[media]
  if (!type) throw unsupportedMediaType(media, PATCH_MEDIA)
  if (type === 'apply') return { type, body: await parseApplyBody(bytes, parseContext) }
  const keysMax = type === 'json' ? JSON_PATCH_KEYS_MAX : undefined
  return { type, body: await parseInTurn(bytes, parseContext, () => parseJsonBody(bytes, keysMax)) }
}

/** Returns the patch of an in-process write or of a write in a commit. Adds apiVersion and kind to an apply configuration. */
export function patchOfValue(type: PatchType, value: unknown, { apiVersion, kind }: Resource): PatchBody {
  const isApplyConfig = type === 'apply' && isRecord(value)
  return { type, body: parsedValue(isApplyConfig ? { apiVersion, kind: kind.kind, ...value } : value) }
}

export function patchVerb(
  target: WriteTarget,
  { type, body }: PatchBody,
  options: { readonly force: boolean; readonly fieldValidation: FieldValidation },
): WriteVerb {
  if (type === 'apply') {
    if (isScale(target)) throw unsupportedMediaType(APPLY_MEDIA, SCALE_PATCH_MEDIA)
    return applyVerb(target, body, options)
  }
  return new PatchVerb(
    target,
    createPatch(type, body, { ...patchedBody(target), name: target.name }, options.fieldValidation),
  )
}

type AppliedPatch = ReturnType<typeof createPatch>

/** A class, because an object with a getter of its own takes several times the memory. */
class PatchVerb {
  readonly do = 'update'
  readonly target: WriteTarget
  readonly update: Update
  readonly #patch: AppliedPatch

  constructor(target: WriteTarget, patch: AppliedPatch) {
    this.target = target
    this.#patch = patch
    this.update = isScale(target)
      ? { compute: (old) => patch.apply(readScale(old)), merge: mergeScale, requiresVersion: false }
      : { compute: patch.apply, requiresVersion: false }
  }

  get warnings(): readonly string[] {
    return this.#patch.warnings()
  }
}

/** The type of the body that is patched: the object, or a subresource with a separate body. */
interface PatchedBody {
  readonly group: string
  readonly kind: string
  readonly apiVersion: string
  readonly type: ObjectType
}

const SCALE_BODY: PatchedBody = { group: 'autoscaling', ...SCALE_TYPE, type: scale }

function patchedBody(target: WriteTarget): PatchedBody {
  if (isScale(target)) return SCALE_BODY
  const { group, apiVersion, kind } = target.resource
  return { group, apiVersion, kind: kind.kind, type: kind.type }
}

interface PatchTarget extends PatchedBody {
  readonly name: string
}

function createPatch(type: PatchType, body: ParsedBody, target: PatchTarget, validation: FieldValidation) {
  const transform = createTransform(type, body, target)
  const duplicates = validation === 'Ignore' ? [] : body.duplicates().map((path) => `duplicate field "${path}"`)
  let warnings: readonly string[] = []
  return {
    /** Returns the warnings of the last call of `apply`. */
    warnings: () => warnings,
    apply(old: AnyObject): AnyObject {
      // A patch may contain apiVersion and kind, but must not change them.
      const withTypeMeta = { kind: target.kind, apiVersion: target.apiVersion, ...old }
      let patchedObject: unknown
      try {
        patchedObject = transform(withTypeMeta)
      } catch (error) {
        if (!(error instanceof PatchError)) throw error
        if (error.failure === 'malformed') throw badRequest(`the patch could not be read: ${error.message}`)
        if (error.failure === 'too large') throw patchTooLarge(error.message)
        throw patchError(target, error.message)
      }
      checkKindUnchanged(patchedObject, target)
      const result = decodePatchedObject(patchedObject, old, { target, validation, duplicates })
      warnings = result.warnings
      return result.object
    },
  }
}

function createTransform(type: PatchType, body: ParsedBody, target: PatchedBody): (old: AnyObject) => unknown {
  switch (type) {
    case 'json': {
      const operations = body.value as JsonValue
      return (old) => applyJsonPatch(old, operations)
    }
    case 'merge': {
      const patch = objectOf(body)
      return (old) => applyMergePatch(old, patch)
    }
    default: {
      const patch = objectOf(body)
      return (old) => applyStrategicMerge(old, patch, mergeShapeOf(target.type))
    }
  }
}

function objectOf(body: ParsedBody): JsonObject {
  if (!isRecord(body.value)) throw badRequest('the patch must be a JSON object')
  return body.value as JsonObject
}

function checkKindUnchanged(
  patchedObject: unknown,
  { kind, apiVersion }: PatchedBody,
): asserts patchedObject is Record<string, unknown> {
  if (!isRecord(patchedObject)) throw badRequest(`the result of the patch is not an object; a ${kind} must be one`)
  if (patchedObject.kind !== kind || patchedObject.apiVersion !== apiVersion)
    throw badRequest(`a patch cannot change kind and apiVersion; they are ${kind} and ${apiVersion}`)
}

interface PatchContext {
  readonly target: PatchTarget
  readonly validation: FieldValidation
  readonly duplicates: readonly string[]
}

/** Decodes the fields that the patch has changed. All other fields are those of the stored object, which is valid. */
function decodePatchedObject(patchedObject: unknown, old: object, { target, validation, duplicates }: PatchContext) {
  try {
    const { object, unknownFields } = decode<AnyObject>(
      target.type as ObjectType<AnyObject>,
      patchedObject,
      ['apiVersion', 'kind'],
      {
        previous: old,
        valuesMax: () => countObjectValues(old),
      },
    )
    const findings =
      validation === 'Ignore' ? [] : [...unknownFields.map((path) => `unknown field "${path}"`), ...duplicates]
    if (findings.length > 0 && validation === 'Strict') {
      throw patchError(target, `strict decoding error: ${findings.join(', ')}`)
    }
    return { object, warnings: findings }
  } catch (error) {
    if (error instanceof DecodeError) throw patchError(target, error.message)
    throw error
  }
}

function patchError(target: PatchTarget, reason: string) {
  const errors = new FieldErrors()
  errors.invalid('patch', undefined, reason)
  return invalid(target, target.name, errors.list)
}
