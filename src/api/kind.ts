// The interface that declares a kind. kinds/index.ts lists the kinds of the API server.
//
// A write runs the hooks in this order, on a private draft. The draft of an update shares the parts that do not change with the
// stored object, unless the kind has `defaults`: the other hooks replace the parts that they change.
//   decode → defaults → (mutating admission) → the hooks of the operation → (validating admission)
//   create   prepareForCreate → validate
//   update   prepareForUpdate → validate → validateUpdate
//   status   status.prepare → status.validate; the same for approval and ephemeralContainers
import type { FeatureGates } from './feature-gates.ts'
import type { FieldErrors } from './field-errors.ts'
import type { ObjectMeta } from './kinds/shared/meta-schema.ts'
import type { ObjectType } from './schema.ts'

/** Any API object. Decoded objects have neither apiVersion nor kind, because the Kind that accompanies them has both. */
export interface KubeObject {
  metadata: ObjectMeta
}

/**
 * An object that an API server has stored, with a name, a uid and a resourceVersion. creationTimestamp is optional because
 * a cache may hold a reduced object without it.
 */
export type Stored<T extends KubeObject = KubeObject> = T & {
  readonly metadata: { readonly name: string; readonly uid: string; readonly resourceVersion: string }
}

export interface RuleContext {
  readonly nowMs: number
  readonly gates: FeatureGates
  /** The default is high-water-mark. */
  readonly expansionQuota?: ExpansionQuota
}

/** How quota charges a claim after a reverted expansion: by the largest requested size or by the actual volume size. */
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
  /** The cell is empty if the result is undefined. */
  cell(object: T, context: ColumnContext): string | number | boolean | null | undefined
}

export interface ColumnContext {
  readonly nowMs: number
  /** All objects of a list response. A class is marked "(default)" by comparison with the other classes. */
  readonly siblings?: readonly KubeObject[]
}

interface StatusRules<T> {
  /** Whether a write to /status also updates metadata. */
  readonly acceptsMetadata: boolean
  /** Set if a create keeps the status in the request, as for a node that registers itself. */
  readonly isKeptOnCreate?: true
  /** Runs after spec was reset to the stored object's spec. */
  prepare?(next: T, old: T, context: RuleContext): void
  validate?(next: T, old: T, errors: FieldErrors, context: RuleContext): void
}

/** A method type, because methods are compared bivariantly. This makes a Kind<Claim> assignable to a Kind. */
type SelectableField<T> = { value(object: T): string | undefined }['value']

/** The declaration of a kind. `Kind` without a type argument is any kind. */
export interface Kind<T extends KubeObject = KubeObject> {
  /** The API group; '' for the core group. */
  readonly group: string
  /** The served versions in order of preference. All versions of a kind have the same fields. */
  readonly versions: readonly string[]
  readonly kind: string
  readonly plural: string
  readonly singular: string
  readonly shortNames?: readonly string[]
  readonly categories?: readonly string[]
  readonly namespaced: boolean
  readonly type: ObjectType<T>

  /** Returns the problems of a `metadata.name`; empty if it is valid. */
  nameErrors(name: string): readonly string[]
  /** Applies defaults that depend on other fields. Constant defaults are in the schema. */
  defaults?(object: T): void
  /** Converts amounts to their canonical unit. The object may be partial, as in an apply. */
  normalize?(part: Partial<T>): void
  prepareForCreate?(object: T, context: RuleContext): void
  prepareForUpdate?(next: T, old: T, context: RuleContext): void
  /** Validates an object. On updates, `old` is the stored object. */
  validate(object: T, errors: FieldErrors, context: RuleContext, old?: T): void
  /** Validates the changes of an update. */
  validateUpdate?(next: T, old: T, errors: FieldErrors, context: RuleContext): void
  /** Returns messages for Warning headers about submitted fields that are dropped because their feature gate is disabled. */
  droppedFieldWarnings?(submitted: T, old: T | undefined, context: RuleContext): readonly string[]
  /** Returns messages for Warning headers. Warnings do not reject the write. */
  warnings?(object: T, old: T | undefined): readonly string[]
  /** The rules of the status subresource, if the kind has one. */
  readonly status?: StatusRules<T>
  /** The rules of the subresource approval, which changes status.conditions only, if the kind has one. */
  readonly approval?: Pick<StatusRules<T>, 'prepare' | 'validate'>
  /** The rules of the subresource ephemeralcontainers, which changes spec.ephemeralContainers only, if the kind has one. */
  readonly ephemeralContainers?: Pick<StatusRules<T>, 'prepare' | 'validate'>

  /** Field selectors other than metadata.name and metadata.namespace. */
  readonly selectableFields?: { readonly [label: string]: SelectableField<T> }
  readonly columns: readonly Column<T>[]

  /** Whether an update may omit metadata.resourceVersion. Default true. */
  readonly allowsUnconditionalUpdate?: boolean
  /** Whether an update of an object that does not exist creates it. Default false. */
  readonly allowsCreateOnUpdate?: boolean
  /** Whether a delete returns the object instead of a Status. */
  readonly deleteReturnsObject: boolean
  /** Returns the part of the object whose changes increment metadata.generation. */
  generationOf?(object: T): unknown
  /** Returns the time at which the object expires; events only. */
  expiresAtMs?(object: T, context: RuleContext): number | undefined
  /** Returns the grace period of a delete; pods only. */
  gracePeriodSeconds?(object: T, requestedSeconds: number | undefined): number

  /** Set for create-only kinds such as SubjectAccessReview. Their objects are not stored: the response has the result. */
  readonly isReview?: true
  /** Set for a kind that the server keeps in memory and that clients can only read. */
  readonly isVolatile?: true
  /** Set for kinds that clients cannot write. */
  readonly isForeign?: true
  /** Set for a foreign kind that discovery lists, because a client needs its name. The others are absent from discovery. */
  readonly isDiscoverable?: true

  /** Set for a kind that is stored as another kind: events of events.k8s.io are stored as core events. */
  readonly viewOf?: {
    readonly kind: Kind
    toStored(object: T): KubeObject
    fromStored(storedObject: KubeObject): T
  }
}

export const defineKind = <T extends KubeObject>(kind: Kind<T>): Kind<T> => kind
