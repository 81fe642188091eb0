// Reads and formats the annotation in which client-side `kubectl apply` stores its last configuration. When such an object
// moves to server-side apply, kubectl owns the fields that still have their last applied values, to avoid conflicts.
import { decode, isRecord } from '../decode.ts'
import type { JsonObject } from '../json-value.ts'
import type { DeclaredValue, ObjectType } from '../schema.ts'
import { compareStates } from './compare-states.ts'
import { difference, type FieldSet } from './field-set.ts'
import { objectShape } from './shape.ts'
import { appliedFields } from './value-fields.ts'

export const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'
/** The only manager for which the annotation is read and updated. A client opts out by using another name. */
export const LAST_APPLIED_MANAGER = 'kubectl'

/** Returns the fields that still have their last applied values, or undefined without a usable annotation. */
export function lastAppliedFields(type: ObjectType, live: DeclaredValue, apiVersion: string): FieldSet | undefined {
  const config = parseConfig(live.metadata?.annotations?.[LAST_APPLIED])
  if (!config || config.apiVersion !== apiVersion) return undefined
  const shape = objectShape(type)
  const object = decodePartial(type, config)
  if (!object) return undefined
  const { removed, modified } = compareStates(shape, object, live)
  return difference(difference(appliedFields(shape, object), modified), removed)
}

/** Returns the new value of the annotation: the configuration without the annotation itself. */
export function lastAppliedText(config: JsonObject): string {
  const metadata = isRecord(config.metadata) ? config.metadata : {}
  if (!isRecord(metadata.annotations)) return `${JSON.stringify(config)}\n`
  const { [LAST_APPLIED]: _, ...annotations } = metadata.annotations
  return `${JSON.stringify({ ...config, metadata: { ...metadata, annotations } })}\n`
}

function parseConfig(text: unknown): JsonObject | undefined {
  if (typeof text !== 'string' || text === '') return undefined
  try {
    const config = JSON.parse(text)
    return isRecord(config) ? (config as JsonObject) : undefined
  } catch {
    return undefined
  }
}

function decodePartial(type: ObjectType, config: JsonObject): Record<string, unknown> | undefined {
  try {
    const { object, unknownFields } = decode(type, config, ['apiVersion', 'kind'], { isPartial: true })
    return unknownFields.length > 0 ? undefined : (object as Record<string, unknown>)
  } catch {
    return undefined
  }
}
