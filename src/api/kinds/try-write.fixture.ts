// Test support: runs decoding, defaults and the rules of a kind on a new object or an edit of a stored one, as the API
// server does, and returns the object that would be stored, the validation errors and the warnings. The stored object is
// frozen, so that a test fails if a rule modifies it.
import { clone } from '../../base/clone.ts'
import { deepFreeze } from '../../base/freeze.ts'
import { decode } from '../decode.ts'
import { applyDefaults } from '../defaults.ts'
import { parseFeatureGates } from '../feature-gates.ts'
import { FieldErrors } from '../field-errors.ts'
import type { ExpansionQuota, Kind, KubeObject, RuleContext } from '../kind.ts'

export interface WriteResult<T> {
  readonly object: T
  /** Messages such as `spec.x: Required value`, in the order in which the rules add them. */
  readonly errors: readonly string[]
  readonly warnings: readonly string[]
}

export interface TryOptions {
  /** A value for --feature-gates. */
  readonly gates?: string
  readonly expansionQuota?: ExpansionQuota
  readonly now?: string
}

export function tryCreate<T extends KubeObject>(
  kind: Kind<T>,
  body: unknown,
  options: TryOptions = {},
): WriteResult<T> {
  const context = contextOf(options)
  const object = decode(kind.type, clone(body)).object as T & { status?: unknown }
  if (kind.status && !kind.status.isKeptOnCreate) delete object.status
  applyDefaults(kind.type, object as unknown as Record<string, unknown>)
  kind.defaults?.(object)
  const droppedWarnings = kind.droppedFieldWarnings?.(object, undefined, context) ?? []
  kind.prepareForCreate?.(object, context)
  const errors = new FieldErrors()
  kind.validate(object, errors, context)
  return createResult(object, errors, [...droppedWarnings, ...(kind.warnings?.(object, undefined) ?? [])])
}

/** A copy of a stored object, which tests can edit in ways that its type does not allow. */
export type Draft = any

/** Updates an object. `change` edits a copy of the stored object, as a client would. */
export function tryUpdate<T extends KubeObject>(
  kind: Kind<T>,
  storedObject: T,
  change: (draft: Draft) => void,
  options: TryOptions = {},
): WriteResult<T> {
  const context = contextOf(options)
  const old = frozenCopy(storedObject)
  const next = applyChange(kind, storedObject, change) as T & { status?: unknown }
  if (kind.status) next.status = clone((storedObject as { status?: unknown }).status)
  const droppedWarnings = kind.droppedFieldWarnings?.(next, old, context) ?? []
  kind.prepareForUpdate?.(next, old, context)
  const errors = new FieldErrors()
  kind.validate(next, errors, context, old)
  kind.validateUpdate?.(next, old, errors, context)
  return createResult(next, errors, [...droppedWarnings, ...(kind.warnings?.(next, old) ?? [])])
}

export function tryStatus<T extends KubeObject>(
  kind: Kind<T>,
  storedObject: T,
  change: (draft: Draft) => void,
  options: TryOptions = {},
): WriteResult<T> {
  const context = contextOf(options)
  const old = frozenCopy(storedObject)
  const next = {
    ...clone(storedObject),
    status: (applyChange(kind, storedObject, change) as { status?: unknown }).status,
  }
  kind.status?.prepare?.(next, old, context)
  const errors = new FieldErrors()
  kind.status?.validate?.(next, old, errors, context)
  return createResult(next, errors)
}

function applyChange<T extends KubeObject>(kind: Kind<T>, storedObject: T, change: (draft: Draft) => void): T {
  const draft = clone(storedObject)
  change(draft)
  const { object } = decode(kind.type, draft)
  applyDefaults(kind.type, object as unknown as Record<string, unknown>)
  kind.defaults?.(object)
  return object
}

const contextOf = (options: TryOptions): RuleContext => ({
  nowMs: Date.parse(options.now ?? '2026-01-02T03:04:05Z'),
  gates: parseFeatureGates(options.gates),
  expansionQuota: options.expansionQuota,
})

function createResult<T>(object: T, errors: FieldErrors, warnings: readonly string[] = []): WriteResult<T> {
  return { object, errors: errors.list.map(({ field, message }) => `${field}: ${message}`), warnings }
}

const frozenCopy = <T>(value: T): T => deepFreeze(clone(value))
