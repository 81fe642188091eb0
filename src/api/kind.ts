// What the system must know about a kind of object beyond its fields: names, scope, rules, columns.
// kinds/ has one file per kind; kinds/index.ts lists them; the API server asks nothing else.
//
// The hooks run in this order on a write, each on a private draft it may change:
//   decode → defaults → (mutating admission) → prepareForCreate | prepareForUpdate | status.prepare
//   → validate (+ validateUpdate | status.validate) → (validating admission) → commit
import type { FeatureGates } from './feature-gates.ts'
import type { FieldErrors } from './field-errors.ts'
import type { ObjectMeta } from './kinds/shared/meta-schema.ts'
import type { ObjectType } from './schema.ts'

/** Any API object. Apart from the wire, objects carry no apiVersion and kind: the Kind passed along with them has both. */
export interface KubeObject {
  metadata: ObjectMeta
}

/**
 * An object that an API server has stored: it has a name, a uid and a resourceVersion. Clients return it and caches hold
 * it. A cache may hold a reduced form without creationTimestamp, so that one stays optional.
 */
export type Stored<T extends KubeObject = KubeObject> = T & {
  readonly metadata: { readonly name: string; readonly uid: string; readonly resourceVersion: string }
}

export interface RuleContext {
  readonly nowMs: number
  readonly gates: FeatureGates
  /** Absent: the high-water mark. */
  readonly expansionQuota?: ExpansionQuota
}

/**
 * What a claim is charged after a growth that failed and was taken back: the largest size it ever asked for, or the
 * one its volume turned out to have.
 */
export const EXPANSION_QUOTAS = ['high-water-mark', 'actual'] as const
export type ExpansionQuota = (typeof EXPANSION_QUOTAS)[number]

export interface Column<T> {
  readonly name: string
  readonly type: 'string' | 'integer' | 'boolean' | 'date'
  /** `name` for the column that holds the object's name. */
  readonly format?: 'name'
  readonly doc: string
  /** Shown by `-o wide` only. */
  readonly wide?: true
  cell(object: T, context: ColumnContext): string | number | boolean | null
}

export interface ColumnContext {
  readonly nowMs: number
  /** All rows of the answer when it is a list (a class is marked "(default)" only among its siblings). */
  readonly siblings?: readonly KubeObject[]
}

export interface StatusRules<T> {
  /** Whether /status also takes labels, annotations and finalizers from the body (most kinds do). */
  readonly acceptsMetadata: boolean
  /** Status sent with a create is kept (a node registers with its status). */
  readonly keptOnCreate?: true
  /** After spec was restored from the stored object. */
  prepare?(next: T, old: T, context: RuleContext): void
  validate?(next: T, old: T, errors: FieldErrors, context: RuleContext): void
}

/** Declared as a method type, so that a Kind<Claim> is assignable to a Kind: methods are compared bivariantly. */
type SelectableField<T> = { value(object: T): string }['value']

/** `Kind` without an argument is a kind of any object. */
export interface Kind<T extends KubeObject = KubeObject> {
  /** '' for the core group. */
  readonly group: string
  /** Preference order. All versions of a kind have one shape. */
  readonly versions: readonly string[]
  readonly kind: string
  readonly plural: string
  readonly singular: string
  readonly shortNames?: readonly string[]
  readonly categories?: readonly string[]
  readonly namespaced: boolean
  readonly type: ObjectType<T>

  /** Messages about a bad `metadata.name`, none when it is good. */
  nameErrors(name: string): readonly string[]
  /** Defaults that depend on other fields; constant ones stand in the declaration. */
  defaults?(object: T): void
  /** Writes amounts in their one unit; also of a part of an object, which is all that an apply sends. */
  normalize?(part: Partial<T>): void
  prepareForCreate?(object: T, context: RuleContext): void
  prepareForUpdate?(next: T, old: T, context: RuleContext): void
  /** Everything that must hold of an object on its own; `old` is the stored object on updates. */
  validate(object: T, errors: FieldErrors, context: RuleContext, old?: T): void
  /** What may not change. */
  validateUpdate?(next: T, old: T, errors: FieldErrors, context: RuleContext): void
  /** Things worth a Warning header: the write succeeds. */
  warnings?(object: T, old: T | undefined): readonly string[]
  /** Present when the kind has a status subresource. */
  readonly status?: StatusRules<T>

  /** Field selector labels beside metadata.name and metadata.namespace. */
  readonly selectableFields?: { readonly [label: string]: SelectableField<T> }
  readonly columns: readonly Column<T>[]

  /** false: an update must carry metadata.resourceVersion. Default true. */
  readonly unconditionalUpdate?: boolean
  /** An update of an object that does not exist creates it. Default false. */
  readonly createOnUpdate?: boolean
  /** DELETE answers the object; otherwise a Status. */
  readonly deleteReturnsObject: boolean
  /** The part whose change raises metadata.generation; absent: the kind has no generation. */
  generationOf?(object: T): unknown
  /** When the object goes away by itself (events). */
  expiresAtMs?(object: T, context: RuleContext): number | undefined
  /** How long a delete lets the object live on; pods only. */
  gracePeriodSeconds?(object: T, asked: number | undefined): number

  /** A question: POST is answered (src/apiserver/reviews.ts), nothing is stored, and there is nothing to read. */
  readonly isReview?: true
  /** Not ours: served as empty lists and quiet watches for clients that wait for them, and announced nowhere. */
  readonly isForeign?: true

  /** This kind is another face of a stored kind (events.k8s.io shows core events). */
  readonly viewOf?: {
    readonly kind: Kind
    toStored(object: T): KubeObject
    fromStored(stored: any): T
  }
}

/** For code that reads fields of objects whose kind is known at run time only, as generic tests do. Elsewhere use `Kind`. */
// biome-ignore lint/suspicious/noExplicitAny: the point of the alias; every use of it is a deliberate one
export type AnyKind = Kind<any>

/** Declares a kind; exists to infer the object's type from its schema. */
export const defineKind = <T extends KubeObject>(kind: Kind<T>): Kind<T> => kind
