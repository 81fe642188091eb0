// The declaration of a kind beyond its fields: names, scope, rules and columns. kinds/ has one folder per kind, and
// kinds/index.ts lists them; the API server derives all endpoints from that list.
//
// A write runs the hooks in this order, each on a private draft that it may change:
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
  /** Default: high-water-mark. */
  readonly expansionQuota?: ExpansionQuota
}

/**
 * What quota charges for a claim whose failed expansion was reverted: the largest size that it ever requested, or the
 * actual size of its volume.
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

interface ColumnContext {
  readonly nowMs: number
  /** All rows if the response is a list: a class is marked "(default)" by comparison with the others. */
  readonly siblings?: readonly KubeObject[]
}

interface StatusRules<T> {
  /** Whether a write to /status also updates labels, annotations and finalizers (most kinds do). */
  readonly acceptsMetadata: boolean
  /** Keeps the status that is sent with a create (a node registers with its status). */
  readonly keptOnCreate?: true
  /** Runs after spec was reset to that of the stored object. */
  prepare?(next: T, old: T, context: RuleContext): void
  validate?(next: T, old: T, errors: FieldErrors, context: RuleContext): void
}

/** Declared as a method type, so that a Kind<Claim> is assignable to a Kind: methods are compared bivariantly. */
type SelectableField<T> = { value(object: T): string }['value']

/** `Kind` without an argument is a kind of any object. */
export interface Kind<T extends KubeObject = KubeObject> {
  /** '' for the core group. */
  readonly group: string
  /** In order of preference. All versions of a kind have the same fields. */
  readonly versions: readonly string[]
  readonly kind: string
  readonly plural: string
  readonly singular: string
  readonly shortNames?: readonly string[]
  readonly categories?: readonly string[]
  readonly namespaced: boolean
  readonly type: ObjectType<T>

  /** Messages about an invalid `metadata.name`; empty if it is valid. */
  nameErrors(name: string): readonly string[]
  /** Defaults that depend on other fields; constant defaults are in the schema. */
  defaults?(object: T): void
  /** Converts amounts to their canonical unit. The object may be partial, as in an apply. */
  normalize?(part: Partial<T>): void
  prepareForCreate?(object: T, context: RuleContext): void
  prepareForUpdate?(next: T, old: T, context: RuleContext): void
  /** Validates an object on its own; `old` is the stored object on updates. */
  validate(object: T, errors: FieldErrors, context: RuleContext, old?: T): void
  /** Rejects changes of immutable fields. */
  validateUpdate?(next: T, old: T, errors: FieldErrors, context: RuleContext): void
  /** Messages for Warning headers; the write succeeds. */
  warnings?(object: T, old: T | undefined): readonly string[]
  /** Present when the kind has a status subresource. */
  readonly status?: StatusRules<T>

  /** Field selectors other than metadata.name and metadata.namespace. */
  readonly selectableFields?: { readonly [label: string]: SelectableField<T> }
  readonly columns: readonly Column<T>[]

  /** false: an update must carry metadata.resourceVersion. Default true. */
  readonly unconditionalUpdate?: boolean
  /** An update of an object that does not exist creates it. Default false. */
  readonly createOnUpdate?: boolean
  /** DELETE returns the object; otherwise a Status. */
  readonly deleteReturnsObject: boolean
  /** The part whose changes increment metadata.generation; absent for kinds without a generation. */
  generationOf?(object: T): unknown
  /** When the object expires (events). */
  expiresAtMs?(object: T, context: RuleContext): number | undefined
  /** The grace period of a delete; pods only. */
  gracePeriodSeconds?(object: T, requested: number | undefined): number

  /** Create-only, such as SubjectAccessReview: src/apiserver/reviews.ts computes the response and nothing is stored. */
  readonly isReview?: true
  /** Not implemented here: served as empty lists and idle watches for clients that wait for it, absent from discovery. */
  readonly isForeign?: true

  /** This kind shows the objects of another kind (events.k8s.io shows core events). */
  readonly viewOf?: {
    readonly kind: Kind
    toStored(object: T): KubeObject
    fromStored(stored: KubeObject): T
  }
}

/** Declares a kind; exists to infer the object's type from its schema. */
export const defineKind = <T extends KubeObject>(kind: Kind<T>): Kind<T> => kind
