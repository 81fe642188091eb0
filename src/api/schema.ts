// The vocabulary in which every kind is declared once. From one declaration come its TypeScript type
// (Infer), strict decoding (decode.ts), defaults (defaults.ts), merge rules for patches (merge-shape.ts),
// OpenAPI (../apiserver/openapi) and the field numbers of the binary wire format.
//
// A field says how it behaves when it is empty, because clients see the difference:
//   req  always present: absent becomes the zero value       containers[].name, provisioner
//   opt  an empty value is the same as none and is dropped   labels, readOnly: false
//   ptr  an empty value is a value and is kept               nodeTopology: {}, allowVolumeExpansion: false

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

export interface ScalarType<T = any> {
  readonly is: Scalar
  /** Values the field may take; published in OpenAPI. Enforcing them is validation's job. */
  readonly values?: readonly string[]
  readonly infer?: T
}
export interface ListType<T = any> {
  readonly is: 'list'
  readonly item: Type
  readonly infer?: T
}
export interface MapType<T = any> {
  readonly is: 'map'
  readonly value: Type
  readonly infer?: T
}
/** Any JSON value, kept as it is. `encoding` says how the binary format carries it. */
export interface JsonType<T = any> {
  readonly is: 'json'
  readonly encoding: 'raw' | 'fieldsV1'
  readonly infer?: T
}
export interface ObjectType<T = any, F extends Fields = Fields> {
  readonly is: 'object'
  /** The published schema name, such as `io.k8s.api.core.v1.PodSpec`. */
  readonly name: string
  readonly doc: string
  readonly fields: F
  /** Apply: owned as a whole wherever it is used, unless the field says otherwise. */
  readonly atomic?: true
  readonly infer?: T
}
export type Type<T = any> = ScalarType<T> | ListType<T> | MapType<T> | JsonType<T> | ObjectType<T>

export interface FieldExtras {
  /** Filled in on every write when the field is absent. */
  readonly default?: string | number | boolean | readonly string[]
  /** Strategic merge: the key that items are merged by, or '' for a list of scalars merged as a set. */
  readonly merge?: string
  /** Strategic merge: keys not named in a patch's `$retainKeys` are dropped (unions such as a pod's volumes). */
  readonly retainKeys?: boolean
  /** Apply: how a list is owned. Lists without a word are atomic. */
  readonly list?: 'atomic' | 'set' | 'map'
  /** Apply: the keys that identify an item of a `map` list. */
  readonly keys?: readonly string[]
  /** Apply: a map or object owned as a whole; false: field by field, although its type is atomic. */
  readonly atomic?: boolean
  /** In the binary format this field sits in an embedded message with this number, `tag` counting inside it. */
  readonly within?: number
}

export interface Field<T = any, Required extends boolean = boolean> extends FieldExtras {
  readonly type: Type<T>
  /** Number in the binary wire format. 0: never sent in it. */
  readonly tag: number
  readonly doc: string
  readonly required: Required
  /** An empty value is kept, because it differs from none. */
  readonly keepsEmpty: boolean
}

export type Fields = Readonly<Record<string, Field>>

type RequiredKeys<F> = { [K in keyof F]: F[K] extends Field<any, true> ? K : never }[keyof F]
type OptionalKeys<F> = { [K in keyof F]: F[K] extends Field<any, true> ? never : K }[keyof F]
type FieldValue<F> = F extends Field<infer T, any> ? T : never
export type InferFields<F> = { [K in RequiredKeys<F>]: FieldValue<F[K]> } & {
  [K in OptionalKeys<F>]?: FieldValue<F[K]>
}

/** The TypeScript type of what a declaration describes. */
export type Infer<T extends Type> = T extends Type<infer V> ? V : never

const scalar = <T>(is: Scalar): ScalarType<T> => ({ is })

export const string = scalar<string>('string')
export const boolean = scalar<boolean>('boolean')
export const int32 = scalar<number>('int32')
export const int64 = scalar<number>('int64')
export const double = scalar<number>('double')
/** Stored and answered in canonical form, whatever spelling came in. */
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

/** Fields that JSON shows beside their siblings, while the binary format keeps them in a message of their own. */
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
