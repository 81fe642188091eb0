// The differences between OpenAPI 3 and Swagger 2 in writing the same schema.

/** A schema as JSON: `{ type: 'string', description: '…' }`. */
export type Schema = Readonly<Record<string, unknown>>

export interface Dialect {
  /** A reference to a named schema. */
  ref(name: string): Schema
  /** A reference with a description and other annotations of the referring field. */
  refWith(name: string, annotations: Schema): Schema
  /** A value of one of two types. */
  either(first: string, second: string): Schema
  /** Whether `default` is published. */
  readonly defaults: boolean
}

export const openApi3: Dialect = {
  ref: (name) => ({ $ref: `#/components/schemas/${name}` }),
  // OpenAPI 3 ignores siblings of $ref, so the annotations stand beside an allOf.
  refWith: (name, annotations) => ({ allOf: [{ $ref: `#/components/schemas/${name}` }], ...annotations }),
  either: (first, second) => ({ oneOf: [{ type: first }, { type: second }] }),
  defaults: true,
}

export const swagger2: Dialect = {
  ref: (name) => ({ $ref: `#/definitions/${name}` }),
  refWith: (name, annotations) => ({ $ref: `#/definitions/${name}`, ...annotations }),
  either: () => ({ type: 'string' }), // clients of Swagger 2 accept any scalar for a string
  defaults: false,
}
