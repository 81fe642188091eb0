// PATCH bodies of all three classic types, turned into a function from the stored object to the wanted one.
// The patch is parsed once; it is applied inside the transaction, to whatever is stored by then.
import { DecodeError, decode, isRecord } from '../../api/decode.ts'
import { FieldErrors } from '../../api/field-errors.ts'
import type { JsonObject, JsonValue } from '../../api/json-value.ts'
import { applyJsonPatch } from '../../api/patch/json-patch.ts'
import { applyMergePatch } from '../../api/patch/merge-patch.ts'
import { mergeShapeOf } from '../../api/patch/merge-shape.ts'
import { PatchError } from '../../api/patch/patch-error.ts'
import { strategicMerge } from '../../api/patch/strategic-merge.ts'
import { badRequest, invalid, patchTooLarge, unsupportedMediaType } from '../../api/status-error.ts'
import { mediaType, type ParsedBody, parseJsonBody } from '../http/body.ts'
import type { FieldValidation } from '../http/options.ts'
import type { Resource } from '../resources.ts'

export const APPLY_MEDIA = 'application/apply-patch+yaml' // apply-object.ts

export const PATCH_MEDIA = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
] as const

export interface Patch {
  /** The patched object, decoded; throws 4xx. */
  apply(old: any): any
  /** Findings of the last application, for Warning headers. */
  warnings(): readonly string[]
}

export function parsePatch(
  bytes: Uint8Array,
  contentType: string | undefined,
  resource: Resource,
  name: string,
  validation: FieldValidation,
): Patch {
  const body = parseMedia(contentType, bytes)
  return patchOf(mediaType(contentType), body, resource, name, validation)
}

/** The same for a body that was parsed already. */
export function patchOf(
  media: string,
  body: ParsedBody,
  resource: Resource,
  name: string,
  validation: FieldValidation,
): Patch {
  const transform = transformOf(media, body, resource)
  const duplicates = validation === 'Ignore' ? [] : body.duplicates().map((path) => `duplicate field "${path}"`)
  let warnings: readonly string[] = []
  return {
    warnings: () => warnings,
    apply(old) {
      // Patches may name apiVersion and kind; they must find them, and may not change them.
      const before = { kind: resource.kind.kind, apiVersion: resource.apiVersion, ...old }
      let patched: unknown
      try {
        patched = transform(before)
      } catch (error) {
        if (!(error instanceof PatchError)) throw error
        if (error.failure === 'malformed') throw badRequest(`the patch could not be read: ${error.message}`)
        if (error.failure === 'too large') throw patchTooLarge(error.message)
        throw cannotApply(resource, name, error.message)
      }
      checkStillSameKind(patched, resource)
      const result = decodePatched(patched, old, { resource, name, validation, duplicates })
      warnings = result.warnings
      return result.object
    },
  }
}

function parseMedia(contentType: string | undefined, bytes: Uint8Array): ParsedBody {
  const media = mediaType(contentType)
  if (!(PATCH_MEDIA as readonly string[]).includes(media))
    throw unsupportedMediaType(media, [APPLY_MEDIA, ...PATCH_MEDIA])
  return parseJsonBody(bytes)
}

function transformOf(media: string, body: ParsedBody, resource: Resource): (old: any) => unknown {
  switch (media) {
    case 'application/json-patch+json': {
      const operations = body.value as JsonValue
      return (old) => applyJsonPatch(old, operations)
    }
    case 'application/merge-patch+json': {
      const patch = objectIn(body)
      return (old) => applyMergePatch(old, patch)
    }
    default: {
      const patch = objectIn(body)
      return (old) => strategicMerge(old, patch, mergeShapeOf(resource.kind.type))
    }
  }
}

function objectIn(body: ParsedBody): JsonObject {
  if (!isRecord(body.value)) throw badRequest('the patch must be a JSON object')
  return body.value as JsonObject
}

function checkStillSameKind(patched: unknown, resource: Resource): asserts patched is Record<string, unknown> {
  if (!isRecord(patched))
    throw badRequest(`the patch would turn the ${resource.kind.kind} into something that is no object`)
  if (patched.kind !== resource.kind.kind || patched.apiVersion !== resource.apiVersion) {
    throw badRequest(
      `the patch would change kind or apiVersion; they stay ${resource.kind.kind} and ${resource.apiVersion}`,
    )
  }
}

interface Patching {
  readonly resource: Resource
  readonly name: string
  readonly validation: FieldValidation
  readonly duplicates: readonly string[]
}

/** What the patch has left alone was decoded when it was stored, and is still the very same. */
function decodePatched(patched: unknown, old: object, { resource, name, validation, duplicates }: Patching) {
  try {
    const { object, unknown } = decode<any>(resource.kind.type, patched, ['apiVersion', 'kind'], { known: old })
    const findings = validation === 'Ignore' ? [] : [...unknown.map((path) => `unknown field "${path}"`), ...duplicates]
    if (findings.length > 0 && validation === 'Strict') {
      throw cannotApply(resource, name, `strict decoding error: ${findings.join(', ')}`)
    }
    return { object, warnings: findings }
  } catch (error) {
    if (error instanceof DecodeError) throw cannotApply(resource, name, error.message)
    throw error
  }
}

function cannotApply(resource: Resource, name: string, why: string) {
  const errors = new FieldErrors()
  errors.invalid('patch', undefined, why)
  return invalid(resource.kind, name, errors.list)
}
