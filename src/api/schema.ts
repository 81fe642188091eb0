// The functions and types that declare the fields of a kind. The TypeScript type (Infer) and the OpenAPI document are derived
// from the declaration, and decode.ts, decode-response.ts, defaults.ts, patch/, apply/ and protobuf/ use it at run time.
//
// Fields differ in how they handle empty values:
//   req  required: an absent value becomes the zero value     containers[].name, provisioner
//   opt  optional: an empty value is dropped                  labels, readOnly: false
//   ptr  pointer: an empty value is kept                      nodeTopology: {}, allowVolumeExpansion: false

export type Scalar =
  | 'string'
  | 'boolean'
  | 'int32'
  | 'int64'
  | 'double'
  | 'quantity'
  | 'time'
  | 'microTime'
  | 'bytes'
  | 'intOrString'

export interface ScalarType<T = unknown> {
  readonly is: Scalar
  /** Allowed values, for OpenAPI only. The validation rules of the kind enforce them. */
  readonly values?: readonly string[]
  readonly infer?: T
}
export interface ListType<T = unknown> {
  readonly is: 'list'
  readonly item: Type
  readonly infer?: T
}
export interface MapType<T = unknown> {
  readonly is: 'map'
  readonly value: Type
  readonly infer?: T
}
/** Any JSON value. `encoding` is its encoding in protobuf. */
export interface JsonType<T = unknown> {
  readonly is: 'json'
  readonly encoding: 'raw' | 'fieldsV1'
  readonly infer?: T
}
export interface ObjectType<T = unknown, F extends Fields = Fields> {
  readonly is: 'object'
  /** The published schema name, such as `io.k8s.api.core.v1.PodSpec`. */
  readonly name: string
  readonly doc: string
  readonly fields: F
  /** Apply: set if the object is owned as a whole. A field can override this. */
  readonly atomic?: true
  readonly infer?: T
}
export type Type<T = unknown> = ScalarType<T> | ListType<T> | MapType<T> | JsonType<T> | ObjectType<T>

export interface FieldExtras {
  /** The default, which is set on every write if the field is absent. */
  readonly default?: string | number | boolean | readonly string[]
  /** Strategic merge: the merge key of the items, or '' for a list of scalars that is merged as a set. */
  readonly merge?: string
  /** Strategic merge: whether clients send `$retainKeys`, as for unions such as pod volumes. */
  readonly retainKeys?: boolean
  /** Apply: ownership of a list. Default atomic. */
  readonly list?: 'atomic' | 'set' | 'map'
  /** Apply: the keys that identify an item of a `map` list. */
  readonly keys?: readonly string[]
  /** Apply: whether a map or object is owned as a whole. False overrides an atomic type. */
  readonly atomic?: boolean
  /** Protobuf: the number of the embedded message that contains the field; `tag` is the number in that message. */
  readonly within?: number
}

export interface Field<T = unknown, Required extends boolean = boolean> extends FieldExtras {
  readonly type: Type<T>
  /** Protobuf field number; 0 if the field is not part of the protobuf message. */
  readonly tag: number
  readonly doc: string
  readonly required: Required
  /** Whether an empty value is kept, because it differs from an absent one. */
  readonly keepsEmpty: boolean
}

export type Fields = Readonly<Record<string, Field>>

type RequiredKeys<F> = { [K in keyof F]: F[K] extends Field<unknown, true> ? K : never }[keyof F]
type OptionalKeys<F> = { [K in keyof F]: F[K] extends Field<unknown, true> ? never : K }[keyof F]
type FieldValue<F> = F extends Field<infer T, boolean> ? T : never
export type InferFields<F> = { [K in RequiredKeys<F>]: FieldValue<F[K]> } & {
  [K in OptionalKeys<F>]?: FieldValue<F[K]>
}

/** A value whose Type or Shape is only known at run time. Code that handles it switches on `is`. */
// biome-ignore lint/suspicious/noExplicitAny: narrowing by another variable's `is` cannot be expressed in TypeScript
export type DeclaredValue = any

/** The TypeScript type of a declaration. */
export type Infer<T extends Type> = T extends Type<infer V> ? V : never

const scalar = <T>(is: Scalar): ScalarType<T> => ({ is })

export const string = scalar<string>('string')
export const boolean = scalar<boolean>('boolean')
export const int32 = scalar<number>('int32')
export const int64 = scalar<number>('int64')
export const double = scalar<number>('double')
/** Stored and returned in canonical form. */
export const quantity = scalar<string>('quantity')
/** RFC 3339 in UTC, whole seconds. */
export const time = scalar<string>('time')
/** RFC 3339 in UTC with microseconds. */
export const microTime = scalar<string>('microTime')
/** Base64 text in JSON. */
export const bytes = scalar<string>('bytes')
export const intOrString = scalar<number | string>('intOrString')
export const rawJson: JsonType<unknown> = { is: 'json', encoding: 'raw' }
export const fieldsV1: JsonType<Record<string, unknown>> = { is: 'json', encoding: 'fieldsV1' }

export const oneOf = <const V extends readonly string[]>(...values: V): ScalarType<V[number]> => ({
  is: 'string',
  values,
})
export const list = <T>(item: Type<T>): ListType<T[]> => ({ is: 'list', item })
export const map = <T>(value: Type<T>): MapType<Record<string, T>> => ({ is: 'map', value })
export const object = <const F extends Fields>(
  name: string,
  doc: string,
  fields: F,
  extras: { readonly atomic?: true } = {},
): ObjectType<InferFields<F>, F> => ({
  is: 'object',
  name,
  doc,
  fields,
  ...extras,
})

/** Declares fields that are inlined in JSON but belong to an embedded message in protobuf. */
export const within = <const F extends Fields>(tag: number, fields: F): F =>
  Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, { ...field, within: tag }])) as unknown as F

export const req = <T>(tag: number, type: Type<T>, doc: string, extras: FieldExtras = {}): Field<T, true> => ({
  type,
  tag,
  doc,
  required: true,
  keepsEmpty: true,
  ...extras,
})
export const opt = <T>(tag: number, type: Type<T>, doc: string, extras: FieldExtras = {}): Field<T, false> => ({
  type,
  tag,
  doc,
  required: false,
  keepsEmpty: false,
  ...extras,
})
export const ptr = <T>(tag: number, type: Type<T>, doc: string, extras: FieldExtras = {}): Field<T, false> => ({
  type,
  tag,
  doc,
  required: false,
  keepsEmpty: true,
  ...extras,
})
