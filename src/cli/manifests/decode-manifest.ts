// Decodes a manifest into an object as the API server would store it: strict decoding, defaults, and the validation of
// its kind. An object that the server would reject causes a UsageError that names the file and the document.
import { DecodeError, decode } from '../../api/decode.ts'
import { applyDefaults } from '../../api/defaults.ts'
import { allGatesOn } from '../../api/feature-gates.ts'
import { FieldErrors, formatFieldErrors } from '../../api/field-errors.ts'
import type { Kind, KubeObject, Stored } from '../../api/kind.ts'
import { validateMeta } from '../../api/meta.ts'
import { timestamp } from '../../base/timestamps.ts'
import { UsageError } from '../../base/usage-error.ts'
import type { Manifest } from './read-manifests.ts'

export interface DecodeContext {
  /** The namespace of objects whose manifest names none. */
  readonly namespace: string
  readonly nowMs: number
}

export function decodeManifest<T extends KubeObject>(
  kind: Kind<T>,
  { source, apiVersion, value }: Manifest,
  { namespace, nowMs }: DecodeContext,
): Stored<T> {
  const apiVersions = kind.versions.map((version) => (kind.group ? `${kind.group}/${version}` : version))
  if (!apiVersions.includes(apiVersion))
    throw new UsageError(`${source}: ${kind.kind} has the apiVersion ${apiVersions.join(' or ')}, not ${apiVersion}`)
  const object = decodeStrictly(kind, source, value)
  const { metadata } = object
  metadata.name ??= metadata.generateName && `${metadata.generateName}simulated`
  if (kind.namespaced) metadata.namespace ??= namespace
  metadata.uid = `${kind.singular} ${metadata.namespace ?? ''}/${metadata.name ?? ''}` // unique among decoded objects
  metadata.resourceVersion = '0'
  metadata.creationTimestamp = timestamp(nowMs)
  if (kind.status && !kind.status.isKeptOnCreate) delete object.status
  applyDefaults(kind.type, object as unknown as Record<string, unknown>)
  kind.defaults?.(object)
  const context = { nowMs, gates: allGatesOn }
  kind.prepareForCreate?.(object, context)
  const errors = new FieldErrors()
  validateMeta(kind, metadata, errors)
  kind.validate(object, errors, context)
  if (errors.hasErrors) {
    const name = JSON.stringify(metadata.name ?? '')
    throw new UsageError(`${source}: the server would reject ${kind.kind} ${name}: ${formatFieldErrors(errors.list)}`)
  }
  return object as unknown as Stored<T>
}

function decodeStrictly<T extends KubeObject>(kind: Kind<T>, source: string, value: unknown): T & { status?: unknown } {
  try {
    const { object, unknownFields } = decode(kind.type, value, ['apiVersion', 'kind'])
    if (unknownFields.length > 0)
      throw new UsageError(
        `${source}: ${kind.kind} has no field ${unknownFields.map((field) => JSON.stringify(field)).join(', ')}`,
      )
    return object as T & { status?: unknown }
  } catch (error) {
    if (error instanceof DecodeError) throw new UsageError(`${source}: ${error.message}`)
    throw error
  }
}
