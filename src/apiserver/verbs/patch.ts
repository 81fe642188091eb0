// PATCH with a JSON patch, merge patch or strategic merge patch: an update that is computed from the stored object inside
// the transaction. apply.ts implements server-side apply.
import { type Decoded, DecodeError, decode, isRecord } from '../../api/decode.ts'
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
import { NO_WARNINGS, type WriteTarget, type WriteVerb } from '../objects/write-verb.ts'
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
  const patch = new ObjectPatch(type, body, target, options.fieldValidation)
  const update: Update = isScale(target)
    ? { compute: (old) => patch.compute(readScale(old)), merge: mergeScale, requiresVersion: false }
    : patch
  return new PatchVerb(target, update, patch)
}

/** The warnings are those of the last computation. */
class PatchVerb {
  readonly do = 'update'
  readonly target: WriteTarget
  readonly update: Update
  readonly #patch: ObjectPatch

  constructor(target: WriteTarget, update: Update, patch: ObjectPatch) {
    this.target = target
    this.update = update
    this.#patch = patch
  }

  get warnings(): readonly string[] {
    return this.#patch.warnings
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

class ObjectPatch implements Update {
  readonly requiresVersion = false
  /** The warnings of the last call of `compute`. */
  warnings: readonly string[] = []
  readonly #type: PatchType
  readonly #patch: JsonValue
  readonly #body: PatchedBody
  readonly #name: string
  readonly #validation: FieldValidation
  readonly #duplicates: readonly string[]

  constructor(type: PatchType, body: ParsedBody, target: WriteTarget, validation: FieldValidation) {
    this.#type = type
    this.#patch = type === 'json' ? (body.value as JsonValue) : objectOf(body)
    this.#body = patchedBody(target)
    this.#name = target.name
    this.#validation = validation
    this.#duplicates = validation === 'Ignore' ? [] : body.duplicates().map((path) => `duplicate field "${path}"`)
  }

  compute(old: AnyObject): AnyObject {
    // A patch may contain apiVersion and kind, but must not change them.
    const { kind, apiVersion } = this.#body
    const patchedObject = this.#apply({ kind, apiVersion, ...old })
    checkKindUnchanged(patchedObject, this.#body)
    return this.#decode(patchedObject, old)
  }

  #apply(old: AnyObject): unknown {
    try {
      switch (this.#type) {
        case 'json':
          return applyJsonPatch(old, this.#patch)
        case 'merge':
          return applyMergePatch(old, this.#patch)
        default:
          return applyStrategicMerge(old, this.#patch, mergeShapeOf(this.#body.type))
      }
    } catch (error) {
      if (!(error instanceof PatchError)) throw error
      if (error.failure === 'malformed') throw badRequest(`the patch could not be read: ${error.message}`)
      if (error.failure === 'too large') throw patchTooLarge(error.message)
      throw this.#error(error.message)
    }
  }

  /** Decodes the fields that the patch has changed. All other fields are those of the stored object, which is valid. */
  #decode(patchedObject: unknown, old: object): AnyObject {
    const { object, unknownFields } = this.#decodeFields(patchedObject, old)
    this.warnings = NO_WARNINGS
    if (this.#validation === 'Ignore') return object
    if (unknownFields.length === 0 && this.#duplicates.length === 0) return object
    const findings = [...unknownFields.map((path) => `unknown field "${path}"`), ...this.#duplicates]
    if (this.#validation === 'Strict') throw this.#error(`strict decoding error: ${findings.join(', ')}`)
    this.warnings = findings
    return object
  }

  #decodeFields(patchedObject: unknown, old: object): Decoded<AnyObject> {
    try {
      return decode<AnyObject>(this.#body.type as ObjectType<AnyObject>, patchedObject, TYPE_META, {
        previous: old,
        valuesMax: () => countObjectValues(old),
      })
    } catch (error) {
      if (error instanceof DecodeError) throw this.#error(error.message)
      throw error
    }
  }

  #error(reason: string) {
    const errors = new FieldErrors()
    errors.invalid('patch', undefined, reason)
    return invalid(this.#body, this.#name, errors.list)
  }
}

const TYPE_META: readonly string[] = ['apiVersion', 'kind']

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
