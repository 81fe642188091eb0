// Test support: runs a kind's rules on the body of a write, as the API server does, and returns the object that would be
// stored and the validation errors; try-write.fixture.ts takes an edit of the stored object instead of a body. Also reads
// the cells of an object's table row.

import { clone } from '../../base/clone.ts'
import { cellOf } from '../columns.ts'
import { decode } from '../decode.ts'
import { applyDefaults } from '../defaults.ts'
import { allGatesOn, type FeatureGates } from '../feature-gates.ts'
import { FieldErrors } from '../field-errors.ts'
import type { Kind, KubeObject, RuleContext } from '../kind.ts'

export interface RuleResult<T> {
  readonly object: T
  /** Messages such as `spec.x: Required value`, in the order in which the rules add them. */
  readonly errors: readonly string[]
}

export interface RuleOptions {
  readonly gates?: FeatureGates
  readonly nowMs?: number
}

export const FIXTURE_NOW_MS = Date.parse('2026-01-02T03:04:05Z')

export function tryCreate<T extends KubeObject>(kind: Kind<T>, body: object, options?: RuleOptions): RuleResult<T> {
  const object = decodeBody(kind, body)
  const context = contextOf(options)
  if (kind.status && !kind.status.isKeptOnCreate) delete (object as { status?: unknown }).status
  kind.defaults?.(object)
  kind.prepareForCreate?.(object, context)
  return runValidation(object, (errors) => kind.validate(object, errors, context))
}

/** Validates the body of a PUT against the stored object. */
export function tryUpdate<T extends KubeObject>(
  kind: Kind<T>,
  old: T,
  body: object,
  options?: RuleOptions,
): RuleResult<T> {
  const next = decodeBody(kind, body)
  const context = contextOf(options)
  if (kind.status) Object.assign(next, { status: clone((old as { status?: unknown }).status) })
  kind.defaults?.(next)
  kind.prepareForUpdate?.(next, old, context)
  return runValidation(next, (errors) => {
    kind.validate(next, errors, context, old)
    kind.validateUpdate?.(next, old, errors, context)
  })
}

/** Validates a new status for the stored object. */
export function tryStatus<T extends KubeObject>(
  kind: Kind<T>,
  old: T,
  status: object,
  options?: RuleOptions,
): RuleResult<T> {
  const next = decodeBody(kind, { ...clone(old), status })
  const context = contextOf(options)
  kind.defaults?.(next)
  kind.status?.prepare?.(next, old, context)
  return runValidation(next, (errors) => kind.status?.validate?.(next, old, errors, context))
}

/** Returns the cells of a table row by column name. */
export function cellsOf<T extends KubeObject>(
  kind: Kind<T>,
  object: T,
  nowMs = FIXTURE_NOW_MS,
): Record<string, unknown> {
  return Object.fromEntries(kind.columns.map((column) => [column.name, cellOf(column, object, { nowMs })]))
}

function decodeBody<T extends KubeObject>(kind: Kind<T>, body: object): T {
  const { object, unknownFields } = decode(kind.type, { metadata: {}, ...body })
  if (unknownFields.length > 0) throw new Error(`${kind.kind} has no field ${unknownFields.join(', ')}`)
  applyDefaults(kind.type, object as unknown as Record<string, unknown>)
  return object
}

function runValidation<T>(object: T, validate: (errors: FieldErrors) => void): RuleResult<T> {
  const errors = new FieldErrors()
  validate(errors)
  return { object, errors: errors.list.map(({ field, message }) => `${field}: ${message}`) }
}

const contextOf = ({ gates = allGatesOn, nowMs = FIXTURE_NOW_MS }: RuleOptions = {}): RuleContext => ({ gates, nowMs })
